"""Deadlock reports: which processes wait for what, and the cycle of processes that wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .processes import Process, Wait

__all__ = ["Deadlock", "DeadlockReport", "held_up_by", "report"]

MOST_NAMED = 8
"""Processes that the text names."""


@dataclass(frozen=True)
class DeadlockReport:
    """The time of a deadlock, what each process waits for, and the cycle; empty where no process could end a wait."""

    time: int
    waiting: tuple[tuple[str, str], ...]
    cycle: tuple[str, ...]

    def __str__(self) -> str:
        named = [f"{name} waits for {what}" for name, what in self.waiting[:MOST_NAMED]]
        more = f" and {len(self.waiting) - MOST_NAMED} more" if len(self.waiting) > MOST_NAMED else ""
        circle = "; in a circle: " + " -> ".join((*self.cycle, self.cycle[0])) if self.cycle else ""
        return f"deadlock at {self.time} ps: {'; '.join(named) or 'nothing is left to do'}{more}{circle}"


class Deadlock(Exception):
    """Raised when no event is due and processes still wait."""

    def __init__(self, found: DeadlockReport) -> None:
        super().__init__(str(found))
        self.report = found


def held_up_by(processes: Sequence[Process]) -> list[Wait]:
    """What processes wait for, and, transitively, what the processes that could wake them wait for."""
    found: list[Wait] = []
    seen: dict[Process, None] = {}
    left = list(processes)
    while left:
        process = left.pop()
        if process in seen or process.done or process.waits_for is None:
            continue
        seen[process] = None
        found.append(process.waits_for)
        left += process.waits_for.wakers()
    return found


def report(time: int, waiting: Sequence[Process]) -> DeadlockReport:
    """The report on processes that wait."""
    described = tuple((each.name, each.waits_for.describe() if each.waits_for else "") for each in waiting)
    return DeadlockReport(time, described, tuple(each.name for each in _cycle(waiting)))


def _cycle(waiting: Sequence[Process]) -> list[Process]:
    """The first cycle found by following, from each process, the first of those it waits for."""
    settled: set[int] = set()
    for start in waiting:
        path: list[Process] = []
        here: Process | None = start
        while here is not None and here not in path and id(here) not in settled:
            path.append(here)
            here = _first_waker(here)
        if here is not None and here in path:
            return path[path.index(here) :]
        settled.update(id(each) for each in path)
    return []


def _first_waker(process: Process) -> Process | None:
    wakers = process.waits_for.wakers() if process.waits_for is not None else ()
    return next((each for each in wakers if not each.done), None)
