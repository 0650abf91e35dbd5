"""Choice among elements: NaN wins, -0 lies below +0, what is not chosen leaves no trace.

What these operations refuse for its type or shape is in `rejections/`, but for calls that leave something out.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.programs import expression_twins, value_of
from tessera_conformance.dsl import returning, tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.vectors.judging import golden, judge


@golden("ir/selection")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic."""
    judge(impl, check, vector)


OPERANDS = "M: tensor<3xbool>, A: tensor<3xfp32>, B: tensor<3xfp32>, a: fp32"

INCOMPLETE = [
    ("op.select(M, A, B)", "op.select(M, A)"),
    ("op.select(M, A, B)", "op.select(M, A, B, B)"),
    ("op.select(M, A, B)", "op.select(A, M, B)"),
    ("op.maximum(A, B)", "op.maximum(A)"),
    ("op.maximum(A, B)", "op.maximum(A, B, a)"),
    ("op.minimum(A, B)", "op.minimum()"),
    ("op.clamp(A, a, a)", "op.clamp(A, a)"),
    ("op.clamp(A, a, a)", "op.clamp(A, a, a, a)"),
    ("op.abs(A)", "op.abs()"),
    ("op.abs(A)", "op.abs(A, B)"),
]


@clause("LANG-02-04", "LANG-11-01")
@feature("tensor-ops")
@pytest.mark.parametrize(("legal", "illegal"), INCOMPLETE, ids=[illegal for _, illegal in INCOMPLETE])
def test_an_operand_too_few_or_too_many_is_refused(impl, check, legal, illegal):
    """Every operation has a fixed number of operands."""
    expression_twins(impl, check, legal, illegal, OPERANDS)


LITERALS = [
    ("op.maximum(A, 2)", [2, 2, 3]),
    ("op.minimum(2, A)", [1, 2, 2]),
    ("op.clamp(A, 2, 2)", [2, 2, 2]),
    ("op.clamp(A, -1, 2)", [1, 2, 2]),
    ("op.select(A == 2, 0, A)", [1, 0, 3]),
    ("op.select(A != 2, A, -128)", [1, -128, 3]),
]


@clause("LANG-02-04", "LANG-02.3-42")
@feature("tensor-ops")
@pytest.mark.parametrize(("expression", "expected"), LITERALS, ids=[expression for expression, _ in LITERALS])
def test_literals_may_be_operands(impl, check, expression, expected):
    """A number is a scalar, here of int32, and is combined with every element."""
    value = value_of(impl, check, returning(expression, "A: tensor<3xint32>"), A=tensor_of("int32", [1, 2, 3]))
    check.bits(value, tensor_of("int32", expected))


@clause("LANG-02.3-42", "LANG-02.3-72")
@feature("tensor-ops")
@pytest.mark.parametrize("dtype", ["bf16", "fp64", "int8", "int64"])
@pytest.mark.parametrize(
    "expression",
    ["op.maximum(A, 2)", "op.minimum(4, op.maximum(2, A))", "op.clamp(A, 2, 4)", "op.select(A < 2, 2, A)"],
)
def test_a_literal_beside_a_tensor_has_its_dtype(impl, check, dtype, expression):
    """In an operation as beside an operator, whichever operand it is (AMB-LANG-125)."""
    tensor = f"tensor<3x{dtype}>"
    value = value_of(impl, check, returning(expression, f"A: {tensor}", tensor), A=tensor_of(dtype, [1, 2, 3]))
    check.bits(value, tensor_of(dtype, [2, 2, 3]))
