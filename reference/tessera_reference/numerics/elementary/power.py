"""pow(x, y) = exp(y log|x|), in pairs, with the sign and the special cases of IEEE 754-2019, 9.2.1.

|y log|x|| is at most 750 where the result is a number of any type, and log is known within 2**-75, so that the
product's error, which is the result's relative error, is below 2**-67.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import libmp as mp
from ..double_double import Float64s, multiply_float
from ..formats import DType
from ..limits import broadcast_shape
from ..rounding import Overflow
from ..ziv import Approximation, Definition, Values, correctly_rounded, enclosure
from .exponential import exp_parts
from .logarithm import log_pair
from .tables import check_operand

__all__ = ["pow"]

_LIMIT = 1100.0
"""Exponentials beyond this are past the range of every type."""


def pow(values: Values, exponents: Values, dtype: DType, overflow: Overflow = "saturate") -> Values:
    """Return `values` to the power of `exponents`, element by element; the shapes broadcast by NumPy's rules.

    pow(x, +-0) = pow(1, y) = 1 even for NaN; a negative number to a power that is not whole is NaN. Both operands are
    numbers of `dtype` in its carrier. Raises as the functions of one operand do, `ShapeMismatch`, and `TooLarge`.
    """
    for operand in (values, exponents):
        check_operand("pow", operand, dtype, overflow)
    shape = broadcast_shape("pow", values.shape, exponents.shape)
    return correctly_rounded(_POW, dtype, overflow, *(np.broadcast_to(each, shape) for each in (values, exponents)))


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
    """Return whether each number is whole, as infinity counts, and whether it is odd."""
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
    exponent = mp.mpf_mul(y, mp.mpf_log(mp.mpf_abs(x), precision + 20, "n"))
    magnitude = mp.mpf_exp(exponent, precision, "n")
    negative = x[0] and y[2] == 0  # mpf values are normal: an odd mantissa times 2**y[2]
    return mp.mpf_neg(magnitude) if negative else magnitude


_POW = Definition(_approximate_pow, 2.0**-66, enclosure(_enclosed_pow, _exact_pow))
