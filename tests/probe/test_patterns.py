"""What orders are called, and how they are drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from tessera_conformance.arithmetic import FOLD, PAIRWISE, Tree, ring
from tessera_conformance.probe.pattern import abbreviated, pattern
from tessera_conformance.probe.rendering import drawing


def blocks(count: int, size: int) -> Tree:
    """Folds over contiguous blocks, folded."""
    steps: list[int] = []
    for block in range(count):
        first = block * size
        steps += [first, *(entry for leaf in range(first + 1, first + size) for entry in (leaf, -2))]
        steps += [-2] if block else []
    return Tree.explicit(steps)


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (FOLD.over(9), "fold"),
        (PAIRWISE.over(11), "pairwise"),
        (ring(3).over(8), "ring(3)"),
        (Tree.from_text("0"), "one term"),
        (Tree.from_text("(0 1)"), "one addition"),
        (Tree.from_text("(0 1 2)"), "one fused node of 3"),
        (Tree.from_text("(((3 2) 1) 0)"), "fold from the last term"),
        (Tree.from_text("((((1 0) 4) 3) 2)"), "ring downwards from 1"),
        (Tree.from_text("(((((1 0) 3) 2) 5) 4)"), "fold, every 2 terms in reverse order"),
        (Tree.from_text("((((0 2) 4) 1) 3)"), "one term at a time, in the order 0 2 4 1 3"),
        (Tree.from_text("((0 1) (2 (3 4)))"), "recursive halving"),
        (Tree.from_text("((c 0 1 2 3) 4 5 6 7)"), "fold in fused blocks of 4"),
        (Tree.from_text("((0 1 2) 3 4)"), "fold in fused blocks of 2, 3 at first"),
        (Tree.from_text("(((0 2) 4) ((1 3) 5))"), "2 interleaved lanes, each fold; joined: one addition"),
        (blocks(4, 5), "4 blocks of 5, each fold; joined: fold"),
        (Tree.from_text("((0 5) ((1 3) (2 4) 6))"), "irregular: depth 3, nodes of at most 3"),
    ],
)
def test_names(tree: Tree, words: str) -> None:
    assert pattern(tree) == words


def test_long_trees_are_abbreviated() -> None:
    assert abbreviated(FOLD.over(5)) == "((((0 1) 2) 3) 4)"
    assert len(abbreviated(FOLD.over(500))) <= 160


@pytest.mark.parametrize("tree", [FOLD.over(2), PAIRWISE.over(64), FOLD.over(64), PAIRWISE.over(1000), FOLD.over(4096)])
def test_drawings_are_well_formed_and_bounded(tree: Tree) -> None:
    text = drawing(tree, "a < b & c")
    root = ElementTree.fromstring(text)
    shapes = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert len(text) < 60_000
    if tree.leaves <= 64:
        assert shapes.count("polygon") == 0
        assert shapes.count("circle") == tree.leaves - 1
    else:
        assert shapes.count("polygon") > 0
    assert shapes.count("line") <= 144
