"""Sums that run in a known order are revealed as they are, in every dtype; what has no order is said to have none."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tessera_conformance.arithmetic import FOLD, PAIRWISE, NodeArithmetic, Tree, ring
from tessera_conformance.probe import Finding, Subject


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
    found = probed(subject(32, dtype), reduce=getattr(orders, name))
    assert found.tree == tree.canonical()
    assert found.pattern == words
    assert found.kind == "tree"
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic(dtype)
    assert (found.verdict, found.departures) == ("nothing declared", ())


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_a_wider_accumulator_is_recognised(dtype: str, probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(20, dtype), reduce=orders.in_type(np.float32, orders.fold))
    assert found.tree == FOLD.over(20)
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic("fp32")
    found = probed(subject(20, "fp32"), reduce=orders.in_type(np.float64, orders.fold))
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic("fp64")


@pytest.mark.parametrize("terms", [2, 3, 5, 7, 13, 100])
def test_any_number_of_terms(terms: int, probed: Callable[..., Finding], orders: ModuleType) -> None:
    assert probed(subject(terms), reduce=orders.pairwise).tree == PAIRWISE.over(terms).canonical()


@pytest.mark.parametrize("first", [0, 1, 3, 7])
def test_rings(first: int, probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(8), reduce=orders.ring_from(first))
    assert found.tree == ring(first).over(8).canonical()
    assert found.pattern == ("fold" if first == 0 else f"ring({first})")


def test_more_terms_than_a_count_has_bits(probed: Callable[..., Finding], orders: ModuleType) -> None:
    """bf16 counts to 256: the leaves of a longer sum are counted in parts."""
    found = probed(subject(300, "bf16"), reduce=orders.pairwise)
    assert found.tree == PAIRWISE.over(300).canonical()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "bits"), [(4, 24), (16, 24), (16, 30), (2, 26)])
def test_fused_blocks(width: int, bits: int, probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(64), reduce=orders.blocks(width, bits))
    steps: list[int] = []
    for first in range(0, 64, width):
        steps += [*range(first, first + width), -width - (first > 0)]
    assert found.tree == Tree.explicit(steps)
    assert found.pattern == f"fold in fused blocks of {width}"
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic("fp32", alignment_bits=bits)


def test_fused_blocks_that_add_exactly(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(24), reduce=orders.blocks(4, None))
    assert found.pattern == "fold in fused blocks of 4"
    assert found.arithmetic is not None
    assert found.arithmetic.model == NodeArithmetic("fp32")


def test_one_exact_sum(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(40), reduce=orders.exact)
    assert found.kind == "exact sum"
    assert found.pattern == "exact sum of all terms, rounded once, in no order"


@pytest.mark.parametrize("terms", [16, 33])
def test_kahan_is_no_tree(terms: int, probed: Callable[..., Finding], orders: ModuleType) -> None:
    """The masks see a fold; the replay of random terms shows that it is none."""
    found = probed(subject(terms), reduce=orders.kahan)
    assert found.kind == "no fixed tree"
    assert found.arithmetic is None
    assert found.evidence is not None
    assert found.evidence.proof in ("replay", "masks")
    if found.evidence.proof == "replay":
        assert found.evidence.witness["replayed"] != found.evidence.witness["found"]
        assert len(found.evidence.witness["inputs"]["terms"]) == terms
    else:
        assert found.evidence.pair is not None


@pytest.mark.parametrize("terms", [16, 64])
def test_an_order_that_varies_is_no_tree(terms: int, probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(terms), reduce=orders.Varying())
    assert found.kind == "no fixed tree"
    assert found.evidence is not None
    assert found.evidence.proof == "runs"
    assert found.evidence.witness["first"] != found.evidence.witness["again"]


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
    found = probed(subject(terms), seed=seed % 7, reduce=orders.nested(tree, None if exact else 26))
    assert found.tree == tree_of(tree)
    assert found.arithmetic is not None
    wide = found.tree.arity > 2
    assert found.arithmetic.model == NodeArithmetic("fp32", alignment_bits=26 if wide and not exact else None)


@pytest.mark.parametrize("shape", [(5, 16), (16, 5), (3, 16, 2)])
def test_sums_over_an_axis_of_a_larger_tensor(
    shape: tuple[int, ...], probed: Callable[..., Finding], orders: ModuleType
) -> None:
    axis = shape.index(16)
    place = tuple(extent - 1 for k, extent in enumerate(shape) if k != axis)
    found = probed(Subject("sum", shape, "fp32", axis=axis, element=place), reduce=orders.lanes)
    assert found.tree == lanes_tree(16)


def test_calls_are_counted_and_few(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(subject(128), reduce=orders.lanes)
    assert 127 <= found.calls < 128 * 127 / 8
