"""Orders that the probe reveals: known and random ones, arithmetics of a fold, and the search itself."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tessera_conformance.arithmetic import NodeArithmetic
from tessera_conformance.oracle.trees import FOLD, PAIRWISE, Tree
from tessera_conformance.probe import Finding, Subject
from tessera_conformance.probe.commands import drawing


def subject(terms: int, dtype: str = "fp32") -> Subject:
    return Subject("sum", (terms,), dtype)


def lanes_tree(terms: int, width: int = 8) -> Tree:
    steps: list[int] = []
    for step in PAIRWISE.over(width).steps:
        lane = range(step, terms, width)
        steps += [step] if step < 0 else [lane[0], *(entry for leaf in lane[1:] for entry in (leaf, -2))]
    return Tree.explicit(steps)


@pytest.mark.parametrize("dtype", ["fp32", "fp64", "fp16", "bf16"])
@pytest.mark.parametrize(
    ("name", "tree", "words"),
    [
        ("fold", FOLD.over(32), "fold"),
        ("pairwise", PAIRWISE.over(32), "pairwise"),
        ("lanes", lanes_tree(32), "8 interleaved lanes, each fold; joined: pairwise"),
    ],
)
def test_orders_of_two_at_a_time(
    name: str, tree: Tree, words: str, dtype: str, probed: Callable[..., Finding], orders: ModuleType
) -> None:
    """numpy adds two numbers of any type with one rounding, so the accumulator is the type itself."""
    actual = probed(subject(32, dtype), reduce=getattr(orders, name))
    assert actual.tree == tree.canonical()
    assert actual.pattern == words
    assert actual.kind == "tree"
    assert actual.arithmetic is not None
    assert actual.arithmetic.model == NodeArithmetic(dtype)
    assert (actual.verdict, actual.departures) == ("nothing declared", ())


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_a_wider_accumulator_is_recognised(dtype: str, probed: Callable[..., Finding], orders: ModuleType) -> None:
    actual = probed(subject(20, dtype), reduce=orders.in_type(np.float32, orders.fold))
    assert actual.tree == FOLD.over(20)
    assert actual.arithmetic is not None
    assert actual.arithmetic.model == NodeArithmetic("fp32")
    actual = probed(subject(20, "fp32"), reduce=orders.in_type(np.float64, orders.fold))
    assert actual.arithmetic is not None
    assert actual.arithmetic.model == NodeArithmetic("fp64")


@pytest.mark.slow
@pytest.mark.parametrize(("width", "bits"), [(4, 24), (16, 24), (16, 30), (2, 26)])
def test_fused_blocks(width: int, bits: int, probed: Callable[..., Finding], orders: ModuleType) -> None:
    actual = probed(subject(64), reduce=orders.blocks(width, bits))
    steps: list[int] = []
    for first in range(0, 64, width):
        steps += [*range(first, first + width), -width - (first > 0)]
    assert actual.tree == Tree.explicit(steps)
    assert actual.pattern == f"fold in fused blocks of {width}"
    assert actual.arithmetic is not None
    assert actual.arithmetic.model == NodeArithmetic("fp32", alignment_bits=bits)


@pytest.mark.parametrize("terms", [16, 33])
def test_kahan_is_no_tree(terms: int, probed: Callable[..., Finding], orders: ModuleType) -> None:
    """The masks see a fold; the replay of random terms shows that it is none."""
    actual = probed(subject(terms), reduce=orders.kahan)
    assert actual.kind == "no fixed tree"
    assert actual.arithmetic is None
    assert actual.evidence is not None
    assert actual.evidence.proof in ("replay", "masks")
    if actual.evidence.proof == "replay":
        assert actual.evidence.witness["replayed"] != actual.evidence.witness["found"]
        assert len(actual.evidence.witness["inputs"]["terms"]) == terms
    else:
        assert actual.evidence.pair is not None


@pytest.mark.parametrize("terms", [16, 64])
def test_an_order_that_varies_is_no_tree(terms: int, probed: Callable[..., Finding], orders: ModuleType) -> None:
    actual = probed(subject(terms), reduce=orders.Varying())
    assert actual.kind == "no fixed tree"
    assert actual.evidence is not None
    assert actual.evidence.proof == "runs"
    assert actual.evidence.witness["first"] != actual.evidence.witness["again"]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), terms=st.integers(2, 24), arity=st.integers(2, 6), exact=st.booleans())
def test_random_trees_of_random_arity(
    seed: int,
    terms: int,
    arity: int,
    exact: bool,
    probed: Callable[..., Finding],
    orders: ModuleType,
    nesting: Callable[..., Any],
    tree_of: Callable[[Any], Tree],
) -> None:
    tree = nesting(random.Random(seed), terms, arity)
    actual = probed(subject(terms), seed=seed % 7, reduce=orders.nested(tree, None if exact else 26))
    assert actual.tree == tree_of(tree)
    assert actual.arithmetic is not None
    wide = actual.tree.arity > 2
    assert actual.arithmetic.model == NodeArithmetic("fp32", alignment_bits=26 if wide and not exact else None)


def test_calls_are_counted_and_few(probed: Callable[..., Finding], orders: ModuleType) -> None:
    actual = probed(subject(128), reduce=orders.lanes)
    assert 127 <= actual.calls < 128 * 127 / 8


def products_subject(dtype: str = "fp32", shape: tuple[int, ...] = (2, 16, 2), **options: Any) -> Subject:
    return Subject("matmul", shape, dtype, **options)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("rounded_products", NodeArithmetic("fp32")),
        ("fused_products", NodeArithmetic("fp32", "fused")),
        ("wide_products", NodeArithmetic("fp64", start="none")),
        ("flushed_products", NodeArithmetic("fp32", subnormals="flushed")),
    ],
)
def test_arithmetics_of_a_fold(
    name: str, model: NodeArithmetic, probed: Callable[..., Finding], orders: ModuleType
) -> None:
    actual = probed(products_subject(), products=getattr(orders, name))
    assert actual.tree == FOLD.over(16)
    assert actual.arithmetic is not None
    assert actual.arithmetic.model == model
    if model.accumulator == "fp32":
        assert actual.arithmetic.alike == ()
    assert actual.seen is not None
    assert actual.seen.start == ("+0" if name != "wide_products" else "none")


@pytest.mark.parametrize("tree", [FOLD.over(2), PAIRWISE.over(64), FOLD.over(64), PAIRWISE.over(1000), FOLD.over(4096)])
def test_drawings_are_well_formed_and_bounded(tree: Tree) -> None:
    text = drawing(tree, "a < b & c")
    root = ElementTree.fromstring(text)
    shapes = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert len(text) < 1_500_000
    assert (shapes.count("circle"), shapes.count("line")) == (tree.leaves - 1, 2 * tree.leaves - 2)
