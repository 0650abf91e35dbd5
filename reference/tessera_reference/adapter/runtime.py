"""The C functions of the runtime as the protocol has them, in the order of the specification's section 4.

A status other than TESS_OK becomes a rejection with its text. The runtime itself checks what it is given; here bytes
are read, and parameters that are missing are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

from tessera_conformance.adapter import Refusal

from ..abi import Descriptor, Failure, NumericsPolicy, StableMath, Status
from ..compilation import Compiler
from ..mesh.axes import MeshAxes
from ..numerics.attributes import tree
from ..numerics.errors import InvalidArgument, NumericsFailure
from ..runtime import Runtime
from ..runtime.launches import LaunchConfig
from .hex_bytes import memory
from .requests import HANDLE, mapping, read_by

__all__ = ["RuntimeMethods", "read_descriptor", "statuses"]

Null = Sequence[str]

CONFIG = ("grid", "block", "shmemBytes", "flags")
AXES = tuple(field.name for field in fields(MeshAxes))


def _null(operation: str, name: str, value: Any) -> Null:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise InvalidArgument(operation, name, value, "a list of names")
    return tuple(value)


def _axes(operation: str, name: str, value: Any) -> Mapping[str, Any]:
    given = mapping(operation, name, value)
    for each in given:
        if each not in AXES:
            raise InvalidArgument(operation, f"{name}, a name in it,", each, "one of " + ", ".join(AXES))
    return given


def _config(operation: str, name: str, value: Any) -> LaunchConfig:
    given = mapping(operation, name, value)
    for each in CONFIG:
        if each not in given:
            raise InvalidArgument(operation, f"{name}.{each}", None, "a value, since it has no default")
    return LaunchConfig(**{each: given[each] for each in CONFIG})


class RuntimeMethods:
    """A runtime, new after every reset."""

    def __init__(self) -> None:
        self.compiler = Compiler()
        self.runtime = Runtime(compiler=self.compiler)

    @read_by()
    def session_reset(self) -> dict[str, Any]:
        """Another machine."""
        self.runtime = Runtime(compiler=self.compiler)
        return {}

    def policy(self, context: int, function: str) -> NumericsPolicy:
        """What governs the work of a context. Raises `Failure`."""
        return self.runtime.context(context, function).governing()

    def done(self, status: Status) -> dict[str, Any]:
        """The answer to a function without outputs. Raises `Refusal`."""
        if status is not Status.TESS_OK:
            raise Refusal(status.name, "call", self.runtime.last_error)
        return {}

    def given(self, answer: tuple[Status, Any]) -> Any:
        """The output of a function. Raises `Refusal`."""
        self.done(answer[0])
        return answer[1]

    # 4.1 Initialization and contexts

    @read_by(null=_null)
    def runtime_tessInit(self, *, null: Null = ()) -> dict[str, Any]:  # noqa: N802, the names of the C functions
        """A new context."""
        return {"context": self.given(self.runtime.tessInit(null=null))}

    @read_by()
    def runtime_tessShutdown(self, *, context: Any) -> dict[str, Any]:  # noqa: N802
        """End a context."""
        return self.done(self.runtime.tessShutdown(context))

    @read_by(null=_null)
    def runtime_tessGetVersion(self, *, null: Null = ()) -> dict[str, Any]:  # noqa: N802
        """The version."""
        return dict(zip(("major", "minor", "patch"), self.given(self.runtime.tessGetVersion(null=null)), strict=True))

    # 4.2 Meshes

    @read_by(axes=_axes, null=_null)
    def runtime_tessMeshCreate(  # noqa: N802
        self,
        *,
        context: Any,
        deviceIds: Any,  # noqa: N803
        axes: Mapping[str, int],
        nDevices: Any = None,  # noqa: N803
        null: Null = (),
    ) -> dict[str, Any]:
        """A mesh."""
        with statuses():
            arranged = MeshAxes(**axes)
        counted = len(deviceIds) if isinstance(deviceIds, list | tuple) else 1
        count = counted if nDevices is None else nDevices
        return {"mesh": self.given(self.runtime.tessMeshCreate(context, deviceIds, count, arranged, null=null))}

    @read_by()
    def runtime_tessMeshDestroy(self, *, mesh: Any) -> dict[str, Any]:  # noqa: N802
        """End a mesh."""
        return self.done(self.runtime.tessMeshDestroy(mesh))

    # 4.3 Streams and events

    @read_by(null=_null)
    def runtime_tessStreamCreate(self, *, mesh: Any, priority: Any, null: Null = ()) -> dict[str, Any]:  # noqa: N802
        """A stream."""
        return {"stream": self.given(self.runtime.tessStreamCreate(mesh, priority, null=null))}

    @read_by()
    def runtime_tessStreamDestroy(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        """End a stream."""
        return self.done(self.runtime.tessStreamDestroy(stream))

    @read_by(null=_null)
    def runtime_tessEventCreate(self, *, null: Null = ()) -> dict[str, Any]:  # noqa: N802
        """An event."""
        return {"event": self.given(self.runtime.tessEventCreate(null=null))}

    @read_by()
    def runtime_tessEventDestroy(self, *, event: Any) -> dict[str, Any]:  # noqa: N802
        """End an event."""
        return self.done(self.runtime.tessEventDestroy(event))

    @read_by()
    def runtime_tessEventRecord(self, *, event: Any, stream: Any) -> dict[str, Any]:  # noqa: N802
        """Record an event."""
        return self.done(self.runtime.tessEventRecord(event, stream))

    @read_by()
    def runtime_tessStreamWaitEvent(self, *, stream: Any, event: Any) -> dict[str, Any]:  # noqa: N802
        """Let a stream wait for an event."""
        return self.done(self.runtime.tessStreamWaitEvent(stream, event))

    @read_by()
    def runtime_tessStreamSynchronize(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        """Wait for a stream."""
        return self.done(self.runtime.tessStreamSynchronize(stream))

    # 4.4 Memory

    @read_by(null=_null)
    def runtime_tessMalloc(self, *, mesh: Any, bytes: Any, null: Null = ()) -> dict[str, Any]:  # noqa: N802
        """Device memory."""
        return {"devPtr": self.given(self.runtime.tessMalloc(mesh, bytes, null=null))}

    @read_by()
    def runtime_tessFree(self, *, mesh: Any, devPtr: Any) -> dict[str, Any]:  # noqa: N802, N803
        """Release device memory."""
        return self.done(self.runtime.tessFree(mesh, devPtr))

    @read_by(null=_null)
    def runtime_tessHostAlloc(self, *, bytes: Any, kind: Any, null: Null = ()) -> dict[str, Any]:  # noqa: N802
        """Host memory."""
        return {"hostPtr": self.given(self.runtime.tessHostAlloc(bytes, kind, null=null))}

    @read_by()
    def runtime_tessHostFree(self, *, hostPtr: Any) -> dict[str, Any]:  # noqa: N802, N803
        """Release host memory."""
        return self.done(self.runtime.tessHostFree(hostPtr))

    @read_by()
    def runtime_tessMemcpyAsync(  # noqa: N802
        self, *, dst: Any, src: Any, bytes: Any, kind: Any, stream: Any
    ) -> dict[str, Any]:
        """Queue a copy."""
        return self.done(self.runtime.tessMemcpyAsync(dst, src, bytes, kind, stream))

    # 4.5 Modules and kernels

    @read_by(image=memory, null=_null)
    def runtime_tessModuleLoad(  # noqa: N802
        self, *, context: Any, image: bytes | int | None, size: Any = None, null: Null = ()
    ) -> dict[str, Any]:
        """Load a module."""
        count = _length(image) if size is None else size
        return {"module": self.given(self.runtime.tessModuleLoad(context, image, count, null=null))}

    @read_by()
    def runtime_tessModuleUnload(self, *, module: Any) -> dict[str, Any]:  # noqa: N802
        """Unload a module."""
        return self.done(self.runtime.tessModuleUnload(module))

    @read_by(null=_null)
    def runtime_tessKernelGet(self, *, module: Any, name: Any, null: Null = ()) -> dict[str, Any]:  # noqa: N802
        """A kernel by its name."""
        return {"kernel": self.given(self.runtime.tessKernelGet(module, name, null=null))}

    @read_by(cfg=_config, argBuffer=memory)
    def runtime_tessLaunch(  # noqa: N802
        self,
        *,
        kernel: Any,
        mesh: Any,
        cfg: LaunchConfig,
        argBuffer: bytes | int | None,  # noqa: N803
        stream: Any,
        argSize: Any = None,  # noqa: N803
    ) -> dict[str, Any]:
        """Queue a launch."""
        size = _length(argBuffer) if argSize is None else argSize
        return self.done(self.runtime.tessLaunch(kernel, mesh, cfg, argBuffer, size, stream))

    # 4.6 Collectives

    @read_by()
    def runtime_tessAllReduce(  # noqa: N802
        self, *, mesh: Any, buffer: Any, count: Any, dtype: Any, op: Any, axis: Any, stream: Any
    ) -> dict[str, Any]:
        """Queue an all-reduce."""
        return self.done(self.runtime.tessAllReduce(mesh, buffer, count, dtype, op, axis, stream))

    @read_by()
    def runtime_tessReduceScatter(  # noqa: N802
        self, *, mesh: Any, inout: Any, count: Any, dtype: Any, op: Any, axis: Any, stream: Any
    ) -> dict[str, Any]:
        """Queue a reduce-scatter."""
        return self.done(self.runtime.tessReduceScatter(mesh, inout, count, dtype, op, axis, stream))

    @read_by()
    def runtime_tessAllGather(  # noqa: N802
        self, *, mesh: Any, inout: Any, count: Any, dtype: Any, axis: Any, stream: Any
    ) -> dict[str, Any]:
        """Queue an all-gather."""
        return self.done(self.runtime.tessAllGather(mesh, inout, count, dtype, axis, stream))

    @read_by()
    def runtime_tessBroadcast(  # noqa: N802
        self, *, mesh: Any, buffer: Any, count: Any, dtype: Any, root: Any, stream: Any
    ) -> dict[str, Any]:
        """Queue a broadcast."""
        return self.done(self.runtime.tessBroadcast(mesh, buffer, count, dtype, root, stream))

    # 4.7 Numerics and determinism

    @read_by(context=HANDLE)
    def runtime_tessSetNumericsPolicy(self, *, context: int, policy: Any) -> dict[str, Any]:  # noqa: N802
        """Govern what is submitted from now on."""
        return self.done(self.runtime.tessSetNumericsPolicy(context, policy))

    @read_by(context=HANDLE, null=_null)
    def runtime_tessGetNumericsPolicy(self, *, context: int, null: Null = ()) -> dict[str, Any]:  # noqa: N802
        """The policy last set."""
        return {"policy": asdict(self.given(self.runtime.tessGetNumericsPolicy(context, null=null)))}

    # 4.8 Profiling

    @read_by(null=_null)
    def runtime_tessProfilerStart(self, *, context: Any, null: Null = ()) -> dict[str, Any]:  # noqa: N802
        """Begin to profile."""
        return {"profiler": self.given(self.runtime.tessProfilerStart(context, null=null))}

    @read_by()
    def runtime_tessProfilerStop(self, *, profiler: Any, outJsonPath: Any) -> dict[str, Any]:  # noqa: N802, N803
        """Write a profile and end it."""
        return self.done(self.runtime.tessProfilerStop(profiler, outJsonPath))


def _length(given: bytes | int | None) -> int:
    """The size where none is given: that of the data."""
    return len(given) if isinstance(given, bytes) else 0


def read_descriptor(message: Mapping[str, Any]) -> Descriptor:
    """A determinism descriptor from its message. Raises `Failure` and `InvalidArgument`."""
    given = dict(message)
    _require_names("tessLaunch", "descriptor", given, [field.name for field in fields(Descriptor)])
    if "reduction_order" in given:
        given["reduction_order"] = tree("tessLaunch", "descriptor.reduction_order", given["reduction_order"])
    if "stable" in given:
        toggles = mapping("tessLaunch", "descriptor.stable", given["stable"])
        _require_names("tessLaunch", "descriptor.stable", toggles, [field.name for field in fields(StableMath)])
        given["stable"] = StableMath(**toggles)
    return Descriptor(**given)


def _require_names(function: str, argument: str, message: Mapping[str, Any], names: list[str]) -> None:
    for name in message:
        if name not in names:
            raise InvalidArgument(function, f"{argument}, a name in it,", name, "one of " + ", ".join(names))


@contextmanager
def statuses() -> Iterator[None]:
    """Turn failures of the runtime and of the arithmetic into rejections with a status."""
    try:
        yield
    except Failure as failure:
        raise Refusal(failure.status.name, "call", str(failure)) from None
    except NumericsFailure as failure:
        raise Refusal("TESS_ERR_INVALID_VALUE", "call", str(failure)) from None
