"""The functions of `tessera.h` as `library.c` calls them: their arguments read, their results written (runtime spec 4).

Handles and pointers arrive as numbers, structures by their address, enumerations as int; what a pointer points to is
read during the call. A function returns its status.
"""

# ruff: noqa: N802, N803, the names are those of the C API

from __future__ import annotations

from typing import Any

from ..abi.policy import NumericsPolicy
from ..abi.status import Failure
from ..mesh.axes import MeshAxes
from ..runtime.entries import report
from ..runtime.launches import LaunchConfig
from .session import Session

__all__ = ["Functions"]

INT_BYTES = 4
SWITCHES = ("stableReductions", "deterministic", "rngStateless", "allowFastMath")


class Functions:
    """One method for each function of the specification, of its name and in its order."""

    def __init__(self, session: Session, ffi: Any) -> None:
        self._session = session
        self._string = ffi.string
        self._unpack = ffi.unpack
        self._cast = ffi.cast

    # 4.1 Initialization and context

    def tessInit(self, ctx: Any) -> int:
        """Make a context."""
        self._session.read_environment()
        return self._made(ctx, "context", "tessInit")

    def tessShutdown(self, ctx: int) -> int:
        """End a context."""
        return self._call("tessShutdown", ctx)

    def tessGetVersion(self, major: Any, minor: Any, patch: Any) -> int:
        """Tell the version."""
        runtime = self._session.runtime
        if not (major and minor and patch):
            given = {"major": major, "minor": minor, "patch": patch}
            status, _ = runtime.tessGetVersion(null=tuple(name for name, out in given.items() if not out))
            return int(status)
        status, (major[0], minor[0], patch[0]) = runtime.tessGetVersion()
        return status  # type: ignore[no-any-return]

    # 4.2 Mesh and devices

    def tessMeshCreate(self, ctx: int, deviceIds: Any, nDevices: int, axes: Any, outMesh: Any) -> int:
        """Make a mesh."""
        runtime = self._session.runtime
        try:
            arranged = MeshAxes(axes.tp, axes.pp, axes.dp, axes.ep)
        except Failure as failure:
            return report(runtime, failure.status, str(failure))
        return self._made(outMesh, "mesh", "tessMeshCreate", ctx, self._ints(deviceIds, nDevices), nDevices, arranged)

    def tessMeshDestroy(self, mesh: int) -> int:
        """End a mesh."""
        return self._call("tessMeshDestroy", mesh)

    # 4.3 Streams and events

    def tessStreamCreate(self, mesh: int, priority: int, outStream: Any) -> int:
        """Make a stream."""
        return self._made(outStream, "stream", "tessStreamCreate", mesh, priority)

    def tessStreamDestroy(self, stream: int) -> int:
        """End a stream."""
        return self._call("tessStreamDestroy", stream)

    def tessEventCreate(self, outEvent: Any) -> int:
        """Make an event."""
        return self._made(outEvent, "event", "tessEventCreate")

    def tessEventDestroy(self, event: int) -> int:
        """End an event."""
        return self._call("tessEventDestroy", event)

    def tessEventRecord(self, event: int, stream: int) -> int:
        """Record an event."""
        return self._call("tessEventRecord", event, stream)

    def tessStreamWaitEvent(self, stream: int, event: int) -> int:
        """Let a stream wait for an event."""
        return self._call("tessStreamWaitEvent", stream, event)

    def tessStreamSynchronize(self, stream: int) -> int:
        """Wait for a stream."""
        return self._call("tessStreamSynchronize", stream)

    # 4.4 Memory

    def tessMalloc(self, mesh: int, bytes: int, devPtr: Any) -> int:
        """Allocate device memory."""
        return self._made(devPtr, "devPtr", "tessMalloc", mesh, bytes)

    def tessFree(self, mesh: int, devPtr: int) -> int:
        """Free device memory."""
        return self._call("tessFree", mesh, devPtr)

    def tessHostAlloc(self, bytes: int, hostPtr: Any, kind: int) -> int:
        """Allocate host memory."""
        return self._made(hostPtr, "hostPtr", "tessHostAlloc", bytes, kind)

    def tessHostFree(self, hostPtr: int) -> int:
        """Free host memory."""
        return self._call("tessHostFree", hostPtr)

    def tessMemcpyAsync(self, dst: int, src: int, bytes: int, kind: int, stream: int) -> int:
        """Queue a copy."""
        return self._call("tessMemcpyAsync", dst, src, bytes, kind, stream)

    # 4.5 Modules and kernels

    def tessModuleLoad(self, ctx: int, image: int, size: int, outModule: Any) -> int:
        """Load a module."""
        return self._made(outModule, "module", "tessModuleLoad", ctx, image, size)

    def tessModuleUnload(self, module: int) -> int:
        """End a module."""
        return self._call("tessModuleUnload", module)

    def tessKernelGet(self, module: int, name: Any, out: Any) -> int:
        """Find a kernel."""
        return self._made(out, "kernel", "tessKernelGet", module, self._text(name))

    def tessLaunch(self, kernel: int, mesh: int, cfg: Any, argBuffer: int, argSize: int, stream: int) -> int:
        """Queue a launch."""
        grid, block = tuple(cfg.grid), tuple(cfg.block)
        config = LaunchConfig(grid, block, cfg.shmemBytes, cfg.flags)
        return self._call("tessLaunch", kernel, mesh, config, argBuffer, argSize, stream)

    # 4.6 Collectives

    def tessAllReduce(self, mesh: int, buffer: int, count: int, dtype: int, op: int, axis: Any, stream: int) -> int:
        """Queue an all-reduce."""
        return self._call("tessAllReduce", mesh, buffer, count, dtype, op, self._text(axis), stream)

    def tessReduceScatter(self, mesh: int, inout: int, count: int, dtype: int, op: int, axis: Any, stream: int) -> int:
        """Queue a reduce-scatter."""
        return self._call("tessReduceScatter", mesh, inout, count, dtype, op, self._text(axis), stream)

    def tessAllGather(self, mesh: int, inout: int, count: int, dtype: int, axis: Any, stream: int) -> int:
        """Queue an all-gather."""
        return self._call("tessAllGather", mesh, inout, count, dtype, self._text(axis), stream)

    def tessBroadcast(self, mesh: int, buffer: int, count: int, dtype: int, root: int, stream: int) -> int:
        """Queue a broadcast."""
        return self._call("tessBroadcast", mesh, buffer, count, dtype, root, stream)

    # 4.7 Numerics and determinism

    def tessSetNumericsPolicy(self, ctx: int, policy: Any) -> int:
        """Set the policy."""
        switches = {name: getattr(policy, name) for name in SWITCHES} if policy else None
        return self._call("tessSetNumericsPolicy", ctx, switches)

    def tessGetNumericsPolicy(self, ctx: int, policy: Any) -> int:
        """Tell the policy."""
        found: NumericsPolicy | None
        status, found = self._session.runtime.tessGetNumericsPolicy(ctx, null=() if policy else ("policy",))
        if found is not None:
            for name in SWITCHES:
                setattr(policy, name, getattr(found, name))
        return int(status)

    # 4.8 Profiling

    def tessProfilerStart(self, ctx: int, outProfiler: Any) -> int:
        """Start a profiler."""
        return self._made(outProfiler, "profiler", "tessProfilerStart", ctx)

    def tessProfilerStop(self, profiler: int, outJsonPath: Any) -> int:
        """Stop a profiler."""
        return self._call("tessProfilerStop", profiler, self._text(outJsonPath))

    def _call(self, name: str, *arguments: Any) -> int:
        """Call a function without outputs."""
        return int(getattr(self._session.runtime, name)(*arguments))

    def _made(self, out: Any, output: str, name: str, *arguments: Any) -> int:
        """Call a function with one output, and write it where it goes."""
        status, made = getattr(self._session.runtime, name)(*arguments, null=() if out else (output,))
        if made is not None:
            out[0] = made
        return int(status)

    def _text(self, given: Any) -> str | None:
        """A text as C has it; None for NULL."""
        return self._string(given).decode("utf-8", "surrogateescape") if given else None

    def _ints(self, given: Any, count: int) -> list[int] | None:
        """So many numbers, fewer where the process has no memory for them; None for NULL."""
        if not given:
            return None
        there = count > 0 and self._session.process.holds(int(self._cast("uintptr_t", given)), count * INT_BYTES)
        return list(self._unpack(given, count)) if there else []
