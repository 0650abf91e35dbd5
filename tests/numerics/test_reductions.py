"""Reductions, compensated sums and softmax against their definitions in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array, code_dtype, decode
from tessera_reference.numerics.errors import InvalidArgument, LeafCount
from tessera_reference.numerics.formats import DTYPES, UnsupportedDType, dtype
from tessera_reference.numerics.node_arithmetic import NodeArithmetic
from tessera_reference.numerics.reductions import kahan, softmax
from tessera_reference.numerics.rounding import round_to
from tessera_reference.numerics.trees import FOLD, PAIRWISE, Tree

FLOATS = [name for name, each in DTYPES.items() if each.kind == "float"]


INTS = {"int8": 32, "int16": 32, "int32": 32, "int64": 64}


COMPLEX = ["complex64", "complex128"]


ALL = [reductions.sum, reductions.prod, reductions.mean, reductions.max, reductions.min, reductions.argmax]


BINARY_TREES = {
    "fold": "((((0 1) 2) 3) 4)",
    "pairwise": "(((0 1) (2 3)) 4)",
    "ring(7)": "((((2 3) 4) 0) 1)",
    "((4 (1 3)) (0 2))": "((4 (1 3)) (0 2))",
}


inf, nan = math.inf, math.nan


def array(name: str, values: object) -> Array:
    return Array(dtype(name), np.array(values, dtype(name).carrier))


def rounded(name: str, values: object) -> Array:
    return Array(dtype(name), round_to(np.array(values, np.float64), dtype(name)))


def wild(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Random codes: sums cancel, overflow, and meet subnormals, infinities and NaN."""
    form = dtype(name)
    code = code_dtype(form)
    return Array(form, decode(rng.integers(0, np.iinfo(code).max, shape, code, endpoint=True), form))


