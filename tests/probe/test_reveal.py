"""The search itself, on counts and survivors that need no implementation."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_conformance.arithmetic import FOLD, NodeArithmetic, Tree, replay
from tessera_conformance.probe import NotATree
from tessera_conformance.probe.calls import STYLES, samples, stacked
from tessera_conformance.probe.reveal import first_wrong_pair, reveal, reveal_exact_nodes


class Counts:
    """The pairs of a tree, or those of a table."""

    def __init__(
        self, tree: Tree | None = None, table: dict[tuple[int, int], int] | None = None, terms: int = 0
    ) -> None:
        self.terms = tree.leaves if tree is not None else terms
        self._nodes = [tuple(frozenset(child) for child in node) for node in tree.nodes()] if tree is not None else []
        self._table = table or {}

    def _meeting(self, i: int, j: int) -> tuple[frozenset[int], ...]:
        return next(node for node in self._nodes if {i, j} <= frozenset().union(*node))

    def lca(self, i: int, j: int) -> int:
        if self._table:
            return self._table[min(i, j), max(i, j)]
        return sum(map(len, self._meeting(i, j)))

    def survivors(self, i: int, j: int) -> frozenset[int]:
        met = [child for child in self._meeting(i, j) if i in child or j in child]
        return frozenset(range(self.terms)) - frozenset().union(*met)


@given(seed=st.integers(0, 2**32), terms=st.integers(2, 40), arity=st.integers(2, 7), pivots=st.integers(0, 9))
def test_both_searches_find_random_trees(
    seed: int,
    terms: int,
    arity: int,
    pivots: int,
    nesting: Callable[..., Any],
    tree_of: Callable[[Any], Tree],
) -> None:
    tree = tree_of(nesting(random.Random(seed), terms, arity))
    assert reveal(Counts(tree), pivots) == tree
    assert reveal_exact_nodes(Counts(tree), pivots) == tree
    assert first_wrong_pair(Counts(tree), tree, range(terms)) is None


@given(seed=st.integers(0, 2**32), terms=st.integers(3, 12))
def test_a_tree_is_confirmed_only_if_it_is_the_right_one(
    seed: int, terms: int, nesting: Callable[..., Any], tree_of: Callable[[Any], Tree]
) -> None:
    chance = random.Random(seed)
    one, other = (tree_of(nesting(chance, terms, 4)) for _ in range(2))
    assert (first_wrong_pair(Counts(one), other, range(terms)) is None) == (one == other)


TABLES = {
    "three leaves that meet two by two": {(0, 1): 2, (0, 2): 2, (1, 2): 2, (0, 3): 4, (1, 3): 4, (2, 3): 4},
    "no root": {(0, 1): 2, (2, 3): 2, (0, 2): 3, (0, 3): 3, (1, 2): 3, (1, 3): 3},
    "an exact sum": {(i, j): 2 for i in range(4) for j in range(i + 1, 4)},
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("seed", range(8))
def test_counts_that_fit_no_tree(table: dict[tuple[int, int], int], seed: int) -> None:
    with pytest.raises(NotATree) as caught:
        reveal(Counts(table=table, terms=4), seed)
    assert caught.value.pair is not None


def test_what_a_search_accepts_agrees_with_every_count_it_asked_for() -> None:
    """Random counts: whatever tree comes out has these counts at the pairs that were measured."""
    chance = random.Random(7)
    accepted = 0
    for _ in range(4000):
        terms = chance.randint(3, 5)
        table = {(i, j): chance.randint(2, terms) for i in range(terms) for j in range(i + 1, terms)}
        counts = Asked(table, terms)
        try:
            tree = reveal(counts, chance.randrange(5))
        except NotATree:
            continue
        accepted += 1
        assert all(Counts(tree).lca(*pair) == table[pair] for pair in counts.asked)
    assert accepted > 20


class Asked(Counts):
    """Keeps the pairs asked for."""

    def __init__(self, table: dict[tuple[int, int], int], terms: int) -> None:
        super().__init__(table=table, terms=terms)
        self.asked: set[tuple[int, int]] = set()

    def lca(self, i: int, j: int) -> int:
        self.asked.add((min(i, j), max(i, j)))
        return super().lca(i, j)


@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("dtype", ["fp32", "fp64", "bf16", "fp16"])
def test_rows_of_ties_tell_even_from_away(dtype: str, products: bool) -> None:
    rows = [row for k, row in enumerate(samples(dtype, 32, 16, products)) if STYLES[k % len(STYLES)] == "ties"]
    left, right = stacked(rows, dtype)
    even = NodeArithmetic("fp64" if dtype == "fp64" else "fp32")
    results = [
        replay.sum(left, 1, FOLD, model) if right is None else replay.inner(left, right, FOLD, model)
        for model in (even, even.but(rounding="nearest_away"))
    ]
    assert results[0].bits() != results[1].bits()
