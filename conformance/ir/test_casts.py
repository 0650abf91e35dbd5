"""Casts: one rounding from the exact value, between all dtypes."""

from __future__ import annotations

from tessera_conformance.vectors.judging import golden, judge


@golden("ir/casts")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic."""
    judge(impl, check, vector)
