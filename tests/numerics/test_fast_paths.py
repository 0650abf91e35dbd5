"""Shortcuts in numpy against the definitions beside which they stand: equal bits."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.numerics.arithmetic import larger, largest
from tessera_reference.numerics.elementary import exp
from tessera_reference.numerics.elementary.exponential import _EXP, exp_single
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.trees import fold, pairwise
from tessera_reference.numerics.ziv import correctly_rounded

FP32 = dtype("fp32")


def same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    """Every bit but those of NaN."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    code = f"u{expected.dtype.itemsize}"
    differ = (found.view(code) != expected.view(code)) & ~(np.isnan(found) & np.isnan(expected))
    assert not differ.any(), (found[differ][:3], expected[differ][:3])


def exp_by_definition(values: np.ndarray) -> np.ndarray:
    return correctly_rounded(_EXP, FP32, "saturate", values)


def neighbours(center: float, count: int) -> np.ndarray:
    """The fp32 numbers around one."""
    return (np.float32(center).view(np.int32) + np.arange(-count, count, dtype=np.int32)).view(np.float32)


EXP_OPERANDS = {
    "any code": lambda rng: rng.integers(0, 1 << 32, 1 << 17, np.uint32).view(np.float32),
    "around one": lambda rng: rng.standard_normal(1 << 17, np.float32),
    "whole range": lambda rng: rng.uniform(-110, 95, 1 << 17).astype(np.float32),
    "tiny": lambda rng: np.ldexp(rng.standard_normal(1 << 15), -rng.integers(10, 40, 1 << 15)).astype(np.float32),
    "overflow": lambda rng: neighbours(88.72284, 3000),
    "underflow to subnormal": lambda rng: neighbours(-87.33655, 3000),
    "underflow to zero": lambda rng: neighbours(-103.97208, 3000),
    "the limit": lambda rng: np.concatenate([neighbours(105, 3000), neighbours(-105, 3000)]),
    # Of all fp32 numbers, those whose estimate lies on the wrong side of a midpoint, about 2**-52 away.
    "hardest": lambda rng: np.array([float.fromhex("0x1.112856p+6"), float.fromhex("-0x1.d2259ap+3")], np.float32),
    "special": lambda rng: np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, -3.4e38], np.float32),
}


@pytest.mark.parametrize("operands", EXP_OPERANDS)
def test_exp_in_fp32_is_as_its_definition(operands, rng):
    x = EXP_OPERANDS[operands](rng)
    same_bits(exp_single(x, exp_by_definition), exp_by_definition(x))
    same_bits(exp(x, FP32), exp_by_definition(x))


def test_exp_leaves_few_elements_to_the_definition_and_never_nan(rng):
    asked: list[int] = []

    def counting(values: np.ndarray) -> np.ndarray:
        assert not np.isnan(values).any()
        asked.append(values.size)
        return exp_by_definition(values)

    x = rng.standard_normal(1 << 20, np.float32) * 20
    x[::5] = np.nan
    exp_single(x, counting)
    assert sum(asked) < 40


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (2, 3, 4)])
def test_exp_keeps_the_shape(shape, rng):
    x = rng.standard_normal(shape).astype(np.float32)
    same_bits(exp_single(np.asarray(x), exp_by_definition), exp_by_definition(np.asarray(x)))


@pytest.mark.parametrize("carrier", ["float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_the_largest_is_what_any_tree_of_larger_gives(carrier, axis, rng):
    code = f"u{np.dtype(carrier).itemsize}"
    any_code = rng.integers(0, np.iinfo(code).max, (5, 7, 6), code, endpoint=True).view(carrier)
    edges = rng.choice(np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan], carrier), (40, 30, 3))
    zeros = rng.choice(np.array([0.0, -0.0], carrier), (3, 2, 3))
    for values in (any_code, edges, zeros, -np.abs(any_code), edges[:1, :1, :1], any_code.T, any_code[::2, ::-1]):
        for tree in (fold, pairwise):
            same_bits(largest(values, axis), tree(values, axis, larger))
