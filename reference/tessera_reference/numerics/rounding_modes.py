"""Rounding to a float dtype in each of IEEE 754's modes, for declared arithmetics; `rounding` has the canon's own.

For float64 arrays to every dtype but fp64, and for single numbers, as multiples of a power of two, to every dtype.
A result too large becomes infinity, or the largest finite value where the mode rounds toward it, or saturates in fp8.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from .formats import DType

__all__ = ["ROUNDINGS", "Rounding", "infinity", "round_in_mode", "round_multiple", "sum_to_odd"]

Rounding: TypeAlias = Literal["nearest_even", "nearest_away", "toward_zero", "up", "down"]
Float64s: TypeAlias = npt.NDArray[np.float64]

ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)


def round_in_mode(values: Float64s, dtype: DType, rounding: Rounding) -> npt.NDArray[np.float32]:
    """Round float64 `values`, taken as exact, to a `dtype` of at most 32 bits; same shape, as float32."""
    dtype = dtype.storage
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(values)
        quantum = np.maximum(exponent - 1, dtype.min_exponent) - dtype.fraction_bits  # integers
        rounded = np.ldexp(_whole(np.ldexp(values, -quantum), rounding), quantum)
        rounded = np.copysign(rounded, values)  # a zero keeps the sign of what became zero
        above, below = _beyond(dtype, rounding, False), _beyond(dtype, rounding, True)
        beyond = np.where(np.isinf(values), infinity(dtype), np.where(values < 0, -below, above))
        too_large = np.abs(rounded) > dtype.max_finite
        return np.where(too_large, np.copysign(beyond, values), rounded).astype(np.float32)


def round_multiple(multiple: int, exponent: int, dtype: DType, rounding: Rounding) -> float:
    """Round `multiple` * 2**`exponent`, which is not 0, to any float dtype."""
    dtype = dtype.storage
    size, negative = abs(multiple), multiple < 0
    quantum = max(size.bit_length() - 1 + exponent, dtype.min_exponent) - dtype.fraction_bits
    dropped = quantum - exponent
    kept, rest, half = size << max(-dropped, 0), 0, 1
    if dropped > 0:
        kept, rest, half = size >> dropped, size & ((1 << dropped) - 1), 1 << (dropped - 1)
    if _goes_up(kept, rest, half, negative, rounding):
        kept += 1
    too_large = kept.bit_length() - 1 + quantum > dtype.max_exponent or math.ldexp(kept, quantum) > dtype.max_finite
    result = _beyond(dtype, rounding, negative) if too_large else math.ldexp(kept, quantum)
    return -result if negative else result


def sum_to_odd(a: Float64s, b: Float64s) -> Float64s:
    """Return a + b, an inexact sum going to the neighbour with an odd significand; sums must not overflow.

    Rounding that, in any mode, to a type of at most 51 bits gives what rounding the exact sum would give: the odd last
    bit keeps the value on its own side of every number and midpoint of that type (Boldo and Melquiond, 2008).
    """
    with np.errstate(all="ignore"):
        total = a + b
        of_b = total - a
        error = (a - (total - of_b)) + (b - of_b)  # exact (Knuth's two-sum)
        even = (total.view(np.int64) & 1) == 0
        inexact = np.isfinite(total) & (error != 0)
        toward = np.where(error > 0, np.inf, -np.inf)
        return np.where(inexact & even, np.nextafter(total, toward), total)


def _whole(values: Float64s, rounding: Rounding) -> Float64s:
    if rounding == "nearest_even":
        return np.rint(values)
    if rounding == "up":
        return np.ceil(values)
    if rounding == "down":
        return np.floor(values)
    whole = np.trunc(values)
    if rounding == "nearest_away":
        return np.where(np.abs(values - whole) >= 0.5, whole + np.copysign(1.0, values), whole)
    return whole


def _goes_up(kept: int, rest: int, half: int, negative: bool, rounding: Rounding) -> bool:
    """Whether the magnitude is rounded away from zero: `rest` of `2 * half` lies beyond `kept`."""
    if rounding == "nearest_even":
        return rest > half or (rest == half and kept % 2 == 1)
    if rounding == "nearest_away":
        return rest >= half
    return rest > 0 and rounding == ("down" if negative else "up")


def _beyond(dtype: DType, rounding: Rounding, negative: bool) -> float:
    """Return what the magnitude of a finite result too large for `dtype` becomes."""
    toward_largest = rounding == "toward_zero" or rounding == ("up" if negative else "down")
    return dtype.max_finite if toward_largest else infinity(dtype)


def infinity(dtype: DType) -> float:
    """Return what a positive result that is infinite becomes: in fp8 the largest finite value."""
    return dtype.max_finite if dtype.bits == 8 else math.inf