def tame(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Full significands of similar size, so that most steps are inexact."""
    return rounded(name, rng.standard_normal(shape) * 2.0 ** rng.integers(-2, 3, shape))


def inner(name: str) -> str:
    return "fp64" if name == "fp64" else "fp32"


def over(text: str, leaves: list[Any], node: Callable[[Any, Any], Any]) -> Any:
    """Evaluate a tree of two children a node from its text, by Python's own parser."""
    nested = eval(text.replace(" ", ","))  # a tuple of tuples

    def value(item: Any) -> Any:
        return node(*map(value, item)) if isinstance(item, tuple) else leaves[item]

    return value(nested)


def wrap(value: int, bits: int) -> int:
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


@pytest.mark.parametrize("values", [wild, tame])
@pytest.mark.parametrize("tree", [None, *BINARY_TREES])
@pytest.mark.parametrize("name", FLOATS)
def test_sums_and_products_of_floats(name, tree, values, oracle, rng):
    x = values(name, (40, 5), rng)
    text = BINARY_TREES[tree or "pairwise"]
    for reduce, step in ((reductions.sum, oracle.add), (reductions.prod, oracle.multiply)):
        found = reduce(x, -1, tree=tree and Tree.parse(tree))
        assert (found.dtype, found.shape) == (x.dtype, (40,))
        totals = [over(text, row, lambda a, b, step=step: step(a, b, inner(name))) for row in x.values.tolist()]
        oracle.same(found.values.tolist(), [oracle.nearest_or_special(total, name) for total in totals])


@pytest.mark.parametrize("values", [wild, tame])
@pytest.mark.parametrize("name", FLOATS)
def test_a_mean_divides_the_rounded_sum_by_the_rounded_count(name, values, oracle, rng):
    x = values(name, (40, 5), rng)
    totals = [
        over(BINARY_TREES["pairwise"], row, lambda a, b: oracle.add(a, b, inner(name))) for row in x.values.tolist()
    ]
    expected = [oracle.nearest_or_special(oracle.divide(total, 5.0, inner(name)), name) for total in totals]
    oracle.same(reductions.mean(x, 1).values.tolist(), expected)


@pytest.mark.parametrize("tree", [None, "fold", "((4 (1 3)) (0 2))", "(0 1 2 3 4)"])
@pytest.mark.parametrize("name", INTS)
def test_integers_wrap_in_the_accumulator_and_into_the_result(name, tree, rng):
    low, high = dtype(name).int_min, dtype(name).int_max
    values = rng.integers(low, high, (30, 5), np.int64, endpoint=True)
    x, bits = array(name, values), dtype(name).bits
    tree = tree and Tree.parse(tree)
    assert reductions.sum(x, 1, tree=tree).values.tolist() == [wrap(sum(row), bits) for row in values.tolist()]
    assert reductions.prod(x, 1, tree=tree).values.tolist() == [wrap(math.prod(row), bits) for row in values.tolist()]


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(name, oracle, rng):
    part = dtype(name).component.name
    values = rng.standard_normal((20, 5, 2)).astype(dtype(part).carrier)
    x = Array(dtype(name), values.view(dtype(name).carrier)[..., 0])

    def add(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
        return oracle.add(a[0], b[0], part), oracle.add(a[1], b[1], part)

    def multiply(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
        ac, bd, ad, bc = (
            oracle.multiply(p, q, part) for p, q in ((a[0], b[0]), (a[1], b[1]), (a[0], b[1]), (a[1], b[0]))
        )
        return oracle.subtract(ac, bd, part), oracle.add(ad, bc, part)

    for tree, (reduce, node) in product((None, "fold"), ((reductions.sum, add), (reductions.prod, multiply))):
        found = reduce(x, 1, tree=tree and Tree.parse(tree)).values
        expected = [over(BINARY_TREES[tree or "pairwise"], list(map(tuple, row)), node) for row in values.tolist()]
        oracle.same(found.view(dtype(part).carrier).tolist(), [component for pair in expected for component in pair])
    sums = reductions.sum(x, 1).values.view(dtype(part).carrier).tolist()
    means = reductions.mean(x, 1).values.view(dtype(part).carrier).tolist()
    oracle.same(means, [oracle.divide(component, 5.0, part) for component in sums])
    with pytest.raises(UnsupportedDType, match="three or more"):
        reductions.prod(x, 1, tree=Tree.parse("(0 1 2 3 4)"))


@pytest.mark.parametrize("name", FLOATS)
@given(st.data())
@settings(derandomize=True, deadline=None, max_examples=30)
def test_one_node_over_all_is_the_exact_result_rounded_once(name, oracle, data):
    """In the accumulator, and then to the dtype."""
    low, high = {8: (-3, 3), 16: (-11, 12)}.get(dtype(name).bits, (-30, 30))
    term = st.builds(math.ldexp, st.integers(-7, 7), st.integers(low, high))
    row = data.draw(st.lists(term, min_size=2, max_size=9))
    tree = Tree.from_json(list(range(len(row))))
    for reduce, exact in (
        (reductions.sum, sum(map(Fraction, row))),
        (reductions.prod, math.prod(map(Fraction, row))),
    ):
        found = float(reduce(rounded(name, row), 0, tree=tree).values)
        expected = oracle.nearest_or_special(oracle.nearest(exact, inner(name)), name) if exact else 0.0
        assert found == expected


@pytest.mark.parametrize("tree", ["fold", "pairwise", "ring(3)"])
def test_a_sum_of_minus_zeros_is_minus_zero_unless_the_tree_names_a_start(tree, oracle):
    x = array("fp32", [-0.0, -0.0])
    oracle.same([float(reductions.sum(x, 0, tree=Tree.parse(tree)).values)], [-0.0])
    oracle.same([float(reductions.sum(x, 0, tree=Tree.parse("((0 1) c)")).values)], [0.0])
    assert reductions.prod(array("fp32", [2, 3]), 0, tree=Tree.parse("((c 0) 1)")).values == 6


def test_nothing_sums_to_plus_zero_and_multiplies_to_one(oracle):
    for name in ("fp8_e4m3", "bf16", "fp64", "tf32", "int8", "int64", "complex64"):
        nothing = array(name, np.zeros((2, 0)))
        for tree in (None, FOLD, PAIRWISE, Tree.ring(1), Tree.parse("c")):
            found = reductions.sum(nothing, 1, tree=tree).values
            assert found.tolist() == [0, 0]
            assert not np.signbit(found.real).any()
            assert reductions.prod(nothing, 1, tree=tree).values.tolist() == [1, 1]
    oracle.same(reductions.mean(array("fp32", np.zeros((2, 0))), 1).values.tolist(), [nan, nan])
    oracle.same([float(reductions.sum(array("fp32", []), 0, order="kahan").values)], [0.0])


def test_a_long_fold_needs_no_recursion_and_any_explicit_order_no_more():
    x = array("fp32", np.ones((4096, 3)))
    for tree in (FOLD, Tree.ring(1000), FOLD.over(4096), PAIRWISE.over(4096)):
        assert reductions.sum(x, 0, tree=tree).values.tolist() == [4096] * 3


def key(x: float) -> tuple[float, float]:
    return x, math.copysign(1, x)


def first_largest(row: list[float]) -> int:
    for i, x in enumerate(row):
        if x != x:
            return i
    return max(range(len(row)), key=lambda i: (key(row[i]), -i))


@pytest.mark.parametrize("name", [*FLOATS, *INTS])
def test_extremes_and_their_first_place(name, oracle, rng):
    x = wild(name, (60, 7), rng) if name in FLOATS else array(name, rng.integers(-4, 4, (60, 7)))
    rows = x.values.tolist()
    found = reductions.argmax(x, 1)
    assert found.dtype.name == "int32"
    assert found.values.tolist() == [first_largest(row) for row in rows]
    for reduce, choose in ((reductions.max, max), (reductions.min, min)):
        oracle.same(
            reduce(x, 1).values.tolist(), [nan if any(v != v for v in row) else choose(row, key=key) for row in rows]
        )


def logsumexp(row: list[float], name: str, oracle) -> float:
    """Compose the definition of exact steps, functions to 200 bits."""
    form = inner(name)

    def function(of: Callable[[Any], Any], x: float) -> float:
        with mpmath.workprec(200):
            mantissa, exponent = of(mpmath.mpf(x)).man_exp
        value = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
        return oracle.nearest(value, form) if value else 0.0

    shift = max(row)
    exponentials = [function(mpmath.exp, oracle.subtract(x, shift, form)) for x in row]
    total = over(BINARY_TREES["pairwise"], exponentials, lambda a, b: oracle.add(a, b, form))
    return oracle.nearest_or_special(oracle.add(function(mpmath.log, total), shift, form), name)


@pytest.mark.parametrize("name", FLOATS)
def test_logsumexp_composes_rounded_steps(name, oracle, rng):
    x = rounded(name, rng.standard_normal((30, 5)) * 10.0 ** rng.integers(-2, 2, (30, 1)))
    expected = [logsumexp(row, name, oracle) for row in x.values.tolist()]
    oracle.same(reductions.logsumexp(x, 1).values.tolist(), expected)


def test_logsumexp_over_another_tree():
    """exp(-37) is less than half a unit beside 1: folded, four are lost one by one; added first, they are not."""
    x = array("fp64", [0.0, *[-37.0] * 4])
    assert reductions.logsumexp(x, 0, tree=FOLD).values == 0
    assert reductions.logsumexp(x, 0, tree=Tree.parse("(0 ((1 2) (3 4)))")).values > 0


@pytest.mark.parametrize("reduce", [*ALL, reductions.logsumexp])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_any_axis_dropped_or_kept(reduce, axis):
    values = (np.arange(24).reshape(2, 3, 4) * 7 % 11).astype(np.float32)
    found = reduce(Array(dtype("fp32"), values), axis)
    kept = reduce(Array(dtype("fp32"), values), axis, True)
    rows = np.moveaxis(values, axis, -1)
    expected = [reduce(Array(dtype("fp32"), row), 0).values.item() for row in rows.reshape(-1, rows.shape[-1])]
    assert found.values.tolist() == np.array(expected).reshape(rows.shape[:-1]).tolist()
    assert kept.shape == tuple(1 if i == axis % 3 else extent for i, extent in enumerate(values.shape))
    assert kept.values.ravel().tolist() == found.values.ravel().tolist()
    assert kept.dtype == found.dtype


@pytest.mark.parametrize("reduce", [reductions.sum, reductions.prod, reductions.mean, reductions.logsumexp])
def test_a_tree_over_another_number_of_elements_is_refused(reduce):
    for shape in ((4,), (0,))[: 1 if reduce is reductions.logsumexp else 2]:
        with pytest.raises(LeafCount) as caught:
            reduce(array("fp32", np.zeros(shape)), 0, tree=Tree.parse("((0 1) 2)"))
        assert (caught.value.expected, caught.value.found) == (shape[0], 3)


def compensated_by_definition(row: list[float], name: str, oracle) -> float:
    total, error = row[0], 0.0
    for x in row[1:]:
        y = oracle.subtract(x, error, name)
        following = oracle.add(total, y, name)
        error = oracle.subtract(oracle.subtract(following, total, name), y, name) if math.isfinite(following) else 0.0
        total = following
    return total


@pytest.mark.parametrize("n", [1, 2, 3, 17, 100])
@pytest.mark.parametrize("name", ["fp32", "fp64"])
def test_every_step_is_rounded(name, n, oracle, rng):
    values = np.ldexp(rng.standard_normal((20, n)), rng.integers(-30, 30, (20, n))).astype(dtype(name).carrier)
    oracle.same(kahan(values).tolist(), [compensated_by_definition(row, name, oracle) for row in values.tolist()])


@pytest.mark.parametrize("name", ["fp8_e5m2", "fp16", "bf16"])
def test_narrow_types_are_compensated_in_the_accumulator(name, oracle, rng):
    form = dtype(name)
    values = np.ldexp(rng.integers(-3, 4, (20, 40)).astype(np.float64), rng.integers(-8, 8, (20, 40)))
    found = reductions.sum(Array(form, values.astype(np.float32)), 1, order="kahan").values
    expected = [
        oracle.nearest_or_special(compensated_by_definition(row, "fp32", oracle), name) for row in values.tolist()
    ]
    oracle.same(found.tolist(), expected)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([math.inf, 1.0, 2.0], math.inf),
        ([1.0, -math.inf, 2.0], -math.inf),
        ([3e38, 3e38, 1.0], math.inf),
        ([3e38, 3e38, -3e38, -3e38], math.inf),
        ([math.inf, -math.inf, 1.0], math.nan),
        ([1.0, math.nan, 1.0], math.nan),
        ([-0.0], -0.0),
        ([-0.0, -0.0], -0.0),
        ([], 0.0),
    ],
)
def test_an_infinite_sum_stays_infinite(row, expected, oracle):
    """Without the rule for sums that are not finite, inf - inf would make every one of them NaN."""
    oracle.same([float(kahan(np.array(row, np.float32)))], [expected])


def test_compensation_excludes_a_tree_and_another_arithmetic():
    x = Array(dtype("fp32"), np.ones(3, np.float32))
    fused = NodeArithmetic(dtype("fp32"), rounding="up")
    for options in ({"tree": FOLD}, {"arithmetic": fused}):
        with pytest.raises(InvalidArgument, match="order"):
            reductions.sum(x, 0, order="kahan", **options)
    with pytest.raises(InvalidArgument, match="order"):
        reductions.mean(x, 0, order="neumaier")


def exponential(x: float, name: str, oracle) -> float:
    with mpmath.workprec(300):
        mantissa, exponent = mpmath.exp(x).man_exp
    return oracle.nearest(Fraction(int(mantissa)) * Fraction(2) ** int(exponent), name)


def tree_sum(terms: list[float], name: str, oracle) -> float:
    while len(terms) > 1:
        tail = terms[len(terms) // 2 * 2 :]
        terms = [oracle.add(a, b, name) for a, b in zip(terms[0::2], terms[1::2], strict=False)] + tail
    return terms[0]


def softmax_by_definition(row: list[float], name: str, oracle) -> list[float]:
    inner = "fp64" if name == "fp64" else "fp32"
    exponentials = [exponential(oracle.subtract(x, max(row), inner), inner, oracle) for x in row]
    total = tree_sum(exponentials, inner, oracle)
    return [oracle.nearest_or_special(oracle.divide(e, total, inner), name) for e in exponentials]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 21])
