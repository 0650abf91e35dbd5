"""Rounding to a dtype, once, and casts between dtypes.

Reference ("formats"): to nearest, ties to even, from the exact value: fp64 to bf16 never passes through fp32.
Overflow to fp8 saturates unless `overflow="nonfinite"` (AMB-RT-29); other floats overflow to infinity.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from .array import Array, in_blocks
from .errors import InvalidArgument
from .formats import DTYPES, DType, UnsupportedDType

Overflow: TypeAlias = Literal["saturate", "nonfinite"]
Values: TypeAlias = npt.NDArray[Any]

_OVERFLOWS = get_args(Overflow)

BY_BITS = os.environ.get("TESSERA_PLAIN_NUMERICS", "") in ("", "0")
"""True to round most elements on their bits, ten times as fast; False uses `_nearest` for all, to the same bits."""


def round_to(values: npt.NDArray[np.floating[Any]], dtype: DType, overflow: Overflow = "saturate") -> Values:
    """Round float32 or float64 `values`, taken as exact, to a float dtype; same shape, in `dtype.carrier`.

    Under "saturate" an fp8 result too large, infinite ones included, becomes the largest finite value of its sign;
    under "nonfinite" infinity, or NaN in fp8_e4m3. tf32 is stored as fp32, so this rounds to fp32 (AMB-RT-28).
    """
    require_overflow("round_to", overflow)
    if dtype.kind != "float":
        raise UnsupportedDType("round_to", dtype)
    if values.dtype not in (np.float32, np.float64):
        raise TypeError(f"round_to takes float32 or float64, not {values.dtype}")
    with np.errstate(all="ignore"):
        if not dtype.is_narrow:
            return np.asarray(values).astype(dtype.carrier, copy=False)
        return in_blocks(narrowing(dtype, overflow), np.float32, values)


def narrowing(dtype: DType, overflow: Overflow = "saturate") -> Callable[[Values], Values]:
    """Return the function that rounds blocks of float32 or float64 to a narrow dtype."""
    beyond = _beyond(dtype, overflow)
    return lambda block: _narrowed(block, dtype, beyond)


def round_operand(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Round fp32 `values` to tf32's 10 fraction bits, as matmul does with tf32 operands; same shape."""
    with np.errstate(all="ignore"):
        return _narrowed(values, DTYPES["tf32"], math.inf)


def round_exact(value: Fraction, dtype: DType, overflow: Overflow = "saturate") -> float:
    """Round a rational number to a float dtype, once. A zero result of a negative value is -0."""
    require_overflow("round_exact", overflow)
    return round_ratio(value.numerator, value.denominator, dtype, overflow)


def round_ratio(numerator: int, denominator: int, dtype: DType, overflow: Overflow = "saturate") -> float:
    """Return `round_exact` of a quotient, which need not be in lowest terms; the denominator is positive."""
    dtype = dtype.storage
    magnitude = abs(numerator)
    exponent = magnitude.bit_length() - denominator.bit_length()  # that of the quotient, or one more
    if magnitude << max(-exponent, 0) < denominator << max(exponent, 0):
        exponent -= 1
    quantum = max(exponent, dtype.min_exponent) - dtype.fraction_bits
    divisor = denominator << max(quantum, 0)
    steps, rest = divmod(magnitude << max(-quantum, 0), divisor)
    if 2 * rest > divisor or (2 * rest == divisor and steps % 2):
        steps += 1
    result = math.ldexp(steps, quantum) if steps.bit_length() + quantum <= dtype.max_exponent + 1 else math.inf
    if result > dtype.max_finite:
        result = _beyond(dtype, overflow)
    return -result if numerator < 0 else result


def cast(array: Array, dtype: DType, overflow: Overflow = "saturate") -> Array:
    """Convert every element of `array` to `dtype`, rounding at most once; same shape.

    A bool is true for an element that differs from zero. Integers wrap into integers. A float is truncated toward zero
    and saturates into an integer, NaN giving 0. A real number becomes a complex one with imaginary part +0. A complex
    number does not become a real one: `UnsupportedDType`. `overflow` concerns fp8 only.
    """
    require_overflow("cast", overflow)
    source = array.dtype
    if source is dtype and not dtype.is_narrow:
        return array
    with np.errstate(all="ignore"):
        if dtype.kind == "bool":
            return Array(dtype, np.asarray(array.values != 0))
        if source.kind == "complex":
            if dtype.kind != "complex":
                raise UnsupportedDType(f"cast to {dtype}", source)
            return Array(dtype, array.values.astype(dtype.carrier))
        if dtype.kind == "complex":
            return Array(dtype, _to_float(array, dtype.component, overflow).astype(dtype.carrier))
        if dtype.kind == "float":
            return Array(dtype, _to_float(array, dtype, overflow))
        if source.kind == "float":
            return Array(dtype, _truncate(array.values, dtype))
        return Array(dtype, array.values.astype(dtype.carrier))


