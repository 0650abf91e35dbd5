"""Meshes (runtime spec 4.2; AMB-RT-01, AMB-RT-51)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...mesh.axes import MeshAxes
from ...numerics.errors import shown
from ..arguments import INT, integer, invalid, required
from ..meshes import Mesh
from ..state import entry, entry_giving
from .contexts import ContextCalls

__all__ = ["MeshCalls"]


class MeshCalls(ContextCalls):
    """tessMeshCreate, tessMeshDestroy."""

    @entry_giving("mesh")
    def tessMeshCreate(self, ctx: Any, deviceIds: Any, nDevices: int, axes: MeshAxes) -> int:  # noqa: N802, N803
        """A mesh over devices, one a rank; the product of the axes is their number (RT-04.2-04)."""
        function = "tessMeshCreate"
        context = self.context(ctx, function)
        count = integer(function, "nDevices", nDevices, INT)
        if count < 1:
            raise invalid(function, f"nDevices is {count}", "at least 1")
        if not isinstance(required(function, "deviceIds", deviceIds), Sequence) or isinstance(deviceIds, str | bytes):
            raise invalid(function, f"deviceIds is {shown(deviceIds)}", "ids of devices")
        if not isinstance(axes, MeshAxes):
            raise invalid(function, f"axes is {shown(axes)}", "tessMeshAxes")
        ids = list(deviceIds[:count])
        if len(ids) != count:
            raise invalid(function, f"{len(ids)} device ids for nDevices {count}", "an id for each device")
        for place, each in enumerate(ids):
            integer(function, f"deviceIds[{place}]", each, INT)
            self.machine.topology.device(each, function)
            if each in ids[:place]:
                raise invalid(function, f"deviceIds[{place}] is {each}, named twice", "each device once")
        if axes.ranks != count:
            given = f"axes {axes.tp} x {axes.pp} x {axes.dp} x {axes.ep} for {count} devices"
            raise invalid(function, given, f"axes whose product, 0 counting as 1, is {count}")
        mesh = Mesh(0, context, self.machine, tuple(ids), axes)
        mesh.handle = self.handles.give("mesh", mesh)
        return mesh.handle

    @entry
    def tessMeshDestroy(self, mesh: Any) -> None:  # noqa: N802
        """End a mesh once its work is done; its streams and memory are released (RT-04.2-05, AMB-RT-50)."""
        self.release_mesh(self.mesh(mesh, "tessMeshDestroy").handle)
