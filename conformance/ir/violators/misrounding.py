"""Wrong roundings, each with the signature of `round_to`: exact values, the dtype, the overflow mode of fp8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tessera_reference.numerics.formats import DType, dtype
from tessera_reference.numerics.rounding import Overflow, round_operand, round_to

Values: TypeAlias = Any
Rounding: TypeAlias = Callable[..., Values]


def _quantum_exponent(values: Values, kind: DType) -> Values:
    """Return the exponent of the last place of each value in a dtype."""
    _, exponent = np.frexp(np.asarray(values, np.float64))
    return np.where(exponent - 1 > kind.min_exponent, exponent - 1, kind.min_exponent) - kind.fraction_bits


def half_away(values: Values, kind: DType, overflow: Overflow = "saturate") -> Values:
    """Round ties away from zero."""
    kind, wide = kind.storage, np.asarray(values, np.float64)
    with np.errstate(all="ignore"):
        quantum = _quantum_exponent(wide, kind)
        scaled = np.ldexp(np.abs(wide), -quantum)
        tie = scaled - np.floor(scaled) == 0.5
        nudged = np.where(tie, np.copysign(np.ldexp(np.floor(scaled) + 1, quantum), wide), wide)
        return round_to(nudged, kind, overflow)


def toward_zero(values: Values, kind: DType, overflow: Overflow = "saturate") -> Values:
    """Truncate."""
    kind = kind.storage
    with np.errstate(all="ignore"):
        nearest = round_to(np.asarray(values), kind, overflow)
        wide = nearest.astype(np.float64)
        step = np.copysign(np.ldexp(1.0, _quantum_exponent(values, kind)), wide)
        return np.where(np.abs(wide) > np.abs(values), wide - step, wide).astype(nearest.dtype)


def flushed(values: Values, kind: DType, overflow: Overflow = "saturate") -> Values:
    """Flush subnormal results to zero."""
    with np.errstate(all="ignore"):
        return without_subnormals(round_to(np.asarray(values), kind, overflow), kind)


def without_subnormals(values: Values, kind: DType) -> Values:
    """Return values of a dtype, with zeros of their sign in place of subnormals."""
    tiny = np.abs(values) < kind.storage.min_normal
    return np.where(tiny, np.copysign(values.dtype.type(0), values), values)


def unsaturated(values: Values, kind: DType, overflow: Overflow = "saturate") -> Values:
    """Return infinity or NaN for an overflow to fp8."""
    return round_to(np.asarray(values), kind, "nonfinite")


def through(middle: str) -> Rounding:
    """Return a rounding first to a type in between, then to the requested type."""

    def twice(values: Values, kind: DType, overflow: Overflow = "saturate") -> Values:
        with np.errstate(all="ignore"):
            return round_to(round_to(np.asarray(values), dtype(middle), "nonfinite"), kind, overflow)

    return twice


def as_tf32(values: Values, kind: DType, overflow: Overflow = "saturate") -> Values:
    """Keep ten fraction bits of fp32's twenty-three."""
    rounded = round_to(np.asarray(values), kind, overflow)
    return round_operand(rounded) if kind.name == "fp32" else rounded


def one_off_now_and_then(exact: Values) -> Values:
    """Return results of which about one in a hundred misses the last place, as in fast libraries."""
    with np.errstate(all="ignore"):
        code = exact.view(f"u{exact.dtype.itemsize}")
        unlucky = (code % 101 == 5) & np.isfinite(exact)
        return np.where(unlucky, np.nextafter(exact, exact.dtype.type(0)), exact)
