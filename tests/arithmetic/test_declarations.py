"""Orders and node arithmetics as values: their two forms, what they are over leaves, and what is none."""

from __future__ import annotations

import random
from timeit import repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_conformance.arithmetic import ModelError, NodeArithmetic, canonical
from tessera_conformance.oracle.trees import FOLD, PAIRWISE, LeafCountError, Tree, TreeError, ring


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("fold", "fold"),
        ("pairwise", "pairwise"),
        ("ring(3)", {"ring": 3}),
        ("0", 0),
        ("(0 1)", [0, 1]),
        ("((c 0 1 2 3) 4 5 6 7)", [["c", 0, 1, 2, 3], 4, 5, 6, 7]),
        ("(2 (1 (0 c)))", [2, [1, [0, "c"]]]),
    ],
)
def test_text_and_json_say_the_same(text: str, value: Any) -> None:
    assert Tree.from_text(text) == Tree.from_json(value)
    assert Tree.from_text(text).to_text() == text
    assert Tree.from_text(text).to_json() == value


@pytest.mark.parametrize(
    ("tree", "terms", "text"),
    [
        (FOLD, 4, "(((0 1) 2) 3)"),
        (PAIRWISE, 5, "(((0 1) (2 3)) 4)"),
        (PAIRWISE, 7, "(((0 1) (2 3)) ((4 5) 6))"),
        (ring(2), 4, "(((2 3) 0) 1)"),
        (ring(6), 4, "(((2 3) 0) 1)"),
        (FOLD, 1, "0"),
        (ring(5), 1, "0"),
        (PAIRWISE, 0, "c"),
        (Tree.from_text("(1 0)"), 2, "(1 0)"),
    ],
)
def test_over_spells_the_tree_out(tree: Tree, terms: int, text: str) -> None:
    assert tree.over(terms).to_text() == text


@pytest.mark.parametrize(
    ("tree", "terms", "text"),
    [
        (FOLD, 3, "(((c 0) 1) 2)"),
        (PAIRWISE, 3, "(((0 1) 2) c)"),
        (ring(1), 3, "(((1 2) 0) c)"),
        (Tree.from_text("((0 1) 2)"), 3, "(((0 1) 2) c)"),
        (Tree.from_text("((c 0 1) 2)"), 3, "((c 0 1) 2)"),
        (FOLD, 1, "(c 0)"),
        (FOLD, 0, "c"),
    ],
)
def test_the_start_value_comes_first_in_a_fold_and_last_elsewhere(tree: Tree, terms: int, text: str) -> None:
    assert tree.with_start(terms).to_text() == text


@pytest.mark.parametrize(
    ("text", "without"),
    [("((c 0 1) 2 3)", "((0 1) 2 3)"), ("((c 0) 1)", "(0 1)"), ("(0 (1 c))", "(0 1)"), ("c", "c"), ("(0 1)", "(0 1)")],
)
def test_a_node_that_loses_the_start_value_may_give_way(text: str, without: str) -> None:
    assert Tree.from_text(text).without_start().to_text() == without


def test_the_order_of_children_does_not_matter_to_the_canonical_form() -> None:
    assert Tree.from_text("(((3 2) c) (1 0))").canonical().to_text() == "((c (2 3)) (0 1))"


MALFORMED = (
    "|x|Fold|(0  1)|(0)|((0) 1)|()|(0 1|0 1|(0 1))|(0 1) | (0 1)|(00 1)|(0 1 2 x)|(0(1 2))|(0 (1 2)3)|(0 -1)|ring(x)"
)


@pytest.mark.parametrize("text", MALFORMED.split("|"))
def test_a_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(TreeError, match=r"^tree '.*': expected fold, pairwise, ring"):
        Tree.from_text(text)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        *((value, "") for value in (None, True, -1, 1.0, [0], [], {"ring": -1}, {"ring": True}, {"ring": 1, "of": 2})),
        ([0, -2], r"\[1\]"),
        ([0, [1, "x"]], r"\[1\]\[1\]"),
        ([[0, True], 2], r"\[0\]\[1\]"),
    ],
)
def test_a_malformed_value_is_refused_at_its_place(value: Any, place: str) -> None:
    with pytest.raises(TreeError, match=f"^tree{place}: expected "):
        Tree.from_json(value)


