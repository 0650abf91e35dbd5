"""Capture of a stream's work as a graph, and its replay (runtime spec 6, 12; AMB-RT-11, AMB-RT-64, AMB-RT-86)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .contexts import Context
from .streams import Stream
from .work import PROBLEMS, Access, Carried, Work, as_failure

__all__ = ["Capture", "Graph", "GraphWork", "Node", "begin_capture"]


@dataclass(frozen=True, eq=False)
class Node:
    """Work of a graph, and the indices of the nodes that it directly follows."""

    work: Work
    after: tuple[int, ...]


@dataclass(eq=False)
class Capture:
    """What is being captured, on one stream or, joined by events, on several."""

    nodes: list[Node] = field(default_factory=list)
    before: dict[Stream, frozenset[int]] = field(default_factory=dict)
    """The nodes that the next one on a stream follows."""
    recorded: dict[int, frozenset[int]] = field(default_factory=dict)
    """Of the recordings in it, by number: what had been captured on their stream."""
    running: bool = True

    def add(self, work: Work) -> None:
        """Add work behind what its stream has."""
        after = self.before.get(work.stream, frozenset())
        self.nodes.append(Node(work, tuple(sorted(after))))
        self.before[work.stream] = frozenset({len(self.nodes) - 1})

    def record(self, recording: int, stream: Stream) -> None:
        """An event is recorded on a stream."""
        self.recorded[recording] = self.before.get(stream, frozenset())

    def wait(self, recording: int, stream: Stream) -> None:
        """A stream waits for a recording of this capture, and joins it."""
        stream.capture = self
        self.before[stream] = self.before.get(stream, frozenset()) | self.recorded[recording]

    def end(self, stream: Stream) -> Graph:
        """The graph of what was captured; the streams run their work again."""
        self.running = False
        for each in (*self.before, stream):
            if each.capture is self:
                each.capture = None
        return Graph(tuple(self.nodes), stream)


def begin_capture(stream: Stream) -> None:
    """Let a stream capture, unless it does."""
    if stream.capture is None:
        stream.capture = Capture(before={stream: frozenset()})


@dataclass(frozen=True, eq=False)
class Graph:
    """Work that can be replayed, in an order that its edges allow: that of capture."""

    nodes: tuple[Node, ...]
    stream: Stream
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
    """Those of the nodes, anew for this replay."""

    def accesses(self) -> Sequence[Access]:
        """Those of all nodes."""
        return [access for each in self.works for access in each.accesses()]

    def carries(self) -> Sequence[Carried]:
        """Those of all nodes."""
        return [each for work in self.works for each in work.carries()]

    def when_queued(self) -> None:
        """All nodes are."""
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
