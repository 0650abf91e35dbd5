"""Elementary functions, correctly rounded in their result type (AMB-LANG-45).

Each is estimated by IEEE-exact operations only, in float64 or, for fp64, in pairs of float64, and then decided by
Ziv's test. So the bits are the same on every machine, and no mathematical library is trusted. So far: exp.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import mpmath.libmp as mp
import numpy as np
import numpy.typing as npt

from .errors import UnsupportedDType
from .formats import DTYPES, DType
from .rounding import Overflow, round_exact
from .ziv import enclosure, rational, round_estimate, round_estimate_pair

__all__ = ["exp"]

Float64s: TypeAlias = npt.NDArray[np.float64]
Pair: TypeAlias = tuple[Float64s, Float64s]


def exp(values: npt.NDArray[np.floating[Any]], dtype: DType, overflow: Overflow = "saturate") -> npt.NDArray[Any]:
    """Return e to the power of `values`, correctly rounded in the float `dtype`; same shape, in `dtype.carrier`.

    exp(-inf) is +0, exp(NaN) is NaN. A result too large is infinity; in fp8 it overflows as a cast does.
    """
    if dtype.kind != "float":
        raise UnsupportedDType("exp", dtype)
    if dtype.name == "fp64":
        return round_estimate_pair(values, dtype, _exp_pair, 2.0**-68, _enclose_exp)
    return round_estimate(values, dtype, _exp_estimate, 2.0**-44, _enclose_exp, overflow)


# Both estimates write x = k ln2/64 + r with |r| <= ln2/128, and exp(x) = 2**(k // 64) * 2**((k % 64) / 64) * exp(r).
# The first two pieces of ln2/64 have 35 bits, and |k| < 2**17, so that k times a piece is exact.


def _exp_estimate(x: Float64s) -> Float64s:
    """Estimate exp(x) within 2**-50 relatively; x is clipped where every type of at most 32 bits is past its range."""
    step, inverse, table, _ = _exp_constants()
    x = np.where(x < -200.0, -200.0, np.where(x > 200.0, 200.0, x))
    k = np.rint(x * inverse)
    r = (x - k * step[0]) - k * step[1]
    expm1 = r * (1.0 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720))))))
    index = _whole(k)
    power = table[index & 63]
    return np.asarray((power + power * expm1) * _power_of_two(index >> 6))


def _exp_pair(x: Float64s) -> tuple[Float64s, Float64s, npt.NDArray[Any]]:
    """Estimate exp(x) = (high + low) * 2**exponent within 2**-73 relatively; x is clipped past the range of fp64."""
    step, inverse, table, table_low = _exp_constants()
    x = np.where(x < -750.0, -750.0, np.where(x > 750.0, 750.0, x))
    k = np.rint(x * inverse)
    r, r_low = _two_sum(x - k * step[0], -(k * step[1]))
    r, r_low = _fast_two_sum(r, r_low - k * step[2])

    # expm1(r) = r + r**2 / 2 + tail, the first two in pairs; the tail is below 2**-24 and needs no second part.
    square, square_low = _two_product(r, r)
    square_low = square_low + 2.0 * r * r_low
    tail = r * square * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720 + r * (1 / 5040 + r * (1 / 40320))))))
    expm1, expm1_low = _two_sum(r, 0.5 * square)
    expm1, expm1_low = _fast_two_sum(expm1, expm1_low + (r_low + 0.5 * square_low) + tail)

    index = _whole(k)
    power, power_low = table[index & 63], table_low[index & 63]
    product, product_low = _two_product(power, expm1)
    product_low = product_low + power * expm1_low + power_low * expm1
    high, low = _two_sum(power, product)
    high, low = _fast_two_sum(high, low + (power_low + product_low))
    return high, low, index >> 6


@cache
def _exp_constants() -> tuple[tuple[float, float, float], float, Float64s, Float64s]:
    """Return ln2/64 in three pieces, 64/ln2, and 2**(j/64) for j < 64 as float64 pairs."""
    step = rational(mp.mpf_ln2(300, "n")) / 64
    first = _leading_bits(step, 35)
    second = _leading_bits(step - first, 35)
    third = step - first - second
    powers = [
        rational(mp.mpf_exp(mp.mpf_mul(mp.mpf_ln2(300), mp.from_rational(j, 64, 300)), 250, "n")) for j in range(64)
    ]
    high = [_nearest(power) for power in powers]
    low = [_nearest(power - Fraction(nearest)) for power, nearest in zip(powers, high, strict=True)]
    return (float(first), float(second), _nearest(third)), _nearest(1 / step), np.array(high), np.array(low)


_enclose_exp = enclosure(mp.mpf_exp)


def _nearest(value: Fraction) -> float:
    return round_exact(value, DTYPES["fp64"])


def _leading_bits(value: Fraction, bits: int) -> Fraction:
    """Truncate a positive number to its first `bits` significant bits, or one fewer."""
    scale = Fraction(2) ** (bits - (value.numerator.bit_length() - value.denominator.bit_length()) - 1)
    return int(value * scale) / scale


def _whole(k: Float64s) -> npt.NDArray[np.int64]:
    """Convert whole numbers; a NaN, whose conversion is undefined, becomes 0 (its result is NaN by other factors)."""
    return np.where(np.isnan(k), 0.0, k).astype(np.int64)


def _power_of_two(exponent: npt.NDArray[np.int64]) -> Float64s:
    """Return 2**exponent, within the normal range of float64."""
    return ((exponent + 1023) << 52).view(np.float64)


def _two_sum(a: Float64s, b: Float64s) -> Pair:
    """Return a + b rounded, and the rounding error, exactly (Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def _fast_two_sum(a: Float64s, b: Float64s) -> Pair:
    """Return a + b rounded, and the rounding error, exactly, where |a| >= |b| or a = 0 (Dekker)."""
    total = a + b
    return total, b - (total - a)


def _split(a: Float64s) -> Pair:
    """Split into two parts of at most 26 bits each (Veltkamp)."""
    scaled = 134217729.0 * a
    high = scaled - (scaled - a)
    return high, a - high


def _two_product(a: Float64s, b: Float64s) -> Pair:
    """Return a * b rounded, and the rounding error, exactly (Dekker; no fused multiply-add)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
