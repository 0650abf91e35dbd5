"""A guard that this process computes by IEEE 754's default rules.

A library built with -ffast-math can switch flush-to-zero on for a whole process, and a rounding mode left behind by
other code changes every result. `check_environment` runs in a fraction of a millisecond, whenever a run starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .errors import UnsuitableEnvironment
from .formats import DTYPES, DType


def check_environment() -> None:
    """Raise `UnsuitableEnvironment`, naming each departure, unless arithmetic rounds to nearest, with subnormals."""
    with np.errstate(all="ignore"):
        findings = tuple(_findings())
    if findings:
        raise UnsuitableEnvironment(findings)


def _findings() -> Iterator[str]:
    for dtype in (DTYPES["fp32"], DTYPES["fp64"]):
        if not _keeps_subnormal_results(dtype):
            yield f"{dtype} subnormal results are flushed to zero"
        if not _keeps_subnormal_operands(dtype):
            yield f"{dtype} subnormal operands are read as zero"
        if not _rounds_to_nearest_even(dtype):
            yield f"{dtype} addition does not round to nearest, ties to even"
        if not _rounds_each_operation(dtype):
            yield f"{dtype} products are contracted or keep excess precision"
    if not _casts_round_to_nearest():
        yield "casts from fp64 to fp32 do not round to nearest, ties to even"
    if not _scaling_rounds_to_nearest():
        yield "ldexp does not round subnormal results to nearest, ties to even"


def _array(dtype: DType, *values: float) -> np.ndarray[Any, Any]:
    return np.array(values, dtype.carrier)


def _bits(values: np.ndarray[Any, Any]) -> list[int]:
    """Read the bits of values without arithmetic, which may itself be wrong."""
    return [int(code) for code in values.view(f"u{values.dtype.itemsize}")]


def _keeps_subnormal_results(dtype: DType) -> bool:
    smallest = _array(dtype, dtype.min_normal)
    return _bits(smallest * _array(dtype, 0.5)) == [1 << (dtype.fraction_bits - 1)]


def _keeps_subnormal_operands(dtype: DType) -> bool:
    subnormal = np.array([1, 3], f"u{dtype.storage_bytes}").view(dtype.carrier)
    scale = _array(dtype, 2.0**dtype.fraction_bits)
    return _bits(subnormal * scale) == _bits(_array(dtype, dtype.min_normal, 3 * dtype.min_normal))


def _rounds_to_nearest_even(dtype: DType) -> bool:
    ulp = 2.0**-dtype.fraction_bits
    one = _array(dtype, 1.0, -1.0)
    half = _array(dtype, ulp / 2, -ulp / 2)
    tie_down, tie_up = one + half, one + half * _array(dtype, 3.0)
    return _bits(tie_down) == _bits(one) and _bits(tie_up) == _bits(_array(dtype, 1 + 2 * ulp, -1 - 2 * ulp))


def _rounds_each_operation(dtype: DType) -> bool:
    small = 2.0 ** -(dtype.fraction_bits // 2 + 2)
    x, rounded_square = _array(dtype, 1.0 + small), _array(dtype, 1.0 + 2 * small)
    return _bits(x * x - rounded_square) == [0]


def _casts_round_to_nearest() -> bool:
    above_tie, tie = 1 + 2.0**-24 + 2.0**-50, 1 + 2.0**-24
    cast = np.array([above_tie, tie, -tie]).astype(np.float32)
    return _bits(cast) == _bits(np.array([1 + 2.0**-23, 1.0, -1.0], np.float32))


def _scaling_rounds_to_nearest() -> bool:
    scaled = np.ldexp(np.array([0.5, 0.75, 1.5, 2.5]), np.array([-1074] * 4, np.int32))
    return _bits(scaled) == [0, 1, 2, 2]
