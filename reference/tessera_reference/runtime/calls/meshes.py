"""Meshes (runtime spec 4.2; AMB-RT-01, AMB-RT-51)."""

# ruff: noqa: N802, N803, the names are those of the C API

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...mesh.axes import MeshAxes
from ...numerics.errors import shown
from ..arguments import INT, integer, invalid, required
from ..entries import entry
from ..meshes import Mesh
from ..state import State


@entry("mesh")
def tessMeshCreate(state: State, ctx: Any, deviceIds: Any, nDevices: int, axes: MeshAxes) -> int:
    """A mesh over devices, one a rank; the product of the axes is their number (RT-04.2-04)."""
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
    for place, each in enumerate(ids):
        integer(f"deviceIds[{place}]", each, INT)
        state.machine.topology.device(each)
        if each in ids[:place]:
            raise invalid(f"deviceIds[{place}] is {each}, named twice", "each device once")
    axes.require(count)
    mesh = Mesh(0, context, state.machine, tuple(ids), axes)
    mesh.handle = state.handles.give("mesh", mesh)
    return mesh.handle


@entry()
def tessMeshDestroy(state: State, mesh: Any) -> None:
    """End a mesh once its work is done; its streams and memory are released (RT-04.2-05, AMB-RT-50)."""
    state.release_mesh(state.mesh(mesh))
