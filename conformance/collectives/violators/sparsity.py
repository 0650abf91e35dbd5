"""Top-k messages with other elements, in another order, or read in another way (collectives spec 2.5)."""

from dataclasses import replace

import numpy as np

from tessera_reference.abi.status import Failure
from tessera_reference.collectives.compression import Sparse, densify, sparsify
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES

from ...ir.violators.changes import changed


def choosing(clause, name, description, choose):
    """Return a violation with other elements of the flat tensor, in any order."""

    def sparse(function, x, k):
        sparsify(function, x, k)
        with np.errstate(all="ignore"):
            return _message(x, choose(x.values.reshape(-1), k))

    return changed(clause, name, description, ("adapter.collectives.sparsify", sparse))


def reported(clause, name, description, change):
    """Return a violation that reports the same elements differently."""

    def sparse(function, x, k):
        return change(x, sparsify(function, x, k))

    return changed(clause, name, description, ("adapter.collectives.sparsify", sparse))


def largest(sizes):
    """Return a choice of the k largest elements by a measure; of ties the lower index."""

    def choose(values, k):
        measure = sizes(values).tolist()
        return np.array(sorted(sorted(range(values.size), key=lambda place: -measure[place])[:k]), np.int64)

    return choose


def exact_sizes(values):
    """Return magnitudes as Python numbers."""
    return np.array([abs(index) for index in values.tolist()], object)


def in_order_of_size(values, k):
    sizes = exact_sizes(values).tolist()
    return np.array(sorted(range(values.size), key=lambda place: -sizes[place])[:k], np.int64)


def without_nan(function, x, k):
    if x.dtype.kind != "float":
        return sparsify(function, x, k)
    return sparsify(function, Array(x.dtype, np.where(np.isnan(x.values), x.values.dtype.type(0), x.values)), k)


def of_bool(function, x, k):
    if x.dtype.kind in ("float", "int"):
        return sparsify(function, x, k)
    return sparsify(function, Array(DTYPES["fp64"], x.values.real.astype(np.float64)), k)


def sparse(clause, name, description, sparsifying):
    """Return a violation with another message of a tensor."""
    return changed(clause, name, description, ("adapter.collectives.sparsify", sparsifying))


def _message(x, places):
    flat = x.values.reshape(-1)
    rest = flat.copy()
    rest[places] = 0
    return Sparse(Array(DTYPES["int64"], places), Array(x.dtype, flat[places]), Array(x.dtype, rest.reshape(x.shape)))


CHOSEN = [
    choosing("COLL-02.5-05", "least_integer_lost", "takes the magnitude of the least integer for negative",
        largest(np.abs)),
    choosing("COLL-02.5-05", "magnitudes_in_fp32", "compares magnitudes in fp32",
        largest(lambda x: np.abs(x.astype(np.float32)))),
    sparse("COLL-02.5-05", "negative_k", "sends nothing where k is negative",
        lambda function, x, k: sparsify(function, x, max(k, 0))),
    sparse("COLL-02.5-05", "nan_lost", "takes NaN for 0", without_nan),
    sparse("COLL-02.5-05", "any_dtype", "takes truth values and complex numbers for real ones", of_bool),
    choosing("COLL-02.5-09", "by_size", "gives the largest element first", in_order_of_size),
    reported("COLL-02.5-09", "int32_indices", "gives indices as int32",
        lambda x, sent: replace(sent, indices=Array(DTYPES["int32"], sent.indices.values.astype(np.int32)))),
    reported("COLL-02.5-09", "magnitudes_sent", "sends magnitudes",
        lambda x, sent: replace(sent, values=Array(sent.values.dtype, np.abs(sent.values.values)))),
]  # fmt: skip


# The receiver's result of a message


def dense(clause, name, description, densifying):
    """Return a violation with another tensor of a message."""
    return changed(clause, name, description, ("adapter.collectives.densify", densifying))


def with_the_first(function, indices, values, shape):
    found = densify(function, indices, values, shape)
    if values.values.size == 0:
        return found
    flat = np.full(found.values.size, values.values[0])
    flat[indices.values] = values.values
    return Array(found.dtype, flat.reshape(found.shape))


def added(function, indices, values, shape):
    try:
        return densify(function, indices, values, shape)
    except Failure:
        flat = np.zeros(int(np.prod(shape)), values.dtype.carrier)
        if indices.shape != values.shape or indices.dtype.name != "int64" or (abs(indices.values) >= flat.size).any():
            raise
        np.add.at(flat, indices.values, values.values)
        return Array(values.dtype, flat.reshape(tuple(shape)))


def within_the_shape(function, indices, values, shape):
    kept = (indices.values >= 0) & (indices.values < int(np.prod(shape)))
    if indices.shape != values.shape:
        return densify(function, indices, values, shape)
    return densify(
        function, Array(indices.dtype, indices.values[kept]), Array(values.dtype, values.values[kept]), shape
    )


def as_many_as_both(function, indices, values, shape):
    count = min(indices.values.size, values.values.size)
    first = [Array(array.dtype, array.values.reshape(-1)[:count]) for array in (indices, values)]
    return densify(function, first[0], first[1], shape)


def by_any_index(function, indices, values, shape):
    return densify(function, Array(DTYPES["int64"], indices.values.astype(np.int64)), values, shape)


DENSE = [
    dense("COLL-02.5-09", "omitted_is_the_first", "puts the first value where no index points", with_the_first),
    dense("COLL-02.5-09", "duplicates_add_up", "adds up the values of one index, in any order", added),
    dense("COLL-02.5-09", "outside_passed_over", "passes over indices outside of the shape", within_the_shape),
    dense("COLL-02.5-09", "shorter_list", "takes as many entries as both lists have", as_many_as_both),
    dense("COLL-02.5-09", "any_indices", "takes indices of any dtype", by_any_index),
    dense("COLL-02.5-09", "flat_output", "gives a flat tensor", lambda function, indices, values, shape: Array(
        values.dtype, densify(function, indices, values, shape).values.reshape(-1)
    )),
]  # fmt: skip
