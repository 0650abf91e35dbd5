"""Steps: contexts, meshes, streams and events (runtime spec 4.1 to 4.3)."""

from __future__ import annotations

from math import prod
from typing import Any

from tessera_reference.abi.status import Status
from tessera_reference.mesh.axes import MeshAxes

from .live_objects import Context, Event, Mesh, Stream
from .session import ENVIRONMENTS, OK, Session

__all__ = ["STEPS"]

INVALID = Status.TESS_ERR_INVALID_VALUE
MISSING = Status.TESS_ERR_NOT_INITIALIZED
AXES = ("tp", "pp", "dp", "ep")
MOST = {"context": 2, "mesh": 4, "stream": 6, "event": 4}


def missing(handle: int, status: Status = INVALID) -> set[Status]:
    """What a handle of 0, which stands for nothing live, is answered with."""
    return set() if handle else {status}


def environment(session: Session) -> None:
    """The next tessInit finds other variables."""
    found = dict(session.pick(ENVIRONMENTS))
    if session.scratch is not None and session.chance(30):
        found["TESS_CACHE_DIR"] = str(session.scratch / f"cache{session.below(2)}")
    session.runtime.environment = found


def init(session: Session) -> None:
    if len(session.world.contexts) >= MOST["context"]:
        return
    found = dict(session.runtime.environment)
    wrong = {INVALID} if found.get("TESS_AUTOTUNE") == "yes" else set()
    status, context = session.call("tessInit", {}, {}, wrong, outputs=("context",))
    if status is OK:
        session.world.contexts[context] = Context(found)


def shutdown(session: Session) -> None:
    context = session.any("context")
    if len(session.world.contexts) == 1 and not session.chance(20):
        return
    status, _ = session.call("tessShutdown", {"ctx": context}, {"ctx": "context"}, missing(context, MISSING))
    if status is not OK:
        return
    world, ended = session.world, session.world.contexts[context]
    for handle, mesh in list(world.meshes.items()):
        if mesh.context is ended:
            end_mesh(session, handle)
    for handle, module in list(world.modules.items()):
        if module.context is ended:
            end_module(session, handle)
    for handle, (mesh, _) in list(world.graphs.items()):
        if mesh.context is ended:
            world.end("graph", handle)
    for handle, of in list(world.profilers.items()):
        if of is ended:
            world.end("profiler", handle)
    world.end("context", context)


def end_mesh(session: Session, handle: int) -> None:
    world, mesh = session.world, session.world.meshes[handle]
    world.drain()
    for stream in world.of_mesh(mesh):
        world.end("stream", stream.handle)
    for block in [each for each in world.blocks if each.of_device and each.owner == handle]:
        world.free(block)
    world.end("mesh", handle)


def end_module(session: Session, handle: int) -> None:
    world, module = session.world, session.world.modules[handle]
    for kernel in module.kernels.values():
        world.end("kernel", kernel)
    world.end("module", handle)


def version(session: Session) -> None:
    status, found = session.call("tessGetVersion", {}, {}, outputs=("major", "minor", "patch"))
    if status is OK and found[:2] != (1, 0):
        raise session.wrong(f"the version is {found}")


def mesh_create(session: Session) -> None:
    if len(session.world.meshes) >= MOST["mesh"]:
        return
    context = session.any("context")
    ids = [each.id for each in session.topology.devices]
    wrong = missing(context, MISSING)
    count = min(session.pick((1, 2, 2, 2, 3, 4, 6, 8)), len(ids))
    start = session.below(len(ids))
    devices: list[Any] = [ids[(start + i) % len(ids)] for i in range(count)]
    splits = [(a, b, c, d) for a in (0, 1, 2, 3) for b in (0, 1, 2) for c in (1, 2, 3, 4, 8) for d in (0, 2)]
    fit = [each for each in splits if prod(size or 1 for size in each) == count]
    sizes = session.pick(fit)
    if count == 2 and session.chance(50):
        sizes = (0, 0, 2, 0)
    given = count
    if session.chance(8):
        mistake = session.below(5)
        devices = [[*devices[:-1], 77], [*devices, -1][-count:], [devices[0]] * 2, devices, devices][mistake]
        given = [count, count, 2, count + 1, session.pick((0, -1))][mistake]
        sizes = (0, 0, 2, 0) if mistake == 2 else sizes
        wrong |= {INVALID}
    axes = MeshAxes(*sizes)
    arguments = {"ctx": context, "ids": devices, "count": given, "axes": axes}
    kinds = {"ctx": "context", "ids": "ids", "count": "int", "axes": "axes"}
    status, mesh = session.call("tessMeshCreate", arguments, kinds, wrong, outputs=("mesh",))
    if status is OK:
        targets = frozenset(session.topology.device(each).target for each in devices)
        session.world.meshes[mesh] = Mesh(mesh, session.world.contexts[context], tuple(devices), axes, targets)


