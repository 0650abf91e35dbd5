"""max, min and argmax that are wrong at NaN, signed zeros or equal elements (AMB-LANG-104, AMB-LANG-134)."""

import numpy as np

from tessera_reference.graph.reductions import ArgMax, Max, Min
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.trees import fold

from .changes import changed


def reducing(name, description, operation, kind, reduce):
    """Return a violation with another reduction; `reduce` takes the values and an axis from the front."""

    @np.errstate(all="ignore")
    def compute(x, axis, keepdims=False):
        axis %= x.rank
        values = reduce(x.values, axis)
        return Array(kind or x.dtype, np.expand_dims(values, axis) if keepdims else values)

    return changed("LANG-02-04", name, description, (operation, "compute", staticmethod(compute)))


def minmax(name, description, operation, combine):
    """Return a violation with another two-element rule of a maximum or minimum, applied from left to right."""
    return reducing(name, description, operation, None, lambda values, axis: fold(values, axis, combine))


def place(name, description, find):
    """Return a violation with another argmax along the last axis."""
    return reducing(name, description, ArgMax, DTYPES["int32"], lambda values, axis:
        np.asarray(find(np.moveaxis(values, axis, -1)), np.int32))  # fmt: skip


MIN_MAX = [
    minmax("max_of_later_zeros", "keeps the last zero", Max, lambda a, b: np.where((a > b) | np.isnan(a), a, b)),
    minmax("min_of_later_zeros", "keeps the last zero", Min, lambda a, b: np.where((a < b) | np.isnan(a), a, b)),
    place("equal_zeros", "finds -0 as large as +0", lambda x: np.argmax(x, -1)),
]  # fmt: skip
