"""Kahan's compensated sum, used only where it is selected (canon of arithmetic, "sums")."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["kahan"]

Values: TypeAlias = npt.NDArray[Any]


def kahan(values: Values, axis: int = -1) -> Values:
    """Add along `axis`, which is dropped, carrying each rounding error into the next addition; of nothing, +0.

    s = x[0], c = +0; for each next x: y = x - c; t = s + y; c = (t - s) - y, or +0 where t is not finite, so that an
    infinite sum stays infinite; s = t. Every step is rounded in the type of `values`; complex numbers by component.
    """
    row = np.moveaxis(np.asarray(values), axis, 0)
    if row.size == 0:
        return np.zeros(row.shape[1:], row.dtype)
    total, error = row[0, ...], np.zeros(row.shape[1:], row.dtype)
    with np.errstate(all="ignore"):
        for k in range(1, row.shape[0]):
            corrected = np.asarray(row[k, ...] - error)
            following = np.asarray(total + corrected)
            error = _where_finite(following, np.asarray((following - total) - corrected))
            total = following
    return total


def _where_finite(total: Values, error: Values) -> Values:
    """Return the components of `error` where those of `total` are finite, else +0."""
    if error.dtype.kind == "c":
        result = np.empty_like(error)
        result.real, result.imag = _where_finite(total.real, error.real), _where_finite(total.imag, error.imag)
        return result
    return np.where(np.isfinite(total), error, np.zeros((), error.dtype))
