"""Units of work: tasks that a worker does one after the other, in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

UNITS_PER_SLOT = 4
"""So many units for each process that the workers run at a time, so that they end about together."""


@dataclass(frozen=True)
class Unit:
    """Tasks by name, in the order in which they are done, and about how many seconds they take."""

    tasks: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Lost:
    """What stands for the result of a task that has none."""

    reason: str
    by_task: bool
    """Whether the process that did this very task died of it; else the cluster or the harness is at fault."""


def units_of(tasks: Sequence[str], seconds_of: Callable[[str], float], slots: int, least_seconds: float) -> list[Unit]:
    """The tasks cut into units, those that take longest first.

    Neighbours stay together, since they need the same files. No unit is cut shorter than `least_seconds`, below which
    starting its process takes longer than its tasks.
    """
    target = max(least_seconds, sum(map(seconds_of, tasks)) / (UNITS_PER_SLOT * max(slots, 1)))
    return sorted(_cut(tasks, seconds_of, target), key=lambda unit: -unit.seconds)


def _cut(tasks: Sequence[str], seconds_of: Callable[[str], float], target: float) -> Iterator[Unit]:
    waiting: list[str] = []
    seconds = 0.0
    for task in tasks:
        waiting.append(task)
        seconds += seconds_of(task)
        if seconds >= target:
            yield Unit(tuple(waiting), seconds)
            waiting, seconds = [], 0.0
    if waiting:
        yield Unit(tuple(waiting), seconds)