@pytest.mark.parametrize("name", FLOATS)
def test_finite_rows(name, n, oracle, rng):
    x = rounded(name, rng.standard_normal((6, n)) * np.array([[0.1], [1], [4], [20], [60], [400]]))
    found = softmax(x)
    assert (found.dtype, found.shape) == (x.dtype, x.shape)
    for row, result in zip(x.values.tolist(), found.values.tolist(), strict=True):
        oracle.same(result, softmax_by_definition(row, name, oracle))


def test_the_sum_over_another_tree():
    """exp(-37) is less than half a unit beside 1: folded, four are lost one by one; added first, they are not."""
    x = rounded("fp64", [0.0, *[-37.0] * 4])
    assert softmax(x, tree=FOLD).values[0] == 1
    assert softmax(x, tree=Tree.parse("(0 ((1 2) (3 4)))")).values[0] < 1
    with pytest.raises(LeafCount):
        softmax(x, tree=Tree.parse("(0 1)"))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_any_axis(axis, oracle, rng):
    x = rounded("bf16", rng.standard_normal((2, 3, 5)))
    found = np.moveaxis(softmax(x, axis).values, axis, -1).reshape(-1, x.shape[axis])
    rows = np.moveaxis(x.values, axis, -1).reshape(-1, x.shape[axis])
    for row, result in zip(rows.tolist(), found.tolist(), strict=True):
        oracle.same(result, softmax_by_definition(row, "bf16", oracle))


def test_many_masked_elements_are_fast_and_zero():
    """-1e30 is how attention is masked; its exponential is decided without a high-precision fallback."""
    x = rounded("fp64", np.where(np.arange(200000) % 2, 1.0, -1e30))
    found = softmax(x).values
    assert found[0] == 0
    assert found[1] == 1e-5
