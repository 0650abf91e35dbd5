"""sinh, cosh and tanh, from exp(|x|) and expm1(|x|) in pairs.

With E = exp(|x|) and M = expm1(|x|): sinh = (M + M/E)/2 and cosh = (E + 1/E)/2; and for 2|x| in place of |x|
tanh = M/(E + 1). All sums have terms of one sign, so that nothing is lost near 0.
"""

from __future__ import annotations

import numpy as np

from .. import libmp as mp
from ..double_double import Float64s, add_float, divide, fast_two_sum, two_sum
from ..formats import DType
from ..rounding import Overflow
from ..ziv import Approximation, Definition, Values, correctly_rounded, enclosure
from .exponential import clip, exp_parts, scale_below_one
from .tables import elementary_function

__all__ = ["cosh", "sinh", "tanh"]


@elementary_function
def sinh(values: Values, dtype: DType, overflow: Overflow) -> Values:
    """Return the hyperbolic sine: sinh(-0) = -0, sinh(+-inf) = +-inf."""
    return correctly_rounded(_SINH, dtype, overflow, values)


@elementary_function
def cosh(values: Values, dtype: DType, overflow: Overflow) -> Values:
    """Return the hyperbolic cosine: cosh(+-inf) = +inf."""
    return correctly_rounded(_COSH, dtype, overflow, values)


@elementary_function
def tanh(values: Values, dtype: DType, overflow: Overflow) -> Values:
    """Return the hyperbolic tangent: tanh(-0) = -0, tanh(+-inf) = +-1."""
    return correctly_rounded(_TANH, dtype, overflow, values)


# Below, E = 2**e * (high + low) and M = 2**e * less_one, so that M/E needs no scaling and 1/E scales by 2**-e.


def _approximate_sinh(x: Float64s) -> Approximation:
    parts = exp_parts(np.abs(clip(x, 750.0)))
    less_one = parts.less_one()
    inverse = scale_below_one(-parts.exponent)
    quotient = divide(less_one, (parts.high, parts.low))
    high, low = fast_two_sum(less_one[0], quotient[0] * inverse)
    high, low = fast_two_sum(high, low + (less_one[1] + quotient[1] * inverse))
    sign = np.copysign(1.0, x)
    return Approximation(sign * high, sign * low, parts.exponent - 1)


def _approximate_cosh(x: Float64s) -> Approximation:
    parts = exp_parts(np.abs(clip(x, 750.0)))
    inverse = divide((scale_below_one(-2 * parts.exponent), 0.0), (parts.high, parts.low))
    high, low = two_sum(parts.high, inverse[0])
    high, low = fast_two_sum(high, low + (parts.low + inverse[1]))
    return Approximation(high, low, parts.exponent - 1)


def _approximate_tanh(x: Float64s) -> Approximation:
    parts = exp_parts(2.0 * np.abs(clip(x, 30.0)))
    plus_one = add_float((parts.high, parts.low), scale_below_one(-parts.exponent))
    high, low = divide(parts.less_one(), plus_one)
    sign = np.copysign(1.0, x)
    return Approximation(sign * high, sign * low)


# By Hermite and Lindemann, all three of a rational number other than 0 are irrational: no exact cases.
_SINH = Definition(_approximate_sinh, 2.0**-65, enclosure(lambda x, precision: mp.mpf_sinh(x, precision, "n")))
_COSH = Definition(_approximate_cosh, 2.0**-72, enclosure(lambda x, precision: mp.mpf_cosh(x, precision, "n")))
_TANH = Definition(_approximate_tanh, 2.0**-65, enclosure(lambda x, precision: mp.mpf_tanh(x, precision, "n")))
