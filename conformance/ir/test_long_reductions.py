"""Long reductions, past the tiles, warps and blocks of any implementation; golden vectors have up to 1000 elements."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.dsl import returning, tensor_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.vectors.judging import golden, judge

LARGE = 2.0**24
"""The first number of fp32 that an addition of 1 leaves as it is."""


@golden("ir/long_reductions")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic."""
    judge(impl, check, vector)


@clause("LANG-10-06", "LANG-02-04")
@level("strict")
@feature("reductions")
@pytest.mark.parametrize("count", [1 << 14, 1 << 17], ids=str)
def test_a_long_sum_is_that_of_its_halves(impl, check, count):
    """Two ones in the second half meet before the large number of the first; beside it either would be lost."""
    values = [0.0] * count
    values[0], values[count // 2], values[count // 4 * 3] = LARGE, 1.0, 1.0
    source = returning("op.sum(X, axis=0)", f"X: tensor<{count}xfp32>", "fp32")
    check.bits(value_of(impl, check, source, X=tensor_of("fp32", values)), tensor_of("fp32", LARGE + 2))


@clause("LANG-10-06", "LANG-10-02")
@level("strict")
@pytest.mark.parametrize("count", [1 << 11, 1 << 14], ids=str)
def test_a_long_product_is_summed_in_order(impl, check, count):
    """Two ones near the end are lost beside a large number at the beginning: no part of the sum is formed apart."""
    values = [0.0] * count
    values[0], values[-6], values[-2] = LARGE, 1.0, 1.0
    source = returning("A @ B", f"A: tensor<1x{count}xfp32>, B: tensor<{count}x1xfp32>", "tensor<1x1xfp32>")
    inputs = {"A": tensor_of("fp32", [values]), "B": tensor_of("fp32", [[1.0]] * count)}
    check.bits(value_of(impl, check, source, **inputs), tensor_of("fp32", [[LARGE]]))


@clause("LANG-02-04")
@feature("reductions")
@pytest.mark.parametrize("index", [127, 255, 32767, 65535, 65600], ids=str)
def test_an_index_of_a_largest_element_has_32_bits(impl, check, index):
    """The last element is the largest, one place further on than a narrow integer counts (AMB-LANG-134)."""
    values = [0] * (index + 1) + [1]
    source = returning("op.argmax(X, axis=0)", f"X: tensor<{index + 2}xint32>", "int32")
    check.bits(value_of(impl, check, source, X=tensor_of("int32", values)), tensor_of("int32", index + 1))
