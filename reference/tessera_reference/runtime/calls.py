"""The functions of the host API, in the order of runtime spec 4."""

# ruff: noqa: N802, N803, the names are those of the C API
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ..abi.fatbin import read, verify
from ..abi.policy import NumericsPolicy
from ..abi.status import RUNTIME_VERSION, CopyKind, Failure, LaunchFlag, MemKind, Status, unsupported
from ..ir.diagnostics import Rejection, UnsupportedConstruct
from ..mesh.memory import Wanted
from ..mesh.topology import MeshAxes
from ..mesh.trace import Names, Profiler, write_trace
from ..numerics.formats import shown
from .collectives import FUNCTIONS, collective_work, read_call
from .contexts import Context, read_environment
from .launches import (
    Kernel,
    LaunchConfig,
    LaunchWork,
    LoadedModule,
    argument_bytes,
    configuration_of,
    extents_of,
    flags_of,
    require_order,
    require_place,
    require_targets,
    require_together,
    scalars_of,
    tensors_of,
)
from .machine import INT, SIZE, integer, invalid, one_of, reported_by, required
from .state import State, entry, submit
from .streams import (
    Capture,
    CopyWork,
    Event,
    Graph,
    GraphWork,
    Mesh,
    Node,
    Recording,
    RecordWork,
    Stream,
    WaitWork,
    begin_capture,
    capture_of,
    host_bytes,
    recording_on,
    region_of,
)

if TYPE_CHECKING:
    from ..compilation.executables import Executable

# Initialization and contexts (runtime spec 4.1; AMB-RT-32, AMB-RT-39, AMB-RT-50, AMB-RT-71).


@entry("context")
def tessInit(state: State) -> int:
    """Return a new context, with the settings of the current environment (RT-04.1-19, RT-19.C-02)."""
    settings = read_environment(state.environment)
    context = Context(state.handles.next, settings)
    state.handles.give("context", context)
    state.log.level = settings.log_level
    state.code.hits = state.code.misses = 0
    state.log.note("info", f"context {context.handle} under {settings}")
    return context.handle


@entry()
def tessShutdown(state: State, ctx: Any) -> None:
    """End a context once its work is done, and release what remains of it (RT-04.1-20, AMB-RT-50)."""
    context = state.context(ctx)
    for _, mesh in state.handles.live("mesh"):
        if mesh.context is context:
            state.release_mesh(mesh)
    for kind in ("module", "kernel", "graph"):
        for handle, value in state.handles.live(kind):
            if value.context is context:
                state.handles.end(handle)
    for profiler in context.profilers:
        state.handles.end(profiler)
    state.handles.end(ctx)


@entry("major", "minor", "patch")
def tessGetVersion(state: State) -> tuple[int, int, int]:
    """Return the ABI pair and a patch number; works before tessInit (RT-04.1-21, AMB-RT-32, AMB-RT-39)."""
    return RUNTIME_VERSION


# Meshes (runtime spec 4.2; AMB-RT-01, AMB-RT-51).


@entry("mesh")
def tessMeshCreate(state: State, ctx: Any, deviceIds: Any, nDevices: int, axes: MeshAxes) -> int:
    """Create a mesh over devices, one a rank; the product of the axes is their number (RT-04.2-04)."""
    context = state.context(ctx)
    count = integer("nDevices", nDevices, INT)
    if count < 1:
        raise invalid(f"nDevices is {count}", "at least 1")
    if not isinstance(required("deviceIds", deviceIds), Sequence) or isinstance(deviceIds, str | bytes):
        raise invalid(f"deviceIds is {shown(deviceIds)}", "ids of devices")
    if not isinstance(axes, MeshAxes):
        raise invalid(f"axes is {shown(axes)}", "tessMeshAxes")
    ids = list(deviceIds[:count])
    if len(ids) != count:
        raise invalid(f"{len(ids)} device ids for nDevices {count}", "an id for each device")
    named = set[int]()
    for place, device in enumerate(ids):
        integer(f"deviceIds[{place}]", device, INT)
        state.machine.topology.device(device)
        if device in named:
            raise invalid(f"deviceIds[{place}] is {device}, named twice", "each device once")
        named.add(device)
    axes.require(count)
    return state.handles.give("mesh", Mesh(state.handles.next, context, state.machine, tuple(ids), axes))


