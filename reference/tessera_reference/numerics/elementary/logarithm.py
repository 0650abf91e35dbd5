"""log, log2 and log1p; pow builds on `log_pair`.

Table-driven after Tang (1990): x = 2**e * m with m between sqrt(1/2) and sqrt(2), and c a number of 11 bits near 1/m,
so that r = m c - 1 is exact in a pair and |r| < 2**-7. Then log(x) = e ln2 - log(c) + log1p(r). For m within 2**-8 of 1
c is 1, and the result keeps its relative accuracy down to the smallest r.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import frexp
from typing import Any

import numpy as np

from .. import libmp as mp
from ..double_double import (
    Float64s,
    Pair,
    add_float,
    fast_two_sum,
    leading_bits,
    multiply,
    nearest,
    nearest_pair,
    pairs_of,
    two_product,
    two_sum,
)
from ..formats import DType
from ..rounding import Overflow
from ..ziv import Approximation, Definition, Values, correctly_rounded, enclosure, rational
from .constants import BITS, LN2
from .tables import elementary_function

__all__ = ["log", "log1p", "log2", "log_pair"]


@elementary_function
def log(values: Values, dtype: DType, overflow: Overflow) -> Values:
    """Return the natural logarithm: log(1) = +0, log(+-0) = -inf, of a negative number NaN."""
    return correctly_rounded(_LOG, dtype, overflow, values)


@elementary_function
def log2(values: Values, dtype: DType, overflow: Overflow) -> Values:
    """Return the logarithm to base 2: log2(1) = +0, log2(+-0) = -inf, of a negative number NaN."""
    return correctly_rounded(_LOG2, dtype, overflow, values)


@elementary_function
def log1p(values: Values, dtype: DType, overflow: Overflow) -> Values:
    """Return log(1 + x): log1p(-0) = -0, log1p(-1) = -inf, below -1 NaN."""
    return correctly_rounded(_LOG1P, dtype, overflow, values)


def log_pair(x: Float64s, x_low: Float64s | None = None) -> Pair:
    """Approximate log(x + x_low) within 2**-75, relatively, for positive finite pairs."""
    exponent, (high, low) = _exponent_and_rest(x, x_low)
    ln2, ln2_low = _ln2_pieces()
    total, total_low = two_sum(exponent * ln2, high)
    return fast_two_sum(total, total_low + (low + exponent * ln2_low))


def _exponent_and_rest(x: Float64s, x_low: Float64s | None) -> tuple[Float64s, Pair]:
    """Return e, a whole number, and log(m), for x + x_low = 2**e * m."""
    m, exponent = np.frexp(x)
    small = m < 0.7071067811865476
    m = np.where(small, 2.0 * m, m)
    exponent = np.where(small, exponent - 1, exponent)
    m_low = None if x_low is None else np.ldexp(x_low, -exponent)

    in_domain = (m > 0.0) & np.isfinite(m)
    index = np.rint(128.0 * np.where(in_domain, m, 1.0)).astype(np.int64)  # from 91 to 181
    inverse, minus_log, minus_log_low = (column[index] for column in _inverses())
    product, product_low = two_product(m, inverse)
    r, r_low = fast_two_sum(product - 1.0, product_low if m_low is None else product_low + m_low * inverse)
    series, series_low = _log1p_series(r, r_low)
    high, low = two_sum(minus_log, series)
    return exponent.astype(np.float64), fast_two_sum(high, low + (minus_log_low + series_low))


def _log1p_series(r: Float64s, r_low: Float64s) -> Pair:
    """Return log1p(r) = r - r**2/2 + r**3/3 + tail, |r| < 2**-7.2; the tail, below 2**-23 r, needs no second part."""
    square, square_low = two_product(r, r)
    square_low = square_low + 2.0 * r * r_low
    third, third_low = nearest_pair(Fraction(1, 3))
    r_third, r_third_low = two_product(r, third)
    cube, cube_low = two_product(square, r_third)
    cube_low = cube_low + (square * (r_third_low + r * third_low + r_low * third) + square_low * r_third)
    tail = -1 / 4 + r * (1 / 5 + r * (-1 / 6 + r * (1 / 7 + r * (-1 / 8 + r * (1 / 9 + r * (-1 / 10 + r * (1 / 11)))))))
    high, low = fast_two_sum(r, -0.5 * square)
    high, cube_error = fast_two_sum(high, cube)
    rest = (r_low - 0.5 * square_low) + cube_low + square * square * tail
    return fast_two_sum(high, low + cube_error + rest)


@cache
def _inverses() -> tuple[Float64s, Float64s, Float64s]:
    """Return for index i near 128 m a number c of 11 bits near 128 / i, and -log(c) as a pair; 1 and 0 at 128."""
    inverses = [Fraction(round(Fraction(1 << 17, i)), 1024) if i > 90 else Fraction(1) for i in range(182)]
    logs = (rational(mp.mpf_log(mp.from_rational(c.numerator, c.denominator, BITS), BITS, "n")) for c in inverses)
    return np.array([float(c) for c in inverses]), *pairs_of(-each for each in logs)


@cache
def _ln2_pieces() -> tuple[float, float]:
    """Return ln2 in two pieces, of which the first has 42 bits, so that its product with an exponent is exact."""
    first = leading_bits(LN2, 42)
    return float(first), nearest(LN2 - first)


@cache
def _log2_of_e() -> tuple[float, float]:
    return nearest_pair(1 / LN2)


def _approximate_log(x: Float64s) -> Approximation:
    return _with_limits(x, log_pair(x))


def _approximate_log2(x: Float64s) -> Approximation:
    exponent, rest = _exponent_and_rest(x, None)
    return _with_limits(x, add_float(multiply(rest, _log2_of_e()), exponent))


def _approximate_log1p(x: Float64s) -> Approximation:
    total, error = two_sum(1.0, x)
    error = np.where(np.isfinite(x), error, 0.0)
    high, low = _with_limits(total, log_pair(total, error))[:2]
    return Approximation(np.where(x == 0.0, x, high), low)


def _with_limits(x: Float64s, value: Pair) -> Approximation:
    """Put the limits of the logarithm at 0 and infinity, and its domain, into an approximation."""
    high = np.where(x == np.inf, np.inf, np.where(x == 0.0, -np.inf, value[0]))
    return Approximation(np.where(x < 0.0, np.nan, high), value[1])


def _exact_log2(x: float) -> Fraction | None:
    """2 to the power of a fraction is irrational, so that only powers of 2 have rational logarithms."""
    fraction, exponent = frexp(x)
    return Fraction(exponent - 1) if fraction == 0.5 else None


def _enclosed_log(x: Any, precision: int) -> Any:
    return mp.mpf_log(x, precision, "n")


def _enclosed_log2(x: Any, precision: int) -> Any:
    return mp.mpf_div(mp.mpf_log(x, precision + 10, "n"), mp.mpf_ln2(precision + 10), precision, "n")


def _enclosed_log1p(x: Any, precision: int) -> Any:
    return mp.mpf_log(mp.mpf_add(mp.fone, x), precision, "n")  # without a precision the sum is exact


# By Hermite and Lindemann, log and log1p have no rational value but log(1): no exact cases.
_LOG = Definition(_approximate_log, 2.0**-72, enclosure(_enclosed_log))
_LOG2 = Definition(_approximate_log2, 2.0**-72, enclosure(_enclosed_log2, _exact_log2))
_LOG1P = Definition(_approximate_log1p, 2.0**-72, enclosure(_enclosed_log1p))