def mesh_destroy(session: Session) -> None:
    mesh = session.any("mesh")
    status, _ = session.call("tessMeshDestroy", {"mesh": mesh}, {"mesh": "mesh"}, missing(mesh, MISSING))
    if status is OK:
        end_mesh(session, mesh)


def stream_create(session: Session) -> None:
    if len(session.world.streams) >= MOST["stream"]:
        return
    mesh = session.any("mesh")
    priority = session.pick((0, 0, 1, -1, 2**31 - 1, -(2**31)))
    kinds = {"mesh": "mesh", "priority": "int"}
    arguments = {"mesh": mesh, "priority": priority}
    status, stream = session.call("tessStreamCreate", arguments, kinds, missing(mesh, MISSING), outputs=("stream",))
    if status is OK:
        session.world.streams[stream] = Stream(stream, session.world.meshes[mesh])


def stream_destroy(session: Session) -> None:
    stream = session.any("stream")
    status, _ = session.call("tessStreamDestroy", {"stream": stream}, {"stream": "stream"}, missing(stream))
    if status is OK:
        on = session.world.streams[stream]
        if on.capture is not None:
            session.world.end_capture(on.capture)
        session.world.end_stream(on)


def event_create(session: Session) -> None:
    if len(session.world.events) >= MOST["event"]:
        return
    wrong = set() if session.world.contexts else {MISSING}
    status, event = session.call("tessEventCreate", {}, {}, wrong, outputs=("event",))
    if status is OK:
        session.world.events[event] = Event()


def event_destroy(session: Session) -> None:
    event = session.any("event")
    status, _ = session.call("tessEventDestroy", {"event": event}, {"event": "event"}, missing(event))
    if status is OK:
        session.world.end("event", event)


def event_record(session: Session) -> None:
    record(session, session.any("event"), session.any("stream"))


def record(session: Session, event: int, stream: int) -> None:
    wrong = missing(event) | missing(stream)
    kinds = {"event": "event", "stream": "stream"}
    status, _ = session.call("tessEventRecord", {"event": event, "stream": stream}, kinds, wrong)
    if status is not OK:
        return
    recorded, on = session.world.events[event], session.world.streams[stream]
    recorded.mesh, recorded.capture = on.mesh, on.capture
    recorded.clock = session.world.order.record(stream)
    if on.capture is None:
        on.busy = True
    else:
        recorded.before = on.capture.before.get(stream, frozenset())


def stream_wait(session: Session) -> None:
    wait(session, session.any("stream"), session.any("event"))


def wait(session: Session, stream: int, event: int) -> None:
    wrong = missing(event) | missing(stream)
    of, on = session.world.events.get(event), session.world.streams.get(stream)
    if of is not None and on is not None and of.mesh is not None and not may_wait(on, of, of.mesh):
        wrong |= {INVALID}
    kinds = {"stream": "stream", "event": "event"}
    status, _ = session.call("tessStreamWaitEvent", {"stream": stream, "event": event}, kinds, wrong)
    if status is not OK or of is None or on is None or of.mesh is None:
        return
    if of.capture is None:
        on.busy = True
        session.world.order.wait(stream, of.clock)
    else:
        on.capture = of.capture
        of.capture.before[stream] = of.capture.before.get(stream, frozenset()) | of.before


def may_wait(on: Stream, of: Event, mesh: Mesh) -> bool:
    """A stream may wait for a recording on a mesh that has a device of its own; for a captured one, if it may join."""
    if of.capture is not None and (not of.capture.running or on.mesh is not mesh):
        return False
    return bool(set(mesh.devices) & set(on.mesh.devices)) and (of.capture is None or on.capture in (None, of.capture))


def handed_over(session: Session) -> None:
    """One stream records, another waits: their work is then in order."""
    event, first, second = session.any("event"), session.any("stream"), session.any("stream")
    record(session, event, first)
    wait(session, second, event)


def synchronize(session: Session) -> None:
    stream = session.any("stream")
    synchronized(session, stream)
    if session.chance(20):
        synchronized(session, stream)


def synchronized(session: Session, stream: int) -> None:
    """Synchronize: the first error is reported, and only once."""
    on = session.world.streams.get(stream)
    wrong, maybe = missing(stream), set()
    if on is not None:
        wrong, maybe = set(on.errors), set(on.maybe)
    status, _ = session.call("tessStreamSynchronize", {"stream": stream}, {"stream": "stream"}, wrong, maybe=maybe)
    if on is None or (status is INVALID and "tessStreamSynchronize: stream is" in session.runtime.tessxLastError()):
        return
    on.errors, on.maybe = [], set()
    session.world.drain([on])


STEPS = {
    environment: 1,
    init: 2,
    shutdown: 1,
    version: 1,
    mesh_create: 4,
    mesh_destroy: 1,
    stream_create: 5,
    stream_destroy: 1,
    event_create: 2,
    event_destroy: 1,
    event_record: 3,
    stream_wait: 3,
    handed_over: 8,
    synchronize: 12,
}
