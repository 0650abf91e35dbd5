"""Reductions: the order of sums and products, and the corners of every reduction."""

from __future__ import annotations

from tessera_conformance.vectors.judging import golden, judge


@golden("ir/reductions")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic."""
    judge(impl, check, vector)
