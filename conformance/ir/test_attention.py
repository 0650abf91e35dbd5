"""Scaled dot-product attention: the operations of one program compose without losing a bit."""

from __future__ import annotations

from tessera_conformance.vectors.cases import golden, judge


@golden("ir/attention")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic."""
    judge(impl, check, vector)
