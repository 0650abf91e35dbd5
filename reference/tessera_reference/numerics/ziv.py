"""Ziv's test: from an approximation with a known error bound to the correctly rounded value (Ziv, 1991).

If a function's value lies between two numbers that round to the same result, that result is the correctly rounded one,
since rounding is monotone. Where they differ, in less than one element of a thousand, the function is enclosed by
mpmath in ever narrower rational intervals until both ends round alike.

This terminates: the ends round alike eventually unless the value itself is a midpoint between two results (or the end
of a type's range). A midpoint has few significant bits, so only an *exact* case can be one, and its enclosure is a
single number. `elementary` lists the exact cases of each function. Values next to a number of the type, such as
sin(x) for tiny x, or exp(x) = 1 + x + ..., are far from every midpoint and decided at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from . import libmp as mp
from .double_double import Float64s, Int64s
from .formats import DType
from .rounding import Overflow, round_exact, round_to

__all__ = ["Approximation", "Definition", "correctly_rounded", "enclosure", "rational"]

Values: TypeAlias = npt.NDArray[Any]
Interval: TypeAlias = tuple[Fraction, Fraction]

_CHUNK = 1 << 13
"""Elements handled at once, so that the dozens of temporaries stay in cache; no result depends on it."""

_SINGLE_MARGIN = 2.0**-50
"""For results of at most 24 bits: room for an approximation's own margin and for three roundings of float64."""

_FIRST_PRECISION, _DOUBLINGS = 100, 9


class Approximation(NamedTuple):
    """Numbers (high + low) * 2**exponent, high being the float64 nearest high + low; no exponent is 0.

    Where high is 0, infinite or NaN, it is the function's value and low is ignored. An exponent of None also
    says that where high is below 2**-960 the value lies within 2**-60 of high, relatively.
    """

    high: Float64s
    low: Float64s
    exponent: Int64s | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A function as Ziv's test needs it.

    `approximate` takes one float64 array an operand and is within `margin` <= 2**-60 of the value, relatively.
    `enclose` takes a precision and one float an operand and returns bounds about 2**-precision apart, relatively, or
    twice the value itself where that is known exactly. It is not called where the approximation is 0 or not finite.
    """

    approximate: Callable[..., Approximation]
    margin: float
    enclose: Callable[..., Interval]


def correctly_rounded(definition: Definition, dtype: DType, overflow: Overflow, *operands: Values) -> Values:
    """Evaluate a function of operands of one shape, taken as exact, correctly rounded to a float `dtype`."""
    flat = [np.ascontiguousarray(operand).reshape(-1) for operand in operands]
    result = np.empty(flat[0].shape, dtype.carrier)
    decide = _decide_double if dtype.name == "fp64" else _decide_single
    with np.errstate(all="ignore"):
        for start in range(0, result.size, _CHUNK):
            chunk = slice(start, start + _CHUNK)
            exact = [operand[chunk].astype(np.float64) for operand in flat]
            found, doubtful = decide(definition.approximate(*exact), definition.margin, dtype, overflow)
            for i in doubtful:
                x = [float(operand[i]) for operand in exact]
                found[i] = _by_enclosure(definition.enclose, x, dtype, overflow)
            result[chunk] = found
    return result.reshape(np.shape(operands[0]))


def enclosure(
    function: Callable[..., Any], exact: Callable[..., Fraction | None] = lambda *operands: None
) -> Callable[..., Interval]:
    """Turn a function of `mpmath.libmp`, of signature (x, ..., precision), into bounds around its value.

    It is trusted to 2**-(precision - 8), relatively; its documented error is a few units of its last bit. `exact`
    gives the value where it may be a midpoint between two floats, else None.
    """

    def enclose(precision: int, *x: float) -> Interval:
        known = exact(*x)
        if known is not None:
            return known, known
        near = rational(function(*(mp.from_float(each, 53, "n") for each in x), precision))
        slack = abs(near) * Fraction(1, 1 << (precision - 8))
        return near - slack, near + slack

    return enclose


def rational(number: Any) -> Fraction:
    """Return the exact value of a finite number of `mpmath.libmp`."""
    sign, mantissa, exponent, _ = number
    return Fraction(-int(mantissa) if sign else int(mantissa)) * Fraction(2) ** int(exponent)


def _decide_single(
    near: Approximation, _margin: float, dtype: DType, overflow: Overflow
) -> tuple[Values, npt.NDArray[np.intp]]:
    """Round to a type of at most 24 bits; return the results and the indices of those still open."""
    value = near.high if near.exponent is None else np.ldexp(near.high, near.exponent)
    lower = round_to(value * (1.0 - _SINGLE_MARGIN), dtype, overflow)
    upper = round_to(value * (1.0 + _SINGLE_MARGIN), dtype, overflow)
    return lower, np.flatnonzero((lower != upper) & ~(np.isnan(lower) & np.isnan(upper)))


def _decide_double(
    near: Approximation, margin: float, dtype: DType, _overflow: Overflow
) -> tuple[Values, npt.NDArray[np.intp]]:
    """Round to fp64; return the results and the indices of those still open."""
    high, low, exponent = near
    slack = high * margin
    lower, upper = high + (low - slack), high + (low + slack)
    settled = ~np.isfinite(high) | (high == 0.0)
    result = np.where(settled, high, lower)
    certain = settled | (lower == upper)
    if exponent is not None:
        result = np.ldexp(result, exponent)
        # Scaling is exact unless it leaves the normal range; there, compare after scaling, with a whole ulp to spare.
        normal = (np.abs(result) >= 2 * dtype.min_normal) & (np.abs(result) < dtype.max_finite)
        if not normal.all():
            below, above = (np.ldexp(high * (1.0 + ulp), exponent) for ulp in (-(2.0**-52), 2.0**-52))
            certain = settled | np.where(normal, certain, below == above)
    return result, np.flatnonzero(~certain)


def _by_enclosure(enclose: Callable[..., Interval], x: list[float], dtype: DType, overflow: Overflow) -> float:
    for doublings in range(_DOUBLINGS):
        lower, upper = (round_exact(bound, dtype, overflow) for bound in enclose(_FIRST_PRECISION << doublings, *x))
        if lower == upper or (lower != lower and upper != upper):
            return lower
    raise AssertionError(f"{x} seems to be an exact case that `enclose` does not know")
