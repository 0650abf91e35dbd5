"""max, min and argmax that are wrong at NaN, signed zeros or equal elements (AMB-LANG-104, AMB-LANG-134)."""

import numpy as np

from tessera_reference.graph import reductions as graph
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.trees import fold

from .changes import changed


def minmax(name, description, operation, combine):
    """Return a violation with another two-element rule of a maximum or minimum, applied from left to right."""

    def compute(x, axis, keepdims=False):
        with np.errstate(all="ignore"):
            values = fold(x.values, axis % x.rank, combine)
        return Array(x.dtype, np.expand_dims(values, axis % x.rank) if keepdims else values)

    return changed("LANG-02-04", name, description, (operation, "compute", staticmethod(compute)))


def place(name, description, find):
    """Return a violation with another argmax along the last axis."""

    def compute(x, axis, keepdims=False):
        with np.errstate(all="ignore"):
            found = np.asarray(find(np.moveaxis(x.values, axis, -1)), np.int32)
        return Array(DTYPES["int32"], np.expand_dims(found, axis % x.rank) if keepdims else found)

    return changed("LANG-02-04", name, description, ("graph.reductions.ArgMax.compute", staticmethod(compute)))


def of_magnitude(x):
    return np.argmax(np.abs(x), -1)


MIN_MAX = [
    minmax("max_of_later_zeros", "keeps the last zero", graph.Max, lambda a, b: np.where((a > b) | np.isnan(a), a, b)),
    minmax("min_of_later_zeros", "keeps the last zero", graph.Min, lambda a, b: np.where((a < b) | np.isnan(a), a, b)),
]  # fmt: skip

PLACES = [place("equal_zeros", "finds -0 as large as +0", lambda x: np.argmax(x, -1))]
