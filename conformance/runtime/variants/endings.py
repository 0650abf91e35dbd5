"""The lifetimes of objects, and accesses outside of memory (AMB-RT-49, AMB-RT-50, AMB-RT-83)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import varies
from tessera_reference.adapter import ReferenceAdapter

from .reach import RUNTIME, Lacking

INVALID = "TESS_ERR_INVALID_VALUE"
SLACK = 64
"""The bytes that lie behind each allocation and belong to nobody."""


@varies("AMB-RT-50", "refuses to end what has work queued", *RUNTIME)
class BusyObjectsStay(ReferenceAdapter):
    """A stream, or the mesh with it, has to be synchronized before."""

    def idle(self, function: str, meshes: Mapping[int, Any] | None = None, stream: int = 0) -> None:
        """Raise `Refusal` where work is queued."""
        for handle, mesh in self.runtime.handles.live("mesh"):
            for number, own in mesh.streams.items():
                if own.queued and (number == stream or (meshes is not None and handle in meshes)):
                    raise Refusal(INVALID, "call", f"{function}: busy")

    def all_meshes(self) -> dict[int, Any]:
        """Those that live."""
        return dict(self.runtime.handles.live("mesh"))

    def runtime_tessStreamDestroy(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        """Destroy it."""
        self.idle("tessStreamDestroy", stream=stream)
        return super().runtime_tessStreamDestroy(stream=stream)

    def runtime_tessMeshDestroy(self, *, mesh: Any) -> dict[str, Any]:  # noqa: N802
        """Destroy it."""
        self.idle("tessMeshDestroy", {mesh: None})
        return super().runtime_tessMeshDestroy(mesh=mesh)

    def runtime_tessFree(self, *, mesh: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Free memory."""
        self.idle("tessFree", {mesh: None})
        return super().runtime_tessFree(mesh=mesh, **arguments)

    def runtime_tessModuleUnload(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Unload it."""
        self.idle("tessModuleUnload", self.all_meshes())
        return super().runtime_tessModuleUnload(**arguments)

    def runtime_tessShutdown(self, *, context: Any) -> dict[str, Any]:  # noqa: N802
        """End it."""
        owner = dict(self.runtime.handles.live("context")).get(context)
        self.idle("tessShutdown", {n: m for n, m in self.all_meshes().items() if m.context is owner})
        return super().runtime_tessShutdown(context=context)


@varies("AMB-RT-50", "refuses to end a context in which a mesh is, and a mesh on which a stream is", *RUNTIME)
class ContentsComeFirst(ReferenceAdapter):
    """Objects end in the reverse order of their creation."""

    def runtime_tessShutdown(self, *, context: Any) -> dict[str, Any]:  # noqa: N802
        """End it."""
        owner = dict(self.runtime.handles.live("context")).get(context)
        if owner is not None and any(mesh.context is owner for _, mesh in self.runtime.handles.live("mesh")):
            raise Refusal(INVALID, "call", "tessShutdown: there are meshes")
        return super().runtime_tessShutdown(context=context)

    def runtime_tessMeshDestroy(self, *, mesh: Any) -> dict[str, Any]:  # noqa: N802
        """Destroy it."""
        found = dict(self.runtime.handles.live("mesh")).get(mesh)
        if found is not None and found.streams:
            raise Refusal(INVALID, "call", "tessMeshDestroy: there are streams")
        return super().runtime_tessMeshDestroy(mesh=mesh)


@varies("AMB-RT-49", "refuses to wait for what was never recorded", *RUNTIME)
class UnrecordedRefused(ReferenceAdapter):
    """An event that was never recorded stands for nothing."""

    def runtime_tessStreamWaitEvent(self, *, stream: Any, event: Any) -> dict[str, Any]:  # noqa: N802
        """Wait for it."""
        known = dict(self.runtime.handles.live("event")).get(event)
        if known is not None and known.last is None:
            raise Refusal(INVALID, "call", "tessStreamWaitEvent: never recorded")
        return super().runtime_tessStreamWaitEvent(stream=stream, event=event)


@varies("AMB-RT-83", "has some bytes behind each allocation, and moves what it is told to move there", *RUNTIME)
class RoomBehindAllocations(Lacking):
    """Copies that are a little too long find memory."""

    absent = ("memory-findings", "stream-memory-limits")

    def runtime_tessMalloc(self, *, bytes: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """More than was asked for, where there is so much."""
        room = bytes + SLACK if type(bytes) is int and 0 < bytes < 1 << 32 else bytes
        return super().runtime_tessMalloc(bytes=room, **arguments)


@varies("AMB-RT-71", "has one context, which every tessInit gives and the last tessShutdown ends", *RUNTIME)
class OneContext(ReferenceAdapter):
    """Counts who uses the context."""

    def __init__(self) -> None:
        super().__init__()
        self.context: dict[str, Any] = {}
        self.users = 0

    def runtime_tessInit(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """The context, made where there is none."""
        if not self.users or arguments:
            self.context = super().runtime_tessInit(**arguments)
        self.users += 1
        return self.context

    def runtime_tessShutdown(self, *, context: Any) -> dict[str, Any]:  # noqa: N802
        """End it after its last user."""
        if context == self.context.get("context") and self.users > 1:
            self.users -= 1
            return {}
        answer = super().runtime_tessShutdown(context=context)
        self.users = 0
        return answer

    def session_reset(self) -> dict[str, Any]:
        """Forget it."""
        self.users = 0
        return super().session_reset()
