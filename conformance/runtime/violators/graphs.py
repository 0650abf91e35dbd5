"""Captures that run, lose or reorder work, and replays that differ (runtime spec 6, 12)."""

from dataclasses import replace
from itertools import count

from tessera_conformance.strength import Around, violates
from tessera_reference.abi.status import Failure, LaunchFlag
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.runtime import calls
from tessera_reference.runtime.launches import LaunchWork
from tessera_reference.runtime.streams import Graph, begin_capture, capture_of

from .changes import afterwards, answering, broken, each, only_if

QUEUE, RUN = calls.queue_launch, LaunchWork.run


def replaying(clause, name, description, run):
    """Return a violation with another replay."""
    return broken(clause, name, description, "runtime.streams.GraphWork.run", run)


def replaying_others(clause, name, description, works):
    """Return a violation that replays `works(graph)` in place of its works."""
    others = Around(lambda usual: lambda self, rank: usual(replace(self, works=works(self)), rank))
    return replaying(clause, name, description, others)


def flags_that_differ(state, work):
    if work.flags == LaunchFlag.TESS_LAUNCH_CAPTURE:
        QUEUE(state, work)
    else:
        work.stream.enqueue(work)


def begun_before_checks(adapter, call, given):
    stream = dict(adapter.runtime.handles.live("stream")).get(given["stream"])
    if stream is not None and given["cfg"].get("flags", 0) & LaunchFlag.TESS_LAUNCH_CAPTURE:
        begin_capture(adapter.runtime.captures, stream)
    return call(**given)


def every_stream(state, work):
    QUEUE(state, work)
    if work.flags & LaunchFlag.TESS_LAUNCH_CAPTURE:
        captured = capture_of(state.captures, work.stream)
        for other in work.stream.mesh.streams.values():
            captured.before.setdefault(other, frozenset())


def shown(clause, name, description, change):
    """Return a violation that describes nodes differently."""
    return answering(clause, name, description, "tessxGraphNodes", lambda adapter, call, given:
        {"nodes": [node | change(node) for node in call(**given)["nodes"]]})  # fmt: skip


@violates("RT-12-06", "moves what memory held at the first replay")
class StaleCopies(ReferenceAdapter):
    replayed = False

    def runtime_tessxGraphLaunch(self, *, graph, stream):  # noqa: N802
        answer = super().runtime_tessxGraphLaunch(graph=graph, stream=stream)
        self.replayed = True
        return answer

    def runtime_tessxHostWrite(self, *, hostPtr, data):  # noqa: N802, N803
        return {} if self.replayed else super().runtime_tessxHostWrite(hostPtr=hostPtr, data=data)

    def session_reset(self):
        self.replayed = False
        return super().session_reset()


def own_stream_only(adapter, call, given):
    captured = adapter.runtime.handles.find("graph", Graph, given["graph"])
    return call(**given) if captured.stream.handle == given["stream"] else {}


def overtaking(adapter, call, given):
    stream = adapter.runtime.stream(given["stream"])
    other = adapter.output(adapter.runtime.tessStreamCreate(stream.mesh.handle, 0))
    answer = call(**(given | {"stream": other}))
    queue = adapter.runtime.stream(other)
    stream.mesh.machine.settle(lambda: not queue.queued)
    stream.failures.update(queue.failures)
    return answer


async def silent(self, rank):
    for work in self.works:
        try:
            await work.run(rank)
        except Failure:
            return


LAUNCHED = count(1)


async def drifting(self, rank):
    await RUN(self, rank)
    if not self.flags & LaunchFlag.TESS_LAUNCH_CAPTURE or next(LAUNCHED) % 17:
        return
    mesh = self.stream.mesh
    for tensor in self.tensors.values():
        if tensor.written and tensor.dtype.name == "fp32":
            data = bytearray(mesh.read(tensor.region, rank, tensor.bytes, "tessLaunch"))
            data[0] ^= 1
            mesh.write(tensor.region, rank, bytes(data))


def works_as_chosen(graph):
    middle = len(graph.works) // 2
    turned = sum(graph.stream.mesh.machine.engine.choices.taken) % 7 == 3
    return [*graph.works[middle:], *graph.works[:middle]] if turned else graph.works


VIOLATORS = [
    broken("RT-06-11", "flags_that_differ", "captures only launches without another flag",
        "runtime.calls.queue_launch", flags_that_differ),
    broken("RT-06-11", "every_stream", "lets every stream of the mesh capture with the first",
        "runtime.calls.queue_launch", every_stream),
    answering("RT-06-11", "begun_before_checks", "begins a capture with a launch that it then refuses", "tessLaunch",
        begun_before_checks),
    broken("RT-12-08", "state_of_the_last_replay", "replays work in the state in which the last replay left it",
        "runtime.streams.Work.on",
        lambda self, stream: self if stream is self.stream else replace(self, stream=stream)),
    shown("RT-12-05", "NodesWithoutNames", "names every node after its kind", lambda node: {"name": node["kind"]}),
    shown("RT-12-06", "CopiesAsLaunches", "tells copies as launches", lambda node: {"kind": "launch"}),
    broken("RT-12-05", "unjoined", "records no edge for a wait", "runtime.streams.Capture.wait",
        lambda self, recording, stream: self.before.setdefault(stream, frozenset())),
    answering("RT-12-07", "AllDestroyed", "ends all graphs with the first that is destroyed", "tessxGraphDestroy",
        afterwards(each("graph", lambda call, handle, graph: call(graph=handle)))),
    answering("RT-12-08", "OwnStreamOnly", "replays on the stream of the capture whatever stream is asked for",
        "tessxGraphLaunch", own_stream_only),
    answering("RT-12-08", "ReplayOvertakes", "replays before what its stream has queued", "tessxGraphLaunch",
        overtaking),
    replaying_others("RT-12-08", "copies_last", "replays the copies of a graph behind its launches",
        lambda graph: sorted(graph.works, key=lambda work: work.kind == "copy")),
    replaying("RT-12-08", "first_rank_only", "replays on the first rank alone", only_if(lambda work, rank: rank == 0)),
    replaying("RT-12-08", "silent", "tells nothing of what fails in a replay", silent),
    broken("RT-12-09", "drifting", "now and then replays with other bits", "runtime.launches.LaunchWork.run", drifting),
    replaying_others("RT-12-09", "nodes_as_chosen", "orders nodes as concurrency has it", works_as_chosen),
]  # fmt: skip