def require_overflow(operation: str, overflow: str) -> None:
    """Raise `InvalidArgument` unless `overflow` is one of `Overflow`."""
    if overflow not in _OVERFLOWS:
        raise InvalidArgument(operation, "overflow", overflow, "saturate or nonfinite (AMB-RT-29)")


def _narrowed(values: npt.NDArray[np.floating[Any]], dtype: DType, beyond: float) -> npt.NDArray[np.float32]:
    """Round to the grid of `dtype` on the bits of the values; zeros, subnormals, NaN and the largest by `_nearest`.

    Half of the last kept bit's unit, less one where that bit is even, carries into the kept bits exactly where the
    value rounds up. Where both formats have the same exponents, that holds for all but NaN.
    """
    exact = np.asarray(values)
    if not BY_BITS or not exact.size:
        return _nearest(exact, dtype, beyond).astype(np.float32)
    bits = exact.view(f"i{exact.dtype.itemsize}")
    source = DTYPES["fp64" if exact.dtype == np.float64 else "fp32"]
    dropped = source.fraction_bits - dtype.fraction_bits
    shifted = np.asarray(bits >> dropped)
    shifted &= 1
    shifted += bits
    shifted += (1 << (dropped - 1)) - 1
    shifted &= -1 << dropped
    rounded = shifted.view(exact.dtype)
    if source.exponent_bits == dtype.exponent_bits:
        special = np.isnan(exact)
    else:
        magnitude = np.abs(rounded)
        special = np.asarray(~((magnitude > dtype.min_normal) & (magnitude <= dtype.max_finite)))
    result = rounded.astype(np.float32, copy=False)
    if special.any():
        result[special] = _nearest(exact[special], dtype, beyond)
    return result


def _nearest(values: npt.NDArray[np.floating[Any]], dtype: DType, beyond: float) -> npt.NDArray[np.float64]:
    """Round to the grid of `dtype`; magnitudes that round to more than its largest become `beyond`."""
    exact = np.asarray(values).astype(np.float64)
    _, exponent = np.frexp(exact)
    quantum = np.maximum(exponent - 1, dtype.min_exponent) - dtype.fraction_bits  # integers
    rounded = np.ldexp(np.rint(np.ldexp(exact, -quantum)), quantum)
    too_large = np.abs(rounded) > dtype.max_finite
    return np.where(too_large, np.copysign(beyond, exact), rounded)


def _beyond(dtype: DType, overflow: Overflow) -> float:
    """Return the result for a positive number too large for `dtype`."""
    if dtype.bits == 8 and overflow == "saturate":
        return dtype.max_finite
    return math.inf if dtype.has_infinity else math.nan


def _to_float(array: Array, dtype: DType, overflow: Overflow) -> Values:
    if array.dtype.kind == "float":
        return round_to(array.values, dtype, overflow)
    if dtype.name == "fp64":
        return array.values.astype(np.float64)
    return round_to(_odd_float64(array.values.astype(np.int64)), dtype, overflow)


def _odd_float64(integers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Convert to float64, an inexact result going to the neighbour with an odd significand.

    Rounding that to any type of at most 51 bits then yields the rounding of the integer itself: the odd last bit keeps
    the value on its own side of every midpoint.
    """
    low = np.int64((1 << 11) - 1)
    sticky = ((integers & low) != 0).astype(np.int64)
    to_odd = (integers & ~low) | (sticky << 11)
    fits = (integers >= -(1 << 53)) & (integers <= 1 << 53)
    return np.where(fits, integers, to_odd).astype(np.float64)


def _truncate(values: npt.NDArray[np.floating[Any]], dtype: DType) -> Values:
    """Truncate to an integer dtype, saturating; only values in range are converted by numpy."""
    whole = np.trunc(values.astype(np.float64))
    limit = 2.0 ** (dtype.bits - 1)
    inside = (whole >= -limit) & (whole < limit)
    result = np.where(inside, whole, 0.0).astype(dtype.carrier)
    result = np.where(whole >= limit, np.array(dtype.int_max, dtype.carrier), result)
    return np.where(whole < -limit, np.array(dtype.int_min, dtype.carrier), result)
