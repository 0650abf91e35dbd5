"""Reductions of up to 300 elements, past the tiles, warps and blocks of any implementation."""

from __future__ import annotations

from tessera_conformance.vectors.judging import golden, judge


@golden("ir/long_reductions")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic."""
    judge(impl, check, vector)
