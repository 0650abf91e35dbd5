"""exp, exp2 and expm1; the hyperbolic functions and pow build on `exp_parts`.

Table-driven after Tang (1989, 1992): x = k ln2/64 + r with |r| <= ln2/128, and with j = k mod 64
exp(x) = 2**(k // 64) * 2**(j/64) * exp(r), the middle factor from a table of pairs and expm1(r) by its Taylor series.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import libmp as mp
from ..double_double import (
    Float64s,
    Int64s,
    Pair,
    fast_two_sum,
    leading_bits,
    multiply_float,
    nearest,
    nearest_pair,
    pairs_of,
    power_of_two,
    two_product,
    two_sum,
    where,
)
from ..formats import DType
from ..rounding import Overflow
from ..ziv import Approximation, Definition, Values, correctly_rounded, enclosure, rational
from .constants import BITS, LN2
from .exponential_single import exp_single
from .tables import elementary_function

__all__ = ["ExpParts", "clip", "exp", "exp2", "exp_parts", "expm1", "scale_below_one"]


@elementary_function
def exp(values: Values, dtype: DType, overflow: Overflow) -> Values:
    """Return e to the power of `values`: exp(-inf) = +0."""

    def by_definition(values: Values) -> Values:
        return correctly_rounded(_EXP, dtype, overflow, values)

    return exp_single(values, by_definition) if dtype.storage.name == "fp32" else by_definition(values)


@elementary_function
def exp2(values: Values, dtype: DType, overflow: Overflow) -> Values:
    """Return 2 to the power of `values`: exp2(-inf) = +0."""
    return correctly_rounded(_EXP2, dtype, overflow, values)


@elementary_function
def expm1(values: Values, dtype: DType, overflow: Overflow) -> Values:
    """Return exp(x) - 1: expm1(-0) = -0, expm1(-inf) = -1."""
    return correctly_rounded(_EXPM1, dtype, overflow, values)


class ExpParts(NamedTuple):
    """exp(x) = 2**exponent * (high + low), a pair between 0.99 and 2.

    `series` is expm1(r), which is expm1(x) itself, exponent being 0, where `near_zero`, that is |x| < ln2/128.
    """

    high: Float64s
    low: Float64s
    exponent: Int64s
    series: Pair
    near_zero: npt.NDArray[np.bool_]

    def less_one(self) -> Pair:
        """Return expm1(x) / 2**exponent within 2**-67, relatively: the subtraction loses at most 8 bits."""
        high, low = two_sum(self.high, -scale_below_one(-self.exponent))
        return where(self.near_zero, self.series, fast_two_sum(high, low + self.low))


def exp_parts(x: Float64s, x_low: Float64s | float = 0.0) -> ExpParts:
    """Approximate exp(x + x_low) within 2**-75, relatively, for |x| <= 1100."""
    step, inverse, _ = _reduction()
    k = np.rint(x * inverse)
    # The first two pieces of ln2/64 have 35 bits, and |k| < 2**17, so that k times a piece is exact.
    r, r_low = two_sum(x - k * step[0], -(k * step[1]))
    r, r_low = fast_two_sum(r, (r_low - k * step[2]) + x_low)
    return _from_reduced(k, r, r_low)


def clip(x: Float64s, limit: float) -> Float64s:
    """Move numbers beyond `limit` to it, where the function is past the range of every type or next to its limit."""
    return np.where(x > limit, limit, np.where(x < -limit, -limit, x))


def scale_below_one(exponent: Int64s) -> Float64s:
    """Return 2**exponent, or for an exponent below -1000 the still negligible 2**-1000."""
    return power_of_two(np.maximum(exponent, -1000))  # integers


def _from_reduced(k: Float64s, r: Float64s, r_low: Float64s) -> ExpParts:
    """Return exp(k ln2/64 + r + r_low)."""
    # expm1(r) = r + r**2 / 2 + tail, the first two in pairs; the tail is below 2**-24 and needs no second part.
    square, square_low = two_product(r, r)
    square_low = square_low + 2.0 * r * r_low
    tail = r * square * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720 + r * (1 / 5040 + r * (1 / 40320))))))
    series, series_low = fast_two_sum(r, 0.5 * square)
    series, series_low = fast_two_sum(series, series_low + (r_low + 0.5 * square_low) + tail)

    index = np.where(np.isnan(k), 0.0, k).astype(np.int64)  # a NaN stays one in r
    _, _, (table, table_low) = _reduction()
    power, power_low = table[index & 63], table_low[index & 63]
    product, product_low = two_product(power, series)
    product_low = product_low + power * series_low + power_low * series
    high, low = fast_two_sum(power, product)
    high, low = fast_two_sum(high, low + (power_low + product_low))
    return ExpParts(high, low, index >> 6, (series, series_low), k == 0.0)


@cache
def _reduction() -> tuple[tuple[float, float, float], float, Pair]:
    """Return ln2/64 in three pieces, 64/ln2, and 2**(j/64) for j < 64."""
    step = LN2 / 64
    first = leading_bits(step, 35)
    second = leading_bits(step - first, 35)
    pieces = (float(first), float(second), nearest(step - first - second))
    ln2 = mp.mpf_ln2(BITS)
    powers = (rational(mp.mpf_exp(mp.mpf_mul(ln2, mp.from_rational(j, 64, BITS)), BITS, "n")) for j in range(64))
    return pieces, nearest(1 / step), pairs_of(powers)


def _approximate_exp(x: Float64s) -> Approximation:
    parts = exp_parts(clip(x, 750.0))
    return Approximation(parts.high, parts.low, parts.exponent)


def _approximate_exp2(x: Float64s) -> Approximation:
    x = clip(x, 1100.0)
    k = np.rint(64.0 * x)
    parts = _from_reduced(k, *multiply_float(nearest_pair(LN2), x - k * (1 / 64)))
    return Approximation(parts.high, parts.low, parts.exponent)


def _approximate_expm1(x: Float64s) -> Approximation:
    parts = exp_parts(np.where(x < -50.0, -50.0, clip(x, 750.0)))
    high, low = parts.less_one()
    return Approximation(np.where(x == 0.0, x, high), low, parts.exponent)


def _exact_exp2(x: float) -> Fraction | None:
    """A power of 2 to a fraction n / 2**f is irrational."""
    return Fraction(2) ** int(x) if x == int(x) else None


def _enclosed_exp2(x: Any, precision: int) -> Any:
    return mp.mpf_exp(mp.mpf_mul(x, mp.mpf_ln2(precision + 20)), precision, "n")


def _enclosed_expm1(x: Any, precision: int) -> Any:
    lost = max(0, -(x[2] + x[3]))  # exp(x) - 1 is about x
    return mp.mpf_sub(mp.mpf_exp(x, precision + lost + 10, "n"), mp.fone, precision, "n")


def _enclosed_exp(x: Any, precision: int) -> Any:
    return mp.mpf_exp(x, precision, "n")


# By Hermite and Lindemann, exp and expm1 of a rational number other than 0 are irrational: no exact cases.
_EXP = Definition(_approximate_exp, 2.0**-72, enclosure(_enclosed_exp))
_EXP2 = Definition(_approximate_exp2, 2.0**-72, enclosure(_enclosed_exp2, _exact_exp2))
_EXPM1 = Definition(_approximate_expm1, 2.0**-65, enclosure(_enclosed_expm1))
