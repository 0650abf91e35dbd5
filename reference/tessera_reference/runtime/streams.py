"""Meshes and streams, captures and events, memory and copies (runtime spec 4.2 to 4.4, 6, 9, 11, 12)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import coroutine
from typing import Any, ClassVar, Literal, TypeAlias, cast

from ..abi.policy import Descriptor, NumericsPolicy
from ..abi.status import CopyKind, Failure, Status, within
from ..mesh.engine import Mailbox, Signal, VectorClock
from ..mesh.memory import AddressSpaceMemory, Region, Wanted, byte_view
from ..mesh.topology import Device, MeshAxes, copy_duration
from ..mesh.trace import Record, RecordKind
from ..numerics.formats import DType, NumericsFailure
from .contexts import Context
from .machine import SIZE, Access, Machine, Pending, SimulatedDevice, integer, invalid

# Meshes of devices: ranks row-major over (tp, pp, dp, ep) (runtime spec 4.2; AMB-RT-01, AMB-RT-02).


@dataclass(eq=False)
class Mesh:
    """The devices of a context, one a rank, and the streams on them."""

    handle: int
    context: Context
    machine: Machine
    devices: tuple[int, ...]
    axes: MeshAxes
    streams: dict[int, Stream] = field(default_factory=dict)
    resident: list[str] = field(default_factory=list)

    def device(self, rank: int) -> SimulatedDevice:
        """Return the device of a rank."""
        return self.machine.devices[self.devices[rank]]

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The targets of its devices, without duplicates."""
        return tuple(dict.fromkeys(self.machine.devices[device].description.target for device in self.devices))

    def groups(self, axis: str | None) -> tuple[tuple[int, ...], ...]:
        """Return the groups of ranks that a collective combines: those along an axis, or the whole mesh."""
        return (self._ranks,) if axis is None else self.axes.groups(axis)

    def group_of(self, axis: str | None, rank: int) -> tuple[int, ...]:
        """Return the group along an axis that contains a rank, in ascending order of its ranks."""
        return self._ranks if axis is None else self.axes.group_of(axis, rank)

    @cached_property
    def _ranks(self) -> tuple[int, ...]:
        return tuple(range(len(self.devices)))

    def drain(self) -> None:
        """Wait until all queued work is done (AMB-RT-50)."""
        for stream in self.streams.values():
            stream.end_residents()
        workers = [worker for stream in self.streams.values() for worker in stream.workers]
        self.machine.settle(lambda: not any(stream.queued for stream in self.streams.values()), workers)
        for handle in self.streams:
            self.machine.order.synchronize(handle)

    def read(self, region: Region, rank: int, size: int, reader: str) -> memoryview | bytes:
        """Return bytes of a rank's copy of device memory, or of host memory, as a view valid until the next write."""
        return self.machine.memory.read(region, self._copy(region, rank), size, reader)

    def peek(self, region: Region, rank: int, size: int) -> bytes:
        """Return a copy of these bytes, which need not have been written before."""
        return self.machine.memory.peek(region, self._copy(region, rank), size)

    def write(self, region: Region, rank: int, data: bytes | memoryview) -> None:
        """Write bytes into a rank's copy of device memory, or into host memory."""
        self.machine.memory.write(region, self._copy(region, rank), data)

    def _copy(self, region: Region, rank: int) -> int:
        """Return the index of the copy of an allocation, perhaps of another mesh, on the device of a rank."""
        devices = region.allocation.devices
        if devices is self.devices:
            return rank
        return devices.index(self.devices[rank]) if devices else 0


# Work: the operations in a stream, run once on each rank (runtime spec 6, 12).


PROBLEMS = (Failure, NumericsFailure, MemoryError)
"""Exceptions that work may raise; any other is a bug of the simulator."""


def as_failure(problem: Exception, function: str) -> Failure:
    """Return the failure that reports an exception of work."""
    if isinstance(problem, Failure):
        return within(problem, function)
    if isinstance(problem, MemoryError):
        subject = "work for which the simulating machine has no memory"
        return Failure(Status.TESS_ERR_OUT_OF_MEMORY, function, subject, "smaller sizes")
    return Failure(Status.TESS_ERR_INVALID_VALUE, function, str(problem), "other arguments")


