"""Dependency inference (section 3.4): the task in flight that wrote each tensor last, and those that read it since."""

from __future__ import annotations

from collections.abc import Iterable

from .states import CallSite, TaskState

__all__ = ["TensorMap"]


class TensorMap:
    """Tasks by tensor; complete tasks are forgotten."""

    def __init__(self, tensors: int) -> None:
        self.writer: list[TaskState | None] = [None] * tensors
        self.readers: list[dict[int, TaskState]] = [{} for _ in range(tensors)]

    def dependencies(self, reads: Iterable[int], writes: Iterable[int]) -> dict[int, TaskState]:
        """By number, the tasks that must be complete before these tensors are read and written (AMB-WSP-44)."""
        found: dict[int, TaskState] = {}
        for tensor in reads:
            writer = self.writer[tensor]
            if writer is not None:
                found[writer.number] = writer
        for tensor in writes:
            writer = self.writer[tensor]
            if writer is not None:
                found[writer.number] = writer
            found.update(self.readers[tensor])
        return found

    def add(self, site: CallSite, task: TaskState) -> None:
        """A task is issued."""
        for tensor in site.reads:
            self.readers[tensor][task.number] = task
        for tensor in site.writes:
            self.writer[tensor] = task
            self.readers[tensor] = {}

    def remove(self, site: CallSite, task: TaskState) -> None:
        """A task is complete."""
        for tensor in site.reads:
            self.readers[tensor].pop(task.number, None)
        for tensor in site.writes:
            if self.writer[tensor] is task:
                self.writer[tensor] = None
