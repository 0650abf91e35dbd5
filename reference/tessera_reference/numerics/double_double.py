"""Double-double numbers: unevaluated sums of two float64, high + low, of about 106 significant bits.

Only IEEE-exact operations are used.

Error-free sums and products after Dekker (1971) and Knuth (TAOCP 2, 4.2.2); the operations on pairs are the usual
ones, e.g. in Joldes, Muller, Popescu (2017). A pair is normal: its high part is the float64 nearest the sum. Nothing
here guards against overflow; products of numbers below 2**-480 lose their low part to underflow.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "Float64s",
    "Int64s",
    "Pair",
    "add_float",
    "divide",
    "fast_two_sum",
    "leading_bits",
    "multiply",
    "multiply_float",
    "nearest",
    "nearest_pair",
    "pairs_of",
    "power_of_two",
    "two_product",
    "two_sum",
    "where",
]

Float64s: TypeAlias = npt.NDArray[np.float64]
Int64s: TypeAlias = npt.NDArray[np.int64]
Pair: TypeAlias = tuple[Float64s, Float64s]
PairLike: TypeAlias = tuple[Any, Any]
"""A pair of arrays, or of two numbers that stand for as many elements as needed."""


def two_sum(a: Any, b: Any) -> Pair:
    """Return a + b rounded, and the rounding error, exactly (Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def fast_two_sum(a: Any, b: Any) -> Pair:
    """Return a + b rounded, and the rounding error, exactly, where |a| >= |b| or a = 0 (Dekker)."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Any, b: Any) -> Pair:
    """Return a * b rounded, and the rounding error, exactly (Dekker; no fused multiply-add)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def add_float(a: PairLike, b: Any) -> Pair:
    """Return a + b; the error is 2**-105 of the larger of |a| and |a + b|."""
    high, low = two_sum(a[0], b)
    return fast_two_sum(high, low + a[1])


def multiply(a: PairLike, b: PairLike) -> Pair:
    """Return a * b within 2**-102, relatively."""
    high, low = two_product(a[0], b[0])
    return fast_two_sum(high, low + (a[0] * b[1] + a[1] * b[0]))


def multiply_float(a: PairLike, b: Any) -> Pair:
    """Return a * b within 2**-103, relatively."""
    high, low = two_product(a[0], b)
    return fast_two_sum(high, low + a[1] * b)


def divide(a: PairLike, b: PairLike) -> Pair:
    """Return a / b within 2**-100, relatively: one step of long division after the rounded quotient."""
    quotient = a[0] / b[0]
    product, product_low = two_product(quotient, b[0])
    remainder = ((a[0] - product) - product_low) + (a[1] - quotient * b[1])
    return fast_two_sum(quotient, remainder / b[0])


def where(condition: npt.NDArray[np.bool_], a: PairLike, b: PairLike) -> Pair:
    """Choose between two pairs, element by element."""
    return np.asarray(np.where(condition, a[0], b[0])), np.asarray(np.where(condition, a[1], b[1]))


def power_of_two(exponent: Int64s) -> Float64s:
    """Return 2**exponent, for exponents from -1022 to 1023."""
    return ((exponent + 1023) << 52).view(np.float64)


def nearest(value: Fraction) -> float:
    """Round a rational number to float64: CPython rounds a quotient of integers correctly."""
    return value.numerator / value.denominator


def nearest_pair(value: Fraction) -> tuple[float, float]:
    """Round a rational number to a pair."""
    high = nearest(value)
    return high, nearest(value - Fraction(high))


def pairs_of(values: Iterable[Fraction]) -> Pair:
    """Round rational numbers to a table of pairs."""
    pairs = [nearest_pair(value) for value in values]
    return np.array([high for high, _ in pairs]), np.array([low for _, low in pairs])


def leading_bits(value: Fraction, bits: int) -> Fraction:
    """Truncate a positive number to its first `bits` significant bits, or one fewer."""
    scale = Fraction(2) ** (bits - (value.numerator.bit_length() - value.denominator.bit_length()) - 1)
    return int(value * scale) / scale


def _split(a: Any) -> Pair:
    """Split into two parts of at most 26 bits each (Veltkamp)."""
    scaled = 134217729.0 * a
    high = scaled - (scaled - a)
    return high, a - high
