"""Rendezvous: ranks wait for each other, and the last to arrive acts for all (runtime spec 4.6, 11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..abi.status import Failure, Status
from ..mesh.engine import Signal
from .work import PROBLEMS, Work, as_failure

__all__ = ["Completion", "Rendezvous", "require_connected"]

Completion: TypeAlias = Callable[[Mapping[int, Any]], tuple[int, Callable[[], None]]]
"""From the contributions by rank: how long the operation takes, and what is done at its end. Raises `Failure`, which
all ranks get."""


@dataclass(eq=False)
class Rendezvous:
    """One rendezvous of the ranks `expected`."""

    name: str
    done: Signal
    expected: Sequence[int]
    contributions: dict[int, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, work: Work, name: str, ranks: Sequence[int] | None = None) -> Rendezvous:
        """A rendezvous of some ranks of the work's mesh, or of all, which its stream brings about."""
        mesh = work.stream.mesh
        done = Signal(mesh.machine.engine, f"the ranks of {name}", work.stream.workers)
        return cls(name, done, range(len(mesh.devices)) if ranks is None else ranks)

    async def arrive(self, work: Work, rank: int, contribution: Any, complete: Completion) -> None:
        """Wait until all of its ranks have arrived and the operation is done. Raises `Failure`."""
        self.contributions[rank] = contribution
        if len(self.contributions) == len(self.expected) and not self.done.is_set:
            await self._complete(work, complete)
        await work.wait_for(self.done, 2, lambda: self._incomplete(work))

    async def _complete(self, work: Work, complete: Completion) -> None:
        machine, timeout = work.stream.mesh.machine, work.stream.mesh.context.timeout
        try:
            duration, finish = complete(dict(sorted(self.contributions.items())))
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

    def _incomplete(self, work: Work) -> Failure:
        absent = [rank for rank in self.expected if rank not in self.contributions]
        given = f"{self.name}: rank {', '.join(map(str, absent)) or 'none'} never came"
        whole = len(self.expected) == len(work.stream.mesh.devices)
        allowed = "every rank of the mesh" if whole else f"each of the ranks {', '.join(map(str, self.expected))}"
        return Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, work.function, given, allowed)


def require_connected(work: Work, groups: Sequence[Sequence[int]]) -> None:
    """No link is cut between ranks of a group (AMB-RT-81). Raises `Failure`."""
    mesh = work.stream.mesh
    for a, b in mesh.context.faults.cut(mesh.handle):
        if any(a in group and b in group for group in groups):
            if mesh.context.timeout is not None:
                raise work.timed_out(mesh.context.timeout)
            given = f"{work.name}: nothing passes between ranks {a} and {b}"
            raise Failure(Status.TESS_ERR_LAUNCH_FAILED, work.function, given, "ranks that reach each other")