def test_a_text_is_a_json_form_too_and_the_only_one_of_a_deep_tree() -> None:
    assert Tree.from_json("ring(1)") == ring(1)
    assert Tree.from_json("((0 1) 2)").to_json() == [[0, 1], 2]
    deep = FOLD.over(2048)
    assert Tree.from_json(deep.to_json()) == deep
    with pytest.raises(TreeError, match=r"^tree 'ring'"):
        Tree.from_json("ring")


@pytest.mark.parametrize("text", ["(0 0)", "(0 2)", "((0 1) (c c))", "((0 1) (3 4))"])
def test_every_leaf_is_named_once(text: str) -> None:
    with pytest.raises(TreeError, match=r"name 0\.\.n-1 once each"):
        Tree.from_text(text)


def test_a_tree_over_other_leaves_than_there_are_terms() -> None:
    with pytest.raises(LeafCountError, match="3 leaves, but 4 terms"):
        Tree.from_text("((0 1) 2)").over(4)


@pytest.mark.parametrize("steps", [[], [0, 1], [0, -2], [-2]])
def test_steps_that_leave_no_single_result(steps: list[int]) -> None:
    with pytest.raises(TreeError):
        Tree.explicit(steps)


@pytest.mark.parametrize("tree", [FOLD, PAIRWISE, ring(5)], ids=str)
def test_deep_trees_need_no_deep_stack(tree: Tree) -> None:
    explicit = tree.with_start(4096)
    assert Tree.from_text(explicit.to_text()) == explicit
    assert Tree.from_json(explicit.to_json()) == explicit
    assert explicit.canonical().leaves == explicit.without_start().leaves == 4096
    assert hash(explicit) == hash(tree.with_start(4096))


def test_a_chain_is_written_as_fast_as_a_balanced_tree() -> None:
    chain, balanced = (min(repeat(order.over(1 << 16).to_text, number=1, repeat=3)) for order in (FOLD, PAIRWISE))
    assert chain < 8 * balanced


def test_nodes_children_first() -> None:
    nodes = list(Tree.from_text("((c 0 1) (2 3))").nodes())
    assert nodes == [((), (0,), (1,)), ((2,), (3,)), ((0, 1), (2, 3))]


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_random_trees_survive_both_forms(terms: int, seed: int) -> None:
    chance = random.Random(seed)
    parts = [[leaf] for leaf in range(terms)] + ([[-1]] if chance.random() < 0.5 else [])
    while len(parts) > 1:
        arity = min(len(parts), chance.randint(2, 5))
        taken = [parts.pop(chance.randrange(len(parts))) for _ in range(arity)]
        parts.append([*(step for part in taken for step in part), -arity])
    tree = Tree.explicit(parts[0])
    assert Tree.from_text(tree.to_text()) == tree
    assert Tree.from_json(tree.to_json()) == tree
    assert tree.canonical().canonical() == tree.canonical()


WHOLE = {
    "product": "fused",
    "accumulator": "fp32",
    "rounding": "toward_zero",
    "alignment_bits": 24,
    "subnormals": "flushed",
}


def test_json_both_ways() -> None:
    assert NodeArithmetic.from_json(WHOLE).to_json() == WHOLE
    assert NodeArithmetic.from_json(WHOLE).alignment_bits == 24


@pytest.mark.parametrize(
    ("dtype", "accumulator"),
    [("bf16", "fp32"), ("tf32", "fp32"), ("fp8_e4m3", "fp32"), ("fp64", "fp64"), ("int8", "int32"), ("int64", "int64")],
)
def test_the_canon(dtype: str, accumulator: str) -> None:
    assert canonical(dtype).to_json() == {
        "product": "rounded",
        "accumulator": accumulator,
        "rounding": "nearest_even",
        "alignment_bits": None,
        "subnormals": "kept",
    }


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"product": "both"}, "product"),
        ({"accumulator": "fp33"}, "accumulator"),
        ({"accumulator": "bool"}, "accumulator"),
        ({"accumulator": ["fp32"]}, "accumulator"),
        ({"rounding": "nearest"}, "rounding"),
        *(({"alignment_bits": bits}, "alignment_bits") for bits in (-1, True, 1.0)),
        ({"subnormals": None}, "subnormals"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ModelError, match=f"^arithmetic.{field}: expected "):
        NodeArithmetic.from_json(WHOLE | changes)


@pytest.mark.parametrize("value", [None, "canonical", [], {"product": "rounded"}])
def test_what_is_no_model(value: Any) -> None:
    with pytest.raises(ModelError):
        NodeArithmetic.from_json(value)


def test_complex_numbers_have_no_model() -> None:
    with pytest.raises(ModelError, match="complex64"):
        canonical("complex64")
