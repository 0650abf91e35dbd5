"""Steps on live objects: contexts, meshes, streams, events, memory, copies, modules."""

from __future__ import annotations

from dataclasses import asdict
from math import prod
from typing import Any

from tessera_reference.abi.status import Status
from tessera_reference.mesh.axes import MeshAxes

from .model import KERNELS, Block, Context, Event, Mesh, Module, Place, Stream, copy
from .session import ENVIRONMENTS, IMAGES, OK, Session, image

INVALID = Status.TESS_ERR_INVALID_VALUE
MISSING = Status.TESS_ERR_NOT_INITIALIZED
AXES = ("tp", "pp", "dp", "ep")
MOST = {"context": 2, "mesh": 4, "stream": 6, "event": 4}


def missing(handle: int, status: Status = INVALID) -> set[Status]:
    """Return the statuses that a handle of 0, which stands for nothing live, may get."""
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


LIVE_STEPS = {
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
EXHAUSTED = Status.TESS_ERR_OUT_OF_MEMORY
MOST_BLOCKS = 10
SIZES = (32, 64, 64, 96, 40, 1, 0, 256)
ABSURD = (2**45, 2**52, 2**63, 2**64 - 1)


def full(session: Session) -> bool:
    return len(session.world.blocks) >= MOST_BLOCKS


def malloc(session: Session) -> None:
    mesh, wrong = session.any("mesh"), set()
    if full(session):
        return
    absurd = session.begun and session.chance(6)
    size = session.pick(ABSURD if absurd else SIZES)
    on = session.world.meshes.get(mesh)
    if on is None:
        wrong = {MISSING}
    elif absurd:
        wrong = {EXHAUSTED}
    kinds = {"mesh": "mesh", "bytes": "size"}
    spared = set(session.world.meshes)
    plan = None if on is None else on.context.faults
    if plan is not None and any(
        each["kind"] == "out_of_memory" and each.get("nth", 1) == plan.allocations + 1 for each in plan.told
    ):
        wrong = {EXHAUSTED}
    arguments = {"mesh": mesh, "bytes": size}
    status, pointer = session.call("tessMalloc", arguments, kinds, wrong, outputs=("devPtr",))
    reached = status in (OK, EXHAUSTED)
    if plan is not None and reached:
        plan.allocations += 1
    if status is OK and on is not None:
        session.adopt(Block(pointer, size, on.devices, owner=mesh))
    assert spared == set(session.world.meshes)


def free(session: Session) -> None:
    mine = [each for each in session.world.blocks if each.of_device]
    if not mine:
        return
    block = session.pick(mine)
    mesh, pointer, wrong = block.owner, block.address, set()
    if session.chance(10):
        other = session.any("mesh")
        pointer += session.pick((0, 1, 8))
        mesh = other
        wrong = set() if mesh == block.owner and pointer == block.address else {INVALID}
    kinds = {"mesh": "mesh", "devPtr": "device pointer"}
    status, _ = session.call("tessFree", {"mesh": mesh, "devPtr": pointer}, kinds, wrong)
    drained_by_free(session, status)
    if status is OK:
        session.world.free(block)


def drained_by_free(session: Session, status: Status) -> None:
    """A free lets all work finish, unless it is refused for a handle or for NULL."""
    if status is OK or (status is INVALID and ": pointer is" in session.runtime.tessxLastError()):
        session.world.drain()


def host_alloc(session: Session) -> None:
    if full(session):
        return
    absurd, size = session.chance(4), session.pick(SIZES)
    wrong = set() if session.world.contexts else {MISSING}
    size = session.pick(ABSURD) if absurd else size
    if absurd:
        wrong |= {EXHAUSTED}
    kinds = {"bytes": "size", "kind": "memory kind"}
    status, pointer = session.call("tessHostAlloc", {"bytes": size, "kind": 1}, kinds, wrong, outputs=("hostPtr",))
    if status is OK:
        session.adopt(Block(pointer, size))


def host_memory(session: Session) -> None:
    if full(session):
        return
    size = session.pick(SIZES)
    status, pointer = session.call("tessxHostMemory", {"bytes": size}, {"bytes": "size"}, outputs=("hostPtr",))
    if status is OK:
        session.adopt(Block(pointer, size))


def adopt_host(session: Session) -> None:
    if full(session):
        return
    data, fixed = session.bytes(session.pick(SIZES)), session.chance(30)
    held = data if fixed else bytearray(data)
    status, pointer = session.call("tessxAdoptHost", {"memory": held}, {"memory": "memory"}, outputs=("hostPtr",))
    if status is OK:
        session.adopt(Block(pointer, len(data), read_only=fixed or not data, copies=[bytearray(data)]))


def adopt_device(session: Session) -> None:
    if full(session):
        return
    mesh = session.any("mesh")
    data, fixed = session.bytes(session.pick(SIZES)), session.chance(30)
    held = data if fixed else bytearray(data)
    kinds = {"mesh": "mesh", "memory": "memory"}
    arguments = {"mesh": mesh, "memory": held}
    status, pointer = session.call("tessxAdoptDevice", arguments, kinds, missing(mesh, MISSING), outputs=("devPtr",))
    if status is OK:
        devices = session.world.meshes[mesh].devices
        fixed = fixed or not data
        made = Block(pointer, len(data), devices, mesh, shared=True, read_only=fixed, copies=[bytearray(data)])
        session.adopt(made)


def host_free(session: Session) -> None:
    mine = [each for each in session.world.blocks if not each.of_device]
    if not mine:
        return
    block = session.pick(mine)
    inside = session.chance(10)
    arguments = {"hostPtr": block.address + inside}
    wrong = {INVALID} if inside else set()
    status, _ = session.call("tessHostFree", arguments, {"hostPtr": "host pointer"}, wrong)
    drained_by_free(session, status)
    if status is OK:
        session.world.free(block)


def host_read(session: Session) -> None:
    place = session.place(session.pick((0, 1, 8, 32)), devices=None)
    if place is None:
        return
    kinds = {"hostPtr": "host pointer", "bytes": "size"}
    arguments = {"hostPtr": place.address, "bytes": place.size}
    status, data = session.call("tessxHostRead", arguments, kinds, unspoilt=() if place.size else ("hostPtr",))
    if status is OK and session.world.order.is_quiet(place.block, writes_only=True):
        check(session, place, 0, data)


def check(session: Session, place: Place, copy: int, data: Any) -> None:
    expected, known = place.block.read(copy, place.start, place.size)
    if len(data) != place.size or any(known[i] and data[i] != expected[i] for i in range(place.size)):
        raise session.wrong(f"read {bytes(data).hex()}, not {expected.hex()}")


def host_write(session: Session) -> None:
    size = session.pick((0, 1, 8, 32))
    place = session.place(size, devices=None, quiet=not session.chance(5))
    if place is None:
        return
    data = session.bytes(size)
    wrong = {INVALID} if place.block.read_only else set()
    kinds = {"hostPtr": "host pointer", "data": "data"}
    arguments = {"hostPtr": place.address, "data": data}
    unspoilt = () if size else ("hostPtr",)
    status, _ = session.call("tessxHostWrite", arguments, kinds, wrong, unspoilt=unspoilt)
    if status is not OK:
        return
    place.block.write(0, place.start, data)
    if not session.world.order.is_quiet(place.block):
        session.world.forget()


def of_rank(session: Session, size: int) -> tuple[int, int, Place | None, set[Status]]:
    """A mesh, a rank of it, memory of it, and what is wrong with them."""
    mesh = session.any("mesh")
    on = session.world.meshes.get(mesh)
    if on is None:
        return mesh, 0, None, {MISSING}
    place = session.place(size, devices=on.devices)
    wrong = set() if place is not None and place.block.devices == on.devices else {INVALID}
    return mesh, session.below(len(on.devices)), place, wrong


def peek(session: Session) -> None:
    size = session.pick((0, 1, 8, 32))
    mesh, rank, place, wrong = of_rank(session, size)
    if place is None:
        return
    kinds = {"mesh": "mesh", "rank": "rank", "devPtr": "device pointer", "bytes": "size"}
    arguments = {"mesh": mesh, "rank": rank, "devPtr": place.address, "bytes": size}
    unspoilt = () if size else ("devPtr",)
    status, data = session.call("tessxPeek", arguments, kinds, wrong, unspoilt=unspoilt)
    drained_by_reaching(session, mesh, status)
    if status is OK and session.world.order.is_quiet(place.block, writes_only=True):
        check(session, place, place.block.copy_on(session.world.meshes[mesh].devices[rank]), data)


def drained_by_reaching(session: Session, mesh: int, status: Status) -> None:
    """To reach memory lets the work of the mesh finish, also where it is then refused."""
    text = session.runtime.tessxLastError()
    if status is OK or ": devPtr is" in text or "read-only" in text:
        session.world.drain(session.world.of_mesh(session.world.meshes[mesh]))


def poke(session: Session) -> None:
    size = session.pick((0, 1, 8, 32))
    mesh, rank, place, wrong = of_rank(session, size)
    if place is None:
        return
    data = session.bytes(size)
    if place.block.read_only and not wrong:
        wrong = {INVALID}
    kinds = {"mesh": "mesh", "rank": "rank", "devPtr": "device pointer", "data": "data"}
    arguments = {"mesh": mesh, "rank": rank, "devPtr": place.address, "data": data}
    unspoilt = () if size else ("devPtr",)
    status, _ = session.call("tessxPoke", arguments, kinds, wrong, unspoilt=unspoilt)
    drained_by_reaching(session, mesh, status)
    if status is not OK:
        return
    place.block.write(place.block.copy_on(session.world.meshes[mesh].devices[rank]), place.start, data)
    if not session.world.order.is_quiet(place.block):
        session.world.forget()


MEMORY_STEPS = {
    malloc: 8,
    free: 2,
    host_alloc: 3,
    host_memory: 2,
    adopt_host: 1,
    adopt_device: 1,
    host_free: 2,
    host_read: 2,
    host_write: 5,
    peek: 4,
    poke: 5,
}


def limit_of(stream: Stream, blocks: list[Block]) -> tuple[set[Status], set[Status]]:
    """Return the statuses that a memory limit gives to work that refers to these blocks (AMB-RT-87)."""
    own = sum(each.size for each in dict.fromkeys(blocks) if each.of_device)
    most = sum(each.size for each in dict.fromkeys([*stream.queued, *blocks]) if each.of_device)
    if not stream.limit or most <= stream.limit or stream.capture is not None:
        return set(), set()
    return ({EXHAUSTED}, set()) if own > stream.limit else (set(), {EXHAUSTED, OK})


def ordered(session: Session, stream: Stream, place: Place | None) -> bool:
    """Nothing that is queued elsewhere, unknown to the stream, uses the block."""
    clock = session.world.order.clock(stream.handle)
    return place is not None and not any(
        each.use.place.block is place.block and each.time > clock.get(each.stream, 0)
        for each in session.world.order.noted
    )


def tidy_place(session: Session, stream: Stream, size: int, *, host: bool = False, step: int = 1) -> Place | None:
    """A place for work of a stream: mostly one that no other stream uses."""
    devices = None if host else stream.mesh.devices
    place = session.place(size, devices=devices, step=step)
    for _ in range(3):
        if ordered(session, stream, place) or session.chance(2):
            break
        place = session.place(size, devices=devices, step=step)
    else:
        return None
    return place


def read_only(written: list[Place]) -> set[Status]:
    """Return the status of work that would write read-only memory."""
    return {INVALID} if any(each.block.read_only for each in written) else set()


def memcpy(session: Session, stream: int | None = None) -> None:
    on = session.world.streams.get(session.any("stream") if stream is None else stream)
    if on is None:
        return
    direction, size = session.below(3), session.pick((1, 8, 32, 32, 0))
    target = tidy_place(session, on, size, host=direction == 1)
    source = tidy_place(session, on, size, host=direction == 0)
    if target is not None and source is not None:
        move(session, on, direction, target, source)


def move(session: Session, on: Stream, direction: int, target: Place, source: Place) -> None:
    """Queue a copy."""
    size = source.size
    wrong: set[Status] = set()
    maybe: set[Status] = set()
    if size:
        wrong, maybe = limit_of(on, [target.block, source.block])
        wrong = read_only([target]) or wrong
    device, host = "device pointer", "host pointer"
    kinds = {"dst": host if direction == 1 else device, "src": host if direction == 0 else device}
    kinds |= {"bytes": "size", "kind": "copy kind", "stream": "stream"}
    arguments = {"dst": target.address, "src": source.address, "bytes": size, "kind": direction, "stream": on.handle}
    unspoilt = () if size else ("dst", "src")
    status, _ = session.call("tessMemcpyAsync", arguments, kinds, wrong, maybe=maybe, unspoilt=unspoilt)
    if status is OK and size:
        session.world.submit(on, copy(on.mesh, direction, target, source))


COPY_STEPS = {memcpy: 16}
VIOLATION = Status.TESS_ERR_DETERMINISM_VIOLATION
ARCH = Status.TESS_ERR_ARCH_MISMATCH
VERSION = Status.TESS_ERR_ABI_VERSION_MISMATCH


def module_load(session: Session) -> None:
    if len(session.world.modules) >= 3:
        return
    context, name = session.any("context"), session.pick(("both", "both", "both", *IMAGES)) if session.begun else "both"
    on, data = session.world.contexts.get(context), image(name)
    targets, policy, version = IMAGES[name]
    here = {each.target for each in session.topology.devices}
    if on is None:
        wrong = {MISSING}
    elif version is not None:
        wrong = {VERSION}
    elif not here & set(targets):
        wrong = {ARCH}
    else:
        wrong = {VIOLATION} if policy is not None and on.forbid_fast_math and policy.allowFastMath else set()
    given: Any = data
    if session.chance(20):
        given = session.pick((bytearray, memoryview))(data)
    arguments = {"ctx": context, "image": given, "size": len(data)}
    kinds = {"ctx": "context", "image": "image", "size": "size"}
    status, module = session.call("tessModuleLoad", arguments, kinds, wrong, outputs=("module",))
    if status is OK and on is not None:
        told = None if policy is None else asdict(policy)
        session.world.modules[module] = Module(on, frozenset(targets), told)


def module_load_damaged(session: Session) -> None:
    """An image with bytes changed, cut off, or moved."""
    context = session.any("context")
    data = bytearray(image(session.pick(("both", "sm_90"))))
    for _ in range(1 + session.below(3)):
        kind, at = session.below(4), session.below(len(data)) if session.chance(50) else session.below(200)
        if kind == 0:
            data[at] ^= 1 + session.below(255)
        elif kind == 1:
            del data[at : at + 1 + session.below(64)]
        elif kind == 2:
            data[at:at] = session.bytes(1 + session.below(64))
        else:
            data[at : at + 8] = session.pick((bytes(8), b"\xff" * 8, (2**63).to_bytes(8, "little")))
    if bytes(data) == image("both") or bytes(data) == image("sm_90"):
        return
    wrong = {INVALID, VERSION} if context else {MISSING}
    arguments = {"ctx": context, "image": bytes(data), "size": len(data)}
    session.call("tessModuleLoad", arguments, {}, wrong, outputs=("module",))


def module_unload(session: Session) -> None:
    module = session.any("module")
    status, _ = session.call("tessModuleUnload", {"module": module}, {"module": "module"}, missing(module))
    if status is OK:
        world = session.world
        world.drain(world.of_context(world.modules[module].context))
        end_module(session, module)


def kernel_get(session: Session) -> None:
    module, name = session.any("module"), session.pick((*KERNELS, "met", "nothing"))
    arguments, kinds = {"module": module, "name": name}, {"module": "module", "name": "name"}
    status, handle = session.call("tessKernelGet", arguments, kinds, missing(module), outputs=("kernel",))
    if status is not OK:
        return
    known = session.world.modules[module].kernels.setdefault(name, handle)
    if known != handle:
        raise session.wrong(f"kernel {name} is {handle}, which was {known}")
    session.world.kernels[handle] = (session.world.modules[module], name)


def explain(session: Session) -> None:
    module = session.any("module")
    session.call("tessxExplain", {"module": module}, {"module": "module"}, missing(module), outputs=("explanation",))


MODULE_STEPS = {module_load: 4, module_load_damaged: 1, module_unload: 1, kernel_get: 5, explain: 1}

STEPS = LIVE_STEPS | MEMORY_STEPS | COPY_STEPS | MODULE_STEPS
