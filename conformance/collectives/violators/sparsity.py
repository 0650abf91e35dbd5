"""Top-k messages with other elements, in another order, or read in another way (collectives spec 2.5)."""

from dataclasses import replace

import numpy as np

from tessera_reference.abi.status import Failure
from tessera_reference.collectives.compression import Sparse
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES

from .changes import at, result_of

sparse, reported = at("adapter.collectives.sparsify"), result_of("adapter.collectives.sparsify")


def choosing(clause, name, description, measure, order=sorted):
    """Return a violation with the k largest elements by a measure, of ties the lower index, in an order."""

    def message(usual, function, x, k):
        usual(function, x, k)
        flat = x.values.reshape(-1)
        with np.errstate(all="ignore"):
            sizes = measure(flat)
        places = np.array(order(sorted(range(flat.size), key=lambda place: -sizes[place])[:k]), np.int64)
        rest = flat.copy()
        rest[places] = 0
        sent = Array(DTYPES["int64"], places), Array(x.dtype, flat[places])
        return Sparse(*sent, Array(x.dtype, rest.reshape(x.shape)))

    return sparse(clause, name, description, message)


def without_nan(usual, function, x, k):
    if x.dtype.kind == "float":
        x = Array(x.dtype, np.where(np.isnan(x.values), x.values.dtype.type(0), x.values))
    return usual(function, x, k)


def of_any_dtype(usual, function, x, k):
    real = x.dtype.kind in ("float", "int")
    return usual(function, x if real else Array(DTYPES["fp64"], x.values.real.astype(np.float64)), k)


# The receiver's result of a message


def with_the_first(usual, function, indices, values, shape):
    found = usual(function, indices, values, shape)
    if values.values.size == 0:
        return found
    flat = np.full(found.values.size, values.values[0])
    flat[indices.values] = values.values
    return Array(found.dtype, flat.reshape(found.shape))


def added(usual, function, indices, values, shape):
    try:
        return usual(function, indices, values, shape)
    except Failure:
        flat = np.zeros(int(np.prod(shape)), values.dtype.carrier)
        if indices.shape != values.shape or indices.dtype.name != "int64" or (abs(indices.values) >= flat.size).any():
            raise
        np.add.at(flat, indices.values, values.values)
        return Array(values.dtype, flat.reshape(tuple(shape)))


def within_the_shape(usual, function, indices, values, shape):
    if indices.shape == values.shape:
        kept = (indices.values >= 0) & (indices.values < int(np.prod(shape)))
        indices, values = Array(indices.dtype, indices.values[kept]), Array(values.dtype, values.values[kept])
    return usual(function, indices, values, shape)


def as_many_as_both(usual, function, *lists_and_shape):
    *lists, shape = lists_and_shape
    count = min(entries.values.size for entries in lists)
    return usual(function, *(Array(entries.dtype, entries.values.reshape(-1)[:count]) for entries in lists), shape)


def in_any_order_behind_three(usual, function, indices, values, shape):
    places = indices.values.copy()
    places[3:] = np.sort(places[3:], axis=0)
    return usual(function, Array(indices.dtype, places), values, shape)


dense = at("adapter.collectives.densify")

VIOLATIONS = [
    choosing("COLL-02.5-05", "least_integer_lost", "takes the magnitude of the least integer for negative",
        lambda x: np.abs(x).tolist()),
    choosing("COLL-02.5-05", "magnitudes_in_fp32", "compares magnitudes in fp32",
        lambda x: np.abs(x.astype(np.float32)).tolist()),
    sparse("COLL-02.5-05", "negative_k", "sends nothing where k is negative",
        lambda usual, function, x, k: usual(function, x, max(k, 0))),
    sparse("COLL-02.5-05", "nan_lost", "takes NaN for 0", without_nan),
    sparse("COLL-02.5-05", "any_dtype", "takes truth values and complex numbers for real ones", of_any_dtype),
    choosing("COLL-02.5-09", "by_size", "gives the largest element first",
        lambda x: [abs(value) for value in x.tolist()], order=list),
    reported("COLL-02.5-09", "int32_indices", "gives indices as int32",
        lambda sent: replace(sent, indices=Array(DTYPES["int32"], sent.indices.values.astype(np.int32)))),
    reported("COLL-02.5-09", "magnitudes_sent", "sends magnitudes",
        lambda sent: replace(sent, values=Array(sent.values.dtype, np.abs(sent.values.values)))),
    dense("COLL-02.5-09", "omitted_is_the_first", "puts the first value where no index points", with_the_first),
    dense("COLL-02.5-09", "duplicates_add_up", "adds up the values of one index, in any order", added),
    dense("COLL-02.5-09", "outside_passed_over", "passes over indices outside of the shape", within_the_shape),
    dense("COLL-02.5-09", "unordered_behind_three", "takes indices in any order behind the third",
        in_any_order_behind_three),
    dense("COLL-02.5-09", "shorter_list", "takes as many entries as both lists have", as_many_as_both),
    dense("COLL-02.5-09", "any_indices", "takes indices of any dtype", lambda usual, function, indices, *given: usual(
        function, Array(DTYPES["int64"], indices.values.astype(np.int64)), *given)),
    result_of("adapter.collectives.densify")("COLL-02.5-09", "flat_output", "gives a flat tensor",
        lambda found: Array(found.dtype, found.values.reshape(-1))),
]  # fmt: skip
