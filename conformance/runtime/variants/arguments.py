"""Arguments that a listed alternative takes, or refuses otherwise (runtime specification, 4, 7 and 19.A)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import varies
from tessera_reference.adapter import ReferenceAdapter

from .reach import RUNTIME

UNSUPPORTED = "TESS_ERR_UNSUPPORTED"
DEFINED = 0b1111
"""The launch flags."""


def status_of(refusal: Refusal) -> str:
    """The status of a refused call."""
    return str(refusal.outcome.code)


@varies("AMB-RT-38", "has a default stream for each mesh, which NULL is", *RUNTIME)
class NullIsTheDefaultStream(ReferenceAdapter):
    """A stream that nobody created; it belongs to the mesh that was made last, where no mesh is named."""

    def __init__(self) -> None:
        super().__init__()
        self.defaults: dict[int, int] = {}

    def default(self, mesh: int | None) -> int:
        """The default stream of a mesh."""
        live = [handle for handle, _ in self.runtime.handles.live("mesh")]
        if mesh is not None and mesh not in live:
            return 0
        owner = mesh if mesh is not None else live[-1]
        if owner not in self.defaults:
            self.defaults[owner] = super().runtime_tessStreamCreate(mesh=owner, priority=0)["stream"]
        return self.defaults[owner]

    def session_reset(self) -> dict[str, Any]:
        """Forget them."""
        self.defaults.clear()
        return super().session_reset()

    def runtime_tessMemcpyAsync(self, *, stream: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """On the stream, or the default one."""
        return super().runtime_tessMemcpyAsync(stream=stream or self.default(None), **arguments)

    def runtime_tessStreamSynchronize(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        """Synchronize the stream, or the default one."""
        return super().runtime_tessStreamSynchronize(stream=stream or self.default(None))

    def runtime_tessStreamWaitEvent(self, *, stream: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """On the stream, or the default one."""
        return super().runtime_tessStreamWaitEvent(stream=stream or self.default(None), **arguments)

    def runtime_tessEventRecord(self, *, stream: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """On the stream, or the default one."""
        return super().runtime_tessEventRecord(stream=stream or self.default(None), **arguments)

    def runtime_tessLaunch(self, *, stream: Any, mesh: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """On the stream, or the default one of the mesh."""
        return super().runtime_tessLaunch(stream=stream or self.default(mesh), mesh=mesh, **arguments)


@varies("AMB-RT-38", "destroys NULL without a word", *RUNTIME)
class DestroysNull(ReferenceAdapter):
    """Accepts NULL, as free does."""

    def runtime_tessStreamDestroy(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        """Destroy it."""
        return super().runtime_tessStreamDestroy(stream=stream) if stream else {}

    def runtime_tessEventDestroy(self, *, event: Any) -> dict[str, Any]:  # noqa: N802
        """Destroy it."""
        return super().runtime_tessEventDestroy(event=event) if event else {}

    def runtime_tessMeshDestroy(self, *, mesh: Any) -> dict[str, Any]:  # noqa: N802
        """Destroy it."""
        return super().runtime_tessMeshDestroy(mesh=mesh) if mesh else {}

    def runtime_tessModuleUnload(self, *, module: Any) -> dict[str, Any]:  # noqa: N802
        """Unload it."""
        return super().runtime_tessModuleUnload(module=module) if module else {}

    def runtime_tessShutdown(self, *, context: Any) -> dict[str, Any]:  # noqa: N802
        """End it."""
        return super().runtime_tessShutdown(context=context) if context else {}


@varies("AMB-RT-03", "reduces over the whole mesh along no axis", *RUNTIME)
class NoAxisIsTheWholeMesh(ReferenceAdapter):
    """On a mesh whose devices lie along dp."""

    def runtime_tessAllReduce(self, *, axis: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Along dp, where no axis is named."""
        return super().runtime_tessAllReduce(axis="dp" if axis is None else axis, **arguments)

    def runtime_tessReduceScatter(self, *, axis: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Along dp, where no axis is named."""
        return super().runtime_tessReduceScatter(axis="dp" if axis is None else axis, **arguments)

    def runtime_tessAllGather(self, *, axis: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Along dp, where no axis is named."""
        return super().runtime_tessAllGather(axis="dp" if axis is None else axis, **arguments)


@varies("AMB-RT-06", "has pageable host memory too", *RUNTIME)
class PageableMemory(ReferenceAdapter):
    """TESS_MEM_GLOBAL names it."""

    def runtime_tessHostAlloc(self, *, kind: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Memory of the host."""
        return super().runtime_tessHostAlloc(kind=1 if kind == 0 else kind, **arguments)


@varies("AMB-RT-10", "ignores launch flags that it does not know", *RUNTIME)
class IgnoresUnknownFlags(ReferenceAdapter):
    """The four count."""

    def runtime_tessLaunch(self, *, cfg: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """With the flags that it knows; not captured, where others stand beside."""
        flags = cfg["flags"] if cfg["flags"] <= DEFINED else cfg["flags"] & 1
        return super().runtime_tessLaunch(cfg=cfg | {"flags": flags}, **arguments)


@varies("AMB-RT-10", "does not support launch flags that it does not know", *RUNTIME)
class UnknownFlagsUnsupported(ReferenceAdapter):
    """The four are supported."""

    def runtime_tessLaunch(self, *, cfg: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Launch."""
        if cfg["flags"] > DEFINED:
            raise Refusal(UNSUPPORTED, "call", "tessLaunch: flags")
        return super().runtime_tessLaunch(cfg=cfg, **arguments)


@varies("AMB-RT-123", "asks the stream for its mesh", *RUNTIME)
class MeshOfTheStream(ReferenceAdapter):
    """The mesh that a call names beside the stream does not count."""

    def of(self, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments with the mesh of their stream."""
        for handle, mesh in self.runtime.handles.live("mesh"):
            if given["mesh"] and given["stream"] in mesh.streams:
                return given | {"mesh": handle}
        return given

    def runtime_tessLaunch(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Launch."""
        return super().runtime_tessLaunch(**self.of(arguments))

    def runtime_tessAllReduce(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Reduce."""
        return super().runtime_tessAllReduce(**self.of(arguments))

    def runtime_tessReduceScatter(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Reduce."""
        return super().runtime_tessReduceScatter(**self.of(arguments))

    def runtime_tessAllGather(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Gather."""
        return super().runtime_tessAllGather(**self.of(arguments))

    def runtime_tessBroadcast(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Send."""
        return super().runtime_tessBroadcast(**self.of(arguments))


@varies("AMB-RT-186", "releases memory whichever mesh is named", *RUNTIME)
class ReleasesForAnyMesh(ReferenceAdapter):
    """The pointer alone says what is released; the mesh has to be one."""

    def runtime_tessFree(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Release."""
        live = self.runtime.machine.memory.live()
        owners = [allocation.owner for allocation in live if allocation.address == arguments["devPtr"]]
        meshes = [handle for handle, _ in self.runtime.handles.live("mesh")]
        owned = owners and owners[0] and arguments["mesh"] in meshes
        return super().runtime_tessFree(**(arguments | {"mesh": owners[0]} if owned else arguments))


@varies("AMB-RT-39", "needs tessInit before it tells its version, and passes NULL outputs over", *RUNTIME)
class VersionOfAContext(ReferenceAdapter):
    """A version belongs to what was initialized."""

    def runtime_tessGetVersion(self, *, null: Any = ()) -> dict[str, Any]:  # noqa: N802
        """The numbers."""
        if not self.runtime.handles.live("context"):
            raise Refusal("TESS_ERR_NOT_INITIALIZED", "call", "tessGetVersion: no context")
        answer = super().runtime_tessGetVersion()
        return {name: 0 if name in null else number for name, number in answer.items()}


@varies("AMB-RT-07", "needs no context for events and host memory", *RUNTIME)
class EventsAtAnyTime(ReferenceAdapter):
    """A context is made where there is none."""

    def runtime_tessEventCreate(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """An event."""
        self.initialized()
        return super().runtime_tessEventCreate(**arguments)

    def runtime_tessHostAlloc(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Memory of the host."""
        self.initialized()
        return super().runtime_tessHostAlloc(**arguments)

    def initialized(self) -> None:
        """There is a context."""
        if not self.runtime.handles.live("context"):
            super().runtime_tessInit()


@varies("AMB-RT-51", "does not support devices that it does not have", *RUNTIME)
class UnknownDevicesUnsupported(ReferenceAdapter):
    """Ids."""

    def runtime_tessMeshCreate(self, *, deviceIds: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802, N803
        """A mesh."""
        known = [device["id"] for device in super().runtime_tessxDevices()["devices"]]
        asked = list(deviceIds or ())[: arguments.get("nDevices")]
        if arguments.get("context") and not arguments.get("null") and any(device not in known for device in asked):
            raise Refusal(UNSUPPORTED, "call", "tessMeshCreate: deviceIds")
        return super().runtime_tessMeshCreate(deviceIds=deviceIds, **arguments)


@varies("AMB-RT-59", "does not support dtypes and operators that there are not", *RUNTIME, "abi/dtype*")
class UnknownDtypesUnsupported(ReferenceAdapter):
    """Unknown dtypes and operators are unsupported, not invalid."""

    def supported(self, dtype: int, op: int = 0) -> None:
        """Raise `Refusal` for others."""
        if not 1 <= dtype <= 13 or not 0 <= op <= 2:
            raise Refusal(UNSUPPORTED, "call", "dtype or op")

    def runtime_tessAllReduce(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Reduce."""
        self.supported(arguments["dtype"], arguments["op"])
        return super().runtime_tessAllReduce(**arguments)

    def runtime_tessReduceScatter(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Reduce."""
        self.supported(arguments["dtype"], arguments["op"])
        return super().runtime_tessReduceScatter(**arguments)

    def runtime_tessAllGather(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Gather."""
        self.supported(arguments["dtype"])
        return super().runtime_tessAllGather(**arguments)

    def runtime_tessBroadcast(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Send."""
        self.supported(arguments["dtype"])
        return super().runtime_tessBroadcast(**arguments)