@entry()
def tessMeshDestroy(state: State, mesh: Any) -> None:
    """End a mesh once its work is done, and release its streams and memory (RT-04.2-05, AMB-RT-50)."""
    state.release_mesh(state.mesh(mesh))


# Streams and events (runtime spec 4.3, 12; AMB-RT-49, AMB-RT-50, AMB-RT-63).


@entry("stream")
def tessStreamCreate(state: State, mesh: Any, priority: int) -> int:
    """Create a stream on all ranks of a mesh; a larger priority is more urgent (RT-04.3-11, AMB-RT-63)."""
    on = state.mesh(mesh)
    stream = Stream(state.handles.next, on, integer("priority", priority, INT))
    on.streams[stream.handle] = stream
    return state.handles.give("stream", stream)


@entry()
def tessStreamDestroy(state: State, stream: Any) -> None:
    """End a stream once its work is done; an error not yet reported is lost (RT-04.3-12, AMB-RT-50)."""
    ended = state.stream(stream)
    ended.drain()
    state.release_stream(ended)


@entry("event")
def tessEventCreate(state: State) -> int:
    """Create an event without a recording (RT-04.3-13, AMB-RT-07)."""
    state.require_initialized()
    return state.handles.give("event", Event(state.handles.next))


@entry()
def tessEventDestroy(state: State, event: Any) -> None:
    """End an event; streams that wait for its recording continue to wait (RT-04.3-14)."""
    _event(state, event)
    state.handles.end(event)


@entry()
def tessEventRecord(state: State, event: Any, stream: Any) -> None:
    """Record the current end of a stream's queue; this replaces an earlier recording (RT-02-06, AMB-RT-49)."""
    recorded = _event(state, event)
    on = state.stream(stream)
    capture = capture_of(state.captures, on)
    recording = recording_on(on, next(state.recordings), capture)
    if capture is not None:
        capture.record(recording.number, on)
    else:
        on.enqueue(RecordWork(name=f"record event {event}", stream=on, recording=recording))
    recording.clock = state.machine.order.record(stream)
    recorded.last = recording


@entry()
def tessStreamWaitEvent(state: State, stream: Any, event: Any) -> None:
    """Hold back later work of a stream until the event's recording is reached (RT-12-03, RT-12-04, AMB-RT-49)."""
    waiting = state.stream(stream)
    recording = _event(state, event).last
    if recording is None:
        return
    if not set(recording.mesh.devices) & set(waiting.mesh.devices):
        subject = f"an event of mesh {recording.mesh.handle}, which shares no device with mesh {waiting.mesh.handle}"
        raise invalid(subject, "a mesh with common devices")
    captured = recording.captured_by
    if captured is not None:
        _require_may_join(captured, recording, waiting, capture_of(state.captures, waiting))
        captured.wait(recording.number, waiting)
        return
    waiting.enqueue(WaitWork(name=f"wait for event {event}", stream=waiting, recording=recording))
    state.machine.order.wait(recording.clock, stream)


@entry()
def tessStreamSynchronize(state: State, stream: Any) -> None:
    """Wait until all queued work is done; report its first asynchronous error, once (RT-04.3-10, RT-07-07,
    AMB-RT-14)."""
    state.stream(stream).synchronize()


def _event(state: State, handle: Any) -> Event:
    return state.handles.find("event", Event, handle)


