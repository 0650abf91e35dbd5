"""Another execution of a package that ended in a deadlock, with other settings and within a bound of steps."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import RunError
from ..knobs import capacity_of
from ..mitigations import AMPLE, Trial
from .machine import Machine
from .states import ProcessState

__all__ = ["LEAST_STEPS", "Steps", "StepsSpent", "outcome_of", "progress"]

LEAST_STEPS = 200_000
"""The steps of statements that a search may take in all, beside what the deadlocked run itself suggests."""


class StepsSpent(Exception):
    """The bound of a search is reached."""


class Steps:
    """The steps that a search has left, of which each execution may take a quarter."""

    def __init__(self, left: int) -> None:
        self.left = left
        self._end = 0

    def count(self, machine: Machine) -> None:
        """Count the steps of the processes of another execution, which has not begun."""
        self._end = self.left - self.left // 4
        for process in machine.processes:
            process.code = [self._counted(step) for step in process.code]

    def _counted(self, step: Callable[[ProcessState], int]) -> Callable[[ProcessState], int]:
        def counted(process: ProcessState) -> int:
            if self.left <= self._end:
                raise StepsSpent
            self.left -= 1
            return step(process)

        return counted


def progress(machine: Machine) -> int:
    """How far a run has come: the tasks that it issued, the kernels that ran, and the tokens sent and taken."""
    tokens = sum(each.sent + each.taken for each in machine.channels)
    return len(machine.assignments) + sum(machine.kernel_runs) + tokens


def outcome_of(machine: Machine, outcome: str, error: RunError | None, past: int) -> Trial:
    """What an execution shows, when the deadlock was at the progress `past`."""
    high_water = machine.resources.high_water
    demand = {"task_window" if name == "task_ring" else name: each for name, each in high_water.items()}
    for each, channel in zip(machine.package.channels, machine.channels, strict=True):
        demand[capacity_of(each.name)] = min(channel.sent + len(channel.senders), AMPLE)
    if outcome == "running":
        outcome = "further" if progress(machine) > past else "unknown"
    return Trial(outcome, demand, error="" if error is None else error.code)
