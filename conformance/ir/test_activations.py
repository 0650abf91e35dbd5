"""Activations: compositions in the accumulator type, one final rounding."""

from __future__ import annotations

from tessera_conformance.vectors.judging import golden, judge


@golden("ir/activations")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by MPFR and exact rational arithmetic."""
    judge(impl, check, vector)