def _require_may_join(capture: Capture, recording: Recording, stream: Stream, current: Capture | None) -> None:
    """Require a running capture of the stream's own mesh, and no other capture of the stream. Raises `Failure`."""
    if capture not in capture.running:
        raise invalid("an event that was recorded in a capture, which has ended", "an event recorded since")
    if stream.mesh is not recording.mesh:
        subject = f"an event captured on mesh {recording.mesh.handle} for a stream of mesh {stream.mesh.handle}"
        raise invalid(subject, "a stream of the mesh that is captured")
    if current not in (None, capture):
        subject = f"an event of another capture than that of stream {stream.handle}"
        raise invalid(subject, "an event of the capture that the stream is in")


# Memory and copies (runtime spec 4.4; AMB-RT-05, AMB-RT-06, AMB-RT-40, AMB-RT-53).


SIDES: Mapping[CopyKind, tuple[Wanted, Wanted]] = {
    CopyKind.TESS_COPY_H2D: ("device", "host"),
    CopyKind.TESS_COPY_D2H: ("host", "device"),
    CopyKind.TESS_COPY_D2D: ("device", "device"),
}
"""The memory that each kind of copy writes and reads."""


@entry("devPtr")
def tessMalloc(state: State, mesh: Any, bytes: int) -> int:
    """Allocate global memory: the same size on every rank, under one pointer (RT-04.4-14, AMB-RT-05)."""
    on = state.mesh(mesh)
    size = integer("bytes", bytes, SIZE)
    if on.context.faults.of_allocation():
        subject = f"{size} bytes, while a fault plan leaves no memory"
        raise Failure(Status.TESS_ERR_OUT_OF_MEMORY, "", subject, "memory that is there")
    return state.machine.memory.allocate_device(on.devices, size, owner=mesh)


@entry()
def tessFree(state: State, mesh: Any, devPtr: Any) -> None:
    """Release memory of a mesh once all work that could refer to it is done (RT-04.4-15, AMB-RT-50)."""
    state.mesh(mesh)
    required("devPtr", devPtr)
    state.drain()
    freed = state.machine.memory.free_device(devPtr, owner=mesh)
    state.machine.order.forget(freed.number)


@entry("hostPtr")
def tessHostAlloc(state: State, bytes: int, kind: int) -> int:
    """Allocate pinned host memory (RT-04.4-16, AMB-RT-06, AMB-RT-07)."""
    state.require_initialized()
    size = integer("bytes", bytes, SIZE)
    one_of("kind", kind, list(MemKind), "TESS_MEM_PINNED_HOST (1)")
    if kind == MemKind.TESS_MEM_GLOBAL:
        raise invalid("kind is TESS_MEM_GLOBAL", "TESS_MEM_PINNED_HOST (1), since this is host memory")
    return state.machine.memory.allocate_host(size)


@entry()
def tessHostFree(state: State, hostPtr: Any) -> None:
    """Release host memory once all work that could refer to it is done (RT-04.4-17)."""
    required("hostPtr", hostPtr)
    state.drain()
    state.machine.memory.free_host(hostPtr)


@entry()
def tessMemcpyAsync(state: State, dst: Any, src: Any, bytes: int, kind: int, stream: Any) -> None:
    """Queue a copy (RT-04.4-11, RT-04.4-18 to -20); a copy of no bytes succeeds (AMB-RT-40)."""
    on = state.stream(stream)
    size = integer("bytes", bytes, SIZE)
    one_of("kind", kind, list(CopyKind), "TESS_COPY_H2D (0), TESS_COPY_D2H (1) or TESS_COPY_D2D (2)")
    if size == 0:
        return
    direction = CopyKind(kind)
    to, of = SIDES[direction]
    destination = region_of("tessMemcpyAsync", "dst", required("dst", dst), size, to, on, written=True)
    source = region_of("tessMemcpyAsync", "src", required("src", src), size, of, on)
    name = direction.name.removeprefix("TESS_COPY_").lower()
    work = CopyWork(name=name, stream=on, direction=direction, destination=destination, source=source, bytes=size)
    submit(state, work)


