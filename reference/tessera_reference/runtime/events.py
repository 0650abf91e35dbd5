"""Captures of streams as graphs, and events (runtime spec 4.3, 6, 12)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..mesh.clocks import VectorClock
from ..mesh.engine import Signal
from .contexts import Context
from .machine import Access
from .streams import PROBLEMS, Carried, Mesh, Queue, Stream, Work, as_failure

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
    before: dict[Queue, frozenset[int]]
    """For each captured stream, the nodes that its next node follows."""
    nodes: list[Node] = field(default_factory=list)
    recorded: dict[int, frozenset[int]] = field(default_factory=dict)
    """For each recording, by number, the nodes captured on its stream before it."""

    def add(self, work: Work) -> None:
        """Add work behind what its stream has."""
        after = self.before.get(work.stream, frozenset())
        self.nodes.append(Node(work, tuple(sorted(after))))
        self.before[work.stream] = frozenset({len(self.nodes) - 1})

    def record(self, recording: int, stream: Queue) -> None:
        """An event is recorded on a stream."""
        self.recorded[recording] = self.before.get(stream, frozenset())

    def wait(self, recording: int, stream: Queue) -> None:
        """A stream waits for a recording of this capture, and joins it."""
        self.before[stream] = self.before.get(stream, frozenset()) | self.recorded[recording]

    def end(self, stream: Queue) -> Graph:
        """End the capture: its streams run their work again. Gives the graph of what was captured."""
        self.running.remove(self)
        return Graph(tuple(self.nodes), stream)


def capture_of(captures: Iterable[Capture], stream: Queue) -> Capture | None:
    """The capture that a stream is in, if it is in one."""
    return next((capture for capture in captures if stream in capture.before), None)


def begin_capture(captures: list[Capture], stream: Queue) -> None:
    """Begin a capture on a stream that is in none."""
    if capture_of(captures, stream) is None:
        captures.append(Capture(captures, {stream: frozenset()}))


@dataclass(frozen=True, eq=False)
class Graph:
    """Work that can be replayed, in an order that its edges allow: that of capture."""

    nodes: tuple[Node, ...]
    stream: Queue
    """On which it was captured."""

    @property
    def context(self) -> Context:
        """The context of its mesh."""
        return self.stream.mesh.context


@dataclass(eq=False, kw_only=True)
class GraphWork(Work):
    """One replay: the nodes one after the other, on every rank."""

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
        """Replay on one rank. A node that fails leaves the others to run (AMB-RT-14)."""
        for work in self.works:
            work.enqueued, work.number = self.enqueued, self.number
            try:
                await work.run(rank)
            except PROBLEMS as problem:
                self.stream.fail(as_failure(problem, work.function), self.number, rank)


# Events: recorded on one stream, waited for on others (runtime spec 4.3, 12; AMB-RT-45, AMB-RT-49).


@dataclass(eq=False)
class Recording:
    """One recording of an event: reached when all earlier work is done on every rank of the stream."""

    number: int
    mesh: Mesh
    reached: Signal
    missing: int
    captured_by: Capture | None = None
    clock: VectorClock = field(default_factory=VectorClock)


@dataclass(eq=False)
class Event:
    """An event: its last recording, which a wait refers to; a new one replaces it (AMB-RT-49)."""

    handle: int
    last: Recording | None = None


@dataclass(eq=False, kw_only=True)
class RecordWork(Work):
    """Marks a place in the order of a stream."""

    kind = "record"
    function = "tessEventRecord"

    recording: Recording

    async def run(self, rank: int) -> None:
        """Count one more rank that has reached it."""
        self.recording.missing -= 1
        if self.recording.missing == 0:
            self.recording.reached.set()
        self.profile(rank, self.stream.mesh.machine.engine.now, flow_out=self.recording.number)


@dataclass(eq=False, kw_only=True)
class WaitWork(Work):
    """Keeps the stream from going on before a recording is reached (RT-12-03, RT-12-04)."""

    kind = "wait"
    function = "tessStreamWaitEvent"

    recording: Recording

    async def run(self, rank: int) -> None:
        start = self.stream.mesh.machine.engine.now
        await self.recording.reached
        self.profile(rank, start, flow_in=self.recording.number)


def recording_on(stream: Stream, number: int, capture: Capture | None) -> Recording:
    """A recording on a stream, which none of its ranks has reached."""
    name = f"recording {number} on stream {stream.handle}"
    reached = Signal(stream.mesh.machine.engine, name, stream.workers)
    return Recording(number, stream.mesh, reached, len(stream.mesh.devices), capture)
