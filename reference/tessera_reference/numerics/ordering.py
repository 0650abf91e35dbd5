"""The order of numbers behind maximum, minimum and their reductions: a NaN wins, -0 is below +0."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["larger", "largest", "smaller"]

Values: TypeAlias = npt.NDArray[Any]


def larger(a: Values, b: Values) -> Values:
    """Return the larger of each two floats or integers; shapes broadcast."""
    if a.dtype.kind == "i":
        return np.where(a > b, a, b)
    with np.errstate(all="ignore"):
        takes_a = np.isnan(a) | (a > b) | ((a == b) & ~np.signbit(a))
        return np.where(takes_a, a, b)


def smaller(a: Values, b: Values) -> Values:
    """Return the smaller of each two floats or integers; shapes broadcast."""
    if a.dtype.kind == "i":
        return np.where(a < b, a, b)
    with np.errstate(all="ignore"):
        takes_a = np.isnan(a) | (a < b) | ((a == b) & np.signbit(a))
        return np.where(takes_a, a, b)


def largest(values: Values, axis: int) -> Values:
    """Return the largest of the floats along `axis`, which is dropped and not empty: what any tree of `larger` gives.

    The codes of floats, those of negative ones with all other bits inverted, are integers in the same order.
    """
    code = np.dtype(f"i{values.dtype.itemsize}")
    others = np.iinfo(code).max
    keys = values.view(code)
    keys = keys ^ ((keys >> (8 * code.itemsize - 1)) & others)
    highest = keys.max(axis)
    found = (highest ^ ((highest >> (8 * code.itemsize - 1)) & others)).view(values.dtype)
    return np.where(np.isnan(values).any(axis), np.array(np.nan, values.dtype), found)
