"""Implementations that know only the usual NaN: positive, with one bit set in its fraction (AMB-LANG-105)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.strength import Violation
from tessera_reference.graph import elementwise
from tessera_reference.graph import reductions as graph
from tessera_reference.numerics import reductions
from tessera_reference.numerics.arithmetic import larger
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, DType
from tessera_reference.numerics.rounding import Overflow

from .casts import miscast
from .changes import changed
from .min_max import minmax, place

Values: TypeAlias = Any


def words(values: Values) -> Values:
    """Return the stored codes of fp32 or fp64 values."""
    return values.view(f"u{values.dtype.itemsize}")


def fraction(values: Values) -> Values:
    """Return the fractions of fp32 or fp64."""
    bits = 23 if values.dtype.itemsize == 4 else 52
    return words(values) & ((1 << bits) - 1)


def quiet(values: Values) -> Values:
    """Select NaNs whose fraction has its first bit set."""
    first = 1 << (22 if values.dtype.itemsize == 4 else 51)
    return np.isnan(values) & (fraction(values) & first != 0)


def negative_nan(values: Values) -> Values:
    """Select NaNs whose sign bit is set."""
    return np.isnan(values) & np.signbit(values)


# Casts


def with_bias(x: Array, target: DType, overflow: Overflow) -> Array:
    codes = x.values.view(np.uint32)
    with np.errstate(over="ignore"):
        rounded = (codes + np.uint32(0x7FFF) + ((codes >> 16) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return Array(target, np.where(np.isinf(x.values), x.values, rounded.view(np.float32)))


def true_if_quiet(x: Array, target: DType, overflow: Overflow) -> Array:
    return Array(target, (x.values != 0) & ~(np.isnan(x.values) & ~quiet(x.values)))


CASTS = [
    miscast("with_bias", "rounds fp32 to bf16 by an addition to the code, NaN too", with_bias,
            lambda source, target: source.name == "fp32" and target.name == "bf16"),
    miscast("true_if_quiet", "takes signalling NaN for false", true_if_quiet,
            lambda source, target: target.kind == "bool" and source.kind == "float" and not source.is_narrow),
]  # fmt: skip


# Order


def below_all(values: Values) -> Values:
    """Return values with a negative NaN as a number below all others."""
    return np.where(negative_nan(values), values.dtype.type(-np.inf), values)


def compared(name: str, clause: str, operation: type[Any]) -> Violation:
    """Return a violation that compares by codes, and recognises a positive NaN but no negative one."""
    compute = operation.compute

    def by_codes(a: Array, b: Array) -> Array:
        if a.dtype.kind != "float":
            return compute(a, b)  # type: ignore[no-any-return]
        return compute(*(Array(operand.dtype, below_all(operand.values)) for operand in (a, b)))  # type: ignore[no-any-return]

    description = "takes a negative NaN for the least of all numbers"
    return changed(clause, name, description, (operation, "compute", staticmethod(by_codes)))


def place_by_codes(x: Values) -> Values:
    kind = next(dtype for dtype in DTYPES.values() if dtype.carrier == x.dtype)
    return reductions.argmax(Array(kind, below_all(x) if x.dtype.kind == "f" else x), -1).values


ORDER = [
    compared("negative_nan_less", "LANG-02.3-68", elementwise.Less),
    compared("negative_nan_not_greater", "LANG-02.3-69", elementwise.Greater),
    compared("negative_nan_equal", "LANG-02.3-66", elementwise.Equal),
    minmax("max_by_codes", "takes a negative NaN for the least of all numbers", graph.Max,
        lambda a, b: larger(below_all(a), below_all(b)) if a.dtype.kind == "f" else np.maximum(a, b)),
    place("argmax_by_codes", "takes a negative NaN for the least of all numbers", place_by_codes),
]  # fmt: skip
