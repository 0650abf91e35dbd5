"""log, log2, log1p and pow."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import frexp, isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import broadcast_shape
from ..formats import DType
from ..kernels import take
from ..rounding import Overflow
from ..ziv import (
    Approximation,
    Definition,
    Float64s,
    Pair,
    Values,
    add_float,
    by_mpmath,
    correctly_rounded,
    enclosure,
    fast_two_sum,
    mp,
    multiply,
    multiply_float,
    nearest_pair,
    pairs_of,
    rational,
    two_product,
    two_sum,
)
from . import estimates
from .exponential import exp_parts
from .tables import BITS, LN2, check_operand, rounded_function

# log, log2 and log1p; pow builds on `log_pair`.
#
# Table-driven after Tang (1990): x = 2**e * m with m between sqrt(1/2) and sqrt(2), and c a number of 11 bits near
# 1/m, so that r = m c - 1 is exact in a pair and |r| < 2**-7. Then log(x) = e ln2 - log(c) + log1p(r). For m within
# 2**-8 of 1 c is 1, and the result keeps its relative accuracy down to the smallest r.


def log_pair(x: Float64s, x_low: Float64s | None = None) -> Pair:
    """Approximate log(x + x_low) within 2**-75, relatively, for positive finite pairs."""
    exponent, (high, low) = _exponent_and_rest(x, x_low)
    ln2, ln2_low = estimates.ln2_pieces()
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
    inverse, minus_log, minus_log_low = (take(column, index) for column in _inverses())
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
    logs = (rational(mp().mpf_log(mp().from_rational(c.numerator, c.denominator, BITS), BITS, "n")) for c in inverses)
    return np.array([float(c) for c in inverses]), *pairs_of(-log for log in logs)


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
    """Return the value for a power of 2, since no other number has a rational logarithm."""
    fraction, exponent = frexp(x)
    return Fraction(exponent - 1) if fraction == 0.5 else None


def _enclosed_log2(x: Any, precision: int) -> Any:
    return mp().mpf_div(mp().mpf_log(x, precision + 10, "n"), mp().mpf_ln2(precision + 10), precision, "n")


def _enclosed_log1p(x: Any, precision: int) -> Any:
    return mp().mpf_log(mp().mpf_add(mp().fone, x), precision, "n")  # without a precision the sum is exact


# By Hermite and Lindemann, log and log1p have no rational value but log(1): no exact cases.
_LOG = Definition(_approximate_log, 2.0**-72, by_mpmath("mpf_log"), estimates.log)
log = rounded_function("log", _LOG, "The natural logarithm: log(1) = +0, log(+-0) = -inf, below 0 NaN.")
_LOG2 = Definition(_approximate_log2, 2.0**-72, enclosure(_enclosed_log2, _exact_log2), estimates.log2)
log2 = rounded_function("log2", _LOG2, "The logarithm to base 2: log2(1) = +0, log2(+-0) = -inf, below 0 NaN.")
_LOG1P = Definition(_approximate_log1p, 2.0**-72, enclosure(_enclosed_log1p), estimates.log1p)
log1p = rounded_function("log1p", _LOG1P, "log(1 + x): log1p(-0) = -0, log1p(-1) = -inf, below -1 NaN.")

# pow(x, y) = exp(y log|x|), in pairs, with the sign and the special cases of IEEE 754-2019, 9.2.1.
#
# |y log|x|| is at most 750 where the result is a number of any type, and log is known within 2**-75, so that the
# product's error, which is the result's relative error, is below 2**-67.


_LIMIT = 1100.0
"""The limit beyond which exponentials are past the range of every type."""


def pow(values: Values, exponents: Values, dtype: DType, overflow: Overflow = "saturate") -> Values:
    """Return `values` to the power of `exponents`, element by element; the shapes broadcast by NumPy's rules.

    pow(x, +-0) = pow(1, y) = 1 even for NaN; a negative number to a power that is not whole is NaN. Both operands are
    numbers of `dtype` in its carrier. Raises as the functions of one operand do, `ShapeMismatch`, and `TooLarge`.
    """
    for operand in (values, exponents):
        check_operand("pow", operand, dtype, overflow)
    shape = broadcast_shape("pow", values.shape, exponents.shape)
    return correctly_rounded(_POW, dtype, overflow, *(np.broadcast_to(array, shape) for array in (values, exponents)))


def _approximate_pow(x: Float64s, y: Float64s) -> Approximation:
    magnitude = np.abs(x)
    endless = (magnitude == 0.0) | (magnitude == np.inf)
    # Where x is not 1, |log x| > 2**-54, so that beyond 2**65 any y gives overflow, underflow or, for 1, 1.
    power = np.where(np.abs(y) > 2.0**65, np.copysign(2.0**65, y), y)
    exponent, exponent_low = multiply_float(log_pair(np.where(endless, 2.0, magnitude)), power)
    beyond = np.abs(exponent) > _LIMIT
    exponent = np.where(beyond, np.copysign(_LIMIT, exponent), exponent)
    parts = exp_parts(exponent, np.where(beyond, 0.0, exponent_low))

    whole, odd = _is_whole(y)
    limit = np.where((magnitude > 1.0) == (y > 0.0), np.inf, 0.0)
    high = np.where(endless & ~np.isnan(y), limit, parts.high)
    high = np.where((x < 0.0) & ~whole & ~endless, np.nan, high)
    sign = np.where(np.signbit(x) & odd, -1.0, 1.0)
    one = (y == 0.0) | (x == 1.0)
    return Approximation(
        np.where(one, 1.0, sign * high), np.where(one, 0.0, sign * parts.low), np.where(one, 0, parts.exponent)
    )


def _is_whole(y: Float64s) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return a mask of the whole numbers, infinity included, and a mask of the odd ones."""
    whole = np.rint(y) == y
    half = 0.5 * y
    return whole, whole & (np.rint(half) != half)


def _exact_pow(x: float, y: float) -> Fraction | None:
    """Return x**y if it is a number of few bits, as every midpoint is.

    With |x| = m 2**e, m odd, a fraction n / 2**f as power needs f exact square roots; and of what remains a negative
    power is a binary fraction only if m is 1. A power of m > 1 beyond 64 bits is no midpoint and goes unnamed.
    """
    power, base = Fraction(y), Fraction(abs(x))
    exponent = _trailing_zeros(base.numerator) - _trailing_zeros(base.denominator)
    odd = int(base / Fraction(2) ** exponent)
    while power.denominator > 1:
        root = isqrt(odd)
        if exponent % 2 or root * root != odd:
            return None
        odd, exponent, power = root, exponent // 2, power * 2
    n = int(power)
    if odd > 1 and (n < 0 or n * (odd.bit_length() - 1) > 64):
        return None
    sign = -1 if x < 0 and n % 2 else 1
    return sign * Fraction(odd) ** n * Fraction(2) ** (exponent * n)


def _trailing_zeros(number: int) -> int:
    return (number & -number).bit_length() - 1


def _enclosed_pow(x: Any, y: Any, precision: int) -> Any:
    """Enclose x**y; for a negative x, y is whole, and its last bit decides the sign."""
    exponent = mp().mpf_mul(y, mp().mpf_log(mp().mpf_abs(x), precision + 20, "n"))
    magnitude = mp().mpf_exp(exponent, precision, "n")
    negative = x[0] and y[2] == 0  # mpf values are normal: an odd mantissa times 2**y[2]
    return mp().mpf_neg(magnitude) if negative else magnitude


_POW = Definition(_approximate_pow, 2.0**-66, enclosure(_enclosed_pow, _exact_pow), estimates.pow)
