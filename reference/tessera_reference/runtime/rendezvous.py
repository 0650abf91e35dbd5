"""Meetings: where the ranks of a mesh come together, and the last to come concludes for all (runtime spec 4.6, 11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..abi.status import Failure, Status
from ..mesh.engine import Signal
from .work import PROBLEMS, Work, as_failure

__all__ = ["Conclusion", "Meeting", "Meetings", "require_connected"]

Conclusion: TypeAlias = Callable[[Mapping[int, Any]], tuple[int, Callable[[], None]]]
"""Of what each rank brought: how long it takes, and what is done at the end. Raises `Failure`, which all ranks get."""


@dataclass(eq=False)
class Meeting:
    """One meeting of so many ranks."""

    name: str
    done: Signal
    expected: int
    brought: dict[int, Any] = field(default_factory=dict)

    async def come(self, work: Work, rank: int, brings: Any, conclude: Conclusion) -> None:
        """Wait until all have come and it is done. Raises `Failure`."""
        self.brought[rank] = brings
        if len(self.brought) == self.expected and not self.done.is_set:
            await self._conclude(work, conclude)
        await work.wait_for(self.done, 2, lambda: self._never_complete(work))

    async def _conclude(self, work: Work, conclude: Conclusion) -> None:
        machine, timeout = work.stream.mesh.machine, work.stream.mesh.context.timeout
        try:
            duration, finish = conclude(dict(sorted(self.brought.items())))
        except PROBLEMS as problem:
            self.done.fail(as_failure(problem, work.function))
            return
        if timeout is not None and duration > timeout and not machine.timed:
            self.done.fail(work.timed_out(timeout))
        elif machine.timed:
            machine.engine.call_at(machine.engine.now + duration, lambda: self._finish(work, finish))
        else:
            await machine.turn()
            self._finish(work, finish)

    def _finish(self, work: Work, finish: Callable[[], None]) -> None:
        """End it, unless a timeout has ended it before."""
        if self.done.is_set:
            return
        try:
            finish()
            self.done.set()
        except PROBLEMS as problem:
            self.done.fail(as_failure(problem, work.function))

    def _never_complete(self, work: Work) -> Failure:
        absent = [rank for rank in range(self.expected) if rank not in self.brought]
        given = f"{self.name}: rank {', '.join(map(str, absent)) or 'none'} never came"
        return Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, work.function, given, "every rank of the mesh")


def require_connected(work: Work, groups: Sequence[Sequence[int]]) -> None:
    """No link is cut between ranks that meet (AMB-RT-81). Raises `Failure`."""
    mesh = work.stream.mesh
    for a, b in mesh.context.faults.cut(mesh.handle):
        if any(a in group and b in group for group in groups):
            if mesh.context.timeout is not None:
                raise work.timed_out(mesh.context.timeout)
            given = f"{work.name}: nothing passes between ranks {a} and {b}"
            raise Failure(Status.TESS_ERR_LAUNCH_FAILED, work.function, given, "ranks that reach each other")


Meetings: TypeAlias = dict[int, Meeting]
"""By number: the n-th collective that each rank issues by itself."""
