"""Reduction trees as values: their two written forms and the leaves that they cover."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.numerics.errors import InvalidArgument, LeafCount, MalformedTree
from tessera_reference.numerics.trees import FOLD, Tree

EXPLICIT = {
    "0": 0,
    "c": "c",
    "(0 1)": [0, 1],
    "(1 0)": [1, 0],
    "((0 1) (2 3))": [[0, 1], [2, 3]],
    "(0 (1 (2 c)))": [0, [1, [2, "c"]]],
    "((c 0 1 2 3) 4 5 6 7)": [["c", 0, 1, 2, 3], 4, 5, 6, 7],
    "(10 9 8 7 6 5 4 3 2 1 0)": [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
}


@st.composite
def nestings(draw: st.DrawFn) -> tuple[Any, int]:
    """Nested lists over shuffled leaves, with c or without, and the number of leaves."""
    n = draw(st.integers(1, 12))
    row: list[Any] = draw(st.permutations(range(n)))
    if draw(st.booleans()):
        row = [*row, "c"]
    while len(row) > 1:
        size = draw(st.integers(2, min(len(row), 5)))
        at = draw(st.integers(0, len(row) - size))
        row = [*row[:at], row[at : at + size], *row[at + size :]]
    return row[0], n


@pytest.mark.parametrize(("text", "form"), [*EXPLICIT.items(), ("fold", "fold"), ("pairwise", "pairwise")])
def test_text_and_json_are_two_forms_of_one_value(text, form):
    tree = Tree.parse(text)
    assert str(tree) == text
    assert tree.to_json() == form
    assert Tree.from_json(form) == tree
    assert hash(Tree.from_json(form)) == hash(tree)


@pytest.mark.parametrize("first", [0, 3, 12345])
def test_a_ring_names_its_first_leaf(first):
    tree = Tree.parse(f"ring({first})")
    assert tree == Tree.ring(first) == Tree.from_json({"ring": first})
    assert (str(tree), tree.to_json()) == (f"ring({first})", {"ring": first})


@given(nestings())
@settings(derandomize=True, deadline=None, max_examples=80)
def test_every_nesting_survives_both_forms(nesting):
    form, n = nesting
    tree = Tree.from_json(form)
    assert tree.to_json() == form
    assert Tree.parse(str(tree)) == tree
    assert tree.over(n) == tree
    assert str(tree) == json.dumps(form).replace("[", "(").replace("]", ")").replace(",", "").replace('"', "")


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "expected a tree"),
        ("Fold", 1, "expected a leaf, c, ( or )"),
        ("ring(-1)", 1, "expected a leaf"),
        ("()", 2, "two or more children"),
        ("(0)", 3, "two or more children"),
        ("(0 (1))", 6, "two or more children"),
        ("(0 1", 5, "expected a child or )"),
        ("0 1", 3, "the tree has ended before this"),
        ("(0 1))", 6, "nothing is open that this could close"),
        (")", 1, "nothing is open"),
        ("(0 0)", 4, "leaf 0 occurs here a second time"),
        ("((c 0) c)", 8, "c occurs here a second time"),
        ("(0 2)", 4, "leaf 2 of a tree of 2, whose leaves are 0 to 1"),
        ("1", 1, "leaf 1 of a tree of 1"),
        ("(0  1)", 4, "expected a leaf"),
        ("( 0 1)", 3, "no space belongs before this"),
        ("(0 1 )", 6, "no space belongs before this"),
        ("(0 1) ", 7, "expected a leaf"),
        ("(0(1 2))", 3, "expected a space before this"),
        ("(00 1)", 3, "expected a space before this"),
        ("(0,1)", 3, "expected a leaf"),
        ("(0 \u0661)", 4, "expected a leaf"),
        ("(0 -1)", 4, "expected a leaf"),
        ("9" * 5000, 10, "expected a space before this"),
    ],
)
def test_malformed_text_is_refused_at_its_column(text, column, problem):
    with pytest.raises(MalformedTree) as caught:
        Tree.parse(text)
    assert problem in caught.value.problem
    assert (caught.value.column, caught.value.text) == (column, text)
    assert f"column {column}:" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        (None, "$", "expected"),
        (1.0, "$", "expected"),
        (True, "$", "expected"),
        ([0, [1, False]], "$[1][1]", "expected"),
        ([0, "fold"], "$[1]", "expected"),
        ([0, {"ring": 1}], "$[1]", "expected"),
        ([], "$", "two or more children"),
        ([[0], 1], "$[0]", "two or more children"),
        ([0, [1, 0]], "$[1][1]", "leaf 0 occurs here a second time"),
        ([0, 10**30], "$[1]", "expected"),
        ([[3, 1], 0], "$[0][0]", "leaf 3 of a tree of 3"),
        ({}, "$", "an object is"),
        ({"ring": -1}, "$", "an object is"),
        ({"ring": 1, "of": 2}, "$", "an object is"),
        ({"ring": True}, "$", "an object is"),
    ],
)
def test_malformed_json_is_refused_at_its_path(value, path, problem):
    with pytest.raises(MalformedTree) as caught:
        Tree.from_json(value)
    assert problem in caught.value.problem
    assert caught.value.path == path
    assert f"at {path}:" in str(caught.value)


def test_a_text_is_a_json_form_too_and_the_only_one_of_a_deep_tree():
    assert Tree.from_json("ring(1)") == Tree.ring(1)
    assert Tree.from_json("((0 1) 2)").to_json() == [[0, 1], 2]
    deep = Tree.parse("fold").over(2048)
    assert Tree.from_json(deep.to_json()) == deep
    with pytest.raises(MalformedTree):
        Tree.from_json("(0 1")


def test_an_explicit_tree_covers_its_own_number_of_leaves_only():
    with pytest.raises(LeafCount, match="5 elements are reduced, the tree has 3 leaves") as caught:
        Tree.parse("((c 0) 1 2)").over(5)
    assert (caught.value.expected, caught.value.found) == (5, 3)


@pytest.mark.parametrize("first", [-1, True, 10**9])
def test_a_ring_begins_at_a_leaf(first):
    with pytest.raises(InvalidArgument, match="first"):
        Tree.ring(first)


def test_ten_thousand_levels_need_no_recursion():
    n = 10_000
    text = "(" * (n - 1) + "0" + "".join(f" {leaf})" for leaf in range(1, n))
    tree = Tree.parse(text)
    assert tree == FOLD.over(n) == Tree.from_json(tree.to_json())
    assert str(tree) == text
    assert tree.evaluate(lambda leaf: leaf, sum, 0) == n * (n - 1) // 2
    with pytest.raises(MalformedTree):
        Tree.parse("(" * n)
    with pytest.raises(MalformedTree):
        Tree.parse(f"(0 {text})")
