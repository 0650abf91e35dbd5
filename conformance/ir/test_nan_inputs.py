"""NaN inputs of either sign and any fraction are NaN in every operation that tells NaN from numbers."""

from __future__ import annotations

from tessera_conformance.vectors.judging import golden, judge


@golden("ir/nan_inputs")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic; any NaN equals any NaN."""
    judge(impl, check, vector)