# Modules, kernels and launches (runtime spec 4.5, 6, 8, 10, 15, 16).


@entry("module")
def tessModuleLoad(state: State, ctx: Any, image: bytes | int | None, size: int) -> int:
    """Load a fatbin: check its form, then its ABI, then its targets against the machine's devices (AMB-RT-43, -60)."""
    context = state.context(ctx)
    data = host_bytes(state.machine.memory, "tessModuleLoad", "image", required("image", image), size, "size")
    keys = context.module_policy.trusted_keys
    fatbin = read(data)
    if keys is not None:
        verify(data, keys)
    targets = {device.target for device in state.machine.topology.devices}
    if not targets & set(fatbin.targets):
        subject = f"a module for {', '.join(fatbin.targets) or 'no target'}"
        allowed = f"one for a device of this machine: {', '.join(sorted(targets))}"
        raise Failure(Status.TESS_ERR_ARCH_MISMATCH, "", subject, allowed)
    subject, allowed = "a module whose policy allows fast math", "one without, as the context demands"
    context.require_no_fast_math(subject, allowed, fatbin.metadata.policy)
    handle = state.handles.give("module", LoadedModule(state.handles.next, context, fatbin))
    context.plans[handle] = fatbin.metadata.collective_plans
    return handle


@entry()
def tessModuleUnload(state: State, module: Any) -> None:
    """End a module once all work that could use it is done (RT-04.5-15, AMB-RT-35, AMB-RT-50)."""
    ended = state.module(module)
    state.drain(ended.context)
    for kernel in ended.kernels.values():
        state.handles.end(kernel)
    del ended.context.plans[module]
    state.handles.end(module)


@entry("kernel")
def tessKernelGet(state: State, module: Any, name: str | None) -> int:
    """Return the kernel with a public name (RT-04.5-16, AMB-RT-18, AMB-RT-42)."""
    loaded = state.module(module)
    kernel_name = required("name", name)
    entry = loaded.entry(kernel_name) if isinstance(kernel_name, str) else None
    if entry is None:
        names = ", ".join(kernel.name for kernel in loaded.fatbin.metadata.kernels)
        raise invalid(f"name is {shown(kernel_name)}", f"a kernel of the module: {names or 'it has none'}")
    if entry.name not in loaded.kernels:
        kernel = Kernel(state.handles.next, loaded, entry)
        loaded.kernels[entry.name] = state.handles.give("kernel", kernel)
    return loaded.kernels[entry.name]


@entry()
def tessLaunch(
    state: State,
    kernel: Any,
    mesh: Any,
    cfg: LaunchConfig,
    argBuffer: bytes | int | None,
    argSize: int,
    stream: Any,
) -> None:
    """Queue a launch on every rank; the call reads the arguments at once (RT-04.5-17, RT-06-05, AMB-RT-72)."""
    launched = state.handles.find("kernel", Kernel, kernel)
    on, queue = state.mesh(mesh), state.stream(stream)
    require_together(launched, on, queue)
    flags = flags_of(cfg)
    grid, block, shared = configuration_of(cfg)
    require_targets(on, launched.module.fatbin.targets)
    policy = on.context.governing(
        launched.module.fatbin.metadata.policy, bool(flags & LaunchFlag.TESS_LAUNCH_DETERMINISTIC)
    )
    on.context.require_policy("tessLaunch", policy)
    require_order(launched, on, on.context.descriptor.reduction_order)
    pointers, scalars = scalars_of(launched.entry, argument_bytes(launched, argBuffer, argSize, queue))
    extents = extents_of(launched.entry, scalars)
    tensors = tensors_of(launched.entry, pointers, extents, queue)
    executables = {name: _executable(state, launched, name, extents, policy) for name in on.targets}
    for executable in executables.values():
        executable.require_configuration(grid, block, shared)
    if flags & LaunchFlag.TESS_LAUNCH_PERSISTENT:
        require_place(queue, [stream for _, stream in state.handles.live("stream")])
    work = LaunchWork(
        name=launched.entry.name,
        stream=queue,
        executables=executables,
        tensors=tensors,
        scalars=scalars,
        grid=grid,
        block=block,
        flags=flags,
        descriptor=on.context.descriptor,
        policy=policy,
    )
    queue_launch(state, work)


