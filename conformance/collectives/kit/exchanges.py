"""The results of a collective and of its single messages, computed from the definitions alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from math import prod
from typing import Any

import pytest

from tessera_conformance.check import Check
from tessera_conformance.marks import feature

ALGORITHMS = ("ring", "tree", "halving_doubling", "hierarchical", "direct")
OWN_OR_NAMED = ["", *(pytest.param(name, marks=feature("algorithm-control")) for name in ALGORITHMS)]
"""The choice that is left to the library, and each algorithm by its name, which a library may not take."""

WAYS: tuple[dict[str, str], ...] = ({}, *({"algorithm": name} for name in ALGORITHMS))
"""The choice that is left to the library, then each algorithm by its name."""
RANKS = (1, 2, 3, 5, 7, 8)
"""One, powers of two, primes."""

OPERATORS: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "sum": sum,
    "prod": prod,
    "mean": lambda column: Fraction(sum(column), len(column)),
    "max": max,
    "min": min,
}


def named_algorithm(algorithm: str) -> dict[str, str]:
    """Return the argument that names an algorithm, none for the choice of the library."""
    return {"algorithm": algorithm} if algorithm else {}


def share(count: int, rank: int, ranks: int) -> slice:
    """Return the slice of `count` elements that a rank owns (AMB-RT-04)."""
    return slice(rank * count // ranks, (rank + 1) * count // ranks)


def afterwards(operation: str, rows: Sequence[Sequence[Any]], op: str = "", root: int = 0) -> list[list[Any]]:
    """Return the flat buffers of all ranks after a collective, of exact values."""
    ranks, count = len(rows), len(rows[0])
    if operation == "broadcast":
        return [list(rows[root])] * ranks
    if operation == "all_gather":
        return [[value for row in rows for value in row]] * ranks
    if operation == "all_to_all":
        block = count // ranks
        return [[v for row in rows for v in row[rank * block : (rank + 1) * block]] for rank in range(ranks)]
    reduced = [OPERATORS[op](column) for column in zip(*rows, strict=True)]
    if operation == "all_reduce":
        return [reduced] * ranks
    return [reduced[share(count, rank, ranks)] for rank in range(ranks)]


Held = list[list[Any]]
"""The contents of every rank's buffer by place: None, a rank's contribution, or a pair of such, combined."""


def followed(check: Check, messages: Iterable[Mapping[str, Any]], type_: Held) -> Held:
    """Return the ranks' values after the messages; those of a step read their senders' values from before it.

    Check that no contribution is combined twice: a sum would count it double.
    """
    type_ = [list(chunk) for chunk in type_]
    for _, step in groupby(messages, key=lambda message: message["step"]):
        together = list(step)
        sent = [
            type_[message["source"]][message["first"] : message["first"] + message["count"]] for message in together
        ]
        for message, values in zip(together, sent, strict=True):
            for place, value in enumerate(values, start=message["first"]):
                own = type_[message["target"]][place]
                if message["combines"] and contributions(own) & contributions(value):
                    check.true(False, f"no contribution is combined twice: {message}", [own, value])
                type_[message["target"]][place] = frozenset((own, value)) if message["combines"] else value
    return type_


def contributions(order: Any) -> frozenset[int]:
    """Return the ranks whose contributions are in a value."""
    if order is None:
        return frozenset()
    if isinstance(order, int):
        return frozenset((order,))
    return frozenset().union(*(contributions(child) for child in order))


def unordered(tree: Any) -> Any:
    """Return a JSON tree without the order of a node's two operands, which a sum of two numbers cannot show."""
    return frozenset(unordered(subtree) for subtree in tree) if isinstance(tree, list) else tree
