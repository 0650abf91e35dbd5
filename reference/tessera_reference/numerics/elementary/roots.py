"""sqrt, rsqrt and reciprocal.

sqrt and reciprocal are IEEE 754 operations: in fp32 and fp64 numpy's own. A narrow type of p <= 11 significand bits
takes the float64 result and rounds it again, which is innocuous (Figueroa, 1995). A quotient that is not exact lies at
least 2**-(2p + 2) of itself from every midpoint between results. A square root lies 2**-(2p + 3) away, and float64 errs
by 2**-53. Subnormal results have fewer bits, hence fewer midpoints, and are normal numbers of float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..formats import DType
from ..rounding import Overflow, round_to
from ..ziv import Approximation, Definition, Float64s, Values, enclosure, fast_two_sum, mp, two_product
from .tables import elementary_function, rounded_function


@elementary_function
def sqrt(values: Values, dtype: DType, overflow: Overflow) -> Values:
    """Return the square root: sqrt(-0) = -0, of a negative number NaN."""
    with np.errstate(all="ignore"):
        return round_to(np.sqrt(_wide(values, dtype)), dtype, overflow)


@elementary_function
def reciprocal(values: Values, dtype: DType, overflow: Overflow) -> Values:
    """Return 1/x: reciprocal(+-0) = +-inf, reciprocal(+-inf) = +-0."""
    with np.errstate(all="ignore"):
        return round_to(np.asarray(1 / _wide(values, dtype)), dtype, overflow)


def _wide(values: Values, dtype: DType) -> Values:
    return values.astype(np.float64) if dtype.is_narrow else values


def _approximate_rsqrt(x: Float64s) -> Approximation:
    """Approximate 1/sqrt(x) in pairs, by Newton's iteration from its float64 estimate, for x between 1/2 and 2."""
    fraction, exponent = np.frexp(x)
    odd = exponent & 1
    scaled = np.where(odd == 1, 2.0 * fraction, fraction)
    root = 1.0 / np.sqrt(scaled)
    square, square_low = two_product(root, root)
    product, product_low = two_product(square, scaled)
    residual = (1.0 - product) - (product_low + square_low * scaled)
    high, low = fast_two_sum(root, 0.5 * root * residual)
    special = (x == 0.0) | (x == np.inf)
    return Approximation(np.where(special, 1.0 / x, high), low, (odd.astype(np.int64) - exponent) >> 1)


def _estimate_rsqrt(x: Float64s) -> Float64s:
    """Estimate 1/sqrt(x) by two roundings, within 2**-51, for fp32."""
    return 1.0 / np.sqrt(x)


def _enclosed_rsqrt(x: Any, precision: int) -> Any:
    return mp().mpf_div(mp().fone, mp().mpf_sqrt(x, precision + 10, "n"), precision, "n")


# A rational 1/sqrt(x) = q makes x = 1/q**2 a float only if q is a power of 2, itself a float: no exact midpoints.
_RSQRT = Definition(_approximate_rsqrt, 2.0**-90, enclosure(_enclosed_rsqrt), _estimate_rsqrt)
rsqrt = rounded_function("rsqrt", _RSQRT, "1/sqrt(x): rsqrt(+-0) = +-inf, rsqrt(+inf) = +0, below 0 NaN.")
