"""Collectives on a stream (runtime spec 4.6, 13; AMB-RT-02 to -05, -28, -40, -57, -59)."""

from __future__ import annotations

from typing import Any

from ...abi.enumerations import CollOp
from ...abi.status import Failure, Status
from ...collectives.all_reduce import require_operator
from ...numerics.errors import shown
from ...numerics.formats import DTYPES, DType
from ..algorithms import plan
from ..arguments import INT, SIZE, integer, invalid, one_of, required
from ..collectives import FUNCTIONS, CollectiveCall, CollectiveWork
from ..meshes import Mesh
from ..state import entry
from ..streams import Stream
from .modules import ModuleCalls

__all__ = ["CollectiveCalls"]

BY_ID = {each.abi_id: each for each in DTYPES.values() if each.abi_id is not None}


class CollectiveCalls(ModuleCalls):
    """tessAllReduce, tessReduceScatter, tessAllGather, tessBroadcast."""

    @entry
    def tessAllReduce(  # noqa: N802
        self, mesh: Any, buffer: Any, count: int, dtype: int, op: int, axis: str | None, stream: Any
    ) -> None:
        """The combination of the group's buffers, on every rank (RT-04.6-08 to -10)."""
        self._collective("all_reduce", mesh, buffer, count, dtype, stream, op=op, axis=axis)

    @entry
    def tessReduceScatter(  # noqa: N802
        self, mesh: Any, inout: Any, count: int, dtype: int, op: int, axis: str | None, stream: Any
    ) -> None:
        """To each rank its share of the combination (RT-04.6-11, AMB-RT-04)."""
        self._collective("reduce_scatter", mesh, inout, count, dtype, stream, op=op, axis=axis)

    @entry
    def tessAllGather(self, mesh: Any, inout: Any, count: int, dtype: int, axis: str | None, stream: Any) -> None:  # noqa: N802
        """The shares of all ranks of the group, on every rank (RT-04.6-12, AMB-RT-04)."""
        self._collective("all_gather", mesh, inout, count, dtype, stream, axis=axis)

    @entry
    def tessBroadcast(self, mesh: Any, buffer: Any, count: int, dtype: int, root: int, stream: Any) -> None:  # noqa: N802
        """The root's buffer, on every rank of the mesh (RT-04.6-13, AMB-RT-02)."""
        self._collective("broadcast", mesh, buffer, count, dtype, stream, root=root)

    def _collective(
        self, collective: str, mesh: Any, buffer: Any, count: int, dtype: int, stream: Any, **asked: Any
    ) -> None:
        function = FUNCTIONS[collective]
        on, queue = self.mesh(mesh, function), self.stream(stream, function)
        if queue.mesh is not on:
            given = f"stream {queue.handle}, which is of mesh {queue.mesh.handle}, for mesh {on.handle}"
            raise invalid(function, given, "a stream of the mesh")
        policy = on.context.governing()
        self.require_policy(on.context, function, policy)
        call = self.read_call(function, collective, on, count, dtype, **asked)
        work = self.collective_work(function, call, buffer, queue, policy)
        self.submit(work)

    def collective_work(
        self, function: str, call: CollectiveCall, buffer: Any, queue: Stream, policy: Any, **more: Any
    ) -> CollectiveWork:
        """The work of a collective; of nothing it needs no buffer (AMB-RT-40). Raises `Failure`."""
        size = call.count * call.dtype.storage_bytes
        region = None
        if size:
            argument = "buffer" if call.collective in ("all_reduce", "broadcast") else "inout"
            pointer = required(function, argument, buffer)
            step = min(call.dtype.storage_bytes, 8)
            region = self.region(function, argument, pointer, size, "device", queue, written=True)
            if pointer % step:
                raise invalid(function, f"{argument} is {pointer:#x}", f"a multiple of {step}, as {call.dtype} needs")
        descriptor = more.pop("descriptor", None) or queue.mesh.context.descriptor
        if call.op is not None and descriptor.reduction_order is not None:
            descriptor.reduction_order.over(queue.mesh.axes.size_along(call.axis))  # refuses a tree of another size
        return CollectiveWork(
            name=call.collective, stream=queue, call=call, descriptor=descriptor, policy=policy, region=region, **more
        )

    def read_call(
        self,
        function: str,
        collective: str,
        mesh: Mesh,
        count: int,
        dtype: int,
        *,
        op: Any = None,
        axis: Any = None,
        root: Any = None,
        algorithm: str | None = None,
    ) -> CollectiveCall:
        """A collective as it was asked for. Raises `Failure` for arguments that no call can have."""
        elements = integer(function, "count", count, SIZE)
        held = _dtype(function, dtype)
        operator = None
        if collective in ("all_reduce", "reduce_scatter"):
            one_of(function, "op", op, list(CollOp), "TESS_COLL_SUM (0), TESS_COLL_MAX (1) or TESS_COLL_MIN (2)")
            operator = CollOp(op)
            require_operator(operator.name.removeprefix("TESS_COLL_").lower(), held, function)
        if collective == "broadcast":
            integer(function, "root", root, INT)
            if axis is not None:
                raise invalid(function, f"axis is {shown(axis)}", "none: a broadcast spans the mesh (AMB-RT-02)")
            if not 0 <= root < len(mesh.devices):
                raise invalid(function, f"root is {root}", f"a rank from 0 to {len(mesh.devices) - 1} (AMB-RT-02)")
        else:
            size = mesh.axes.size_along(axis, function)
            if collective != "all_reduce" and elements % size:
                given = f"count {elements} over the {size} ranks of axis {axis}"
                raise invalid(function, given, f"a multiple of {size} (AMB-RT-04)")
        chosen = algorithm or plan(mesh, collective, elements, held, axis, self.code).algorithm
        return CollectiveCall(collective, elements, held, chosen, op=operator, axis=axis, root=root)


def _dtype(function: str, number: Any) -> DType:
    """The dtype of an ABI id (RT-04.6-15, AMB-RT-59). Raises `Failure`."""
    if type(number) is not int or number not in BY_ID:
        raise Failure(Status.TESS_ERR_INVALID_VALUE, function, f"dtype is {shown(number)}", "an id from 1 to 13")
    return BY_ID[number]