@dataclass(frozen=True)
class Carried:
    """The attachment of a launch or collective (RT-11-01)."""

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
    """The API function that queues it."""

    name: str
    stream: Stream
    enqueued: int = field(default=0, init=False)
    number: int = field(default=0, init=False)
    """Its place among the work queued on the stream, from 1."""

    def ranks(self) -> Sequence[int]:
        """Return the ranks that take part."""
        return range(len(self.stream.mesh.devices))

    def accesses(self) -> Sequence[Access]:
        """Return the memory that it reads and writes."""
        return ()

    def carries(self) -> Sequence[Carried]:
        """Return the attachments; for a replay, those of its launches and collectives."""
        return ()

    def when_queued(self) -> None:  # noqa: B027, most work does nothing then
        """React to having been queued, after which nothing can refuse the work."""

    @abstractmethod
    async def run(self, rank: int) -> None:
        """Do the work of one rank. Raises `Failure`, which is then an asynchronous error of the stream."""

    def on(self, stream: Stream) -> Work:
        """Return a copy on another stream, as the replay of a captured graph needs it."""
        return replace(self, stream=stream)

    async def spend(self, duration: int) -> None:
        """Spend virtual time. Raises `Failure` with TESS_ERR_TIMEOUT if the context allows less (RT-19.A-09)."""
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
        """Wait for a signal that may never come; then `given_up` or the context's timeout fails the wait.

        Waits of the lowest turn are failed first; without a failure the wait just ends.
        """
        machine, timeout = self.stream.mesh.machine, self.stream.mesh.context.timeout
        if timeout is not None and given_up is not None:
            late = self.timed_out(timeout)
            given_up = lambda: late  # noqa: E731, the context's timeout replaces the failure
            if machine.timed:
                machine.engine.call_at(machine.engine.now + timeout, lambda: signal.fail(late))
        pending = Pending(signal, turn, given_up)
        machine.pending[pending] = None
        try:
            await signal
        finally:
            machine.pending.pop(pending, None)

    def timed_out(self, timeout: int) -> Failure:
        """Return the failure of work that took too long."""
        subject = f"{self.name} is not done after {timeout // 1000} ns"
        return Failure(Status.TESS_ERR_TIMEOUT, self.function, subject, "work that ends before its timeout")

    def profile(self, rank: int, start: int, over: Callable[[], str | None] = lambda: None, **more: Any) -> None:
        """Record with the profilers a rank's work from `start` until now, and the link it used (RT-17-01)."""
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


# Rendezvous: ranks wait for each other, and the last to arrive acts for all (runtime spec 4.6, 11).


Completion: TypeAlias = Callable[[Mapping[int, Any]], tuple[int, Callable[[], None]]]
"""From the contributions by rank: the duration of the operation, and the function that ends it. Raises `Failure`,
which all ranks get."""


@dataclass(eq=False)
class Rendezvous:
    """One rendezvous of the ranks `expected`."""

    name: str
    done: Signal
    expected: Sequence[int]
    contributions: dict[int, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, work: Work, name: str, ranks: Sequence[int] | None = None) -> Rendezvous:
        """Return a rendezvous of some ranks of the work's mesh, or of all; its stream's workers end it."""
        mesh = work.stream.mesh
        done = Signal(mesh.machine.engine, f"the ranks of {name}", work.stream.workers)
        return cls(name, done, range(len(mesh.devices)) if ranks is None else ranks)

    async def arrive(self, work: Work, rank: int, contribution: Any, complete: Completion) -> None:
        """Wait until all ranks have arrived and the operation is done. Raises `Failure`."""
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
        """Complete the operation, unless a timeout has already ended it."""
        if self.done.is_set:
            return
        try:
            finish()
            self.done.set()
        except PROBLEMS as problem:
            self.done.fail(as_failure(problem, work.function))

    def _incomplete(self, work: Work) -> Failure:
        absent = [rank for rank in self.expected if rank not in self.contributions]
        subject = f"{self.name}: rank {', '.join(map(str, absent)) or 'none'} never came"
        whole = len(self.expected) == len(work.stream.mesh.devices)
        allowed = "every rank of the mesh" if whole else f"each of the ranks {', '.join(map(str, self.expected))}"
        return Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, work.function, subject, allowed)


def require_connected(work: Work, groups: Sequence[Sequence[int]]) -> None:
    """Require that no link between ranks of a group is cut (AMB-RT-81). Raises `Failure`."""
    mesh = work.stream.mesh
    for a, b in mesh.context.faults.cut(mesh.handle):
        if any(a in group and b in group for group in groups):
            if mesh.context.timeout is not None:
                raise work.timed_out(mesh.context.timeout)
            subject = f"{work.name}: nothing passes between ranks {a} and {b}"
            raise Failure(Status.TESS_ERR_LAUNCH_FAILED, work.function, subject, "ranks that reach each other")


# Streams: work in order, on every rank of a mesh (runtime spec 4.3, 6, 12; AMB-RT-14, AMB-RT-37, AMB-RT-50).


