"""Collectives (runtime spec 4.6, 5; RT-05-06): in place, on arrays of devices and of the caller.

All ranks share an array of the caller, so a sum over it multiplies it by the number of ranks. Ranks with their own data
have it in a `DeviceArray`. A read-only array, such as those of JAX, is first copied to one. Each function queues the
work and returns the array that will hold the result.
"""

from __future__ import annotations

from typing import Any

from ..abi.status import CollOp
from ..numerics.formats import shown
from .contexts import invalid, locked, require
from .meshes import DefaultStream, DeviceArray, Mesh, Stream, host_array, stream_on

OPS = {"sum": CollOp.TESS_COLL_SUM, "max": CollOp.TESS_COLL_MAX, "min": CollOp.TESS_COLL_MIN}


@locked
def all_reduce(
    mesh: Mesh, array: Any, *, op: str = "sum", axis: str, stream: Stream | DefaultStream | None = None
) -> Any:
    """Call tessAllReduce: every rank receives the reduction over the ranks along an axis. Raises `TesseraError`."""
    return _queue("tessAllReduce", mesh, array, stream, _op("tessAllReduce", op), axis)


@locked
def reduce_scatter(
    mesh: Mesh, array: Any, *, op: str = "sum", axis: str, stream: Stream | DefaultStream | None = None
) -> Any:
    """Call tessReduceScatter: each rank receives its share of the reduction (AMB-RT-04). Raises `TesseraError`."""
    return _queue("tessReduceScatter", mesh, array, stream, _op("tessReduceScatter", op), axis)


@locked
def all_gather(mesh: Mesh, array: Any, *, axis: str, stream: Stream | DefaultStream | None = None) -> Any:
    """Call tessAllGather: every rank receives all ranks' shares along an axis (AMB-RT-04). Raises `TesseraError`."""
    return _queue("tessAllGather", mesh, array, stream, axis)


@locked
def broadcast(mesh: Mesh, array: Any, *, root: int = 0, stream: Stream | DefaultStream | None = None) -> Any:
    """Call tessBroadcast: every rank receives the root's array (AMB-RT-02). Raises `TesseraError`."""
    return _queue("tessBroadcast", mesh, array, stream, root)


def _queue(function: str, mesh: Mesh, array: Any, stream: Stream | DefaultStream | None, *rest: int | str) -> Any:
    """Queue a collective: a pointer, the number of elements, the dtype, the arguments `rest`, and the stream."""
    require(function, "mesh", mesh, Mesh)
    on = stream_on(mesh, stream, function)
    if not isinstance(array, DeviceArray):
        values = host_array(array, function)
        if not values.writable:
            array = DeviceArray(mesh, values.shape, values.dtype.name).put(array, stream=on)
    with mesh.submission(on):
        if isinstance(array, DeviceArray):
            if array.mesh is not mesh:
                raise invalid(function, "a ts.DeviceArray of another mesh", "one of the mesh of the collective")
            pointer, count, dtype = array.pointer, array.size, array.dtype
        else:
            pointer, count, dtype = mesh.mapped(values), values.values.size, values.dtype
        mesh.context.call(function, mesh.handle, pointer, count, dtype.abi_id, *rest, on.handle)
    return array


def _op(function: str, op: str) -> int:
    if not isinstance(op, str) or op not in OPS:
        raise invalid(function, f"op {shown(op)}", ", ".join(OPS))
    return int(OPS[op])
