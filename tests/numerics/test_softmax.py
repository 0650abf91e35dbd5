"""softmax against its definition, composed of exact rational steps."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import LeafCount, ShapeMismatch
from tessera_reference.numerics.formats import DTYPES, UnsupportedDType, dtype
from tessera_reference.numerics.reductions import softmax
from tessera_reference.numerics.rounding import round_to
from tessera_reference.numerics.trees import FOLD, Tree

FLOATS = [name for name, each in DTYPES.items() if each.kind == "float"]


def array(name: str, values: object) -> Array:
    return Array(dtype(name), round_to(np.array(values, np.float64), dtype(name)))


def exponential(x: float, name: str, oracle) -> float:
    with mpmath.workprec(300):
        mantissa, exponent = mpmath.exp(x).man_exp
    return oracle.nearest(Fraction(int(mantissa)) * Fraction(2) ** int(exponent), name)


def tree_sum(terms: list[float], name: str, oracle) -> float:
    while len(terms) > 1:
        tail = terms[len(terms) // 2 * 2 :]
        terms = [oracle.add(a, b, name) for a, b in zip(terms[0::2], terms[1::2], strict=False)] + tail
    return terms[0]


def by_definition(row: list[float], name: str, oracle) -> list[float]:
    inner = "fp64" if name == "fp64" else "fp32"
    exponentials = [exponential(oracle.subtract(x, max(row), inner), inner, oracle) for x in row]
    total = tree_sum(exponentials, inner, oracle)
    return [oracle.nearest_or_special(oracle.divide(e, total, inner), name) for e in exponentials]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 21])
@pytest.mark.parametrize("name", FLOATS)
def test_finite_rows(name, n, oracle, rng):
    x = array(name, rng.standard_normal((6, n)) * np.array([[0.1], [1], [4], [20], [60], [400]]))
    found = softmax(x)
    assert (found.dtype, found.shape) == (x.dtype, x.shape)
    for row, result in zip(x.values.tolist(), found.values.tolist(), strict=True):
        oracle.same(result, by_definition(row, name, oracle))


def test_the_sum_over_another_tree():
    """exp(-37) is less than half a unit beside 1: folded, four are lost one by one; added first, they are not."""
    x = array("fp64", [0.0, *[-37.0] * 4])
    assert softmax(x, tree=FOLD).values[0] == 1
    assert softmax(x, tree=Tree.parse("(0 ((1 2) (3 4)))")).values[0] < 1
    with pytest.raises(LeafCount):
        softmax(x, tree=Tree.parse("(0 1)"))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_any_axis(axis, oracle, rng):
    x = array("bf16", rng.standard_normal((2, 3, 5)))
    found = np.moveaxis(softmax(x, axis).values, axis, -1).reshape(-1, x.shape[axis])
    rows = np.moveaxis(x.values, axis, -1).reshape(-1, x.shape[axis])
    for row, result in zip(rows.tolist(), found.tolist(), strict=True):
        oracle.same(result, by_definition(row, "bf16", oracle))


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp32", "fp64", "tf32", "fp8_e5m2"])
def test_nan_infinity_and_rows_of_minus_infinity_spoil_their_own_row(name):
    inf, nan = math.inf, math.nan
    rows = [[0.0, 0.0], [nan, 1.0], [1.0, nan], [inf, 0.0], [-inf, -inf], [-inf, 3.0]]
    x = Array(dtype(name), np.array(rows, dtype(name).carrier))
    found = softmax(x).values
    assert found[0].tolist() == [0.5, 0.5]
    assert np.isnan(found[1:5]).all()
    assert found[5].tolist() == [0.0, 1.0]


def test_the_maximum_is_subtracted_so_large_numbers_stay_finite():
    x = array("fp32", [[3e38, 3e38, -3e38], [1000, 999, 0]])
    found = softmax(x).values
    assert found[0].tolist() == [0.5, 0.5, 0.0]
    assert np.isfinite(found).all()


def test_many_masked_elements_are_fast_and_zero():
    """-1e30 is how attention is masked; its exponential is decided without a high-precision fallback."""
    x = array("fp64", np.where(np.arange(200000) % 2, 1.0, -1e30))
    found = softmax(x).values
    assert found[0] == 0
    assert found[1] == 1e-5


@pytest.mark.parametrize(("shape", "axis"), [((2, 3), 2), ((2, 3), -3), ((), 0), ((), -1)])
def test_an_axis_out_of_range_is_refused(shape, axis):
    with pytest.raises(ShapeMismatch, match="out of range"):
        softmax(array("fp32", np.zeros(shape)), axis)


def test_nothing_to_normalise_is_refused_but_no_rows_are_fine():
    with pytest.raises(ShapeMismatch, match="extent 0"):
        softmax(array("fp32", np.zeros((2, 0))))
    assert softmax(array("fp32", np.zeros((0, 2)))).shape == (0, 2)


@pytest.mark.parametrize("name", ["int32", "bool", "complex64"])
def test_only_floats(name):
    with pytest.raises(UnsupportedDType):
        softmax(Array(dtype(name), np.ones((2, 2), dtype(name).carrier)))
