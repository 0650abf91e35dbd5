"""Reductions over trees against their definitions in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_conformance.chapters.ir.variants.declared_arithmetic import DeclaredArithmetic
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array, code_dtype, decode
from tessera_reference.numerics.errors import InvalidArgument, LeafCount
from tessera_reference.numerics.formats import DTYPES, dtype
from tessera_reference.numerics.reductions import softmax
from tessera_reference.numerics.rounding import round_to
from tessera_reference.numerics.trees import FOLD, PAIRWISE, Tree

FLOATS = [name for name, dtype in DTYPES.items() if dtype.kind == "float"]
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


@pytest.mark.parametrize("values", [wild, tame])
@pytest.mark.parametrize("tree", [None, *BINARY_TREES])
@pytest.mark.parametrize("name", FLOATS)
def test_sums_and_products_of_floats(name, tree, values, oracle, rng):
    x = values(name, (40, 5), rng)
    text = BINARY_TREES[tree or "pairwise"]
    for reduce, step in ((reductions.sum, oracle.add), (reductions.prod, oracle.multiply)):
        actual = reduce(x, -1, tree=tree and Tree.parse(tree))
        assert (actual.dtype, actual.shape) == (x.dtype, (40,))
        totals = [over(text, row, lambda a, b, step=step: step(a, b, inner(name))) for row in x.values.tolist()]
        oracle.same(actual.values.tolist(), [oracle.nearest_or_special(total, name) for total in totals])


@pytest.mark.parametrize("name", FLOATS)
@given(st.data())
@settings(derandomize=True, deadline=None, max_examples=30)
def test_one_node_over_all_is_the_exact_result_rounded_once(name, oracle, data):
    """In the accumulator, and then to the dtype."""
    low, high = {8: (-3, 3), 16: (-11, 12)}.get(dtype(name).bits, (-30, 30))
    term = st.builds(math.ldexp, st.integers(-7, 7), st.integers(low, high))
    row = data.draw(st.lists(term, min_size=2, max_size=9))
    tree = Tree.from_json(list(range(len(row))))
    for reduce, exact in ((reductions.sum, sum(map(Fraction, row))), (reductions.prod, math.prod(map(Fraction, row)))):
        actual = float(reduce(rounded(name, row), 0, tree=tree).values)
        expected = oracle.nearest_or_special(oracle.nearest(exact, inner(name)), name) if exact else 0.0
        assert actual == expected


def test_a_long_fold_needs_no_recursion_and_any_explicit_order_no_more():
    x = array("fp32", np.ones((4096, 3)))
    for tree in (FOLD, Tree.ring(1000), FOLD.over(4096), PAIRWISE.over(4096)):
        assert reductions.sum(x, 0, tree=tree).values.tolist() == [4096] * 3


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


@pytest.mark.parametrize("reduce", [reductions.sum, reductions.prod, reductions.mean, reductions.logsumexp])
def test_a_tree_over_another_number_of_elements_is_refused(reduce):
    for shape in ((4,), (0,))[: 1 if reduce is reductions.logsumexp else 2]:
        with pytest.raises(LeafCount) as caught:
            reduce(array("fp32", np.zeros(shape)), 0, tree=Tree.parse("((0 1) 2)"))
        assert (caught.value.expected, caught.value.found) == (shape[0], 3)


def test_compensation_excludes_a_tree_and_another_arithmetic():
    x = Array(dtype("fp32"), np.ones(3, np.float32))
    directed = DeclaredArithmetic(dtype("fp32"), rounding="up")
    for options in ({"tree": FOLD}, {"arithmetic": directed}):
        with pytest.raises(InvalidArgument, match="order"):
            reductions.sum(x, 0, order="kahan", **options)
    with pytest.raises(InvalidArgument, match="order"):
        reductions.mean(x, 0, order="neumaier")


def test_many_masked_elements_are_fast_and_zero():
    """-1e30 is how attention is masked; its exponential is decided without a high-precision fallback."""
    x = rounded("fp64", np.where(np.arange(200000) % 2, 1.0, -1e30))
    actual = softmax(x).values
    assert actual[0] == 0
    assert actual[1] == 1e-5
