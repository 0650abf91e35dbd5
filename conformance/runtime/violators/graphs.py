"""Captures that run, lose or reorder work, and replays that differ (runtime spec 6, 12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

from tessera_conformance.strength import Violation, replaced, violates
from tessera_reference.abi.status import Failure, LaunchFlag
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.runtime import calls
from tessera_reference.runtime.launches import LaunchWork
from tessera_reference.runtime.state import State
from tessera_reference.runtime.streams import Capture, Graph, GraphWork, Stream, capture_of

from .changes import Call, Given, answering

END, ADD = Capture.end, Capture.add
QUEUE, RUN, REPLAY = calls.queue_launch, LaunchWork.run, GraphWork.run


def capturing(clause: str, name: str, description: str, attribute: str, value: Any) -> Violation:
    """Return a violation that replaces one method of captures."""
    return replaced(clause, description, make, (Capture, attribute, value), name=name)


def replaying(clause: str, name: str, description: str, run: Any) -> Violation:
    """Return a violation with another replay."""
    return replaced(clause, description, make, ("runtime.streams.GraphWork.run", run), name=name)


# The captured work


def flags_that_differ(state: State, work: LaunchWork) -> None:
    if work.flags == LaunchFlag.TESS_LAUNCH_CAPTURE:
        QUEUE(state, work)
    else:
        work.stream.enqueue(work)


def every_stream(state: State, work: LaunchWork) -> None:
    QUEUE(state, work)
    if work.flags & LaunchFlag.TESS_LAUNCH_CAPTURE:
        captured = capture_of(state.captures, work.stream)
        for other in work.stream.mesh.streams.values():
            captured.before.setdefault(other, frozenset())


CAPTURED = [
    replaced("RT-06-11", "captures only launches without another flag", make,
             ("runtime.calls.queue_launch", flags_that_differ), name="flags_that_differ"),
    replaced("RT-06-11", "lets every stream of the mesh capture with the first", make,
             ("runtime.calls.queue_launch", every_stream), name="every_stream"),
]  # fmt: skip


# The nodes


def shown(clause: str, name: str, description: str, change: Callable[[Given], Given]) -> Violation:
    """Return a violation that describes nodes differently."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        return {"nodes": [node | change(node) for node in call(**given)["nodes"]]}

    return answering(clause, name, description, "tessxGraphNodes", answer)


def unjoined(self: Capture, recording: int, stream: Stream) -> None:
    self.before.setdefault(stream, frozenset())


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
    shown("RT-12-05", "NodesWithoutNames", "names every node after its kind", lambda node: {"name": node["kind"]}),
    shown("RT-12-06", "CopiesAsLaunches", "tells copies as launches", lambda node: {"kind": "launch"}),
    capturing("RT-12-05", "unjoined", "records no edge for a wait", "wait", unjoined),
]  # fmt: skip


# Instantiation


def all_destroyed(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    for handle, _ in adapter.runtime.handles.live("graph"):
        call(graph=handle)
    return {}


INSTANTIATED = [
    answering("RT-12-07", "AllDestroyed", "ends all graphs with the first that is destroyed", "tessxGraphDestroy",
              all_destroyed),
]  # fmt: skip


# Replay


def own_stream_only(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    captured = adapter.runtime.handles.find("graph", Graph, given["graph"])
    return call(**given) if captured.stream.handle == given["stream"] else {}


def overtaking(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    stream = adapter.runtime.stream(given["stream"])
    other = adapter.output(adapter.runtime.tessStreamCreate(stream.mesh.handle, 0))
    answer = call(**(given | {"stream": other}))
    queue = adapter.runtime.stream(other)
    stream.mesh.machine.settle(lambda: not queue.queued)
    stream.failures.update(queue.failures)
    return answer


async def first_rank_only(self: GraphWork, rank: int) -> None:
    if rank == 0:
        await REPLAY(self, rank)


async def silent(self: GraphWork, rank: int) -> None:
    for work in self.works:
        try:
            await work.run(rank)
        except Failure:
            return


FEW = 8
"""The nodes of a graph that a small runtime has room for."""


async def few_nodes(self: GraphWork, rank: int) -> None:
    await REPLAY(replace(self, works=self.works[:FEW]), rank)


async def copies_last(self: GraphWork, rank: int) -> None:
    await REPLAY(replace(self, works=sorted(self.works, key=lambda work: work.kind == "copy")), rank)


REPLAYED = [
    answering("RT-12-08", "OwnStreamOnly", "replays on the stream of the capture whatever stream is asked for",
              "tessxGraphLaunch", own_stream_only),
    answering("RT-12-08", "ReplayOvertakes", "replays before what its stream has queued", "tessxGraphLaunch",
              overtaking),
    replaying("RT-12-08", "copies_last", "replays the copies of a graph behind its launches", copies_last),
    replaying("RT-12-08", "first_rank_only", "replays on the first rank alone", first_rank_only),
    replaying("RT-12-08", "silent", "tells nothing of what fails in a replay", silent),
]  # fmt: skip


# Determinism


LAUNCHED = count(1)


async def drifting(self: LaunchWork, rank: int) -> None:
    await RUN(self, rank)
    if not self.flags & LaunchFlag.TESS_LAUNCH_CAPTURE or next(LAUNCHED) % 17:
        return
    mesh = self.stream.mesh
    for tensor in self.tensors.values():
        if tensor.written and tensor.dtype.name == "fp32":
            data = bytearray(mesh.read(tensor.region, rank, tensor.bytes, "tessLaunch"))
            data[0] ^= 1
            mesh.write(tensor.region, rank, bytes(data))


async def nodes_as_chosen(self: GraphWork, rank: int) -> None:
    taken = self.stream.mesh.machine.engine.choices.taken
    middle = len(self.works) // 2
    works = [*self.works[middle:], *self.works[:middle]] if sum(taken) % 7 == 3 else self.works
    await REPLAY(replace(self, works=works), rank)


DETERMINISTIC = [
    replaced("RT-12-09", "now and then replays with other bits", make, ("runtime.launches.LaunchWork.run", drifting),
        name="drifting"),
    replaying("RT-12-09", "nodes_as_chosen", "orders nodes as concurrency has it", nodes_as_chosen),
]  # fmt: skip
