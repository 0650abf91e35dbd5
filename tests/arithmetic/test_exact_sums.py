"""Sums on exact values, against numbers worked out by hand, the C library and plain loops of IEEE additions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tessera_conformance.arithmetic import FOLD, PAIRWISE, LeafCountError, NodeArithmetic, Tree, replay, ring
from tessera_conformance.oracle.exact import INFINITY, NAN, NEGATIVE_INFINITY, NEGATIVE_ZERO, ZERO, Value

FP32 = NodeArithmetic("fp32")
HALF_STEP = Fraction(1, 2**24)
ONE = Fraction(1)


def test_the_order_decides() -> None:
    terms = [ONE, HALF_STEP, HALF_STEP]
    assert replay.reduce(terms, FOLD, FP32) == 1
    assert replay.reduce(terms, Tree.from_text("(0 (1 2))"), FP32) == 1 + 2 * HALF_STEP
    assert replay.reduce(terms, ring(1), FP32) == 1 + 2 * HALF_STEP


@pytest.mark.parametrize(
    ("rounding", "result"),
    [
        ("nearest_even", ONE),
        ("nearest_away", 1 + 2 * HALF_STEP),
        ("toward_zero", ONE),
        ("up", 1 + 2 * HALF_STEP),
        ("down", ONE),
    ],
)
def test_a_tie_in_every_direction(rounding: Any, result: Fraction) -> None:
    assert replay.reduce([ONE, HALF_STEP], FOLD, FP32.but(rounding=rounding)) == result


def test_a_fused_node_rounds_once() -> None:
    terms = [ONE, HALF_STEP, HALF_STEP]
    assert replay.reduce(terms, Tree.from_text("(0 1 2)"), FP32) == 1 + 2 * HALF_STEP
    assert replay.reduce([ONE, -ONE, HALF_STEP**4], Tree.from_text("(0 1 2)"), FP32) == HALF_STEP**4


@pytest.mark.parametrize(("bits", "result"), [(24, Fraction(1, 2**24)), (23, ZERO)])
def test_an_aligned_node_drops_what_lies_below_the_largest_term(bits: int, result: Fraction) -> None:
    """As the matrix units of accelerators do: 1 - 1 + 2^-24 needs 24 bits below the leading one."""
    model = FP32.but(alignment_bits=bits)
    assert replay.reduce([ONE, -ONE, HALF_STEP], Tree.from_text("(0 1 2)"), model) == result
    assert replay.reduce([ONE, -ONE], Tree.from_text("(0 1)"), model) == 0


def test_alignment_cuts_toward_zero_on_both_sides() -> None:
    model = FP32.but(alignment_bits=2)
    nearly = Fraction(7, 16)
    tree = Tree.from_text("(0 1 2)")
    assert replay.reduce([ONE, nearly, ZERO], tree, model) == ONE + Fraction(1, 4)
    assert replay.reduce([ONE, -nearly, ZERO], tree, model) == ONE - Fraction(1, 4)


def test_alignment_does_not_touch_nodes_of_two() -> None:
    model = FP32.but(alignment_bits=2)
    assert replay.reduce([ONE, Fraction(7, 16)], FOLD, model) == Fraction(23, 16)


def test_fused_and_rounded_products() -> None:
    """(1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, which a product rounded to fp32 loses."""
    left, right = [1 + Fraction(1, 2**12), ONE], [1 + Fraction(1, 2**12), -(1 + Fraction(1, 2**11))]
    backward = Tree.from_text("((c 1) 0)")
    assert replay.product(left, right, backward, FP32) == 0
    assert replay.product(left, right, backward, FP32.but(product="fused")) == HALF_STEP


def test_of_two_products_in_a_node_the_first_is_rounded() -> None:
    """Alone in the node, c coming later: the first product is rounded, the second one fused."""
    big, small = [1 + Fraction(1, 2**12)] * 2, [ONE, -(1 + Fraction(1, 2**11))]
    left, right = [big[0], small[0]], [big[1], small[1]]
    fused = FP32.but(product="fused")
    assert replay.product(left, right, Tree.from_text("((0 1) c)"), fused) == 0
    assert replay.product(left, right, Tree.from_text("((1 0) c)"), fused) == HALF_STEP
    assert replay.product(left, right, Tree.from_text("(c 0 1)"), fused) == HALF_STEP


def test_a_start_value_goes_first_in_a_fold() -> None:
    terms = [HALF_STEP, HALF_STEP]
    assert replay.reduce(terms, FOLD, FP32, start=ONE) == 1
    assert replay.reduce(terms, PAIRWISE, FP32, start=ONE) == 1 + 2 * HALF_STEP
    assert replay.product(terms, [ONE, ONE], FOLD, FP32, start=ONE) == 1


@pytest.mark.parametrize(
    ("terms", "result"),
    [
        ([NEGATIVE_ZERO, NEGATIVE_ZERO], NEGATIVE_ZERO),
        ([NEGATIVE_ZERO, ZERO], ZERO),
        ([ONE, -ONE], ZERO),
        ([INFINITY, -ONE], INFINITY),
        ([INFINITY, NEGATIVE_INFINITY], NAN),
        ([NAN, ONE], NAN),
        ([Fraction(2) ** 127 * Fraction(3, 2)] * 2, INFINITY),
        ([], ZERO),
        ([NEGATIVE_ZERO], NEGATIVE_ZERO),
    ],
)
def test_special_values(terms: list[Value], result: Value) -> None:
    assert replay.reduce(terms, PAIRWISE, FP32) == result
    if len(terms) == 2:
        assert replay.reduce([*terms, terms[0]], Tree.from_text("(0 1 2)"), FP32.but(alignment_bits=24)) in (
            result,
            terms[0],
        )


def test_rounding_down_makes_negative_zeros() -> None:
    down = FP32.but(rounding="down")
    assert replay.reduce([ONE, -ONE], FOLD, down) is NEGATIVE_ZERO
    assert replay.reduce([ZERO, ZERO], FOLD, down) == ZERO
    assert replay.reduce([ZERO, NEGATIVE_ZERO], FOLD, down) is NEGATIVE_ZERO


def test_a_product_sum_starts_from_positive_zero() -> None:
    zeros: list[Value] = [NEGATIVE_ZERO, NEGATIVE_ZERO]
    assert replay.product(zeros, [ONE, ONE], FOLD, FP32) == ZERO
    assert replay.product(zeros, [ONE, ONE], PAIRWISE, FP32) == ZERO
    assert replay.product(zeros, [ONE, ONE], PAIRWISE, FP32, start=None) is NEGATIVE_ZERO


def test_integers_wrap() -> None:
    model = NodeArithmetic("int32")
    assert replay.reduce([Fraction(2**31 - 1), ONE], FOLD, model) == -(2**31)
    assert replay.product([Fraction(2**16)], [Fraction(2**16)], FOLD, model) == 0


def test_terms_and_leaves_must_fit() -> None:
    with pytest.raises(LeafCountError):
        replay.reduce([ONE], Tree.from_text("(0 1)"), FP32)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_loop_of_additions(kind: type, wide: Callable[..., Any], fractions: Callable[[Any], list[Fraction]]) -> None:
    model = NodeArithmetic("fp32" if kind is np.float32 else "fp64")
    for _ in range(50):
        terms = wide((33,), kind)
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        assert replay.reduce(fractions(terms), FOLD, model) == Fraction(float(total))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_loop_of_fused_multiply_adds(
    kind: type, wide: Callable[..., Any], fused: dict[type, Any], fractions: Callable[[Any], list[Fraction]]
) -> None:
    model = NodeArithmetic("fp32" if kind is np.float32 else "fp64", product="fused")
    for _ in range(50):
        left, right = wide((17,), kind), wide((17,), kind)
        total = kind(0)
        for x, y in zip(left, right, strict=True):
            total = fused[kind](x, y, total)
        assert replay.product(fractions(left), fractions(right), FOLD, model) == Fraction(float(total))