@dataclass(eq=False)
class Stream:
    """One queue of a mesh: each rank takes its work in order."""

    handle: int
    mesh: Mesh
    priority: int
    queued: dict[Work, int] = field(default_factory=dict)
    """Unfinished work, and the number of ranks that have not finished it."""
    failures: dict[tuple[int, int], Failure] = field(default_factory=dict)
    """The failures since the last synchronization, by the number of the work and the rank."""
    limit: int = 0
    """The bytes of device memory that queued work may refer to; 0 means no limit."""
    carried: list[Carried] = field(default_factory=list)
    """The attachments of all work queued so far."""
    residents: list[Signal] = field(default_factory=list)
    given: int = 0
    """The number of pieces of work queued so far."""
    ended: int = 0
    """The number of the last work whose persistent kernels were asked to end."""

    def __post_init__(self) -> None:
        engine = self.mesh.machine.engine
        names = [f"stream {self.handle} on rank {rank}" for rank in range(len(self.mesh.devices))]
        self._mailboxes = [Mailbox(engine, name) for name in names]
        begun = cast(Callable[..., Coroutine[Any, Any, None]], _begun)
        self.workers = [engine.spawn(name, begun(self._serve, rank)) for rank, name in enumerate(names)]

    async def _serve(self, rank: int) -> None:
        """Do a rank's work in order; keep a failure and go on with the next (AMB-RT-14)."""
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
        """End the workers, and drop their remaining work."""
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
        """Append work to the queue. Raises `Failure` where the memory limit forbids it (AMB-RT-87)."""
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
        """Require that this is a stream of the mesh. Raises `Failure`."""
        if self.mesh is not mesh:
            subject = f"stream {self.handle}, which is of mesh {self.mesh.handle}, for mesh {mesh.handle}"
            raise invalid(subject, "a stream of the mesh")

    def fail(self, failure: Failure, number: int, rank: int) -> None:
        """Keep an asynchronous error; for a graph, that of its first failed node (AMB-RT-14)."""
        self.failures.setdefault((number, rank), failure)

    @property
    def error(self) -> Failure | None:
        """The first asynchronous error, if there was one."""
        return self.failures[min(self.failures)] if self.failures else None

    def drain(self) -> None:
        """Wait until all queued work is done; ask persistent kernels to end (AMB-RT-50, AMB-RT-65)."""
        self.end_residents()
        self.mesh.machine.settle(lambda: not self.queued, self.workers)
        self.mesh.machine.order.synchronize(self.handle)

    def synchronize(self) -> None:
        """Wait until all queued work is done. Raises its first `Failure`, once (RT-04.3-10, AMB-RT-14).

        The first is that of the work queued first, on its lowest rank, even if another failed sooner.
        """
        self.drain()
        error = self.error
        self.failures = {}
        if error is not None:
            raise error

    def end_residents(self) -> None:
        """Ask persistent kernels to end, including those that have not begun."""
        self.ended = self.given
        residents, self.residents = self.residents, []
        for signal in residents:
            signal.set()

    def _require_within_limit(self, work: Work) -> None:
        regions = [region for item in (*self.queued, work) for region, _, _ in item.accesses()]
        devices = {region.allocation.number: region.allocation for region in regions if region.allocation.devices}
        referred = sum(device.bytes for device in devices.values())
        if referred > self.limit and any(region.allocation.devices for region, _, _ in work.accesses()):
            subject = f"the stream's queued work would refer to {referred} bytes"
            raise Failure(Status.TESS_ERR_OUT_OF_MEMORY, work.function, subject, f"at most its limit, {self.limit}")


@coroutine
def _begun(serve: Callable[[int], Coroutine[Any, Any, None]], rank: int) -> Generator[Any, Any, None]:
    """Run the coroutine of `serve`, creating it only now: Python warns of one that never runs."""
    yield from serve(rank).__await__()


# Capture of a stream's work as a graph, and its replay (runtime spec 6, 12; AMB-RT-11, AMB-RT-64, AMB-RT-86).


@dataclass(frozen=True, eq=False)
class Node:
    """Work of a graph, and the indices of the nodes that it directly follows."""

    work: Work
    after: tuple[int, ...]


