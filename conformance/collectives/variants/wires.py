"""Other legal roundings and permissions of collectives over a narrower wire (collectives spec 2.4 and 2.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.strength import altered
from tessera_reference.abi.status import Failure, Status
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.collectives import operations
from tessera_reference.collectives.compression import Compression, compress
from tessera_reference.collectives.operations import over_wire, read_wire
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.rounding import cast

Collective: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
WIRES = ("collectives/wire/*", "collectives/program-wires/*", "collectives/all-reduce/*", "collectives/compression/*")
"""The cases of data that travel in a narrower dtype."""


def partly_rounded(operation: str, brought: Sequence[Array], form: Compression, collective: Collective) -> Any:
    """Every partial sum is rounded to the wire."""
    if operation != "all_reduce" or form.block is not None:
        return over_wire(operation, brought, form, collective)
    nothing = Array(brought[0].dtype, np.zeros_like(brought[0].values))
    results = over_wire(operation, [brought[0], *[nothing] * (len(brought) - 1)], form, collective)
    for array in brought[1:]:
        results = over_wire(operation, [results[0], array, *[nothing] * (len(brought) - 2)], form, collective)
    return results


def own_whole(operation: str, brought: Sequence[Array], form: Compression, collective: Collective) -> Any:
    """A rank's own contribution is not rounded."""
    results = []
    for rank, own in enumerate(brought):

        def with_own(arrays: Sequence[Array], rank: int = rank, own: Array = own) -> Sequence[Array]:
            whole = cast(own, own.dtype.accumulator)
            return collective([*arrays[:rank], whole, *arrays[rank + 1 :]])

        results.append(over_wire(operation, brought, form, with_own)[rank])
    return results


def share_whole(operation: str, brought: Sequence[Array], form: Compression, collective: Collective) -> Any:
    """The shares of a reduce-scatter are not rounded to the wire."""
    if operation != "reduce_scatter" or form.block is not None:
        return over_wire(operation, brought, form, collective)
    dtype = brought[0].dtype
    carried = [compress(operation, cast(array, dtype.accumulator), form).restored for array in brought]
    return [cast(array, dtype) for array in collective(carried)]


def by_width(operation: str, buffers: Any, name: Any, qscheme: Any, block: Any, level: str) -> Any:
    """A wire of as many bits as the data is allowed under every policy."""
    form = read_wire(operation, buffers, name, qscheme, block, "fast")
    wide = form is not None and form.block is None and form.wire.bits >= buffers[0].dtype.bits
    return form if wide else read_wire(operation, buffers, name, qscheme, block, level)


def integers_whole(operation: str, buffers: Any, name: Any, qscheme: Any, block: Any, level: str) -> Any:
    """Integers travel without a wire."""
    whole = name is not None and buffers[0].dtype.kind == "int"
    return None if whole else read_wire(operation, buffers, name, qscheme, block, level)


def where_they_change(operation: str, buffers: Any, name: Any, qscheme: Any, block: Any, level: str) -> Any:
    """A lossy wire is allowed where no value at hand changes."""
    try:
        return read_wire(operation, buffers, name, qscheme, block, level)
    except Failure as failure:
        if failure.status != Status.TESS_ERR_DETERMINISM_VIOLATION or qscheme is not None:
            raise
        form = read_wire(operation, buffers, name, qscheme, block, "fast")
        pairs = [(x, compress(operation, cast(x, x.dtype.accumulator), form).restored) for x in buffers]
        same = all(np.array_equal(cast(restored, x.dtype).values, x.values) for x, restored in pairs)
        if not same:
            raise
        return None


ROUNDINGS = [
    altered("AMB-COLL-61", description, WIRES, ReferenceAdapter, (operations, "over_wire", change), name=name)
    for name, description, change in (
        ("rounds_partial_sums", "rounds partial sums to the wire as they travel", partly_rounded),
        ("own_contribution_whole", "adds a rank's own contribution unrounded", own_whole),
        ("shares_whole", "does not round the shares of a reduce-scatter", share_whole),
    )
]
PERMISSIONS = [
    replace(
        altered("AMB-COLL-62", description, WIRES, ReferenceAdapter, (operations, "read_wire", change), name=name),
        taken_for=("AMB-COLL-05", "AMB-COLL-53"),
    )
    for name, description, change in (
        ("wide_wires", "takes a wire as wide as the data for lossless", by_width),
        ("integers_without_wire", "sends integers whole whatever the wire", integers_whole),
        ("refused_where_lost", "refuses a wire that changes a value", where_they_change),
    )
]
