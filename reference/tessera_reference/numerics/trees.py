"""Orders of reduction.

Canon of arithmetic ("sums and all-reduce"): the balanced tree of adjacent pairs, y[i] = x[2i] + x[2i+1], an odd tail
carried up unchanged, repeated until one is left; never padded, so that a sum of -0 stays -0 (AMB-RT-24).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Combine", "fold", "pairwise"]

Values: TypeAlias = npt.NDArray[Any]
Combine: TypeAlias = Callable[[Values, Values], Values]


def pairwise(values: Values, axis: int = -1, add: Combine = np.add) -> Values:
    """Combine along `axis`, which is dropped, over the canonical tree; of nothing, +0.

    Every node is computed by `add`, elementwise, hence rounded in the type of `values`.
    """
    row = np.moveaxis(np.asarray(values), axis, 0)
    if row.shape[0] == 0:
        return np.zeros(row.shape[1:], row.dtype)
    with np.errstate(all="ignore"):
        while (n := row.shape[0]) > 1:
            pairs = add(row[0 : n - 1 : 2], row[1:n:2])
            row = np.concatenate([pairs, row[n - 1 :]]) if n % 2 else pairs
    return row[0, ...]


def fold(values: Values, axis: int = -1, add: Combine = np.add) -> Values:
    """Combine along `axis`, which is dropped, from first to last: ((x[0] + x[1]) + x[2]) + ...; of nothing, +0."""
    row = np.moveaxis(np.asarray(values), axis, 0)
    if row.shape[0] == 0:
        return np.zeros(row.shape[1:], row.dtype)
    total = row[0, ...]
    with np.errstate(all="ignore"):
        for term in row[1:]:
            total = np.asarray(add(total, term))
    return total
