"""Work: what streams hold, run once on each rank (runtime spec 6, 12)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from ..abi.descriptor import Descriptor
from ..abi.policy import NumericsPolicy
from ..abi.status import Failure, Status, within
from ..mesh.engine import Signal
from ..mesh.profiler import Record, RecordKind
from ..numerics.errors import NumericsFailure
from .happens_before import Access
from .machine import Pending
from .meshes import Queue

__all__ = ["PROBLEMS", "Access", "Carried", "Kind", "Work", "as_failure"]

PROBLEMS = (Failure, NumericsFailure, MemoryError)
"""What work may raise; anything else is a bug of the simulator."""


def as_failure(problem: Exception, function: str) -> Failure:
    """The failure that reports an exception of work."""
    if isinstance(problem, Failure):
        return within(problem, function)
    if isinstance(problem, MemoryError):
        given = "work for which the simulating machine has no memory"
        return Failure(Status.TESS_ERR_OUT_OF_MEMORY, function, given, "smaller sizes")
    return Failure(Status.TESS_ERR_INVALID_VALUE, function, str(problem), "other arguments")


@dataclass(frozen=True)
class Carried:
    """What is attached to a launch or collective (RT-11-01)."""

    name: str
    descriptor: Descriptor
    policy: NumericsPolicy


Kind = Literal["launch", "copy", "collective", "record", "wait", "graph"]

RECORDED_AS: Mapping[Kind, RecordKind] = {
    "launch": "kernel",
    "copy": "copy",
    "collective": "collective",
    "record": "event",
    "wait": "wait",
}


@dataclass(eq=False, kw_only=True)
class Work(ABC):
    """One operation of a stream, done on every rank by `run`."""

    kind: ClassVar[Kind]
    function: ClassVar[str]
    """The call that queues it."""

    name: str
    stream: Queue
    enqueued: int = field(default=0, init=False)
    number: int = field(default=0, init=False)
    """Its place in the order in which the stream was given work, from 1."""

    def ranks(self) -> Sequence[int]:
        """The ranks that take part."""
        return range(len(self.stream.mesh.devices))

    def accesses(self) -> Sequence[Access]:
        """The memory that it reads and writes."""
        return ()

    def carries(self) -> Sequence[Carried]:
        """What is attached to it; of a replay, to its launches and collectives."""
        return ()

    def when_queued(self) -> None:  # noqa: B027, most work does nothing then
        """Called once it is queued, and can no longer be refused."""

    @abstractmethod
    async def run(self, rank: int) -> None:
        """Do it on one rank. Raises `Failure`, which is then an asynchronous error of the stream."""

    def on(self, stream: Queue) -> Work:
        """The same once more, on another stream: how a captured graph is replayed."""
        return replace(self, stream=stream)

    async def spend(self, duration: int) -> None:
        """Let time pass. Raises `Failure` with TESS_ERR_TIMEOUT where the context allows less (RT-19.A-09)."""
        machine, timeout = self.stream.mesh.machine, self.stream.mesh.context.timeout
        lasting = machine.lasting(duration)
        if timeout is not None and duration > timeout:
            lasting = machine.lasting(timeout)
        if lasting:
            await machine.engine.sleep(lasting)
        else:
            await machine.turn()
        if timeout is not None and duration > timeout:
            raise self.timed_out(timeout)

    async def wait_for(self, signal: Signal, turn: int, given_up: Callable[[], Failure] | None) -> None:
        """Wait for what may never come: then it is `given_up`, or a timeout where the context has one.

        What is given up first has the lowest turn; without a failure the wait just ends.
        """
        machine, timeout = self.stream.mesh.machine, self.stream.mesh.context.timeout
        if timeout is not None and given_up is not None:
            late = self.timed_out(timeout)
            given_up = lambda: late  # noqa: E731, what is given up is late
            if machine.timed:
                machine.engine.call_at(machine.engine.now + timeout, lambda: signal.fail(late))
        pending = Pending(signal, turn, given_up)
        machine.pending[pending] = None
        try:
            await signal
        finally:
            machine.pending.pop(pending, None)

    def timed_out(self, timeout: int) -> Failure:
        """What is reported of work that took too long."""
        given = f"{self.name} is not done after {timeout // 1000} ns"
        return Failure(Status.TESS_ERR_TIMEOUT, self.function, given, "work that ends before its timeout")

    def profile(self, rank: int, start: int, over: Callable[[], str | None] = lambda: None, **more: Any) -> None:
        """Record with the profilers what was done on a rank from `start` until now, and over which link (RT-17-01)."""
        mesh = self.stream.mesh
        if not mesh.context.profilers:
            return
        stop = mesh.machine.engine.now
        kind = RECORDED_AS[self.kind]
        record = Record(
            kind,
            self.name,
            self.stream.handle,
            rank,
            mesh.devices[rank],
            self.enqueued,
            start,
            stop,
            link=over(),
            **more,
        )
        for profiler in mesh.context.profilers.values():
            profiler.add(record)
