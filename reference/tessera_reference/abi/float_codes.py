"""Single numbers and the codes that they are stored as (canon of arithmetic, "formats").

What `numerics.rounding` and `numerics.encoding` do with arrays, for the few scalars of a launch: there a call into
numpy would cost more than the launch. Every step is exact but the one rounding.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ..numerics.encoding import nan_code
from ..numerics.formats import DType
from ..numerics.rounding import round_exact

__all__ = ["code_of_float", "float_of_code"]


def code_of_float(value: float, dtype: DType) -> int:
    """The code of `value` rounded to nearest even, once; what is too large saturates in fp8, else gives infinity.

    A whole number may be of any size. Every NaN gives the one quiet NaN.
    """
    if type(value) is int and abs(value) > 1 << 53:  # a Python float might not hold it
        value = round_exact(Fraction(value), dtype)
    if value != value:
        return nan_code(dtype)
    negative = math.copysign(1.0, value) < 0
    code = _code_of_magnitude(abs(float(value)), dtype)
    return code | 1 << dtype.bits - 1 if negative else code


def float_of_code(code: int, dtype: DType) -> float:
    """The value that `code`, an unsigned number of `dtype.bits` bits, stands for."""
    fraction = code & (1 << dtype.fraction_bits) - 1
    exponent = code >> dtype.fraction_bits & (1 << dtype.exponent_bits) - 1
    if code & (1 << dtype.bits - 1) - 1 > _largest_code(dtype):
        magnitude = math.inf if dtype.has_infinity and fraction == 0 else math.nan
    else:
        hidden = 1 << dtype.fraction_bits if exponent else 0
        magnitude = math.ldexp(fraction + hidden, max(exponent, 1) - dtype.bias - dtype.fraction_bits)
    return -magnitude if code >> dtype.bits - 1 else magnitude


def _code_of_magnitude(magnitude: float, dtype: DType) -> int:
    largest = _largest_code(dtype)
    beyond = largest if dtype.bits == 8 else largest + 1  # the code of infinity
    if magnitude == 0.0:
        return 0
    if magnitude == math.inf:
        return beyond
    _, exponent = math.frexp(magnitude)
    exponent = max(exponent - 1, dtype.min_exponent)
    significand = round(math.ldexp(magnitude, dtype.fraction_bits - exponent))  # to nearest even
    # The leading bit of a normal significand carries into the exponent field, which therefore starts one lower.
    code = significand + ((exponent - dtype.min_exponent) << dtype.fraction_bits)
    return code if code <= largest else beyond


def _largest_code(dtype: DType) -> int:
    """The code of the largest finite value: below the infinity, or below the one NaN of fp8_e4m3."""
    if dtype.has_infinity:
        return ((1 << dtype.exponent_bits) - 1 << dtype.fraction_bits) - 1
    return nan_code(dtype) - 1
