"""Figures of a benchmark run: ours beside its peer, measured in turns in the same run."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias


@dataclass(frozen=True)
class Measurement:
    """`ours` and `peer` in seconds, or thousands of `peer_unit`.

    `limit`, promised, bounds `figure` from above or, `at_least`, from below.
    """

    name: str
    ours: float
    peer_name: str
    peer: float
    figure: float
    unit: str
    limit: float | None
    at_least: bool = False
    peer_unit: str = "ms"

    @property
    def met(self) -> bool:
        """True if the figure is within its limit."""
        if self.limit is None:
            return True
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit

    def row(self) -> str:
        """A line of the table."""
        ratio = f"{self.ours / self.peer:8.2f}x {self.peer_name} ({self.peer * 1e3:.3f} {self.peer_unit})"
        bound = "" if self.limit is None else f"{'>=' if self.at_least else '<='} {self.limit:g}"
        state = "" if self.limit is None else "met" if self.met else "MISSED"
        return f"{self.name:34s} {self.figure:9.3f} {self.unit:8s} {bound:8s} {state:6s} {ratio}"


@dataclass(frozen=True)
class NotMeasured:
    """A figure whose peer is missing, and the command that installs it."""

    name: str
    install: str
    met: bool = True

    def row(self) -> str:
        """A line of the table."""
        return f"{self.name:34s} not measured: {self.install}"


def seconds(action: Callable[[], object]) -> float:
    """Processor time of one call."""
    started = time.process_time()
    action()
    return time.process_time() - started


Outcome: TypeAlias = Measurement | NotMeasured


def cpu_of_children() -> float:
    """Seconds of processor time, user and system, of the processes that this one started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def in_turns(
    ours: Callable[[], object], peer: Callable[[], object], rounds: int, clock: Callable[[], float] = time.process_time
) -> tuple[float, float]:
    """Median seconds of each by a clock, of processor time unless given, run alternately; first calls do not count."""
    times: tuple[list[float], list[float]] = ([], [])
    ours(), peer()
    for _ in range(rounds):
        for action, kept in zip((ours, peer), times, strict=True):
            started = clock()
            action()
            kept.append(clock() - started)
    return median(times[0]), median(times[1])