def queue_launch(state: State, work: LaunchWork) -> None:
    """Queue a launch; one with the capture flag begins a capture and becomes its node (AMB-RT-86)."""
    captured = bool(work.flags & LaunchFlag.TESS_LAUNCH_CAPTURE)
    if captured:
        begin_capture(state.captures, work.stream)
    submit(state, work, captured=captured)


def _executable(
    state: State, kernel: Kernel, target: str, extents: Mapping[str, int], policy: NumericsPolicy
) -> Executable:
    try:
        return state.code.executable(kernel.module, kernel.entry, target, extents, policy)
    except Rejection as rejection:
        subject = f"kernel {kernel.entry.name} with {dict(extents)}: {rejection.diagnostics[0].message}"
        raise invalid(subject, "extents that the kernel can be compiled for") from None
    except UnsupportedConstruct as construct:
        subject = f"kernel {kernel.entry.name} needs {construct.feature}"
        raise unsupported("", subject, "what the device can do") from None


# Stream graphs: capture, instantiation, replay (runtime spec 6, 12; AMB-RT-11, AMB-RT-64, AMB-RT-86).


@entry("graph")
def tessxGraphInstantiate(state: State, stream: Any) -> int:
    """End the capture on a stream, and return the graph of the captured work (RT-12-07)."""
    capturing = state.stream(stream)
    capture = capture_of(state.captures, capturing)
    if capture is None:
        raise invalid(f"stream {stream}, on which nothing is captured", "a stream with a captured launch")
    return state.handles.give("graph", capture.end(capturing))


@entry("nodes")
def tessxGraphNodes(state: State, graph: Any) -> Sequence[Node]:
    """Return the nodes of a graph (RT-12-05, RT-12-06)."""
    return _graph(state, graph).nodes


@entry()
def tessxGraphLaunch(state: State, graph: Any, stream: Any) -> None:
    """Replay a graph on a stream of its mesh (RT-12-08, RT-12-09)."""
    replayed, on = _graph(state, graph), state.stream(stream)
    if on.mesh is not replayed.stream.mesh:
        subject = f"a stream of mesh {on.mesh.handle} for a graph of mesh {replayed.stream.mesh.handle}"
        raise invalid(subject, "a stream of the mesh that the graph was captured on")
    if capture_of(state.captures, on) is not None:
        raise invalid(f"stream {stream}, which is captured", "a stream that is not")
    for node in replayed.nodes:
        for region, _, _ in node.work.accesses():
            if region.allocation.freed:
                raise invalid(f"a graph that refers to {region.allocation}, which was freed", "live memory")
    works = [node.work.on(on) for node in replayed.nodes]
    submit(state, GraphWork(name=f"graph {graph}", stream=on, works=works))


@entry()
def tessxGraphDestroy(state: State, graph: Any) -> None:
    """End a graph; queued replays still run."""
    _graph(state, graph)
    state.handles.end(graph)


@entry("kernels")
def tessxResident(state: State, mesh: Any) -> Sequence[str]:
    """Return the persistent kernels that are resident on a mesh now (AMB-RT-65)."""
    return tuple(state.mesh(mesh).resident)


def _graph(state: State, handle: Any) -> Graph:
    return state.handles.find("graph", Graph, handle)


# Collectives on a stream (runtime spec 4.6, 13; AMB-RT-02 to -05, -28, -40, -57, -59).


@entry()
def tessAllReduce(
    state: State, mesh: Any, buffer: Any, count: int, dtype: int, op: int, axis: str | None, stream: Any
) -> None:
    """Queue a combination of the group's buffers, which every rank receives (RT-04.6-08 to -10)."""
    _queue(state, "all_reduce", mesh, buffer, count, dtype, stream, op=op, axis=axis)


