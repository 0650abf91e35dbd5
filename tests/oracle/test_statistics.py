"""TOSA's tests of inner products: correct ones pass all three, and the rule that finds a violation is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.exact import BadArgument
from tessera_conformance.oracle.formats import values_of
from tessera_conformance.oracle.statistics import judge_products

TERMS = 512


@pytest.fixture
def factors(rng: np.random.Generator) -> tuple[Any, Any]:
    """Of either sign and nearly one size, so that no product stands out."""
    left, right = rng.uniform(1, 2, (2, 6, TERMS)) * rng.choice([-1, 1], (2, 6, TERMS))
    return left.astype(np.float32), right.T.astype(np.float32)


def sequential(a: Any, b: Any) -> Any:
    total = np.zeros((len(a), b.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        total = total + a[:, k : k + 1] * b[k : k + 1]
    return total


def test_correct_products_are_accepted_by_every_rule(factors: tuple[Any, Any], fast: Any) -> None:
    a, b = factors
    for result in (sequential(a, b), a @ b, (a.astype(np.float64) @ b).astype(np.float32)):
        verdict = judge_products(fast.tensor(a), fast.tensor(b), fast.tensor(result), unbiased=True)
        assert verdict.accepted, verdict.sentence()
        assert [rule.rule for rule in verdict.rules] == ["bound", "variance", "bias, squared"]


def test_only_the_variance_tells_tf32_at_512_terms(factors: tuple[Any, Any], fast: Any) -> None:
    """Every error lies within TOSA's bound, and within that of any order too."""
    a, b = factors
    result = fast.tensor(sequential(fast.tf32(a), fast.tf32(b)))
    operands = fast.tensor(a), fast.tensor(b)
    verdict = judge_products(*operands, result)
    assert verdict.refused_by == ("variance",), verdict.sentence()
    limits = bounds.enclose("matmul", operands, {})
    assert all(limit is not None and limit.holds(value) for limit, value in zip(limits, values_of(result), strict=True))


def test_rounding_upward_is_told_by_the_bias(rng: np.random.Generator, fast: Any) -> None:
    """Every sum rounded toward +inf: small errors, all of one sign."""
    a, b = (rng.normal(0, 1, shape).astype(np.float32) for shape in ((20, 64), (64, 20)))
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(64):
        exact = total.astype(np.float64) + a[:, k : k + 1].astype(np.float64) * b[k : k + 1]
        rounded = exact.astype(np.float32)
        total = np.where(rounded < exact, np.nextafter(rounded, np.float32(np.inf)), rounded)
    verdict = judge_products(fast.tensor(a), fast.tensor(b), fast.tensor(total), unbiased=True)
    assert verdict.refused_by == ("bias, squared",), verdict.sentence()
    assert judge_products(fast.tensor(a), fast.tensor(b), fast.tensor(total)).accepted


def test_a_dropped_product_is_told_by_the_bound(factors: tuple[Any, Any], fast: Any) -> None:
    a, b = factors
    result = fast.tensor(sequential(a[:, :-1], b[:-1]))
    assert "bound" in judge_products(fast.tensor(a), fast.tensor(b), result).refused_by


def test_an_infinite_result_is_refused_where_none_is_due(factors: tuple[Any, Any], fast: Any) -> None:
    a, b = factors
    result = sequential(a, b)
    result[2, 3] = np.inf
    assert judge_products(fast.tensor(a), fast.tensor(b), fast.tensor(result)).refused_by == ("bound",)


def test_nothing_is_asked_where_the_sum_may_overflow(fast: Any) -> None:
    a, b = np.full((1, 4), 1e20, np.float32), np.full((4, 1), 1e20, np.float32)
    assert judge_products(fast.tensor(a), fast.tensor(b), fast.tensor(np.float32([[np.inf]]))).accepted


def test_products_of_zeros_are_zero(fast: Any) -> None:
    a, b = np.zeros((1, 4), np.float32), np.ones((4, 1), np.float32)
    assert judge_products(fast.tensor(a), fast.tensor(b), fast.tensor(np.float32([[0]]))).accepted
    assert not judge_products(fast.tensor(a), fast.tensor(b), fast.tensor(np.float32([[1e-30]]))).accepted


def test_a_narrow_result_leaves_one_rounding(rng: np.random.Generator, fast: Any) -> None:
    """512 products in fp32 are less than one of bf16: KSB is 1."""
    a, b = (fast.bf16(rng.normal(0, 1, shape)) for shape in ((5, TERMS), (TERMS, 5)))
    operands = fast.tensor(a, "bf16"), fast.tensor(b, "bf16")
    verdict = judge_products(*operands, fast.tensor(a @ b, "bf16"))
    assert verdict.accepted
    assert [float(rule.limit) for rule in verdict.rules] == [2, 1.6]


def test_a_start_value_counts_as_one_more_product(factors: tuple[Any, Any], fast: Any) -> None:
    a, b = factors
    c = np.full((6, 6), 3, np.float32)
    operands = fast.tensor(a), fast.tensor(b)
    verdict = judge_products(*operands, fast.tensor(a @ b + c), addend=fast.tensor(c))
    assert verdict.accepted
    assert float(verdict.rules[0].limit) == 2 * (TERMS + 1)
    assert not judge_products(*operands, fast.tensor(a @ b), addend=fast.tensor(c)).accepted


def test_the_shape_is_checked(factors: tuple[Any, Any], fast: Any) -> None:
    a, b = factors
    with pytest.raises(BadArgument, match="result"):
        judge_products(fast.tensor(a), fast.tensor(b), fast.tensor(a))
