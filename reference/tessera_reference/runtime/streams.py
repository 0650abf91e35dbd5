"""Streams: work in order, on every rank of a mesh (runtime spec 4.3, 6, 12; AMB-RT-14, AMB-RT-37, AMB-RT-50)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from types import coroutine
from typing import Any, cast

from ..abi.status import Failure, Status
from ..mesh.engine import Mailbox, Signal
from .meshes import Mesh
from .work import PROBLEMS, Carried, Work, as_failure

__all__ = ["Stream"]


@dataclass(eq=False)
class Stream:
    """One queue of a mesh: each rank takes its work in order."""

    handle: int
    mesh: Mesh
    priority: int
    queued: dict[Work, int] = field(default_factory=dict)
    """Unfinished work, and on how many ranks."""
    failures: dict[tuple[int, int], Failure] = field(default_factory=dict)
    """Since the last synchronization, by the number of the work and the rank."""
    limit: int = 0
    """Bytes of device memory that queued work may refer to; 0 is any."""
    carried: list[Carried] = field(default_factory=list)
    """What is attached to all that was queued."""
    residents: list[Signal] = field(default_factory=list)
    given: int = 0
    """How many pieces of work were queued so far."""
    ended: int = 0
    """The number of the last of them whose persistent kernels were asked to end."""

    def __post_init__(self) -> None:
        engine = self.mesh.machine.engine
        names = [f"stream {self.handle} on rank {rank}" for rank in range(len(self.mesh.devices))]
        self._mailboxes = [Mailbox(engine, name) for name in names]
        begun = cast(Callable[..., Coroutine[Any, Any, None]], _begun)
        self.workers = [engine.spawn(name, begun(self._serve, rank)) for rank, name in enumerate(names)]

    async def _serve(self, rank: int) -> None:
        """Do a rank's work, one after the other; a failure is kept and the next goes on (AMB-RT-14)."""
        engine, mailbox = self.mesh.machine.engine, self._mailboxes[rank]
        while True:
            work: Work = await mailbox
            if work.enqueued > engine.now:
                await engine.sleep_until(work.enqueued)
            await self.mesh.machine.turn()
            try:
                await work.run(rank)
            except PROBLEMS as problem:
                self.fail(as_failure(problem, work.function), work.number, rank)
            self._done(work)

    def close(self) -> None:
        """End the workers, and drop what they had left to do."""
        for worker, mailbox in zip(self.workers, self._mailboxes, strict=True):
            self.mesh.machine.engine.end(worker)
            mailbox.work.clear()
        self.queued.clear()

    def _done(self, work: Work) -> None:
        if self.queued[work] > 1:
            self.queued[work] -= 1
        else:
            del self.queued[work]

    def enqueue(self, work: Work) -> None:
        """Queue work behind all that is queued. Raises `Failure` where the memory limit forbids it (AMB-RT-87)."""
        if self.limit:
            self._require_within_limit(work)
        devices = [self.mesh.devices[rank] for rank in work.ranks()]
        self.mesh.machine.order.note(work.name, self.handle, devices, work.accesses())
        work.enqueued = self.mesh.machine.host_time
        self.given += 1
        work.number = self.given
        ranks = work.ranks()
        self.queued[work] = len(ranks)
        self.carried += work.carries()
        work.when_queued()
        for rank in ranks:
            self._mailboxes[rank].put(work)

    def require_of(self, mesh: Mesh) -> None:
        """It is a stream of this mesh. Raises `Failure`."""
        if self.mesh is not mesh:
            given = f"stream {self.handle}, which is of mesh {self.mesh.handle}, for mesh {mesh.handle}"
            raise Failure(Status.TESS_ERR_INVALID_VALUE, "", given, "a stream of the mesh")

    def fail(self, failure: Failure, number: int, rank: int) -> None:
        """Keep an asynchronous error; of a graph, the first of its nodes (AMB-RT-14)."""
        self.failures.setdefault((number, rank), failure)

    @property
    def error(self) -> Failure | None:
        """The first asynchronous error, if there was one."""
        return self.failures[min(self.failures)] if self.failures else None

    def drain(self) -> None:
        """Let all queued work finish; persistent kernels are asked to end (AMB-RT-50, AMB-RT-65)."""
        self.end_residents()
        self.mesh.machine.settle(lambda: not self.queued, self.workers)
        self.mesh.machine.order.synchronize(self.handle)

    def synchronize(self) -> None:
        """Let all queued work finish. Raises the first `Failure` among it, once (RT-04.3-10, AMB-RT-14).

        The first is that of the work queued first, on its lowest rank, whichever failed sooner.
        """
        self.drain()
        error = self.error
        self.failures = {}
        if error is not None:
            raise error

    def end_residents(self) -> None:
        """Ask persistent kernels to end, also those that have not begun."""
        self.ended = self.given
        residents, self.residents = self.residents, []
        for signal in residents:
            signal.set()

    def _require_within_limit(self, work: Work) -> None:
        regions = [region for each in (*self.queued, work) for region, _, _ in each.accesses()]
        devices = {region.allocation.number: region.allocation for region in regions if region.allocation.devices}
        referred = sum(each.bytes for each in devices.values())
        if referred > self.limit and any(region.allocation.devices for region, _, _ in work.accesses()):
            given = f"the stream's queued work would refer to {referred} bytes"
            raise Failure(Status.TESS_ERR_OUT_OF_MEMORY, work.function, given, f"at most its limit, {self.limit}")


@coroutine
def _begun(serve: Callable[[int], Coroutine[Any, Any, None]], rank: int) -> Generator[Any, Any, None]:
    """The coroutine of `serve`, made when it begins to run: Python warns of one that never does."""
    yield from serve(rank).__await__()
