"""Operators: one rounding to the result type, with ties, subnormals, saturation and wrapping."""

from __future__ import annotations

from tessera_conformance.vectors.judging import golden, judge


@golden("ir/elementwise")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic."""
    judge(impl, check, vector)
