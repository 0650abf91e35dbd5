"""Steps: captures, graphs and their replay (runtime spec 12)."""

from __future__ import annotations

from tessera_reference.abi.status import Status
from tessera_reference.runtime.launches import LaunchConfig

from .access_order import Use
from .live_objects import Queued
from .queued_work import buffer
from .session import OK, Session
from .steps_collectives import collective_call
from .steps_copies import limit_of, memcpy, move, ordered, tidy_place
from .steps_launches import CAPTURE, launch_problems, queue_launch
from .steps_live import INVALID, missing, record, synchronized, wait

__all__ = ["STEPS"]

CORRUPT = Status.TESS_ERR_CACHE_CORRUPT


def graph_instantiate(session: Session, stream: int | None = None) -> None:
    world, given = session.world, stream
    stream = session.any("stream") if given is None else given
    capturing = [each.handle for each in world.streams.values() if each.capture is not None]
    if given is None and capturing and session.chance(80):
        stream = session.pick(capturing)
    on = world.streams.get(stream)
    wrong = missing(stream) | (set() if on is None or on.capture is not None else {INVALID})
    status, graph = session.call(
        "tessxGraphInstantiate", {"stream": stream}, {"stream": "stream"}, wrong, outputs=("graph",)
    )
    if status is not OK or on is None or on.capture is None:
        return
    ended = on.capture
    world.end_capture(ended)
    world.graphs[graph] = (on.mesh, tuple(ended.nodes))


def graph_nodes(session: Session) -> None:
    graph = session.any("graph")
    status, nodes = session.call(
        "tessxGraphNodes", {"graph": graph}, {"graph": "graph"}, missing(graph), outputs=("nodes",)
    )
    if status is OK:
        found = [(each.work.kind, each.after) for each in nodes]
        expected = [(each.work.kind, each.after) for each in session.world.graphs[graph][1]]
        if found != expected:
            raise session.wrong(f"the nodes are {found}, not {expected}")


def graph_launch(session: Session) -> None:
    world, graph, stream = session.world, session.any("graph"), session.any("stream")
    if graph and session.chance(80):
        fit = [each.handle for each in world.of_mesh(world.graphs[graph][0]) if each.capture is None]
        stream = session.pick(fit) if fit else stream
    on, wrong = world.streams.get(stream), missing(graph) | missing(stream)
    must: set[Status] = set()
    maybe: set[Status] = set()
    uses: list[Use] = []
    if on is not None and graph:
        mesh, nodes = world.graphs[graph]
        uses = [use for each in nodes for use in each.work.uses]
        if on.mesh is not mesh or on.capture is not None or any(use.place.block.freed for use in uses):
            wrong |= {INVALID}
        must, maybe = limit_of(on, [use.place.block for use in uses])
    kinds = {"graph": "graph", "stream": "stream"}
    arguments = {"graph": graph, "stream": stream}
    status, _ = session.call("tessxGraphLaunch", arguments, kinds, wrong or must, maybe=maybe)
    if status is OK and on is not None:
        nodes = world.graphs[graph][1]
        works = [each.work.again() if each.work.again else each.work for each in nodes]
        seeds = [seed for each in nodes for seed in each.work.seeds]
        apply = lambda: [error for each in works for error in each.apply()]  # noqa: E731
        world.enqueue(on, Queued(uses, apply, "graph", seeds=seeds))


def graph_destroy(session: Session) -> None:
    graph = session.any("graph")
    status, _ = session.call("tessxGraphDestroy", {"graph": graph}, {"graph": "graph"}, missing(graph))
    if status is OK:
        session.world.end("graph", graph)


def captured(session: Session) -> None:
    """A whole capture on one stream, or joined by an event on two; mostly instantiated and replayed."""
    stream = launch_captured(session)
    on = session.world.streams.get(stream)
    if on is None or on.capture is None:
        return
    collective_call(session, stream)
    others = [each.handle for each in session.world.of_mesh(on.mesh) if each is not on and each.capture is None]
    event = session.any("event")
    if others and event and session.chance(50):
        other = session.pick(others)
        record(session, event, stream)
        wait(session, other, event)
        memcpy(session, other)
    memcpy(session, stream)
    if session.chance(80):
        graph_instantiate(session, stream)
        for _ in range(2):
            graph_launch(session)


def launch_captured(session: Session) -> int:
    """A launch that begins a capture, on a stream and with a kernel that go together: the stream, or 0."""
    world = session.world
    for stream in world.streams.values():
        for handle, (module, name) in world.kernels.items():
            if name != "fill" or launch_problems(stream.mesh, stream, module, CAPTURE):
                continue
            place = tidy_place(session, stream, 32, step=4)
            if place is None or place.block.read_only:
                return 0
            data = buffer("fill", 9, [place.address])
            config = LaunchConfig((1, 1, 1), flags=CAPTURE)
            maybe = {CORRUPT, OK} if session.corrupted else set()
            arguments = {"kernel": handle, "mesh": stream.mesh.handle, "cfg": config, "argBuffer": data}
            arguments |= {"argSize": 16, "stream": stream.handle}
            status, _ = session.judged("tessLaunch", arguments, maybe or {OK})
            if status is OK:
                queue_launch(session, stream, "fill", 9, [place], CAPTURE, [])
            return stream.handle
    return 0


def relayed(session: Session) -> None:
    """Work that hangs on that of another stream, which an event orders; then all of it is looked at."""
    world = session.world
    pairs = [(a, b) for a in world.streams.values() for b in world.of_mesh(a.mesh) if a is not b]
    event = session.any("event")
    if not pairs or not event:
        return
    first, second = session.pick(pairs)
    places = [session.place(8, devices=first.mesh.devices) for _ in range(3)]
    if first.capture or second.capture or any(each is None or each.block.shared for each in places):
        return
    for stream, source, target in ((first, places[0], places[1]), (second, places[1], places[2])):
        if source is None or target is None or not all(ordered(session, stream, each) for each in (source, target)):
            return
        move(session, stream, 2, target, source)
        record(session, event, stream.handle)
        wait(session, second.handle, event)
    synchronized(session, second.handle)


STEPS = {
    graph_instantiate: 4,
    graph_nodes: 2,
    graph_launch: 5,
    graph_destroy: 1,
    captured: 6,
    relayed: 6,
}
