"""Progress of a run by the seconds that its cases take, in the place of pytest's percentage of their number."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

LEAST = 1.0
"""Seconds before a rate says anything."""
WIDEST = len(" [100%, 9999/s, 59:59 left]")
PYTEST = len(" [100%]")


class Progress:
    """A plugin that writes `[ 43%, 210/s, 1:10 left]` at the end of each line of dots.

    `seconds` tells about how long each case takes by the node ids of the run, or nothing where some test of the run is
    no case. A case that turns out not to apply takes no time, and no longer counts.
    """

    def __init__(
        self,
        config: pytest.Config,
        seconds: Callable[[list[str]], Mapping[str, float]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config, self._seconds_of, self._clock = config, seconds, clock
        self._left: dict[str, float] = {}
        self._done = 0.0
        self._cases = 0
        self._started: float | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Begin with the cases of this process."""
        self._begin([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Begin with what the first worker has collected."""
        self._begin(list(ids))

    def _begin(self, nodes: list[str]) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        known = ("_get_progress_information_message", "_screen_width", "_show_progress_info")
        if self._left or reporter is None or not all(hasattr(reporter, name) for name in known):
            return
        self._left = dict(self._seconds_of(nodes))
        if self._left and reporter._show_progress_info == "progress":
            reporter._get_progress_information_message = self.message
            reporter._screen_width -= WIDEST - PYTEST

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a case that ended."""
        if self._started is None:
            self._started = self._clock()
        if report.skipped and not hasattr(report, "wasxfail"):
            self._left[report.nodeid] = 0.0
        if report.when not in ("setup", "call"):
            self._done += self._left.pop(report.nodeid, 0.0)
            self._cases += 1

    def message(self) -> str:
        """Return the share of the cases' time that is done, cases a second, and the time left."""
        left = sum(self._left.values())
        whole = self._done + left
        parts = [f"{int(100 * self._done / whole) if whole and self._left else 100:3d}%"]
        elapsed = self._clock() - self._started if self._started is not None else 0.0
        if elapsed >= LEAST and self._done:
            parts.append(f"{self._cases / elapsed:.0f}/s")
            parts.append(f"{in_minutes(elapsed * left / self._done)} left" if self._left else in_minutes(elapsed))
        return f" [{', '.join(parts)}]"


def in_minutes(seconds: float) -> str:
    """`1:10`; `2 h` where it is hours."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}" if whole < 6000 else f"{whole / 3600:.0f} h"
