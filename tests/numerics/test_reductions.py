"""Reductions against their definitions: rounded step by step, or once, in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array, code_dtype, decode
from tessera_reference.numerics.errors import AxisOutOfRange, EmptyAxis, InvalidArgument, LeafCount, ShapeMismatch
from tessera_reference.numerics.formats import DTYPES, UnsupportedDType, dtype
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


def test_the_count_of_a_mean_is_rounded_to_the_accumulator():
    """2**24 + 1 ones sum, pairwise, to 2**24 in fp32, its last one lost; so is that of the count."""
    x = Array(dtype("fp32"), np.ones(2**24 + 1, np.float32))
    assert reductions.mean(x, 0).values == 1


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


def test_a_sum_in_the_order_asked_for():
    x = array("fp32", [2.0**24, 1, 1, -(2.0**24)])
    trees = {"fold": 0, "pairwise": 1, "ring(1)": 2, "((0 3) (1 2))": 2, "(0 1 2 3)": 2, "((0 1 2) 3)": 2}
    assert {tree: int(reductions.sum(x, 0, tree=Tree.parse(tree)).values) for tree in trees} == trees
    assert reductions.sum(x, 0).values == 1
    assert reductions.mean(x, 0, tree=FOLD).values == 0
    assert reductions.mean(x, 0, order="kahan").values == 0.5


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


@pytest.mark.parametrize("name", ["fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"])
def test_maxima_and_minima_order_zeros_and_propagate_nan(name, oracle):
    for row in permutations([-1.0, -0.0, 0.0]):
        x = array(name, row)
        oracle.same([float(reductions.max(x, 0).values)], [0.0])
        oracle.same([float(reductions.min(array(name, [abs(v) or v for v in row]), 0).values)], [-0.0])
        oracle.same([float(reductions.max(array(name, row[:2]), 0).values)], [max(row[:2], key=key)])
    for row in permutations([-inf, nan, inf, 0.0]):
        oracle.same([float(reductions.max(array(name, row), 0).values)], [nan])
        oracle.same([float(reductions.min(array(name, row), 0).values)], [nan])
    oracle.same([float(reductions.max(array(name, [-inf, -inf]), 0).values)], [-inf])


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


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ([1, 3, 3, 2], 1),
        ([-0.0, 0.0, 0.0], 1),
        ([-0.0, -0.0], 0),
        ([inf, nan, nan], 1),
        ([nan, inf], 0),
        ([-inf, -inf], 0),
        ([5], 0),
    ],
)
def test_argmax_names_the_first(row, place):
    assert reductions.argmax(array("fp32", row), 0).values == place


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


@pytest.mark.parametrize("name", ["fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"])
def test_logsumexp_of_special_rows(name, oracle):
    rows = [[-inf, -inf], [inf, 0], [inf, inf], [inf, -inf], [nan, 0], [0, nan], [nan, inf], [-inf, 3], [-0.0, -inf]]
    found = reductions.logsumexp(array(name, rows), 1).values.tolist()
    most = dtype(name).max_finite if name == "fp8_e5m2" else inf  # fp8 saturates
    oracle.same(found, [-most, most, most, most, nan, nan, nan, 3.0, 0.0])


def test_logsumexp_of_large_numbers_does_not_overflow():
    found = reductions.logsumexp(array("fp32", [[1e38, 1e38], [-1e38, -1e38], [1000, 1000]]), 1).values
    assert found.tolist() == [float(np.float32(x)) for x in (1e38, -1e38, 1000 + math.log(2))]


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


@pytest.mark.parametrize("reduce", [*ALL, reductions.logsumexp])
@pytest.mark.parametrize(("shape", "axis"), [((2, 3), 2), ((2, 3), -3), ((), 0), ((), -1)])
def test_an_axis_out_of_range_is_refused(reduce, shape, axis):
    problem = f"{reduce.__name__}: axis {axis} is out of range for rank {len(shape)}"
    with pytest.raises(AxisOutOfRange, match=problem) as caught:
        reduce(array("fp32", np.zeros(shape)), axis)
    assert isinstance(caught.value, ShapeMismatch)


@pytest.mark.parametrize("axis", [None, True, "0", 0.0, [0]])
def test_an_axis_is_a_whole_number(axis):
    for reduce in (*ALL, reductions.logsumexp):
        with pytest.raises(InvalidArgument, match=f"{reduce.__name__}: axis"):
            reduce(array("fp32", [1, 2]), axis)


@pytest.mark.parametrize("reduce", [reductions.max, reductions.min, reductions.argmax, reductions.logsumexp])
def test_nothing_has_no_extreme_but_no_rows_are_fine(reduce):
    with pytest.raises(EmptyAxis, match="axis 1 has extent 0"):
        reduce(array("fp32", np.zeros((2, 0))), 1)
    assert reduce(array("fp32", np.zeros((2, 0))), 0).shape == (0,)


@pytest.mark.parametrize(
    ("reduce", "names"),
    [
        (reductions.sum, ["bool"]),
        (reductions.prod, ["bool"]),
        (reductions.mean, ["bool", "int32"]),
        (reductions.max, ["bool", "complex64"]),
        (reductions.min, ["bool", "complex128"]),
        (reductions.argmax, ["bool", "complex64"]),
        (reductions.logsumexp, ["bool", "int8", "complex64"]),
    ],
)
def test_dtypes_without_the_operation_are_refused(reduce, names):
    for name in names:
        with pytest.raises(UnsupportedDType, match=reduce.__name__):
            reduce(Array(dtype(name), np.ones((2, 2), dtype(name).carrier)), 0)


@pytest.mark.parametrize("reduce", [reductions.sum, reductions.prod, reductions.mean, reductions.logsumexp])
def test_a_tree_over_another_number_of_elements_is_refused(reduce):
    for shape in ((4,), (0,))[: 1 if reduce is reductions.logsumexp else 2]:
        with pytest.raises(LeafCount) as caught:
            reduce(array("fp32", np.zeros(shape)), 0, tree=Tree.parse("((0 1) 2)"))
        assert (caught.value.expected, caught.value.found) == (shape[0], 3)
