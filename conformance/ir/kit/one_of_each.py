"""One golden vector of each operation, for cases that ask every operation a question of their own."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import pytest

from tessera_conformance.marks import feature
from tessera_conformance.vectors import load
from tessera_conformance.vectors.files import Vector

TOPICS = (
    *("activations", "casts", "elementwise", "fourier", "functions", "fused_attention", "matmul"),
    *("movement", "normalization", "reductions", "selection", "softmax"),
)
"""Topics of operations without effects."""

DTYPES = ("fp32", "complex64")


def one_of_each(dtypes: Collection[str] = DTYPES) -> list[Any]:
    """Return a vector of each operation, as parameters of a test; a program has one statement besides its return."""
    found: dict[str, list[Vector]] = {}
    for topic in TOPICS:
        for vector in load(f"ir/{topic}"):
            operation = vector.provenance.check.function.removeprefix("oracle.")
            if vector.call.inputs and vector.name.partition("/")[0].partition("-to-")[0] in dtypes:
                found.setdefault(operation, []).append(vector)
    chosen = {operation: _best(vectors) for operation, vectors in found.items()}
    return [pytest.param(golden, id=operation, marks=feature(*golden.features)) for operation, golden in chosen.items()]


def _best(vectors: Sequence[Vector]) -> Vector:
    """Return a vector with counted data, if there is one; then the one with the fewest elements, but more than one."""
    return min(
        vectors, key=lambda vector: ("counted" not in vector.name, vector.expected[0].size < 2, vector.expected[0].size)
    )


def expression_of(vector: Vector) -> tuple[str, str]:
    """Return the type and the expression of the result in a vector's program.

    Raises `ValueError`: the program computes it in another way.
    """
    match = re.search(r"let R: (.*?) = (.*);\n", vector.call.params["source"])
    if match is None:
        raise ValueError(f"{vector.id}: no statement computes R")
    return match[1], match[2]
