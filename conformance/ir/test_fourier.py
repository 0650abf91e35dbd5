"""Fourier transforms of any length."""

from __future__ import annotations

from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.check import first_difference
from tessera_conformance.dsl import returning, tensor_of
from tessera_conformance.marks import clause
from tessera_conformance.vectors.judging import golden, judge


@golden("ir/fourier")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic (AMB-LANG-46)."""
    judge(impl, check, vector)


@clause("LANG-05.2-04")
def test_a_transform_without_a_norm_is_orthogonal(impl, check):
    """It has the bits of norm="ortho": the sum of four elements is halved (AMB-LANG-46)."""
    x = tensor_of("fp32", [1, 2, 3, 4])
    expressions = ["op.fft(X)", 'op.fft(X, norm="ortho")', 'op.fft(X, norm="backward")']
    bare, ortho, backward = (
        value_of(impl, check, returning(expression, "X: tensor<4xfp32>"), X=x) for expression in expressions
    )
    check.true(first_difference(ortho, backward) is not None, "the two norms differ")
    check.reading("AMB-LANG-46", "backward by default", first_difference(bare, backward) is None)
    check.bits(bare, ortho)
