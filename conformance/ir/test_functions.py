"""Elementary functions: correctly rounded, exhaustively where a type has 16 bits."""

from __future__ import annotations

from tessera_conformance.vectors.judging import golden, judge


@golden("ir/functions")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by MPFR."""
    judge(impl, check, vector)
