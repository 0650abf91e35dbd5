"""Ziv's test: from an estimate with a known error bound to the correctly rounded value.

If a function's value lies between two numbers that round to the same result, that result is the correctly rounded one,
since rounding is monotone. Where they differ, about once in 10^5 elements, the function is enclosed by mpmath in ever
narrower rational intervals until both ends round alike. `elementary` supplies the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import count
from typing import Any, TypeAlias

import mpmath.libmp as mp
import numpy as np
import numpy.typing as npt

from .formats import DType
from .rounding import Overflow, round_exact, round_to

__all__ = ["Enclose", "Estimate", "EstimatePair", "enclosure", "rational", "round_estimate", "round_estimate_pair"]

Float64s: TypeAlias = npt.NDArray[np.float64]
Estimate: TypeAlias = Callable[[Float64s], Float64s]
EstimatePair: TypeAlias = Callable[[Float64s], tuple[Float64s, Float64s, npt.NDArray[Any]]]
Enclose: TypeAlias = Callable[[float, int], tuple[Fraction, Fraction]]

_CHUNK = 1 << 13
"""Elements handled at once, so that the dozen temporaries of an estimate stay in cache; no result depends on it."""


def round_estimate(
    values: npt.NDArray[np.floating[Any]],
    dtype: DType,
    estimate: Estimate,
    margin: float,
    enclose: Enclose,
    overflow: Overflow = "saturate",
) -> npt.NDArray[Any]:
    """Evaluate a function of `values`, correctly rounded to `dtype`, of at most 24 significand bits; same shape.

    `estimate` is within a relative `margin` of the function, `margin` having room for two roundings of float64.
    """

    def rounded(exact: Float64s) -> npt.NDArray[Any]:
        near = estimate(exact)
        lower = round_to(near * (1.0 - margin), dtype, overflow)
        upper = round_to(near * (1.0 + margin), dtype, overflow)
        doubtful = (lower != upper) & ~(np.isnan(lower) & np.isnan(upper))
        _settle(lower, np.flatnonzero(doubtful), exact, dtype, enclose, overflow)
        return lower

    return _chunked(values, dtype, rounded)


def round_estimate_pair(
    values: npt.NDArray[np.floating[Any]], dtype: DType, estimate: EstimatePair, margin: float, enclose: Enclose
) -> npt.NDArray[Any]:
    """Evaluate a function of `values`, correctly rounded to fp64, the `dtype`; same shape.

    `estimate` gives (high, low, exponent) with (high + low) * 2**exponent within a relative `margin` of the function,
    and high the float64 nearest high + low, itself far from overflow and underflow.
    """

    def rounded(exact: Float64s) -> npt.NDArray[Any]:
        high, low, exponent = estimate(exact)
        slack = high * margin
        lower, upper = high + (low - slack), high + (low + slack)
        result = np.ldexp(lower, exponent)
        # Scaling is exact unless it leaves the normal range; there, compare after scaling, with a whole ulp to spare.
        normal = (np.abs(result) >= 2 * dtype.min_normal) & (np.abs(result) < dtype.max_finite)
        certain = lower == upper
        if not normal.all():
            below, above = (np.ldexp(high * (1.0 + ulp), exponent) for ulp in (-(2.0**-52), 2.0**-52))
            certain = np.where(normal, certain, below == above)
        _settle(result, np.flatnonzero(~certain & ~np.isnan(high)), exact, dtype, enclose, "saturate")
        return result

    return _chunked(values, dtype, rounded)


def enclosure(function: Callable[[Any, int, str], Any]) -> Enclose:
    """Turn a function of `mpmath.libmp`, of signature (x, precision, rounding), into bounds around its value.

    It is trusted to 2**-(precision - 8), relatively; its documented error is a few units of its last bit.
    """

    def enclose(x: float, precision: int) -> tuple[Fraction, Fraction]:
        near = rational(function(mp.from_float(x, 53, "n"), precision, "n"))
        slack = abs(near) * Fraction(1, 1 << (precision - 8))
        return near - slack, near + slack

    return enclose


def rational(number: Any) -> Fraction:
    """Return the exact value of a finite number of `mpmath.libmp`."""
    sign, mantissa, exponent, _ = number
    return Fraction(-int(mantissa) if sign else int(mantissa)) * Fraction(2) ** int(exponent)


def _settle(
    result: npt.NDArray[Any],
    doubtful: npt.NDArray[np.intp],
    exact: Float64s,
    dtype: DType,
    enclose: Enclose,
    overflow: Overflow,
) -> None:
    """Replace the `doubtful` elements of `result` by what narrowing enclosures decide."""
    for i in doubtful:
        result[i] = _by_enclosure(float(exact[i]), dtype, enclose, overflow)


def _by_enclosure(x: float, dtype: DType, enclose: Enclose, overflow: Overflow) -> float:
    for doublings in count():
        lower, upper = (round_exact(bound, dtype, overflow) for bound in enclose(x, 100 << doublings))
        if lower == upper or (lower != lower and upper != upper):
            return lower
    raise AssertionError("unreachable")


def _chunked(
    values: npt.NDArray[np.floating[Any]], dtype: DType, function: Callable[[Float64s], npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    flat = np.ascontiguousarray(values).reshape(-1)
    result = np.empty(flat.shape, dtype.carrier)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _CHUNK):
            chunk = slice(start, start + _CHUNK)
            result[chunk] = function(flat[chunk].astype(np.float64))
    return result.reshape(np.shape(values))
