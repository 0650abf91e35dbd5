"""Golden vectors as cases of the suite: one test function, one case for each vector of a topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

from tessera_conformance.check import Check
from tessera_conformance.marks import clause, feature, level, title
from tessera_conformance.oracle import bounds
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors import Vector, load
from tessera_conformance.verdicts import LEVELS


def golden(topic: str) -> Callable[[Any], Any]:
    """Parametrize a test over the vectors of a topic: clauses, features, level and title come from each."""
    return _parametrize([(vector, _levels(vector)) for vector in load(topic)])


def bounded(topic: str) -> Callable[[Any], Any]:
    """Parametrize a test over the two-dimensional float vectors of a topic, for every level."""
    answers = [(vector, vector.expected[0]) for vector in load(topic)]
    plain = [vector for vector, answer in answers if answer.format.is_float and len(answer.shape) == 2]
    return _parametrize([(vector, LEVELS) for vector in plain])


def _parametrize(vectors: Sequence[tuple[Vector, Sequence[str]]]) -> Callable[[Any], Any]:
    return pytest.mark.parametrize(
        "vector",
        [
            pytest.param(
                vector,
                id=vector.name,
                marks=[
                    clause(*vector.clauses),
                    feature(*vector.features),
                    level(*levels),
                    title(vector.comment),
                ],
            )
            for vector, levels in vectors
        ],
    )


def _levels(vector: Vector) -> tuple[str, ...]:
    """Integers and booleans have one right answer at every level; floats are frozen for the vector's own."""
    exact = not any(answer.format.is_float for answer in vector.expected)
    return LEVELS if exact else (vector.provenance.level,)


def judge(impl: Implementation, check: Check, vector: Vector) -> None:
    """Ask the vector's question and compare every bit of the answer."""
    outputs = _outputs(impl, check, vector)
    for found, expected in zip(outputs, vector.expected, strict=True):
        check.bits(found, expected)


def judge_product(impl: Implementation, check: Check, vector: Vector) -> None:
    """Ask for a matrix product and hold each element against the bound of every order of summation."""
    (found,), (expected,) = _outputs(impl, check, vector), vector.expected
    form = (found.dtype, found.shape) if isinstance(found, Tensor) else None
    check.equal(form, (expected.dtype, expected.shape), "dtype and shape")
    oracle = vector.provenance.check
    left, right = (vector.call.inputs[name] for name in oracle.operands)
    enclosures = bounds.matmul(left, right, **oracle.arguments)
    exact = [enclosure.exact if enclosure else None for enclosure in enclosures]
    check.within(found, exact, [enclosure.error if enclosure else Fraction(0) for enclosure in enclosures])


def _outputs(impl: Implementation, check: Check, vector: Vector) -> list[Any]:
    area, _, method = vector.call.method.partition(".")
    value = check.returns(getattr(getattr(impl, area), method)(**vector.call.params))
    check.equal(len(value["outputs"]), len(vector.expected), "the number of results")
    return list(value["outputs"])
