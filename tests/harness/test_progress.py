"""How far a run is: by the seconds that cases take, and what is left of them."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter

from tessera_conformance.terminal.progress import PYTEST, WIDEST, Progress, in_minutes


class Reporter:
    """As much of pytest's as is replaced."""

    def __init__(self) -> None:
        self._screen_width, self._show_progress_info = 80, "progress"

    def _get_progress_information_message(self) -> str:
        return " [ 50%]"


@pytest.fixture
def begun() -> tuple[Progress, Reporter, list[float]]:
    """A run of four cases, of which the last takes nine tenths of the time; and its clock."""
    reporter, clock = Reporter(), [0.0]
    plugins = SimpleNamespace(get_plugin=lambda name: reporter)
    config: Any = SimpleNamespace(pluginmanager=plugins)
    seconds = {"a": 1.0, "b": 1.0, "c": 1.0, "long": 27.0}
    progress = Progress(config, lambda nodes: {node: seconds[node] for node in nodes}, lambda: clock[0])
    items = [SimpleNamespace(nodeid=name) for name in seconds]
    progress.pytest_collection_finish(SimpleNamespace(items=items))  # type: ignore[arg-type]
    return progress, reporter, clock


def ends(progress: Progress, node: str, outcome: str = "passed") -> None:
    for when in ("setup", "call", "teardown"):
        skipped = outcome == "skipped" and when == "call"
        progress.pytest_runtest_logreport(SimpleNamespace(nodeid=node, when=when, skipped=skipped))  # type: ignore[arg-type]


def test_the_time_left_follows_from_the_seconds_of_the_cases(begun: Any) -> None:
    progress, reporter, clock = begun
    ends(progress, "a")
    clock[0] = 5.0
    ends(progress, "b")
    ends(progress, "c")
    assert reporter._get_progress_information_message() == " [ 10%, 1/s, 0:45 left]"
    clock[0] = 30.0
    ends(progress, "long")
    assert progress.message() == " [100%, 0/s, 0:30]"


def test_a_case_that_does_not_apply_takes_no_time(begun: Any) -> None:
    progress, _, clock = begun
    ends(progress, "a")
    clock[0] = 2.0
    ends(progress, "long", "skipped")
    assert progress.message() == " [ 33%, 1/s, 0:04 left]"


def test_nothing_is_said_of_the_rate_at_first(begun: Any) -> None:
    progress, reporter, _ = begun
    ends(progress, "a")
    assert progress.message() == " [  3%]"
    assert reporter._screen_width == 80 - WIDEST + PYTEST


def test_a_run_with_other_tests_keeps_the_percentage_of_pytest() -> None:
    reporter = Reporter()
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda name: reporter))
    Progress(config, lambda nodes: {})._begin(["tests/test_a.py::test_b"])
    assert reporter._get_progress_information_message() == " [ 50%]"
    assert reporter._screen_width == 80


@pytest.mark.parametrize(("seconds", "text"), [(4.4, "0:04"), (70, "1:10"), (3599, "59:59"), (7300, "2 h")])
def test_minutes(seconds: float, text: str) -> None:
    assert in_minutes(seconds) == text


def test_pytest_has_what_is_replaced() -> None:
    """Another version that calls it otherwise keeps its percentage; this says so."""
    source = inspect.getsource(TerminalReporter)
    for name in ("def _get_progress_information_message(", "self._screen_width = ", "self._show_progress_info ="):
        assert name in source