@entry()
def tessReduceScatter(
    state: State, mesh: Any, inout: Any, count: int, dtype: int, op: int, axis: str | None, stream: Any
) -> None:
    """Queue a combination of the group's buffers, of which each rank receives its share (RT-04.6-11, AMB-RT-04)."""
    _queue(state, "reduce_scatter", mesh, inout, count, dtype, stream, op=op, axis=axis)


@entry()
def tessAllGather(state: State, mesh: Any, inout: Any, count: int, dtype: int, axis: str | None, stream: Any) -> None:
    """Queue a gathering of the shares of all ranks of the group, which every rank receives (RT-04.6-12, AMB-RT-04)."""
    _queue(state, "all_gather", mesh, inout, count, dtype, stream, axis=axis)


@entry()
def tessBroadcast(state: State, mesh: Any, buffer: Any, count: int, dtype: int, root: int, stream: Any) -> None:
    """Queue a copy of the root's buffer to every rank of the mesh (RT-04.6-13, AMB-RT-02)."""
    _queue(state, "broadcast", mesh, buffer, count, dtype, stream, root=root)


def _queue(
    state: State, collective: str, mesh: Any, buffer: Any, count: int, dtype: int, stream: Any, **parameters: Any
) -> None:
    on, queue = state.mesh(mesh), state.stream(stream)
    queue.require_of(on)
    policy = on.context.governing()
    on.context.require_policy(FUNCTIONS[collective], policy)
    call = read_call(on, state.code, collective, count, dtype, **parameters)
    submit(state, collective_work(call, buffer, queue, policy))


# The numerics policy of a context (runtime spec 4.7; AMB-RT-47, AMB-RT-48, AMB-RT-88).


NAMES = tuple(field.name for field in fields(NumericsPolicy))


@entry()
def tessSetNumericsPolicy(state: State, ctx: Any, policy: Mapping[str, int] | None) -> None:
    """Set the policy of work submitted from now on (RT-04.7-10, AMB-RT-48)."""
    context = state.context(ctx)
    requested = read_policy("tessSetNumericsPolicy", required("policy", policy))
    context.require_no_fast_math("allowFastMath is 1, which the context forbids", "0", requested)
    context.policy = requested


@entry("policy")
def tessGetNumericsPolicy(state: State, ctx: Any) -> NumericsPolicy:
    """Return the policy last set, or the one in force without it (RT-04.7-08, AMB-RT-33)."""
    return state.context(ctx).governing()


def read_policy(function: str, switches: Mapping[str, Any]) -> NumericsPolicy:
    """Return a policy from the values of its four switches. Raises `Failure`."""
    with reported_by(function):
        if not isinstance(switches, Mapping) or set(switches) != set(NAMES):
            raise invalid(f"policy is {switches!r:.200}", "the switches " + ", ".join(NAMES))
        return NumericsPolicy(**switches)


# Profiling (runtime spec 4.8, 17; AMB-RT-34, AMB-RT-66).


@entry("profiler")
def tessProfilerStart(state: State, ctx: Any) -> int:
    """Record the work of a context from now on (RT-04.8-05)."""
    context = state.context(ctx)
    handle = state.handles.give("profiler", context)
    context.profilers[handle] = Profiler()
    return handle


@entry()
def tessProfilerStop(state: State, profiler: Any, outJsonPath: str | None) -> None:
    """Let queued work finish, write the trace, end the profiler (RT-04.8-04, RT-17-02, AMB-RT-34)."""
    context = state.handles.find("profiler", Context, profiler)
    path = required("outJsonPath", outJsonPath)
    state.drain(context)
    devices = {device.id: f"device {device.id} ({device.target})" for device in state.machine.topology.devices}
    write_trace(context.profilers[profiler].records, path, Names(devices))
    del context.profilers[profiler]
    state.handles.end(profiler)
