"""Reduction trees: every form names the same nodes, and what is no tree over the leaves is refused."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tessera_conformance.arithmetic import Tree, TreeError
from tessera_conformance.oracle.exact import BadArgument
from tessera_conformance.oracle.reductions import grown, reduced


def spelled(tree: Any, count: int, *, start: bool = False) -> str:
    """The additions in the order they happen, in brackets."""
    return str(reduced(grown(tree, count, start=start), str, "c", lambda children: f"({' '.join(children)})"))


TREES = [
    ("fold", 4, "(((0 1) 2) 3)"),
    ("pairwise", 4, "((0 1) (2 3))"),
    ("pairwise", 5, "(((0 1) (2 3)) 4)"),
    ("pairwise", 7, "(((0 1) (2 3)) ((4 5) 6))"),
    ("ring(2)", 4, "(((2 3) 0) 1)"),
    ("ring(5)", 4, "(((1 2) 3) 0)"),
    ({"ring": 1}, 3, "((1 2) 0)"),
    ("((2 0) 1)", 3, "((2 0) 1)"),
    ([[2, 0], 1], 3, "((2 0) 1)"),
    ("(0 1 2)", 3, "(0 1 2)"),
    ("0", 1, "0"),
    (0, 1, "0"),
    ("fold", 1, "0"),
    ("pairwise", 1, "0"),
]


@pytest.mark.parametrize(("tree", "count", "expected"), TREES)
def test_trees_without_a_start_value(tree: Any, count: int, expected: str) -> None:
    assert spelled(tree, count) == expected


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ("fold", "(((c 0) 1) 2)"),
        ("pairwise", "(((0 1) 2) c)"),
        ("ring(1)", "(((1 2) 0) c)"),
        ("((0 1) 2)", "(((0 1) 2) c)"),
        ("((c 0 1) 2)", "((c 0 1) 2)"),
        ([["c", 0, 1], 2], "((c 0 1) 2)"),
    ],
)
def test_a_fold_takes_the_start_value_first_and_other_trees_last(tree: Any, expected: str) -> None:
    assert spelled(tree, 3, start=True) == expected


def test_a_named_start_value_stands_even_where_none_is_given() -> None:
    assert spelled("((c 0) 1)", 2) == "((c 0) 1)"


NO_TREES = [
    *("(0 1)", "((0 1) (1 2))", "((0 1) 3)", "((0 1) 2", "(0 1 2))", "(0 (1) 2)", "tree", "ring(x)", "(c c 0 1 2)"),
    *("", [[0, 1]], [0, 1, 2, "d"], {"ring": "1"}, {"rings": 1}, [0, 1, True], None, [0, 1, 2.0]),
]


@pytest.mark.parametrize("tree", NO_TREES)
def test_what_is_no_tree_over_three_leaves_is_refused(tree: Any) -> None:
    with pytest.raises(BadArgument, match="tree"):
        grown(tree, 3, start=False)


def nesting(random: Random, leaves: list[Any]) -> Any:
    """Any nesting of these leaves."""
    if len(leaves) == 1:
        return leaves[0]
    cuts = sorted(random.sample(range(1, len(leaves)), random.randint(1, min(3, len(leaves) - 1))))
    return [nesting(random, leaves[start:end]) for start, end in zip([0, *cuts], [*cuts, len(leaves)], strict=True)]


def some_trees() -> Iterator[tuple[Any, int]]:
    """The trees above and many nestings, with and without a start value, as arrays and as text."""
    yield from ((tree, count) for tree, count, _ in TREES)
    yield from ((name, count) for name in ("fold", "pairwise", "ring(3)") for count in range(1, 20))
    random = Random(17)
    for count in range(2, 40):
        leaves: list[Any] = [*range(count), *(["c"] if count % 2 else [])]
        random.shuffle(leaves)
        tree = nesting(random, leaves)
        yield from ((tree, count), (Tree.from_json(tree).to_text(), count))


def test_the_other_reading_of_trees_reads_the_same() -> None:
    """The oracle's and the one that the probe and the replay use."""
    for tree, count in some_trees():
        other = Tree.from_json(tree)
        assert spelled(tree, count) == other.over(count).to_text()
        assert spelled(tree, count, start=True) == other.with_start(count).to_text()


@pytest.mark.parametrize("tree", NO_TREES)
def test_the_other_reading_refuses_the_same(tree: Any) -> None:
    with pytest.raises(TreeError):
        Tree.from_json(tree).over(3)


@pytest.mark.slow
def test_deep_trees_are_no_trouble() -> None:
    nested: Any = 0
    for leaf in range(1, 20_000):
        nested = [nested, leaf]
    assert reduced(grown(nested, 20_000, start=False), lambda leaf: leaf, 0, sum) == sum(range(20_000))
