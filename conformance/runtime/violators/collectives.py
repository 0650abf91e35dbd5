"""Collectives of the runtime with other results, over other ranks (runtime specification, 4.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import make
from tessera_reference.collectives.operations import group_results
from tessera_reference.mesh.topology import MeshAxes
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.runtime import collectives
from tessera_reference.runtime.collectives import CollectiveWork

from .changes import INVALID, Call, Given, answering, grouping, refusing
from .order import broken

Buffers: TypeAlias = Sequence[Array]
Made: TypeAlias = list[Array]
Right: TypeAlias = Callable[[Buffers], Made]
Change: TypeAlias = Callable[[Right, Buffers], Made]

PART = CollectiveWork._part

CLAUSES = {
    "all_reduce": "RT-04.6-08",
    "reduce_scatter": "RT-04.6-11",
    "all_gather": "RT-04.6-12",
    "broadcast": "RT-04.6-13",
}
REDUCTIONS = {"sum": "RT-04.6-08", "max": "RT-04.6-09", "min": "RT-04.6-10"}


def combining(clause: str, name: str, description: str, change: Change, *only: str, op: str | None = None) -> Violation:
    """Return a violation that makes some collectives by `change(right, inputs)`; `right(inputs)` would be right."""

    def made(collective: str, inputs: Buffers, ranks: int, root: int, whole: Any) -> Sequence[Array]:
        def right(those: Buffers) -> Made:
            return list(group_results(collective, those, ranks, root, whole))

        if (only and collective not in only) or (op is not None and whole.args[0] != op):
            return right(inputs)
        with np.errstate(all="ignore"):
            return change(right, inputs)

    return broken(clause, name, description, collectives, "group_results", made)


# Results on the ranks


def same(result: Array, buffers: Buffers) -> Made:
    """One result for every rank."""
    return [result for _ in buffers]


def first_only(right: Right, buffers: Buffers) -> Made:
    """Return the result on the first rank of a group alone."""
    return [right(buffers)[0], *buffers[1:]]


def first_page(right: Right, buffers: Buffers) -> Made:
    made = right(buffers)
    return [
        Array(array.dtype, np.concatenate([array.values[:4096], own.values[4096:]]))
        for array, own in zip(made, buffers, strict=True)
    ]


def mebibyte(right: Right, buffers: Buffers) -> Made:
    """Zero the elements behind the first mebibyte; a share of half as many bytes loses its last element."""
    made = []
    for array in right(buffers):
        limit, values = (1 << 20) // array.dtype.storage_bytes, array.values.copy()
        values[min(limit, values.size - 1) if values.size > limit // 2 else values.size :] = 0
        made.append(Array(array.dtype, values))
    return made


def without_last(right: Right, buffers: Buffers) -> Made:
    """Leave out the last element."""
    made = right(buffers)
    parts = [(array.values[:-1], own.values[-1:]) for array, own in zip(made, buffers, strict=True)]
    return [Array(made[0].dtype, np.concatenate(part)) for part in parts]


def without_last_rank(right: Right, buffers: Buffers) -> Made:
    """Leave out the last rank's contribution."""
    return [right(buffers[:-1])[0]] * len(buffers) if len(buffers) > 2 else right(buffers)


def by_elements(combined: Callable[[Any], Any], kind: str) -> Change:
    """Return a combination of numbers of one kind, of all ranks at once."""

    def change(right: Right, buffers: Buffers) -> Made:
        first_dtype = buffers[0].dtype
        if first_dtype.kind != kind:
            return right(buffers)
        stacked = np.stack([np.asarray(buffer.values) for buffer in buffers])
        return same(Array(first_dtype, np.asarray(combined(stacked), dtype=buffers[0].values.dtype)), buffers)

    return change


def saturated(stacked: Any) -> Any:
    limits = np.iinfo(stacked.dtype)
    wide = np.array([sum(int(value) for value in column) for column in stacked.T], dtype=object)
    return np.array([min(max(value, limits.min), limits.max) for value in wide], dtype=stacked.dtype)


def narrow(right: Right, buffers: Buffers) -> Made:
    if buffers[0].dtype.kind != "float":
        return right(buffers)
    total = right(buffers[:1])[0]
    for buffer in buffers[1:]:
        total = right([total, buffer])[0]
    return same(total, buffers)


def shifted(right: Right, buffers: Buffers) -> Made:
    shares = right(buffers)
    return [*shares[1:], shares[0]]


def of_first(self: CollectiveWork, group: Any, contributions: Any, right: Any = CollectiveWork._combined) -> Any:
    """Return the gathered shares on the first rank of a group alone."""
    results = right(self, group, contributions)
    return dict(list(results.items())[:1]) if self.call.collective == "all_gather" else results


def reducing(op: str, name: str, description: str, change: Change) -> Violation:
    """Return a violation with other results for all-reduces of one operation."""
    return combining(REDUCTIONS[op], f"{op}_{name}", description, change, "all_reduce", op=op)


