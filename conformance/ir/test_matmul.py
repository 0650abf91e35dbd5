"""Matrix products: order of accumulation, every rounding on the way, and the edges of each type."""

from __future__ import annotations

import struct

import pytest

from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.dsl import returning
from tessera_conformance.marks import clause, feature
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.judging import golden, judge


@golden("ir/matmul")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic."""
    judge(impl, check, vector)


@feature("extra-dtypes")
@clause("LANG-05.2-02", "LANG-02.2-13")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("expression", ["op.matmul(A, B)", "A @ B"], ids=["matmul", "at-sign"])
def test_a_product_of_complex_numbers(impl, check, dtype, expression):
    """The small whole numbers add exactly in every order; an implementation may have no complex dtypes."""
    a = [[1 + 2j, 3 - 1j, -2 + 1j], [2 - 3j, -1 - 1j, 4 + 2j]]
    b = [[1 - 1j, 2 + 3j], [-2 + 2j, 1 + 1j], [3 + 1j, -1 - 2j]]
    product = [[sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b, strict=True)] for row in a]
    source = returning(expression, f"A: tensor<2x3x{dtype}>, B: tensor<3x2x{dtype}>")
    value = value_of(impl, check, source, A=complex_tensor(dtype, a), B=complex_tensor(dtype, b))
    check.bits(value, complex_tensor(dtype, product))


def complex_tensor(dtype, rows):
    """A matrix of complex numbers, the real part of each before the imaginary one."""
    parts = [part for row in rows for value in row for part in (value.real, value.imag)]
    data = struct.pack(f"<{len(parts)}{'f' if dtype == 'complex64' else 'd'}", *parts)
    return Tensor(dtype, (len(rows), len(rows[0])), data)


ONES = [
    pytest.param("fp16", 3000, 0x3C00, 0x69DC, marks=clause("LANG-15-04"), id="fp16"),
    pytest.param("bf16", 300, 0x3F80, 0x4396, marks=clause("LANG-15-05"), id="bf16"),
    pytest.param("fp8_e4m3", 300, 0x38, 0x79, marks=clause("LANG-15-06"), id="fp8_e4m3"),
    pytest.param("fp8_e5m2", 300, 0x3C, 0x5D, marks=clause("LANG-15-14"), id="fp8_e5m2"),
]


@clause("LANG-10-02", "LANG-03.1-06")
@pytest.mark.parametrize(("dtype", "k", "one", "expected"), ONES)
def test_a_sum_of_ones_does_not_stop_growing(impl, check, dtype, k, one, expected):
    """A sum of ones is exact in fp32 in any order, at any level; in the operands' own type it would stick.

    3000 is 0x69dc in fp16 and 300 is 0x4396 in bf16; 300 rounds to 288 in e4m3 and to 320 in e5m2.
    """
    source = returning("op.matmul(A, B)", f"A: tensor<1x{k}x{dtype}>, B: tensor<{k}x1x{dtype}>")
    row, column = (Tensor.from_words(dtype, shape, [one] * k) for shape in ((1, k), (k, 1)))
    check.bits(value_of(impl, check, source, A=row, B=column), Tensor.from_words(dtype, (1, 1), [expected]))
