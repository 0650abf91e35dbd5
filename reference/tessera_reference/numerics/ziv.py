"""Double-double numbers, and Ziv's test (Ziv, 1991).

From an approximation with a known bound to the correctly rounded value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .array import BLOCK
from .formats import DTYPES, DType
from .kernels import compiled_elements
from .rounding import BY_BITS, Overflow, round_exact, round_to

# Double-double numbers: unevaluated sums of two float64, high + low, of about 106 significant bits.
#
# Only IEEE-exact operations are used.
#
# Error-free sums and products after Dekker (1971) and Knuth (TAOCP 2, 4.2.2); the operations on pairs are the usual
# ones, e.g. in Joldes, Muller, Popescu (2017). A pair is normal: its high part is the float64 nearest the sum.
# Nothing here guards against overflow; products of numbers below 2**-480 lose their low part to underflow.


Float64s: TypeAlias = npt.NDArray[np.float64]
Int64s: TypeAlias = npt.NDArray[np.int64]
Pair: TypeAlias = tuple[Float64s, Float64s]
PairLike: TypeAlias = tuple[Any, Any]
"""A pair of arrays, or of two numbers for as many elements as needed."""


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
    a_high, a_low = split(a)
    b_high, b_low = split(b)
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
    high, low = (np.where(condition, first, second) for first, second in zip(a, b, strict=True))
    return high, low


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


def split(a: Any) -> Pair:
    """Split into two parts of at most 26 bits each (Veltkamp)."""
    scaled = 134217729.0 * a
    high = scaled - (scaled - a)
    return high, a - high


# Ziv's test: from an approximation with a known error bound to the correctly rounded value (Ziv, 1991).
#
# If a function's value lies between two numbers that round to the same result, that result is the correctly rounded
# one, since rounding is monotone. Where they differ, in less than one element of a thousand, the function is enclosed
# by mpmath in ever narrower rational intervals until both ends round alike.
#
# This terminates: the ends round alike eventually unless the value itself is a midpoint between two results (or the
# end of a type's range). A midpoint has few significant bits, so only an *exact* case can be one, and its enclosure
# is a single number. `elementary` lists the exact cases of each function. Values next to a number of the type, such
# as sin(x) for tiny x, or exp(x) = 1 + x + ..., are far from every midpoint and decided at once.


Values: TypeAlias = npt.NDArray[Any]
Decide: TypeAlias = Callable[..., tuple[Values, Any]]
Interval: TypeAlias = tuple[Fraction, Fraction]

_CHUNK = 1 << 13
"""The number of elements handled at once, so that dozens of temporaries stay in cache; no result depends on it."""

_SINGLE_MARGIN = 2.0**-50
"""The margin for results of at most 24 bits: an approximation's own margin and three roundings of float64."""

QUICK_MARGIN = 2.0**-44
"""The margin for results in fp32: twice the bound of an estimate."""

QUICK = BY_BITS
"""True to estimate functions of fp32 first; False uses their definitions alone, to the same bits."""

_DOUBLE = DTYPES["fp64"]

_FIRST_PRECISION, _DOUBLINGS = 100, 9


