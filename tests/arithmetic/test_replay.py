"""Replays of sums and products: on exact values and on the fast path, in every order, arithmetic and rounding."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from tessera_conformance.arithmetic import NodeArithmetic, canonical, fast_sums, replay
from tessera_conformance.arithmetic.replay import flushed, result_of
from tessera_conformance.oracle.exact import (
    FORMATS,
    INFINITY,
    NAN,
    NEGATIVE_INFINITY,
    NEGATIVE_ZERO,
    ZERO,
    FloatFormat,
    Rounding,
    Value,
    exponent_of,
    float_format,
)
from tessera_conformance.oracle.reductions import matmul, sum_
from tessera_conformance.oracle.trees import FOLD, PAIRWISE, LeafCountError, Tree, ring
from tessera_conformance.tensors import Tensor

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
    """Matrix units of accelerators align so: 1 - 1 + 2^-24 needs 24 bits below the leading one."""
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


TREES = [FOLD, PAIRWISE, ring(3), Tree.from_text("((c 0 1 2 3) 4 5 6 7)"), Tree.from_text("((0 1) (2 (3 4)) 5 (6 7))")]
ROUNDINGS = ("nearest_even", "nearest_away", "toward_zero", "up", "down")
MODELS = [
    NodeArithmetic(accumulator, product_, rounding, bits, kept)  # type: ignore[arg-type]
    for accumulator, product_, rounding, bits, kept in product(
        ("fp32", "fp64"), ("rounded", "fused"), ROUNDINGS, (24,), ("kept", "flushed")
    )
]

MODELS += [model.but(start="none") for model in MODELS]


def hard(numbers: Any, scale: float) -> Any:
    """Rows of ordinary, tiny, cancelling, zero and infinite numbers."""
    numbers = numbers.copy()
    numbers[0] *= numbers.dtype.type(scale)
    numbers[1, 1:4] = 0, -0.0, 0
    numbers[2] = -0.0
    numbers[3, 1::2] = -numbers[3, 0::2]
    numbers[4, 2] = np.inf
    numbers[5, 5] = np.nan
    numbers[6] = np.round(numbers[6]) * numbers.dtype.type(np.finfo(numbers.dtype).eps / 2)
    numbers[6, 0] = 1
    return numbers


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("tree", TREES, ids=str)
def test_the_fast_path_gives_the_bits_of_the_exact_one(
    kind: type, tree: Tree, wide: Callable[..., Any], tensor: Callable[[Any], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    a = hard(wide((7, 8), kind), 1e-38 if kind is np.float32 else 1e-307)
    b = wide((8, 2), kind)
    b[3, 0], b[4, 1] = 0, -0.0
    dtype = tensor(a).dtype
    fast = [model for model in MODELS if fast_sums.can(tree.with_start(8), model, dtype)]
    assert fast or tree.arity > 2
    quick = [(replay.matmul(tensor(a), tensor(b), tree, m), replay.sum(tensor(a), 1, tree, m)) for m in fast]
    monkeypatch.setattr(fast_sums, "can", lambda *_: False)
    for model, (products, sums) in zip(fast, quick, strict=True):
        assert replay.matmul(tensor(a), tensor(b), tree, model).bits() == products.bits(), model
        assert replay.sum(tensor(a), 1, tree, model).bits() == sums.bits(), model


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "tf32"])
@pytest.mark.parametrize("out", [None, "fp32", "bf16"])
def test_narrow_operands_take_both_paths_to_the_same_bits(
    dtype: str, out: str | None, draw: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    width = {"fp16": 2, "bf16": 2, "tf32": 4}.get(dtype, 1)
    a, b = Tensor(dtype, (5, 6), draw.bytes(30 * width)), Tensor(dtype, (6, 4), draw.bytes(24 * width))
    models = [canonical(dtype), canonical(dtype).but(product="fused", subnormals="flushed")]
    tree = Tree.from_text("((c 0 1 2) 3 4 5)")
    models += [model.but(alignment_bits=25, rounding="toward_zero") for model in models]
    chosen = [(tree_, model) for tree_ in (FOLD, tree) for model in models]
    quick = [replay.matmul(a, b, tree_, model, out).bits() for tree_, model in chosen]
    monkeypatch.setattr(fast_sums, "can", lambda *_: False)
    assert [replay.matmul(a, b, tree_, model, out).bits() for tree_, model in chosen] == quick


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_fused_products_are_those_of_the_c_library(
    kind: type, wide: Callable[..., Any], tensor: Callable[[Any], Tensor], fused: dict[type, Any]
) -> None:
    for spread in (8, 60) if kind is np.float32 else (8, 500):
        a, b = wide((40, 3), kind, spread), wide((3, 5), kind, spread)
        expected = np.zeros((40, 5), kind)
        for row, column in product(range(40), range(5)):
            for k in range(3):
                expected[row, column] = fused[kind](a[row, k], b[k, column], expected[row, column])
        model = canonical(tensor(a).dtype).but(product="fused")
        assert replay.matmul(tensor(a), tensor(b), FOLD, model).bits() == tensor(expected).bits()


def test_a_loop_of_products_and_sums(wide: Callable[..., Any], tensor: Callable[[Any], Tensor]) -> None:
    a, b = wide((2, 4, 9)), wide((2, 9, 3))
    expected = np.zeros((2, 4, 3), np.float32)
    for k in range(9):
        expected = expected + a[:, :, k, None] * b[:, None, k, :]
    assert replay.matmul(tensor(a), tensor(b), FOLD, canonical("fp32")).bits() == tensor(expected).bits()


def test_a_start_operand(wide: Callable[..., Any], tensor: Callable[[Any], Tensor]) -> None:
    a, b, c = wide((3, 5)), wide((5, 2)), wide((3, 2))
    expected = c
    for k in range(5):
        expected = expected + a[:, k, None] * b[None, k, :]
    actual = replay.matmul(tensor(a), tensor(b), FOLD, canonical("fp32"), start=tensor(c))
    assert actual.bits() == tensor(expected).bits()


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sums_over_each_axis(axis: int, wide: Callable[..., Any], tensor: Callable[[Any], Tensor]) -> None:
    x = wide((4, 6))
    rows = np.moveaxis(x, axis, 0)
    expected = rows[0]
    for row in rows[1:]:
        expected = expected + row
    actual = replay.sum(tensor(x), axis, FOLD, canonical("fp32"))
    assert (actual.shape, actual.bits()) == (expected.shape, tensor(expected).bits())
    kept = replay.sum(tensor(x), axis, FOLD, canonical("fp32"), keepdims=True)
    assert kept.shape == tuple(1 if place == axis % 2 else extent for place, extent in enumerate(x.shape))


def test_all_reduce_adds_over_ranks(wide: Callable[..., Any], tensor: Callable[[Any], Tensor]) -> None:
    ranks = [wide((5,)) for _ in range(4)]
    expected = ((ranks[2] + ranks[3]) + ranks[0]) + ranks[1]
    actual = replay.all_reduce([tensor(rank) for rank in ranks], ring(2), canonical("fp32"))
    assert actual.bits() == tensor(expected).bits()


def test_rows_of_inner_products(wide: Callable[..., Any], tensor: Callable[[Any], Tensor]) -> None:
    a, b = wide((6, 7)), wide((6, 7))
    rows = [replay.matmul(tensor(a[k : k + 1]), tensor(b[k, :, None]), PAIRWISE, canonical("fp32")) for k in range(6)]
    assert replay.inner(tensor(a), tensor(b), PAIRWISE, canonical("fp32")).bits() == "".join(r.bits() for r in rows)


def test_tf32_operands_lose_thirteen_bits() -> None:
    a = Tensor("tf32", (1, 1), np.float32(1 + 2**-11 + 2**-12).tobytes())
    one = Tensor("tf32", (1, 1), np.float32(1).tobytes())
    assert replay.matmul(a, one, FOLD, canonical("tf32")).words().view(np.float32)[0] == np.float32(1 + 2**-10)


def test_integers_wrap_in_the_accumulator_and_again_in_the_result() -> None:
    a = Tensor("int8", (1, 2), np.array([[100, 100]], np.int8).tobytes())
    b = Tensor("int8", (2, 1), np.array([[2], [3]], np.int8).tobytes())
    assert replay.matmul(a, b, FOLD, canonical("int8"), "int32").words()[0] == 500
    assert replay.matmul(a, b, FOLD, canonical("int8")).words()[0] == 500 % 256


def test_empty_sums() -> None:
    empty = Tensor("fp32", (0, 3), b"")
    assert replay.sum(empty, 0, PAIRWISE, canonical("fp32")).bits() == "00000000" * 3
    none = Tensor("fp32", (2, 0), b"")
    assert replay.matmul(none, empty, FOLD, canonical("fp32")).bits() == "00000000" * 6


def test_an_environment_that_flushes_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_sums, "environment_is_sound", lambda: False)
    assert not fast_sums.can(FOLD.over(2), canonical("fp32"), "fp32")


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda x, i: replay.sum(x, 2, FOLD, canonical("fp32")), "axis"),
        (lambda x, i: replay.sum(i, 0, FOLD, canonical("fp32")), "x"),
        (lambda x, i: replay.sum(x, 0, FOLD, canonical("int8")), "x"),
        (lambda x, i: replay.matmul(x, i, FOLD, canonical("fp32")), "b"),
        (lambda x, i: replay.matmul(x, x, FOLD, canonical("fp32")), "b"),
        (lambda x, i: replay.all_reduce([], FOLD, canonical("fp32")), "inputs"),
        (lambda x, i: replay.sum(Tensor("complex64", (1,), bytes(8)), 0, FOLD, canonical("fp32")), "x"),
    ],
)
def test_operands_that_do_not_fit(call: Callable[[Tensor, Tensor], Tensor], argument: str) -> None:
    x, i = Tensor("fp32", (2, 3), bytes(24)), Tensor("int8", (3, 2), bytes(6))
    with pytest.raises(replay.ReplayError, match=f"^{argument}: "):
        call(x, i)


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_a_product_may_start_from_its_first_term(tree: Tree, tensor: Callable[[Any], Tensor]) -> None:
    """A sum of negative zeros is then negative, but one of no terms is +0; a C operand enters all the same."""
    model = canonical("fp32").but(start="none")
    a, b = tensor(np.full((1, 8), -0.0, np.float32)), tensor(np.ones((8, 1), np.float32))
    assert replay.matmul(a, b, tree, canonical("fp32")).bits() == "00000000"
    assert replay.matmul(a, b, tree, model).bits() == "80000000"
    assert replay.matmul(a, b, tree, model.but(product="fused")).bits() == "80000000"
    c = tensor(np.ones((1, 1), np.float32))
    assert replay.matmul(a, b, tree, model, start=c).bits() == "3f800000"
    nothing = tensor(np.ones((1, 0), np.float32)), tensor(np.ones((0, 1), np.float32))
    assert replay.matmul(*nothing, FOLD, model).bits() == "00000000"


def of(dtype: str, numbers: object, kind: type) -> Tensor:
    array = np.asarray(numbers, kind)
    return Tensor(dtype, array.shape, array.tobytes())


def test_a_fused_product_beyond_the_range_is_still_finite() -> None:
    """fma(x, y, -inf) is -inf for finite x and y, though x * y alone would overflow to +inf."""
    a, b = of("fp64", [[-1e200, 1e200]], np.float64), of("fp64", [[1e200], [1e200]], np.float64)
    actual = replay.matmul(a, b, FOLD, canonical("fp64").but(product="fused"))
    assert np.frombuffer(actual.data)[0] == -np.inf


def test_a_single_leaf_is_rounded_to_the_accumulator() -> None:
    x = Tensor.from_words("fp16", (1,), [0x3C01])
    assert replay.sum(x, 0, FOLD, NodeArithmetic("bf16")).words().tolist() == [0x3C00]


def test_integers_wrap_whatever_is_aligned() -> None:
    x = of("int32", [1 << 30, 3, 5], np.int32)
    from_text = type(FOLD).from_text
    actual = replay.sum(x, 0, from_text("(0 1 2)"), NodeArithmetic("int32", alignment_bits=4))
    assert np.frombuffer(actual.data, np.int32)[0] == (1 << 30) + 8


def test_the_oracle_rounds_the_c_operand_to_the_accumulator() -> None:
    one = of("fp32", [[1.0]], np.float32)
    c = of("fp64", [[2.0**24 + 1 + 2.0**-10]], np.float64)
    assert np.frombuffer(matmul(one, one, c, out="fp64").data)[0] == 2.0**24 + 4  # 2**24 + 2, plus 1, is a tie


def test_the_oracle_compensates_parts_of_complex_numbers_for_themselves() -> None:
    """An infinity in the imaginary part leaves the compensation of the real part alone."""
    tiny = 2.0**-24
    x = of("complex64", [1, complex(tiny, np.inf), tiny, tiny], np.complex64)
    actual = np.frombuffer(sum_(x, 0, tree="kahan").data, np.float32)
    assert actual[0] == np.float32(1 + 2.0**-22)


DIRECTIONS: tuple[Rounding, ...] = ("nearest_even", "nearest_away", "toward_zero", "up", "down")
SMALL = FloatFormat(exponent_bits=4, fraction_bits=3)
CODES = range(SMALL.largest_code + 1)
VALUES = [Fraction(SMALL.decode(code)) for code in CODES]  # type: ignore[arg-type]


def expected(number: Fraction, direction: Rounding) -> Value:
    """By search: the neighbours in the list of all values, one step beyond the largest standing for infinity."""
    negative, size = number < 0, abs(number)
    values = [*VALUES, 2 * VALUES[-1] - VALUES[-2]]
    place = bisect_left(values, size)
    if place >= len(values):
        below, above = len(values) - 1, len(values) - 1
    else:
        above = place
        below = place if values[place] == size else place - 1
    outward = direction == ("down" if negative else "up")
    if direction in ("toward_zero", "up", "down"):
        chosen = above if outward else below
        if not outward:
            chosen = min(chosen, len(VALUES) - 1)
    else:
        low, high = size - values[below], values[above] - size
        tied = above if direction == "nearest_away" or above % 2 == 0 else below
        chosen = below if low < high else above if high < low else tied
    if chosen >= len(VALUES):
        return NEGATIVE_INFINITY if negative else INFINITY
    if VALUES[chosen] == 0:
        return NEGATIVE_ZERO if negative else Fraction(0)
    return -VALUES[chosen] if negative else VALUES[chosen]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_against_all_values_of_a_small_format(direction: Rounding) -> None:
    chance = random.Random(direction)
    grid = SMALL.smallest / 8
    for _ in range(4000):
        number = grid * chance.randint(1, 1 << chance.randint(1, 21)) * chance.choice((-1, 1))
        assert SMALL.round(number, direction) == expected(number, direction), number


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_values_of_the_format_stay(direction: Rounding) -> None:
    for value in [*VALUES, *(-value for value in VALUES[1:]), NEGATIVE_ZERO, INFINITY, NEGATIVE_INFINITY, NAN]:
        assert SMALL.round(value, direction) == value


def test_eight_bit_floats_stop_at_their_largest_value() -> None:
    e4m3 = float_format("fp8_e4m3")
    assert e4m3.round(Fraction(10**6), "up") == 448
    assert e4m3.round(Fraction(-(10**6)), "nearest_away") == -448


def test_integers_wrap_in_every_direction() -> None:
    assert FORMATS["int32"].round(Fraction(2**31), "up") == -(2**31)


def test_flushing_keeps_the_sign() -> None:
    format_ = float_format("fp32")
    assert flushed(-format_.smallest_normal / 2, format_) is NEGATIVE_ZERO
    assert flushed(format_.smallest_normal / 2, format_) == 0
    assert flushed(format_.smallest_normal, format_) == format_.smallest_normal
    model = NodeArithmetic("fp32", subnormals="flushed")
    assert result_of(format_.smallest_normal * 3 / 4, model) == 0
    assert result_of(format_.smallest_normal * 3 / 4, model.but(subnormals="kept")) == format_.smallest_normal * 3 / 4


@pytest.mark.parametrize(("number", "exponent"), [("1", 0), ("3/2", 0), ("2", 1), ("7/8", -1), ("-1/3", -2), ("4", 2)])
def test_exponents(number: str, exponent: int) -> None:
    assert exponent_of(Fraction(number)) == exponent
