"""Norms along an axis: their order and rounding, and what they do not take."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.programs import expression_twins, value_of
from tessera_conformance.dsl import returning, tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.vectors.judging import golden, judge

PARAMETERS = (
    "X: tensor<2x4xfp32>, g: tensor<4xfp32>, h: tensor<4xbf16>, two: tensor<2xfp32>, M: tensor<1x4xfp32>, "
    "I: tensor<2x4xint32>, i: tensor<4xint32>"
)


@golden("ir/normalization")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic and MPFR's root."""
    judge(impl, check, vector)


@feature("normalization")
@clause("LANG-02-04", "LANG-03.2-03", "LANG-11-03")
@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        ("op.layer_norm(X, g, g)", "op.layer_norm(X, two, g)"),
        ("op.layer_norm(X, g, g)", "op.layer_norm(X, g, two)"),
        ("op.layer_norm(X, g, g)", "op.layer_norm(X, M, g)"),
        ("op.layer_norm(X, two, two) @{axis=0}", "op.layer_norm(X, g, g) @{axis=0}"),
        ("op.layer_norm(X, g, g) @{axis=-1}", "op.layer_norm(X, g, g) @{axis=-3}"),
        ("op.rms_norm(X, g)", "op.rms_norm(X, two)"),
        ("op.rms_norm(X, g) @{axis=1}", "op.rms_norm(X, g) @{axis=2}"),
    ],
)
def test_vectors_have_an_element_for_each_position_along_the_axis(impl, check, call, wrong):
    """No other extent is stretched, and no other axis exists."""
    expression_twins(impl, check, call, wrong, PARAMETERS, "shapes")


@feature("normalization")
@clause("LANG-02-04", "LANG-03.1-05", "LANG-11-01")
@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        ("op.layer_norm(X, g, g)", "op.layer_norm(X, h, g)"),
        ("op.layer_norm(X, g, g)", "op.layer_norm(X, g, h)"),
        ("op.rms_norm(X, g)", "op.rms_norm(X, h)"),
        ("op.layer_norm(X, g, g)", "op.layer_norm(I, i, i)"),
        ("op.rms_norm(X, g)", "op.rms_norm(I, i)"),
        ("op.layer_norm(X, g, g)", "op.layer_norm(X, g)"),
        ("op.rms_norm(X, g)", "op.rms_norm(X, g, g)"),
    ],
)
def test_operands_are_floats_of_one_dtype(impl, check, call, wrong):
    """Nothing is cast for a norm, and it has a fixed number of operands."""
    expression_twins(impl, check, call, wrong, PARAMETERS, "types")


@feature("normalization")
@clause("LANG-02-04")
@pytest.mark.parametrize("axis", [0, 1])
def test_a_row_of_equal_elements_becomes_beta(impl, check, axis):
    """Four equal numbers have their mean exactly, whatever the order, and nothing is left to scale."""
    x = tensor_of("fp32", [[3.0] * 4] * 4)
    gamma, beta = tensor_of("fp32", [5.0, -7.0, 0.5, 1.0]), tensor_of("fp32", [1.5, -2.0, 0.25, 9.0])
    parameters = "X: tensor<4x4xfp32>, G: tensor<4xfp32>, B: tensor<4xfp32>"
    program = returning(f"op.layer_norm(X, G, B) @{{axis={axis}}}", parameters)
    actual = value_of(impl, check, program, X=x, G=gamma, B=beta)
    rows = [[1.5, -2.0, 0.25, 9.0]] * 4
    expected = rows if axis == 1 else [list(column) for column in zip(*rows, strict=True)]
    check.bits(actual, tensor_of("fp32", expected))
