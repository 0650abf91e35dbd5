"""What a collective checks and reads before it is queued (runtime spec 4.6, 13; AMB-RT-02 to -05, -28, -40, -59)."""

from __future__ import annotations

from typing import Any

from ..abi.descriptor import Descriptor
from ..abi.enumerations import CollOp
from ..abi.policy import NumericsPolicy
from ..collectives.all_reduce import require_operator
from ..numerics.errors import shown
from ..numerics.formats import DTYPES, DType
from .algorithms import plan
from .arguments import INT, SIZE, integer, invalid, one_of, required
from .code_cache import CodeCache
from .collectives import FUNCTIONS, CollectiveCall, CollectiveWork
from .meshes import Mesh
from .pointers import region_of, require_aligned
from .streams import Stream

__all__ = ["collective_work", "read_call"]

BY_ID = {each.abi_id: each for each in DTYPES.values() if each.abi_id is not None}


def read_call(
    mesh: Mesh,
    code: CodeCache,
    collective: str,
    count: int,
    dtype: int,
    *,
    op: Any = None,
    axis: Any = None,
    root: Any = None,
    algorithm: str | None = None,
) -> CollectiveCall:
    """The parameters of a collective, with the plan that it follows. Raises `Failure`."""
    elements = integer("count", count, SIZE)
    held = _dtype(dtype)
    operator = None
    if collective in ("all_reduce", "reduce_scatter"):
        one_of("op", op, list(CollOp), "TESS_COLL_SUM (0), TESS_COLL_MAX (1) or TESS_COLL_MIN (2)")
        operator = CollOp(op)
        require_operator(operator.name.removeprefix("TESS_COLL_").lower(), held, "")
    if collective == "broadcast":
        integer("root", root, INT)
        if axis is not None:
            raise invalid(f"axis is {shown(axis)}", "none: a broadcast spans the mesh (AMB-RT-02)")
        if not 0 <= root < len(mesh.devices):
            raise invalid(f"root is {root}", f"a rank from 0 to {len(mesh.devices) - 1} (AMB-RT-02)")
    else:
        size = mesh.axes.size_along(axis)
        if collective != "all_reduce" and elements % size:
            given = f"count {elements} over the {size} ranks of axis {axis}"
            raise invalid(given, f"a multiple of {size} (AMB-RT-04)")
    chosen = plan(mesh, collective, elements, held, axis, code, algorithm)
    return CollectiveCall(collective, elements, held, chosen, op=operator, axis=axis, root=root)


def collective_work(
    call: CollectiveCall,
    buffer: Any,
    stream: Stream,
    policy: NumericsPolicy,
    descriptor: Descriptor | None = None,
    only: int | None = None,
) -> CollectiveWork:
    """The work of a collective, on all ranks or on one; one of no elements needs no buffer. Raises `Failure`."""
    size = call.count * call.dtype.storage_bytes
    region = None
    if size:
        argument = "buffer" if call.collective in ("all_reduce", "broadcast") else "inout"
        pointer = required(argument, buffer)
        region = region_of(FUNCTIONS[call.collective], argument, pointer, size, "device", stream, written=True)
        require_aligned(argument, pointer, call.dtype)
    descriptor = descriptor or stream.mesh.context.descriptor
    if call.op is not None and descriptor.reduction_order is not None:
        descriptor.reduction_order.over(stream.mesh.axes.size_along(call.axis))  # refuses a tree of another size
    return CollectiveWork(
        name=call.collective,
        stream=stream,
        call=call,
        descriptor=descriptor,
        policy=policy,
        region=region,
        only=only,
    )


def _dtype(number: Any) -> DType:
    """The dtype of an ABI id (RT-04.6-15, AMB-RT-59). Raises `Failure`."""
    if type(number) is not int or number not in BY_ID:
        raise invalid(f"dtype is {shown(number)}", "an id from 1 to 13")
    return BY_ID[number]