class Approximation(NamedTuple):
    """Numbers (high + low) * 2**exponent, high being the float64 nearest high + low; no exponent is 0.

    Where high is 0, infinite or NaN, it is the function's value and low is ignored. An exponent of None also means that
    where high is below 2**-960 the value lies within 2**-60 of high, relatively.
    """

    high: Float64s
    low: Float64s
    exponent: Int64s | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A function as Ziv's test needs it.

    `approximate` takes one float64 array an operand and is within `margin` <= 2**-60 of the value, relatively.
    `enclose` takes a precision and one float an operand and returns bounds about 2**-precision apart, relatively, or
    twice the value itself where that is known exactly. It is not called where the approximation is 0 or not finite.
    `estimate` is a fast path for fp32: within 2**-45 of the value, relatively, or NaN. It and `approximate` consist of
    operations that `kernels.compiled_elements` knows.
    """

    approximate: Callable[..., Approximation]
    margin: float
    enclose: Callable[..., Interval]
    estimate: Callable[..., Float64s] | None = None


def correctly_rounded(definition: Definition, dtype: DType, overflow: Overflow, *operands: Values) -> Values:
    """Evaluate a function of operands of one shape, taken as exact, correctly rounded to a float `dtype`."""
    flat = [np.ascontiguousarray(operand).reshape(-1) for operand in operands]
    with np.errstate(all="ignore"):
        if definition.estimate is None or not QUICK or dtype.storage.name != "fp32":
            return _decided(definition, dtype, overflow, flat).reshape(np.shape(operands[0]))
        result, remaining = _evaluated(_by_estimate(definition), flat, dtype)
        if len(flat) == 1:  # pow(NaN, 0) is 1
            remaining = remaining[~np.isnan(flat[0][remaining])]
        if remaining.size:
            result[remaining] = _decided(definition, dtype, overflow, [operand[remaining] for operand in flat])
    return result.reshape(np.shape(operands[0]))


def _decided(definition: Definition, dtype: DType, overflow: Overflow, operands: list[Values]) -> Values:
    """Evaluate by pairs and, where these leave doubt, by enclosures."""
    double = dtype.name == "fp64"
    decide = _by_pairs(definition) if double else partial(_decide_single, definition, dtype, overflow)
    result, doubtful = _evaluated(decide, operands, dtype)
    for i in doubtful:
        x = [float(operand[i]) for operand in operands]
        result[i] = _by_enclosure(definition.enclose, x, dtype, overflow)
    return result


def _evaluated(decide: Decide, operands: list[Values], dtype: DType) -> tuple[Values, npt.NDArray[np.intp]]:
    """Return the results and the indices of the undecided ones."""
    compiled = compiled_elements(decide, operands) if QUICK and not isinstance(decide, partial) else None
    result = np.empty(operands[0].shape, dtype.carrier)
    mask = np.empty(min(BLOCK, result.size) if compiled else 0, np.bool_)
    remaining = [np.arange(0)]
    length = BLOCK if compiled else _CHUNK
    for start in range(0, result.size, length):
        chunk = slice(start, start + length)
        parts = [operand[chunk] for operand in operands]
        if compiled:
            certain = mask[: parts[0].size]
            compiled(*parts, result=result[chunk], mask=certain)
        else:
            result[chunk], certain = decide(*parts)
        if not certain.all():
            remaining.append(start + np.flatnonzero(~certain))
    return result, np.concatenate(remaining)


def enclosure(
    function: Callable[..., Any], exact: Callable[..., Fraction | None] = lambda *operands: None
) -> Callable[..., Interval]:
    """Turn a function of `mpmath.libmp`, of signature (x, ..., precision), into bounds around its value.

    The result is trusted to 2**-(precision - 8), relatively; its documented error is a few units of its last bit.
    `exact` returns the value where it may be a midpoint between two floats, else None.
    """

    def enclose(precision: int, *x: float) -> Interval:
        exact_value = exact(*x)
        if exact_value is not None:
            return exact_value, exact_value
        near = rational(function(*(mp().from_float(element, 53, "n") for element in x), precision))
        slack = abs(near) * Fraction(1, 1 << (precision - 8))
        return near - slack, near + slack

    return enclose


def mp() -> Any:
    """Return `mpmath.libmp`. Importing it takes a fifth of the start of a process, and most processes never need it."""
    from mpmath import libmp

    return libmp


def by_mpmath(name: str) -> Callable[..., Interval]:
    """Return the enclosure of a function of `mpmath.libmp` of one operand that has no exact cases."""
    return enclosure(lambda x, precision: getattr(mp(), name)(x, precision, "n"))


def rational(number: Any) -> Fraction:
    """Return the exact value of a finite number of `mpmath.libmp`."""
    sign, mantissa, exponent, _ = number
    return Fraction(-int(mantissa) if sign else int(mantissa)) * Fraction(2) ** int(exponent)


def _decide_single(definition: Definition, dtype: DType, overflow: Overflow, *operands: Values) -> tuple[Values, Any]:
    """Round to a type of at most 24 bits; return the results and a mask of those that are certain."""
    near = definition.approximate(*(operand.astype(np.float64) for operand in operands))
    value = near.high if near.exponent is None else np.ldexp(near.high, near.exponent)
    lower = round_to(value * (1.0 - _SINGLE_MARGIN), dtype, overflow)
    upper = round_to(value * (1.0 + _SINGLE_MARGIN), dtype, overflow)
    return lower, (lower == upper) | (np.isnan(lower) & np.isnan(upper))


@cache
def _by_estimate(definition: Definition) -> Decide:
    """Round estimates to fp32."""
    estimate = definition.estimate
    assert estimate is not None

    def decide(*operands: Values) -> tuple[Values, Any]:
        near = estimate(*(operand.astype(np.float64) for operand in operands))
        lower = (near * (1.0 - QUICK_MARGIN)).astype(np.float32)
        return lower, lower == (near * (1.0 + QUICK_MARGIN)).astype(np.float32)

    return decide


@cache
def _by_pairs(definition: Definition) -> Decide:
    """Round pairs to fp64."""
    return lambda *operands: _decide_double(definition.approximate(*operands), definition.margin)


def _decide_double(near: Approximation, margin: float) -> tuple[Values, Any]:
    """Round to fp64; return the results and a mask of those that are certain."""
    high, low, exponent = near
    slack = high * margin
    lower, upper = high + (low - slack), high + (low + slack)
    settled = ~np.isfinite(high) | (high == 0.0)
    result = np.where(settled, high, lower)
    certain = settled | (lower == upper)
    if exponent is not None:
        result = np.ldexp(result, exponent)
        # Scaling is exact unless it leaves the normal range; there, compare after scaling, with a whole ulp to spare.
        normal = (np.abs(result) >= 2 * _DOUBLE.min_normal) & (np.abs(result) < _DOUBLE.max_finite)
        if not normal.all():
            below, above = (np.ldexp(high * (1.0 + ulp), exponent) for ulp in (-(2.0**-52), 2.0**-52))
            certain = settled | np.where(normal, certain, below == above)
    return result, certain


def _by_enclosure(enclose: Callable[..., Interval], x: list[float], dtype: DType, overflow: Overflow) -> float:
    for doublings in range(_DOUBLINGS):
        lower, upper = (round_exact(bound, dtype, overflow) for bound in enclose(_FIRST_PRECISION << doublings, *x))
        if lower == upper or (lower != lower and upper != upper):
            return lower
    raise AssertionError(f"{x} seems to be an exact case that `enclose` does not know")
