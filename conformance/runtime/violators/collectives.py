"""Collectives of the runtime with other results, over other ranks (runtime specification, 4.6)."""

import numpy as np

from tessera_conformance.strength import Around, replaced
from tessera_reference.adapter import make
from tessera_reference.mesh.topology import MeshAxes
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.collectives import group_results
from tessera_reference.runtime import collectives

from .changes import INVALID, answering, broken, grouping, refusing

CLAUSES = {
    "all_reduce": "RT-04.6-08",
    "reduce_scatter": "RT-04.6-11",
    "all_gather": "RT-04.6-12",
    "broadcast": "RT-04.6-13",
}
REDUCTIONS = {"sum": "RT-04.6-08", "max": "RT-04.6-09", "min": "RT-04.6-10"}


def combining(clause, name, description, change, *only, op=None):
    """Return a violation that makes some collectives by `change(right, inputs)`; `right(inputs)` would be right."""

    def made(collective, inputs, ranks, root, whole):
        def right(those):
            return list(group_results(collective, those, ranks, root, whole))

        if (only and collective not in only) or (op is not None and whole.args[0] != op):
            return right(inputs)
        with np.errstate(all="ignore"):
            return change(right, inputs)

    return broken(clause, name, description, "runtime.collectives.group_results", made)


def first_page(right, buffers):
    pairs = zip(right(buffers), buffers, strict=True)
    return [Array(made.dtype, np.concatenate([made.values[:4096], own.values[4096:]])) for made, own in pairs]


def mebibyte(right, buffers):
    """Zero the elements behind the first mebibyte; a share of half as many bytes loses its last element."""
    made = []
    for array in right(buffers):
        limit, values = (1 << 20) // array.dtype.storage_bytes, array.values.copy()
        values[min(limit, values.size - 1) if values.size > limit // 2 else values.size :] = 0
        made.append(Array(array.dtype, values))
    return made


def by_elements(combined, kind):
    """Return a combination of numbers of one kind, of all ranks at once."""

    def change(right, buffers):
        if buffers[0].dtype.kind != kind:
            return right(buffers)
        total = combined(np.stack([np.asarray(buffer.values) for buffer in buffers]))
        return [Array(buffers[0].dtype, np.asarray(total, dtype=buffers[0].values.dtype))] * len(buffers)

    return change


def extreme_magnitude(place):
    """Return a combination that takes the number whose magnitude `place` finds."""
    return by_elements(lambda x: np.take_along_axis(x, place(np.abs(x), axis=0)[None], axis=0)[0], "float")


def saturated(stacked):
    limits = np.iinfo(stacked.dtype)
    return np.array([min(max(sum(map(int, column)), limits.min), limits.max) for column in stacked.T], stacked.dtype)


def narrow(right, buffers):
    if buffers[0].dtype.kind != "float":
        return right(buffers)
    total = right(buffers[:1])[0]
    for buffer in buffers[1:]:
        total = right([total, buffer])[0]
    return [total] * len(buffers)


def reducing(op, name, description, change):
    """Return a violation with other results for all-reduces of one operation."""
    return combining(REDUCTIONS[op], f"{op}_{name}", description, change, "all_reduce", op=op)


def neighbours(self, axis, right=MeshAxes.groups):
    size, ranks = len(right(self, axis)[0]), sum(map(len, right(self, axis)))
    return [tuple(range(start, start + size)) for start in range(0, ranks, size)]


def exchanging_ids(name, description, function, first, second):
    """Return a violation that exchanges two dtypes."""
    ids = {first: second, second: first}
    return answering("RT-04.6-15", name, description, function,
        lambda adapter, call, given: call(**(given | {"dtype": ids.get(given["dtype"], given["dtype"])})))  # fmt: skip


def counting(collective, name, description, change):
    """Return a violation with another count, `change(count, ranks)`."""

    def answer(adapter, call, given):
        ranks = len(adapter.runtime.mesh(given["mesh"]).devices)
        return call(**(given | {"count": change(given["count"], ranks)}))

    function = collectives.FUNCTIONS[collective]
    return answering(CLAUSES[collective], f"{collective}_{name}", description, function, answer)


def numpys(op, dtype, reduce):
    """Return a violation with numpy's maximum or minimum for one dtype."""
    extreme = Around(lambda usual: lambda operation, x: Array(x.dtype, reduce(x.values))
        if (operation, x.dtype.name) == (op, dtype) else usual(operation, x))  # fmt: skip
    description = f"lets numpy find the {op} of {dtype}"
    place = "numerics.reductions.extreme"
    return replaced(REDUCTIONS[op], description, make, (place, extreme), name=f"{op}_of_{dtype}")


VIOLATORS = [
    reducing("sum", "of_a_page", "sums 4,096 elements and no more", first_page),
    *(combining(clause, f"{collective}_of_a_mebibyte", "loses what is behind a mebibyte", mebibyte, collective)
        for collective, clause in CLAUSES.items()),
    reducing("sum", "saturates", "lets integers stop at their limits", by_elements(saturated, "int")),
    reducing("sum", "narrow", "rounds after every rank", narrow),
    reducing("max", "of_magnitude", "takes the largest magnitude", extreme_magnitude(np.argmax)),
    reducing("max", "of_bool", "takes and for the largest truth value", by_elements(lambda x: x.all(0), "bool")),
    reducing("min", "of_magnitude", "takes the least magnitude", extreme_magnitude(np.argmin)),
    reducing("min", "of_bool", "takes or for the least truth value", by_elements(lambda x: x.any(0), "bool")),
    reducing("min", "without_nan", "passes NaN over", by_elements(np.fmin.reduce, "float")),
    reducing("sum", "on_first", "leaves sums on the first rank",
        lambda right, buffers: [right(buffers)[0], *buffers[1:]]),
    *(reducing(op, "lacks_one", "leaves the last rank out", lambda right, buffers:
        [right(buffers[:-1])[0]] * len(buffers) if len(buffers) > 2 else right(buffers)) for op in REDUCTIONS),
    combining("RT-04.6-13", "not_to_last", "does not send to the last rank",
        lambda right, buffers: [*right(buffers)[:-1], buffers[-1]], "broadcast"),
    grouping("RT-04.6-09", "neighbours", "lets ranks meet that follow one another", neighbours),
    numpys("max", "fp64", np.fmax.reduce),
    numpys("min", "bf16", np.minimum.reduce),
    exchanging_ids("half_types", "exchanges fp16 and bf16", "tessAllReduce", 3, 4),
    exchanging_ids("integers", "exchanges int8 and int64", "tessBroadcast", 7, 10),
    exchanging_ids("fp8", "exchanges the two 8-bit floats", "tessReduceScatter", 1, 2),
    exchanging_ids("complex", "exchanges the complex types", "tessAllGather", 12, 13),
    answering("RT-04.6-15", "unknown_as_fp32", "takes an unknown dtype for fp32", "tessAllReduce",
        lambda adapter, call, given: call(**(given | {"dtype": given["dtype"] if 1 <= given["dtype"] <= 13 else 5}))),
    *(counting(collective, "rounds", "rounds a count down", lambda count, ranks: count // ranks * ranks)
        for collective in ("reduce_scatter", "all_gather")),
    *(counting(collective, "of_nothing", "takes an element for none", lambda count, ranks: count or ranks)
        for collective in CLAUSES),
    *(refusing(clause, f"{function}_needs_two", "refuses an axis of one", collectives.FUNCTIONS[function],
        lambda given: given["axis"] in ("tp", "pp") and given["count"] == 7, INVALID)
        for function, clause in CLAUSES.items() if function != "broadcast"),
]  # fmt: skip
