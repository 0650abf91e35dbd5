"""Kahan's sum against its definition, step by step in exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import InvalidArgument
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.node_arithmetic import NodeArithmetic
from tessera_reference.numerics.reductions import kahan
from tessera_reference.numerics.trees import FOLD


def by_definition(row: list[float], name: str, oracle) -> float:
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
    oracle.same(kahan(values).tolist(), [by_definition(row, name, oracle) for row in values.tolist()])


@pytest.mark.parametrize("name", ["fp8_e5m2", "fp16", "bf16"])
def test_narrow_types_are_compensated_in_the_accumulator(name, oracle, rng):
    form = dtype(name)
    values = np.ldexp(rng.integers(-3, 4, (20, 40)).astype(np.float64), rng.integers(-8, 8, (20, 40)))
    found = reductions.sum(Array(form, values.astype(np.float32)), 1, order="kahan").values
    expected = [oracle.nearest_or_special(by_definition(row, "fp32", oracle), name) for row in values.tolist()]
    oracle.same(found.tolist(), expected)


def test_what_each_addition_loses_is_added_back():
    """Each 1 beside 2**24 is lost by a fold; compensated, all are there in the end."""
    values = np.array([2.0**24, *[1.0] * 64], np.float32)
    assert reductions.sum(Array(dtype("fp32"), values), 0, tree=FOLD).values == 2.0**24
    assert reductions.sum(Array(dtype("fp32"), values), 0, order="kahan").values == 2.0**24 + 64
    assert kahan(np.array([2.0**24, 1, 1, -(2.0**24)], np.float32)) == 2


def test_a_first_term_smaller_than_the_next_loses_its_low_part():
    """Kahan's own weakness, which other compensations mend: in 1 + 2**30 - 2**30 the 1 is gone."""
    assert kahan(np.array([1.0, 2.0**30, -(2.0**30)], np.float32)) == 0


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


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_components_are_compensated_apart(name, oracle, rng):
    part = dtype(name).component
    values = np.ldexp(rng.standard_normal((2, 30)), rng.integers(-20, 20, (2, 30))).astype(part.carrier)
    values[1, 7] = math.inf
    found = kahan(np.array([complex(a, b) for a, b in values.T.tolist()], dtype(name).carrier))
    expected = [by_definition(row, part.name, oracle) for row in values.tolist()]
    oracle.same([float(found.real), float(found.imag)], expected)


def test_integers_have_nothing_to_compensate():
    assert kahan(np.array([2**31 - 1, 5, -3], np.int32)) == 2**31 - 1 + 2 - 2**32


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_along_any_axis(axis):
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert kahan(values, axis).tolist() == values.sum(axis).tolist()  # exact: small integers


def test_compensation_excludes_a_tree_and_another_arithmetic():
    x = Array(dtype("fp32"), np.ones(3, np.float32))
    fused = NodeArithmetic(dtype("fp32"), rounding="up")
    for given in ({"tree": FOLD}, {"arithmetic": fused}):
        with pytest.raises(InvalidArgument, match="order"):
            reductions.sum(x, 0, order="kahan", **given)
    with pytest.raises(InvalidArgument, match="order"):
        reductions.mean(x, 0, order="neumaier")