RESULTS = [
    reducing("sum", "of_a_page", "sums 4,096 elements and no more", first_page),
    *(
        combining(clause, f"{collective}_of_a_mebibyte", "loses what is behind a mebibyte", mebibyte, collective)
        for collective, clause in CLAUSES.items()
    ),
    reducing("sum", "saturates", "lets integers stop at their limits", by_elements(saturated, "int")),
    reducing("sum", "narrow", "rounds after every rank", narrow),
    reducing("max", "of_magnitude", "takes the largest magnitude",
        by_elements(lambda stacked: np.take_along_axis(stacked, np.argmax(np.abs(stacked), axis=0)[None], axis=0)[0],
        "float")),
    reducing("max", "of_bool", "takes and for the largest truth value", by_elements(lambda x: x.all(0), "bool")),
    reducing("min", "of_magnitude", "takes the least magnitude",
        by_elements(lambda stacked: np.take_along_axis(stacked, np.argmin(np.abs(stacked), axis=0)[None], axis=0)[0],
        "float")),
    reducing("min", "of_bool", "takes or for the least truth value", by_elements(lambda x: x.any(0), "bool")),
    reducing("min", "without_nan", "passes NaN over", by_elements(np.fmin.reduce, "float")),
    reducing("sum", "on_first", "leaves sums on the first rank", first_only),
    *(reducing(op, "lacks_one", "leaves the last rank out", without_last_rank) for op in REDUCTIONS),
    combining("RT-04.6-13", "not_to_last", "does not send to the last rank",
        lambda right, buffers: [*right(buffers)[:-1], buffers[-1]], "broadcast"),
]  # fmt: skip


# Groups of ranks


def whole_mesh(self: MeshAxes, axis: str, right: Any = MeshAxes.groups) -> Any:
    return [tuple(range(sum(map(len, right(self, axis)))))] if len(right(self, axis)[0]) > 1 else right(self, axis)


def neighbours(self: MeshAxes, axis: str, right: Any = MeshAxes.groups) -> Any:
    size, ranks = len(right(self, axis)[0]), sum(map(len, right(self, axis)))
    return [tuple(range(start, start + size)) for start in range(0, ranks, size)]


GROUPS = [
    grouping("RT-04.6-09", "neighbours", "lets ranks meet that follow one another", neighbours),
]


# Arguments


def exchanged_ids(first: int, second: int) -> Any:
    """Return a call that exchanges two dtypes."""
    other = {first: second, second: first}

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        return call(**(given | {"dtype": other.get(given["dtype"], given["dtype"])}))

    return answer


def unknown_as_fp32(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    return call(**(given | {"dtype": given["dtype"] if 1 <= given["dtype"] <= 13 else 5}))


def divided(collective: str) -> Violation:
    """Return a violation that rounds down counts that the ranks do not divide."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        ranks = len(adapter.runtime.mesh(given["mesh"]).devices)
        return call(**(given | {"count": given["count"] // ranks * ranks}))

    function = collectives.FUNCTIONS[collective]
    return answering(CLAUSES[collective], f"{collective}_rounds", "rounds a count down", function, answer)


def touching(collective: str) -> Violation:
    """Return a violation that runs a collective of nothing on one element."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        ranks = len(adapter.runtime.mesh(given["mesh"]).devices)
        return call(**(given | {"count": given["count"] or ranks}))

    function = collectives.FUNCTIONS[collective]
    return answering(CLAUSES[collective], f"{collective}_of_nothing", "takes an element for none", function, answer)


def numpys(op: str, dtype: str, reduce: Callable[[Any], Any]) -> Violation:
    """Return a violation with numpy's maximum or minimum for one dtype."""

    def extreme(operation: str, x: Array) -> Array:
        if (operation, x.dtype.name) == (op, dtype):
            return Array(x.dtype, reduce(x.values))
        return EXTREME(operation, x)

    description = f"lets numpy find the {op} of {dtype}"
    return replaced(
        REDUCTIONS[op], description, make, ("numerics.reductions.extreme", extreme), name=f"{op}_of_{dtype}"
    )


EXTREME = reductions.extreme
EXTREMES = [
    numpys("max", "fp64", np.fmax.reduce),
    numpys("min", "bf16", np.minimum.reduce),
]

ARGUMENTS = [
    answering("RT-04.6-15", "half_types", "exchanges fp16 and bf16", "tessAllReduce", exchanged_ids(3, 4)),
    answering("RT-04.6-15", "integers", "exchanges int8 and int64", "tessBroadcast", exchanged_ids(7, 10)),
    answering("RT-04.6-15", "fp8", "exchanges the two 8-bit floats", "tessReduceScatter", exchanged_ids(1, 2)),
    answering("RT-04.6-15", "complex", "exchanges the complex types", "tessAllGather", exchanged_ids(12, 13)),
    answering("RT-04.6-15", "unknown_as_fp32", "takes an unknown dtype for fp32", "tessAllReduce", unknown_as_fp32),
    *(divided(name) for name in ("reduce_scatter", "all_gather")),
    *(touching(clause) for clause in CLAUSES),
    *(
        refusing(
            clause,
            f"{function}_needs_two",
            "refuses an axis of one",
            collectives.FUNCTIONS[function],
            lambda given: given["axis"] in ("tp", "pp") and given["count"] == 7,
            INVALID,
        )
        for function, clause in CLAUSES.items()
        if function != "broadcast"
    ),
]
