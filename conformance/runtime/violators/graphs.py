"""Captures that run, lose or reorder work, and replays that differ (runtime spec 6, 12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

from tessera_conformance.strength import Violation, replaced, violates
from tessera_reference.abi.status import Failure, LaunchFlag
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.numerics.array import Array
from tessera_reference.runtime import calls
from tessera_reference.runtime.launches import LaunchWork
from tessera_reference.runtime.state import State
from tessera_reference.runtime.streams import Capture, Graph, GraphWork, Node, Stream, Work, begin_capture, capture_of

END, ADD, RECORD = Capture.end, Capture.add, Capture.record
QUEUE, RUN, REPLAY = calls.queue_launch, LaunchWork.run, GraphWork.run


def capturing(clause: str, name: str, description: str, attribute: str, value: Any) -> Violation:
    """A capture of which one part works otherwise."""
    return replaced(clause, description, make, (Capture, attribute, value), name=name)


def replaying(clause: str, name: str, description: str, run: Any) -> Violation:
    """Replays that work otherwise."""
    return replaced(clause, description, make, (GraphWork, "run", run), name=name)


# What is captured


def never_captured(state: State, work: LaunchWork) -> None:
    if work.flags & LaunchFlag.TESS_LAUNCH_CAPTURE:
        begin_capture(state.captures, work.stream)
    work.stream.enqueue(work)


def flags_that_differ(state: State, work: LaunchWork) -> None:
    if work.flags == LaunchFlag.TESS_LAUNCH_CAPTURE:
        QUEUE(state, work)
    else:
        work.stream.enqueue(work)


def run_at_the_end(self: Capture, stream: Stream) -> Graph:
    graph = END(self, stream)
    for node in graph.nodes:
        stream.enqueue(node.work.on(stream))
    return graph


def every_stream(state: State, work: LaunchWork) -> None:
    QUEUE(state, work)
    if work.flags & LaunchFlag.TESS_LAUNCH_CAPTURE:
        captured = capture_of(state.captures, work.stream)
        for other in work.stream.mesh.streams.values():
            captured.before.setdefault(other, frozenset())


def goes_on(self: Capture, stream: Stream) -> Graph:
    graph = END(self, stream)
    begin_capture(self.running, stream)
    return graph


CAPTURED = [
    replaced("RT-06-11", "records nothing of a launch with the flag", make,
             (calls, "queue_launch", never_captured), name="never_captured"),
    replaced("RT-06-11", "captures only launches without another flag", make,
             (calls, "queue_launch", flags_that_differ), name="flags_that_differ"),
    replaced("RT-06-11", "lets every stream of the mesh capture with the first", make,
             (calls, "queue_launch", every_stream), name="every_stream"),
    capturing("RT-06-11", "run_at_the_end", "runs captured work when it is instantiated", "end", run_at_the_end),
    capturing("RT-06-11", "goes_on", "goes on capturing after instantiation", "end", goes_on),
]  # fmt: skip


# The nodes


def without_copies(self: Capture, work: Work) -> None:
    if work.kind != "copy":
        ADD(self, work)


def copies_run_at_once(self: Capture, work: Work) -> None:
    ADD(self, work)
    if work.kind == "copy":
        work.stream.enqueue(work.on(work.stream))


def without_edges(self: Capture, work: Work) -> None:
    self.nodes.append(Node(work, ()))


def without_edges_to_copies(self: Capture, work: Work) -> None:
    before = self.before.get(work.stream, frozenset())
    ADD(self, work)
    if work.kind == "copy":
        self.before[work.stream] = before


def after_the_first(self: Capture, work: Work) -> None:
    self.nodes.append(Node(work, (0,) if self.nodes else ()))


def reversed_nodes(self: Capture, stream: Stream) -> Graph:
    graph = END(self, stream)
    last = len(graph.nodes) - 1
    nodes = [Node(node.work, tuple(last - number for number in node.after)) for node in reversed(graph.nodes)]
    return replace(graph, nodes=tuple(nodes))


def unjoined(self: Capture, recording: int, stream: Stream) -> None:
    self.before.setdefault(stream, frozenset())


def not_joined(self: Capture, recording: int, stream: Stream) -> None:
    """A stream that waits does not join."""


@violates("RT-12-05", "names every node after its kind")
class NodesWithoutNames(ReferenceAdapter):
    def runtime_tessxGraphNodes(self, *, graph: Any) -> dict[str, Any]:  # noqa: N802
        nodes = super().runtime_tessxGraphNodes(graph=graph)["nodes"]
        return {"nodes": [node | {"name": node["kind"]} for node in nodes]}


@violates("RT-12-05", "lets the first node follow the last")
class Cycle(ReferenceAdapter):
    def runtime_tessxGraphNodes(self, *, graph: Any) -> dict[str, Any]:  # noqa: N802
        nodes = super().runtime_tessxGraphNodes(graph=graph)["nodes"]
        nodes[0] = nodes[0] | {"after": [len(nodes) - 1]}
        return {"nodes": nodes}


@violates("RT-12-06", "tells copies as launches")
class CopiesAsLaunches(ReferenceAdapter):
    def runtime_tessxGraphNodes(self, *, graph: Any) -> dict[str, Any]:  # noqa: N802
        nodes = super().runtime_tessxGraphNodes(graph=graph)["nodes"]
        return {"nodes": [node | {"kind": "launch"} for node in nodes]}


@violates("RT-12-06", "moves what memory held at the first replay")
class StaleCopies(ReferenceAdapter):
    def __init__(self) -> None:
        super().__init__()
        self.replayed = False

    def runtime_tessxGraphLaunch(self, *, graph: Any, stream: Any) -> dict[str, Any]:  # noqa: N802
        answer = super().runtime_tessxGraphLaunch(graph=graph, stream=stream)
        self.replayed = True
        return answer

    def runtime_tessxHostWrite(self, *, hostPtr: Any, data: Any) -> dict[str, Any]:  # noqa: N802, N803
        return {} if self.replayed else super().runtime_tessxHostWrite(hostPtr=hostPtr, data=data)

    def session_reset(self) -> dict[str, Any]:
        self.replayed = False
        return super().session_reset()


NODES = [
    capturing("RT-12-05", "without_edges", "records no edges", "add", without_edges),
    capturing("RT-12-05", "after_the_first", "lets every node follow the first one alone", "add", after_the_first),
    capturing("RT-12-05", "reversed_nodes", "turns the order of nodes round", "end", reversed_nodes),
    capturing("RT-12-05", "unjoined", "records no edge for a wait", "wait", unjoined),
    capturing("RT-12-05", "not_joined", "leaves a stream that waits out of the capture", "wait", not_joined),
    capturing("RT-12-06", "without_copies", "records no copies", "add", without_copies),
    capturing("RT-12-06", "copies_run_at_once", "runs captured copies at once, too", "add", copies_run_at_once),
    capturing("RT-12-06", "edges_to_copies", "lets nothing follow a copy", "add", without_edges_to_copies),
]  # fmt: skip


# Instantiation


def empty_graph(self: Capture, stream: Stream) -> Graph:
    return replace(END(self, stream), nodes=())


@violates("RT-12-07", "instantiates the NULL graph")
class NullGraph(ReferenceAdapter):
    def runtime_tessxGraphInstantiate(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        super().runtime_tessxGraphInstantiate(stream=stream)
        return {"graph": 0}


@violates("RT-12-07", "gives every capture the first one's graph")
class OneGraph(ReferenceAdapter):
    first: int | None = None

    def runtime_tessxGraphInstantiate(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        graph = super().runtime_tessxGraphInstantiate(stream=stream)["graph"]
        self.first = self.first or graph
        return {"graph": self.first}

    def session_reset(self) -> dict[str, Any]:
        self.first = None
        return super().session_reset()


@violates("RT-12-07", "ends all graphs with the first that is destroyed")
class AllDestroyed(ReferenceAdapter):
    def runtime_tessxGraphDestroy(self, *, graph: Any) -> dict[str, Any]:  # noqa: N802
        for handle, _ in list(self.runtime.handles.live("graph")):
            super().runtime_tessxGraphDestroy(graph=handle)
        return {}


INSTANTIATED = [capturing("RT-12-07", "empty_graph", "instantiates a graph of nothing", "end", empty_graph)]


# Replay


class Replays(ReferenceAdapter):
    """Counts the replays of each graph."""

    def __init__(self) -> None:
        super().__init__()
        self.replays: dict[int, int] = {}

    def session_reset(self) -> dict[str, Any]:
        """Count anew."""
        self.replays = {}
        return super().session_reset()

    def nth(self, graph: int) -> int:
        """Return how often a graph was replayed, this time included."""
        self.replays[graph] = self.replays.get(graph, 0) + 1
        return self.replays[graph]


@violates("RT-12-08", "replays a graph once")
class ReplayedOnce(Replays):
    def runtime_tessxGraphLaunch(self, *, graph: Any, stream: Any) -> dict[str, Any]:  # noqa: N802
        return super().runtime_tessxGraphLaunch(graph=graph, stream=stream) if self.nth(graph) == 1 else {}


@violates("RT-12-08", "replays on the stream of the capture whatever stream is asked for")
class OwnStreamOnly(ReferenceAdapter):
    def runtime_tessxGraphLaunch(self, *, graph: Any, stream: Any) -> dict[str, Any]:  # noqa: N802
        captured = self.runtime.handles.find("graph", Graph, graph, "tessxGraphLaunch")
        if captured.stream.handle != stream:
            return {}
        return super().runtime_tessxGraphLaunch(graph=graph, stream=stream)


async def last_node_first(self: GraphWork, rank: int) -> None:
    await REPLAY(replace(self, works=self.works[::-1]), rank)


async def first_rank_only(self: GraphWork, rank: int) -> None:
    if rank == 0:
        await REPLAY(self, rank)


async def silent(self: GraphWork, rank: int) -> None:
    for work in self.works:
        try:
            await work.run(rank)
        except Failure:
            return


@violates("RT-12-08", "replays before what its stream has queued")
class ReplayOvertakes(ReferenceAdapter):
    def runtime_tessxGraphLaunch(self, *, graph: Any, stream: Any) -> dict[str, Any]:  # noqa: N802
        mesh = self.runtime.stream(stream, "tessxGraphLaunch").mesh
        other = self.output(self.runtime.tessStreamCreate(mesh.handle, 0))
        answer = super().runtime_tessxGraphLaunch(graph=graph, stream=other)
        queue = self.runtime.stream(other, "tessxGraphLaunch")
        mesh.machine.settle(lambda: not queue.queued)
        self.runtime.stream(stream, "tessxGraphLaunch").failures.update(queue.failures)
        return answer


FEW = 8
"""The nodes of a graph that a small runtime has room for."""


async def few_nodes(self: GraphWork, rank: int) -> None:
    await REPLAY(replace(self, works=self.works[:FEW]), rank)


async def copies_last(self: GraphWork, rank: int) -> None:
    await REPLAY(replace(self, works=sorted(self.works, key=lambda work: work.kind == "copy")), rank)


REPLAYED = [
    replaying("RT-12-08", "few_nodes", "replays eight nodes of a graph", few_nodes),
    replaying("RT-12-08", "copies_last", "replays the copies of a graph behind its launches", copies_last),
    replaying("RT-12-08", "last_node_first", "replays the last node first", last_node_first),
    replaying("RT-12-08", "first_rank_only", "replays on the first rank alone", first_rank_only),
    replaying("RT-12-08", "silent", "tells nothing of what fails in a replay", silent),
]


# Determinism


def drifting(every: int) -> Callable[[LaunchWork, int], Any]:
    numbers = count(1)

    async def run(self: LaunchWork, rank: int) -> None:
        await RUN(self, rank)
        if self.flags & LaunchFlag.TESS_LAUNCH_CAPTURE and next(numbers) % every == 0:
            _disturb(self, rank)

    return run


async def off_by_a_bit(self: LaunchWork, rank: int) -> None:
    await RUN(self, rank)
    if self.flags & LaunchFlag.TESS_LAUNCH_CAPTURE:
        _disturb(self, rank)


def _disturb(work: LaunchWork, rank: int) -> None:
    mesh = work.stream.mesh
    for tensor in work.tensors.values():
        if tensor.written and tensor.dtype.name == "fp32":
            data = bytearray(mesh.read(tensor.region, rank, tensor.bytes, "tessLaunch"))
            data[0] ^= 1
            mesh.write(tensor.region, rank, Array.from_bits(tensor.dtype, tensor.shape, bytes(data)).to_bits())


async def nodes_as_chosen(self: GraphWork, rank: int) -> None:
    taken = self.stream.mesh.machine.engine.choices.taken
    middle = len(self.works) // 2
    works = [*self.works[middle:], *self.works[:middle]] if sum(taken) % 7 == 3 else self.works
    await REPLAY(replace(self, works=works), rank)


DETERMINISTIC = [
    replaced("RT-12-09", "now and then replays with other bits", make, (LaunchWork, "run", drifting(17)),
             name="drifting"),
    replaced("RT-12-09", "replays with other bits than the launches have", make, (LaunchWork, "run", off_by_a_bit),
             name="off_by_a_bit"),
    replaying("RT-12-09", "nodes_as_chosen", "orders nodes as concurrency has it", nodes_as_chosen),
]  # fmt: skip