@dataclass(eq=False)
class Capture:
    """A capture on one stream or, joined by events, on several."""

    running: list[Capture]
    """The captures of the runtime that have not ended."""
    before: dict[Stream, frozenset[int]]
    """For each captured stream, the nodes that its next node follows."""
    nodes: list[Node] = field(default_factory=list)
    recorded: dict[int, frozenset[int]] = field(default_factory=dict)
    """For each recording, by number, the nodes captured on its stream before it."""

    def add(self, work: Work) -> None:
        """Add work after the captured work of its stream."""
        after = self.before.get(work.stream, frozenset())
        self.nodes.append(Node(work, tuple(sorted(after))))
        self.before[work.stream] = frozenset({len(self.nodes) - 1})

    def record(self, recording: int, stream: Stream) -> None:
        """Keep the nodes before a recording on a stream."""
        self.recorded[recording] = self.before.get(stream, frozenset())

    def wait(self, recording: int, stream: Stream) -> None:
        """Let a stream wait for a recording of this capture, and join it."""
        self.before[stream] = self.before.get(stream, frozenset()) | self.recorded[recording]

    def end(self, stream: Stream) -> Graph:
        """End the capture, so that its streams run their work again. Return the graph of the captured work."""
        self.running.remove(self)
        return Graph(tuple(self.nodes), stream)


def capture_of(captures: Iterable[Capture], stream: Stream) -> Capture | None:
    """Return the capture that contains a stream, or None."""
    return next((capture for capture in captures if stream in capture.before), None)


def begin_capture(captures: list[Capture], stream: Stream) -> None:
    """Begin a capture on a stream that is in none."""
    if capture_of(captures, stream) is None:
        captures.append(Capture(captures, {stream: frozenset()}))


@dataclass(frozen=True, eq=False)
class Graph:
    """Work that can be replayed, in the order of capture, which its edges allow."""

    nodes: tuple[Node, ...]
    stream: Stream
    """The stream on which the graph was captured."""

    @property
    def context(self) -> Context:
        """The context of its mesh."""
        return self.stream.mesh.context


@dataclass(eq=False, kw_only=True)
class GraphWork(Work):
    """One replay: the nodes one after another, on every rank."""

    kind = "graph"
    function = "tessxGraphLaunch"

    works: Sequence[Work]
    """The work of the nodes, copied for this replay."""

    def accesses(self) -> Sequence[Access]:
        return [access for work in self.works for access in work.accesses()]

    def carries(self) -> Sequence[Carried]:
        return [carry for work in self.works for carry in work.carries()]

    def when_queued(self) -> None:
        for work in self.works:
            work.when_queued()

    async def run(self, rank: int) -> None:
        """Replay the nodes on one rank. Nodes after a failed one still run (AMB-RT-14)."""
        for work in self.works:
            work.enqueued, work.number = self.enqueued, self.number
            try:
                await work.run(rank)
            except PROBLEMS as problem:
                self.stream.fail(as_failure(problem, work.function), self.number, rank)


# Events: recorded on one stream, waited for on others (runtime spec 4.3, 12; AMB-RT-45, AMB-RT-49).


@dataclass(eq=False)
class Recording:
    """One recording of an event, reached when all earlier work is done on every rank of the stream."""

    number: int
    mesh: Mesh
    reached: Signal
    missing: int
    captured_by: Capture | None = None
    clock: VectorClock = field(default_factory=VectorClock)


@dataclass(eq=False)
class Event:
    """An event with its last recording, to which a wait refers; a new one replaces it (AMB-RT-49)."""

    handle: int
    last: Recording | None = None


@dataclass(eq=False, kw_only=True)
class RecordWork(Work):
    """A mark in the order of a stream."""

    kind = "record"
    function = "tessEventRecord"

    recording: Recording

    async def run(self, rank: int) -> None:
        """Count a rank that has reached the mark."""
        self.recording.missing -= 1
        if self.recording.missing == 0:
            self.recording.reached.set()
        self.profile(rank, self.stream.mesh.machine.engine.now, flow_out=self.recording.number)


@dataclass(eq=False, kw_only=True)
class WaitWork(Work):
    """A wait that holds the stream until a recording is reached (RT-12-03, RT-12-04)."""

    kind = "wait"
    function = "tessStreamWaitEvent"

    recording: Recording

    async def run(self, rank: int) -> None:
        start = self.stream.mesh.machine.engine.now
        await self.recording.reached
        self.profile(rank, start, flow_in=self.recording.number)


def recording_on(stream: Stream, number: int, capture: Capture | None) -> Recording:
    """Return a recording on a stream, which none of its ranks has reached."""
    name = f"recording {number} on stream {stream.handle}"
    reached = Signal(stream.mesh.machine.engine, name, stream.workers)
    return Recording(number, stream.mesh, reached, len(stream.mesh.devices), capture)


# The targets of pointer arguments: device or host memory that work uses, and bytes that a call reads (spec 4.4).


