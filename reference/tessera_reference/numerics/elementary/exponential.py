"""exp, exp2, expm1, sinh, cosh, tanh and erf."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..kernels import take
from ..ziv import (
    Approximation,
    Definition,
    Float64s,
    Int64s,
    Pair,
    add_float,
    by_mpmath,
    divide,
    enclosure,
    fast_two_sum,
    leading_bits,
    mp,
    multiply_float,
    nearest,
    nearest_pair,
    pairs_of,
    power_of_two,
    rational,
    two_product,
    two_sum,
    where,
)
from . import estimates
from .tables import BITS, LN2, rounded_function

# exp, exp2 and expm1; the hyperbolic functions and pow build on `exp_parts`.
#
# Table-driven after Tang (1989, 1992): x = k ln2/64 + r with |r| <= ln2/128, and with j = k mod 64 exp(x) = 2**(k //
# 64) * 2**(j/64) * exp(r), the middle factor from a table of pairs and expm1(r) by its Taylor series.


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
    power, power_low = take(table, index & 63), take(table_low, index & 63)
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
    ln2 = mp().mpf_ln2(BITS)
    powers = (rational(mp().mpf_exp(mp().mpf_mul(ln2, mp().from_rational(j, 64, BITS)), BITS, "n")) for j in range(64))
    return pieces, nearest(1 / step), pairs_of(powers)


def _approximate_exp(x: Float64s) -> Approximation:
    parts = exp_parts(estimates.clip(x, 750.0))
    return Approximation(parts.high, parts.low, parts.exponent)


def _approximate_exp2(x: Float64s) -> Approximation:
    x = estimates.clip(x, 1100.0)
    k = np.rint(64.0 * x)
    parts = _from_reduced(k, *multiply_float(nearest_pair(LN2), x - k * (1 / 64)))
    return Approximation(parts.high, parts.low, parts.exponent)


def _approximate_expm1(x: Float64s) -> Approximation:
    parts = exp_parts(np.where(x < -50.0, -50.0, estimates.clip(x, 750.0)))
    high, low = parts.less_one()
    return Approximation(np.where(x == 0.0, x, high), low, parts.exponent)


def _exact_exp2(x: float) -> Fraction | None:
    """Return the value if x is whole, since 2 to the power of any other fraction n / 2**f is irrational."""
    return Fraction(2) ** int(x) if x == int(x) else None


def _enclosed_exp2(x: Any, precision: int) -> Any:
    return mp().mpf_exp(mp().mpf_mul(x, mp().mpf_ln2(precision + 20)), precision, "n")


def _enclosed_expm1(x: Any, precision: int) -> Any:
    lost = max(0, -(x[2] + x[3]))  # exp(x) - 1 is about x
    return mp().mpf_sub(mp().mpf_exp(x, precision + lost + 10, "n"), mp().fone, precision, "n")


# By Hermite and Lindemann, exp and expm1 of a rational number other than 0 are irrational: no exact cases.
_EXP = Definition(_approximate_exp, 2.0**-72, by_mpmath("mpf_exp"), estimates.exp)
exp = rounded_function("exp", _EXP, "The exponential function: exp(-inf) = +0.")
_EXP2 = Definition(_approximate_exp2, 2.0**-72, enclosure(_enclosed_exp2, _exact_exp2), estimates.exp2)
exp2 = rounded_function("exp2", _EXP2, "2 to the power of x: exp2(-inf) = +0.")
_EXPM1 = Definition(_approximate_expm1, 2.0**-65, enclosure(_enclosed_expm1), estimates.expm1)
expm1 = rounded_function("expm1", _EXPM1, "exp(x) - 1: expm1(-0) = -0, expm1(-inf) = -1.")

# sinh, cosh and tanh, from exp(|x|) and expm1(|x|) in pairs.
#
# With E = exp(|x|) and M = expm1(|x|): sinh = (M + M/E)/2 and cosh = (E + 1/E)/2; and for 2|x| in place of |x| tanh =
# M/(E + 1). All sums have terms of one sign, so that nothing is lost near 0.


# Below, E = 2**e * (high + low) and M = 2**e * less_one, so that M/E needs no scaling and 1/E scales by 2**-e.


def _approximate_sinh(x: Float64s) -> Approximation:
    parts = exp_parts(np.abs(estimates.clip(x, 750.0)))
    less_one = parts.less_one()
    inverse = scale_below_one(-parts.exponent)
    quotient = divide(less_one, (parts.high, parts.low))
    high, low = fast_two_sum(less_one[0], quotient[0] * inverse)
    high, low = fast_two_sum(high, low + (less_one[1] + quotient[1] * inverse))
    sign = np.copysign(1.0, x)
    return Approximation(sign * high, sign * low, parts.exponent - 1)


def _approximate_cosh(x: Float64s) -> Approximation:
    parts = exp_parts(np.abs(estimates.clip(x, 750.0)))
    inverse = divide((scale_below_one(-2 * parts.exponent), 0.0), (parts.high, parts.low))
    high, low = two_sum(parts.high, inverse[0])
    high, low = fast_two_sum(high, low + (parts.low + inverse[1]))
    return Approximation(high, low, parts.exponent - 1)


def _approximate_tanh(x: Float64s) -> Approximation:
    parts = exp_parts(2.0 * np.abs(estimates.clip(x, 30.0)))
    plus_one = add_float((parts.high, parts.low), scale_below_one(-parts.exponent))
    high, low = divide(parts.less_one(), plus_one)
    sign = np.copysign(1.0, x)
    return Approximation(sign * high, sign * low)


# By Hermite and Lindemann, all three of a rational number other than 0 are irrational: no exact cases.
_SINH = Definition(_approximate_sinh, 2.0**-65, by_mpmath("mpf_sinh"), estimates.sinh)
sinh = rounded_function("sinh", _SINH, "The hyperbolic sine: sinh(-0) = -0, sinh(+-inf) = +-inf.")
_COSH = Definition(_approximate_cosh, 2.0**-72, by_mpmath("mpf_cosh"), estimates.cosh)
cosh = rounded_function("cosh", _COSH, "The hyperbolic cosine: cosh(+-inf) = +inf.")
_TANH = Definition(_approximate_tanh, 2.0**-65, by_mpmath("mpf_tanh"), estimates.tanh)
tanh = rounded_function("tanh", _TANH, "The hyperbolic tangent: tanh(-0) = -0, tanh(+-inf) = +-1.")

# erf, by Taylor series around the nearest multiple of 1/128.
#
# With g(t) = 2/sqrt(pi) exp(-t**2), erf(c + d) = erf(c) + the integral of g from c to c + d. As g' = -2 t g, the
# Taylor coefficients of g at c satisfy (n + 1) g[n+1] = -2 (c g[n] + g[n-1]).


_STEPS, _LAST = 128, 7
"""The steps of the series in one unit of x, and the end of the table, beyond which 1 - erf(x) is below 2**-74."""

_TERMS = 10
_TABLE_BITS = 160


def _approximate_erf(x: Float64s) -> Approximation:
    """Approximate erf(x) within 2**-66, relatively; a tiny x, of which erf is a multiple, is scaled up first."""
    tiny = np.abs(x) < 2.0**-500
    magnitude = np.abs(estimates.clip(np.where(tiny, x * 2.0**400, x), float(_LAST)))
    index = np.rint(_STEPS * np.where(np.isnan(magnitude), 0.0, magnitude)).astype(np.int64)
    d = magnitude - index * (1 / _STEPS)

    value, slope, rest = _coefficients()
    tail = take(rest[-1], index)
    for coefficient in rest[-2::-1]:
        tail = take(coefficient, index) + d * tail
    (first, first_low), (second, second_low) = ([take(part, index) for part in pair] for pair in (value, slope))
    product, product_low = two_product(second, d)
    high, low = fast_two_sum(first, product)
    high, low = fast_two_sum(high, low + (first_low + product_low + second_low * d + d * d * tail))
    sign = np.copysign(1.0, x)
    return Approximation(sign * high, sign * low, np.where(tiny, -400, 0) if tiny.any() else None)


@cache
def _coefficients() -> tuple[Pair, Pair, list[Float64s]]:
    """Return the Taylor coefficients of erf at every multiple of 1/128: two as pairs, the others as float64."""
    rows = [_series(Fraction(i, _STEPS)) for i in range(_LAST * _STEPS + 1)]
    value, slope, *rest = zip(*rows, strict=True)
    return pairs_of(value), pairs_of(slope), [np.array([nearest(element) for element in column]) for column in rest]


def _series(c: Fraction) -> list[Fraction]:
    """Return the Taylor coefficients of erf at c."""
    point = mp().from_rational(c.numerator, c.denominator, _TABLE_BITS)
    gauss = mp().mpf_exp(mp().mpf_neg(mp().mpf_mul(point, point)), _TABLE_BITS, "n")
    scale = mp().mpf_div(mp().from_int(2), mp().mpf_sqrt(mp().mpf_pi(_TABLE_BITS), _TABLE_BITS), _TABLE_BITS, "n")
    g = [Fraction(0), rational(mp().mpf_mul(gauss, scale, _TABLE_BITS, "n"))]
    for n in range(_TERMS - 2):
        g.append(-2 * (c * g[-1] + g[-2]) / (n + 1))
    return [
        rational(mp().mpf_erf(point, _TABLE_BITS, "n")),
        *(coefficient / (n + 1) for n, coefficient in enumerate(g[1:])),
    ]


# erf(x) at a rational number other than 0 is not proven irrational, but no case is known in which it is a midpoint.
_ERF = Definition(_approximate_erf, 2.0**-65, by_mpmath("mpf_erf"), estimates.erf)
erf = rounded_function("erf", _ERF, "The error function: erf(-0) = -0, erf(+-inf) = +-1.")
