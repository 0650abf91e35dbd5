"""Golden vectors as cases of the suite: one test function, one case for each vector of a topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tessera_conformance.marks import clause, feature, level, title
from tessera_conformance.vectors import load
from tessera_conformance.vectors.judging import judge, levels

__all__ = ["golden", "judge"]


def golden(topic: str) -> Callable[[Any], Any]:
    """Parametrize a test over the vectors of a topic: clauses, features, levels and title come from each."""
    return pytest.mark.parametrize(
        "vector",
        [
            pytest.param(
                vector,
                id=vector.name,
                marks=[
                    clause(*vector.clauses),
                    feature(*vector.features),
                    level(*levels(vector)),
                    title(vector.comment),
                ],
            )
            for vector in load(topic)
        ],
    )
