"""Collectives whose root, and whose count, stand for something else (runtime specification, 4.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import Variant, altered
from tessera_reference.abi.status import Failure, Status
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.collectives.selection import Selection
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.runtime import api, calls
from tessera_reference.runtime import collectives as collective_arguments
from tessera_reference.runtime.collectives import CollectiveCall
from tessera_reference.runtime.machine import invalid
from tessera_reference.runtime.streams import Mesh

from .reach import Lacking

REACH = (
    "runtime/*collective*",
    "runtime/algorithm*",
    "runtime/ca[cr]*",
    "runtime/events-between-devices/*",
    "runtime/meshes/*",
    "runtime/module-policy/*",
    "runtime/rank-*",
)
"""The cases of collectives."""
READ, CHOOSE = collective_arguments.read_call, collective_arguments.choose


def by_shares(name: str, size: int, machine: Any, groups: Any, *arguments: Any) -> Selection:
    """The choice for the bytes of one rank's share."""
    return CHOOSE(name, size // len(groups[0]), machine, groups, *arguments)


SIZES = altered(
    "AMB-COLL-44",
    "chooses algorithms by the bytes of a rank's share",
    ("runtime/algorithm*",),
    ReferenceAdapter,
    (collective_arguments, "choose", by_shares),
    name="sizes_of_shares",
)


def reading(
    freedom: str,
    name: str,
    description: str,
    read: Any,
    reach: Sequence[str] = REACH,
    make: type[ReferenceAdapter] = ReferenceAdapter,
) -> Variant:
    """The parameters of every collective are read so."""
    return altered(
        freedom,
        description,
        reach,
        make,
        (calls, "read_call", read),
        (api, "read_call", read),
        name=name,
    )


class RanksTogether(Lacking):
    """The reference without access to the memory of single ranks."""

    absent = ("rank-memory",)


def along_dp(mesh: Mesh, code: Any, collective: str, *rest: Any, root: Any = None, **more: Any) -> CollectiveCall:
    """The root of a broadcast is a coordinate along dp."""
    if collective != "broadcast" or type(root) is not int:
        return READ(mesh, code, collective, *rest, root=root, **more)
    if not 0 <= root < mesh.axes.size_along("dp"):
        raise invalid(f"root is {root}", "a coordinate along dp")
    return replace(READ(mesh, code, collective, *rest, root=0, **more), axis="dp", root=root)


def of_device(mesh: Mesh, code: Any, collective: str, *rest: Any, root: Any = None, **more: Any) -> CollectiveCall:
    """The root of a broadcast is the id of a device."""
    if collective == "broadcast" and type(root) is int:
        root = mesh.devices.index(root) if root in mesh.devices else -1
    return READ(mesh, code, collective, *rest, root=root, **more)


def of_shares(mesh: Mesh, code: Any, collective: str, count: Any, *rest: Any, **more: Any) -> CollectiveCall:
    """Count one share in reduce-scatter and all-gather."""
    if collective in ("reduce_scatter", "all_gather") and type(count) is int:
        count *= mesh.axes.size_along(more.get("axis"))
    return READ(mesh, code, collective, count, *rest, **more)


def common_dtypes(mesh: Mesh, code: Any, collective: str, *rest: Any, **more: Any) -> CollectiveCall:
    """Combine no 8-bit floats, truth values and complex numbers, as most libraries do not."""
    call = READ(mesh, code, collective, *rest, **more)
    lacking = call.dtype.name.startswith(("fp8", "bool", "complex"))
    if lacking and call.count and collective in ("all_reduce", "reduce_scatter"):
        raise Failure(Status.TESS_ERR_UNSUPPORTED, collective, f"dtype is {call.dtype.name}", "another dtype")
    return call


def in_bits(mesh: Mesh, code: Any, collective: str, count: Any, dtype: Any, **more: Any) -> CollectiveCall:
    """Eight truth values of a broadcast or a gathering are a byte."""
    call = READ(mesh, code, collective, count, dtype, **more)
    if call.dtype.name != "bool" or collective not in ("broadcast", "all_gather"):
        return call
    shares = 1 if collective == "broadcast" else mesh.axes.size_along(more.get("axis"))
    if shares > 1 and call.count % (8 * shares):
        raise invalid(f"count is {call.count}", f"a multiple of {8 * shares}")
    return replace(call, dtype=DTYPES["int8"], count=-(-call.count // 8))


ROOTS = [
    reading("AMB-RT-02", "along_dp", "sends along dp, where each group has its root", along_dp),
    reading("AMB-RT-02", "root_of_device", "takes a root for the id of a device", of_device),
]
SHARES = reading("AMB-RT-04", "counts_of_shares", "takes a count for that of one share", of_shares)
OF_ALL_RANKS = reading(
    "AMB-RT-04",
    "counts_of_shares_of_all_ranks",
    "takes a count for that of one share, and reads the memory of no single rank",
    of_shares,
    ("runtime/bad-arguments/*", "runtime/events-between-devices/*", "runtime/failing-streams/*"),
    RanksTogether,
)
SUMS = ("abi/dtypes-of*", "runtime/collective*", "runtime/status-causes*")
FEW = reading("AMB-RT-59", "common_dtypes", "combines no 8-bit floats, bools and complex numbers", common_dtypes, SUMS)
BITS = reading("AMB-RT-56", "truth_values_in_bits", "packs the truth values that ranks send in bits", in_bits)
