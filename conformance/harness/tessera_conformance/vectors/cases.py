"""Golden vectors as cases of the suite: one test function, one case for each vector of a topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tessera_conformance.check import Check
from tessera_conformance.marks import clause, feature, level, title
from tessera_conformance.session import Implementation
from tessera_conformance.vectors import Vector, load
from tessera_conformance.verdicts import LEVELS


def golden(topic: str) -> Callable[[Any], Any]:
    """Parametrize a test over the vectors of a topic: clauses, features, level and title come from each."""
    return pytest.mark.parametrize(
        "vector",
        [
            pytest.param(
                vector,
                id=vector.name,
                marks=[
                    clause(*vector.clauses),
                    feature(*vector.features),
                    level(*_levels(vector)),
                    title(vector.comment),
                ],
            )
            for vector in load(topic)
        ],
    )


def _levels(vector: Vector) -> tuple[str, ...]:
    """Integers and booleans have one right answer at every level; floats are frozen for the vector's own."""
    exact = not any(answer.format.is_float for answer in vector.expected)
    return LEVELS if exact else (vector.provenance.level,)


def judge(impl: Implementation, check: Check, vector: Vector) -> None:
    """Ask the vector's question and compare every bit of the answer."""
    area, _, method = vector.call.method.partition(".")
    value = check.returns(getattr(getattr(impl, area), method)(**vector.call.params))
    check.equal(len(value["outputs"]), len(vector.expected), "the number of results")
    for found, expected in zip(value["outputs"], vector.expected, strict=True):
        check.bits(found, expected)