def region_of(
    function: str, argument: str, pointer: Any, size: int, space: Wanted, stream: Stream, written: bool = False
) -> Region:
    """Return the memory of a pointer, present on every device of the stream's mesh (AMB-RT-05). Raises `Failure`."""
    region = stream.mesh.machine.memory.find(pointer, size, function, argument, space)
    devices = set(region.allocation.devices)
    missing = [device for device in stream.mesh.devices if device not in devices]
    if missing and region.allocation.space == "device":
        subject = f"{argument} is memory of devices {list(region.allocation.devices)}, none of device {missing[0]}"
        raise invalid(subject, "memory of every device of the stream's mesh")
    if written and region.allocation.read_only:
        raise invalid(f"{argument} is in {region.allocation}, which is read-only", "memory to write")
    return region


def require_aligned(argument: str, pointer: int, dtype: DType) -> None:
    """Require an address that is a multiple of the smaller of the dtype's size and 8. Raises `Failure`."""
    step = min(dtype.storage_bytes, 8)
    if pointer % step:
        raise invalid(f"{argument} is {pointer:#x}", f"a multiple of {step}, as {dtype} needs")


def host_bytes(
    memory: AddressSpaceMemory, function: str, argument: str, source: bytes | int, size: int, size_name: str
) -> bytes:
    """Return the first `size` bytes of host memory, from a buffer or from an address. Raises `Failure`."""
    count = integer(size_name, size, SIZE)
    if isinstance(source, int):
        region = memory.find(source, count, function, argument, "host")
        return bytes(memory.read(region, 0, count, function))
    data = byte_view(source, argument)
    if count > len(data):
        raise invalid(f"size {count} of {argument}, which has {len(data)} bytes", f"at most {len(data)}")
    return bytes(data[:count])


# Copies between host and device memory, and within devices (runtime spec 4.4; AMB-RT-05, AMB-RT-53).


@dataclass(eq=False, kw_only=True)
class CopyWork(Work):
    """H2D writes the copy of every rank, D2H reads that of rank 0, D2D copies on each rank (AMB-RT-05)."""

    kind = "copy"
    function = "tessMemcpyAsync"

    direction: CopyKind
    destination: Region
    source: Region
    bytes: int
    arrived: int = field(default=0, init=False)
    """The number of ranks that have reached a copy to the host."""
    signals: tuple[Signal, Signal] | None = field(default=None, init=False)
    """The signals of a copy to the host: all ranks have arrived, and the copy is done."""

    def accesses(self) -> Sequence[Access]:
        return [(self.source, self.bytes, False), (self.destination, self.bytes, True)]

    async def run(self, rank: int) -> None:
        if self.direction is CopyKind.TESS_COPY_D2H and len(self.ranks()) > 1:
            await self._to_the_host(rank)
        else:
            await self._copied(rank)

    async def _to_the_host(self, rank: int) -> None:
        """Copy on rank 0 once all ranks have arrived; the others wait. So their copies precede or follow it as in the
        stream (RT-06-01)."""
        engine = self.stream.mesh.machine.engine
        if self.signals is None:
            names = f"the ranks of {self.name}", f"the end of {self.name}"
            self.signals = Signal(engine, names[0], self.stream.workers), Signal(engine, names[1], self.stream.workers)
        arrived, done = self.signals
        self.arrived += 1
        if self.arrived == len(self.ranks()):
            arrived.set()
        if rank != 0:
            await done
            return
        await arrived
        try:
            await self._copied(rank)
        finally:
            done.set()

    async def _copied(self, rank: int) -> None:
        """Read the bytes, spend the time of the copy, and write them."""
        mesh = self.stream.mesh
        device = mesh.device(rank)
        start = mesh.machine.engine.now
        await device.copies.acquire(self.stream.priority)
        try:
            data = bytes(mesh.read(self.source, rank, self.bytes, self.function))
            await self.spend(self._duration(device.description))
            mesh.write(self.destination, rank, data)
        finally:
            device.copies.release()
        self.profile(rank, start, over=lambda: self._link(device.description), bytes=self.bytes)

    def _link(self, device: Device) -> str | None:
        """Return the narrowest link between host and device; None within a device."""
        topology = self.stream.mesh.machine.topology
        if self.direction is CopyKind.TESS_COPY_D2D:
            return None
        way = topology.route(topology.host.name, device.id)
        return min(way, key=lambda link: link.bandwidth).name if way else None

    def _duration(self, device: Device) -> int:
        """Return the time of a copy; host memory that is not pinned takes longer."""
        pinned = self.source.allocation.pinned and self.destination.allocation.pinned
        return copy_duration(self.stream.mesh.machine.topology, device, self.direction, self.bytes, pinned)
