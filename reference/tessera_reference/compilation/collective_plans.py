"""The plans of a module, from the collectives of its functions (runtime spec 8.1, collectives spec 3.1, 8).

RT-08.1-10, RT-17-09, COLL-08-12; AMB-COLL-85, -86. The plan of a collective has what the program says of it. If the
program leaves the algorithm open, the table by size decides, or the runtime where the size is known only at launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ..abi.fatbin import CollectivePlan
from ..collectives.selection import row_of, tables
from ..graph.collectives import AllGather, AllReduce, AllToAll, Collective, ReduceScatter, RootBroadcast
from ..graph.futures import (
    WIRES,
    FutureCollective,
    IssueAllGather,
    IssueAllReduce,
    IssueAllToAll,
    IssueBroadcast,
    IssueReduceScatter,
)
from ..ir.attributes import attribute_text
from ..ir.module import Module
from ..ir.types import Mesh, Shard

NAMES: Mapping[type[Collective], str] = {
    AllReduce: "all_reduce",
    ReduceScatter: "reduce_scatter",
    AllGather: "all_gather",
    RootBroadcast: "broadcast",
    AllToAll: "all_to_all",
    IssueAllReduce: "all_reduce",
    IssueReduceScatter: "reduce_scatter",
    IssueAllGather: "all_gather",
    IssueBroadcast: "broadcast",
    IssueAllToAll: "all_to_all",
}


def plans_of(modules: Sequence[Module]) -> tuple[CollectivePlan, ...]:
    """A plan of every collective, in the order of the text; equal plans of a function are listed once."""
    return tuple(
        dict.fromkeys(
            _plan(instruction.operation, function.name, module.meshes)
            for module in modules
            for function in module.functions.values()
            for instruction in function.body.walk()
            if isinstance(instruction.operation, Collective) and type(instruction.operation) in NAMES
        )
    )


def _plan(operation: Collective, function: str, meshes: Mapping[str, Mesh]) -> CollectivePlan:
    collective, size = NAMES[type(operation)], _bytes(operation)
    if not isinstance(operation, FutureCollective):
        algorithm = _by_size(collective, size)
        return CollectivePlan(collective, operation.axis, algorithm, "default", function, bytes=size)
    axis, subgroup = _place(operation.met, meshes[operation.grid])
    hint = None if operation.algo == "auto" else operation.algo
    return CollectivePlan(
        collective,
        axis,
        hint or _by_size(collective, size),
        "hint" if hint else "default",
        function,
        subgroup,
        size,
        None if operation.chunk_size is None else int(operation.chunk_size),
        WIRES[operation.dtype] if operation.dtype else None,
        operation.path,
        operation.scope,
        _kept(operation.priority),
        _kept(operation.overlap),
        _kept(operation.qos),
    )


def _place(met: Shard, mesh: Mesh) -> tuple[str | None, str | None]:
    """The axis of the collective, its subgroup, or neither for the whole mesh."""
    if len(met.axes) == 1:
        return met.axes[0], None
    whole = set(met.axes) == set(mesh.axes) or met.groups == (tuple(range(mesh.size)),)
    return None, None if whole else str(met)


def _bytes(operation: Collective) -> int | None:
    """Return the size of the full buffer, for a gather that of its result; None if an extent is unknown."""
    extents = [extent for extent in operation.x.shape if isinstance(extent, int)]
    if len(extents) != len(operation.x.shape):
        return None
    parts = operation.group if isinstance(operation, AllGather | IssueAllGather) else 1
    return prod(extents) * operation.x.dtype.storage_bytes * parts


def _by_size(collective: str, size: int | None) -> str:
    return "auto" if size is None else row_of(tables()[collective], size).algorithm


def _kept(value: object) -> int | str | None:
    """A number or a text as it is; anything else as a text of IR has it (AMB-COLL-19)."""
    if value is None or isinstance(value, str) or (type(value) is int and -(1 << 63) <= value < 1 << 63):
        return value
    return attribute_text(value)  # type: ignore[arg-type]  # what the attributes of an operation are
