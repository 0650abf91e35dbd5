"""Softmax and attention against the same steps taken with numpy's exact operations and MPFR's exponential."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.differences import first_difference
from tessera_conformance.tensors import Tensor


def softmax_row(row: list[float]) -> list[Any]:
    gmpy2 = pytest.importorskip("gmpy2", reason="gmpy2 is missing: pip install gmpy2")
    single = gmpy2.context(precision=24, emax=128, emin=-148, subnormalize=True)
    values = [np.float32(x) for x in row]
    largest = max(values)
    powers = [np.float32(float(single.exp(gmpy2.mpfr(float(x - largest))))) for x in values]
    sums = powers
    while len(sums) > 1:
        sums = [sums[i] + sums[i + 1] for i in range(0, len(sums) - 1, 2)] + sums[len(sums) & ~1 :]
    return [power / sums[0] for power in powers]


@pytest.mark.parametrize("length", [1, 2, 3, 5, 7, 16])
def test_softmax_takes_the_canonical_steps(draw: random.Random, length: int) -> None:
    rows = np.array([[draw.gauss(0, 5) for _ in range(length)] for _ in range(5)], dtype=np.float32)
    expected = np.array([softmax_row(row.tolist()) for row in rows], dtype=np.float32)
    actual = oracle.softmax(Tensor("fp32", rows.shape, rows.tobytes()))
    assert first_difference(actual, Tensor("fp32", rows.shape, expected.tobytes())) is None


def test_a_narrow_softmax_is_computed_in_fp32_and_rounded_once(draw: random.Random) -> None:
    row = np.array([[draw.gauss(0, 3) for _ in range(9)]], dtype=np.float16)
    expected = np.array([softmax_row(row[0].tolist())], dtype=np.float32).astype(np.float16)
    actual = oracle.softmax(Tensor("fp16", row.shape, row.tobytes()))
    assert actual == Tensor("fp16", row.shape, expected.tobytes())


def test_the_axis_is_the_one_asked_for() -> None:
    x = Tensor.from_words("bf16", (2, 3), [0x3F80, 0x4000, 0, 0, 0x4040, 0xBF80])
    assert oracle.softmax(x, 0) == oracle.softmax(x, -2) == oracle.transpose(oracle.softmax(oracle.transpose(x)))
    assert oracle.softmax(x, 0) != oracle.softmax(x)


def test_a_nan_spoils_its_own_row_only() -> None:
    x = Tensor.from_words("bf16", (2, 2), [0x7FC0, 0x3F80, 0x3F80, 0x3F80])
    assert oracle.softmax(x).words().tolist() == [0x7FC0, 0x7FC0, 0x3F00, 0x3F00]


def test_a_literal_is_rounded_once_from_its_digits() -> None:
    """A little above the tie 1 + 2**-8, so little that a double cannot tell."""
    one = Tensor.from_words("bf16", (), [0x3F80])
    assert oracle.scale(one, factor="1.00390625").bits() == "3f80"
    assert oracle.scale(one, factor="1.00390625000000000000000001").bits() == "3f81"


def test_attention_with_equal_scores_averages_the_values() -> None:
    zeros = Tensor.from_words("fp32", (2, 3), [0] * 6)
    v = Tensor.from_bits("fp32", (2, 1), "3f80000040400000")
    assert oracle.attention(zeros, zeros, v, factor="0.5").bits() == "40000000" * 2
