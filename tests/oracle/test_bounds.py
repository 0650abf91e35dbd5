"""The bound of level fast: every order lies within it, a narrow accumulator does not, overflow promises nothing."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tessera_conformance import oracle
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.exact import INFINITY, NAN, NEGATIVE_ZERO
from tessera_conformance.oracle.formats import values_of
from tessera_conformance.oracle.products import Order
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted


def accepted(a: Tensor, b: Tensor, result: Tensor) -> bool:
    limits = bounds.matmul(a, b)
    return all(limit is not None and limit.holds(x) for limit, x in zip(limits, values_of(result), strict=True))


@pytest.mark.parametrize("dtype", ["fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"])
@pytest.mark.parametrize("order", ["fold", "backward", "pairwise"])
@pytest.mark.parametrize("fused", [False, True])
def test_every_order_is_accepted(dtype: str, order: Order, fused: bool) -> None:
    a, b = counted(dtype, (3, 21), 1), counted(dtype, (21, 3), 2)
    assert accepted(a, b, oracle.matmul(a, b, order=order, fused=fused))


def test_accumulating_too_narrowly_is_refused() -> None:
    """Eight units on top of 2**8, all lost in bf16."""
    a = Tensor.from_words("bf16", (1, 9), [0x4380, *[0x3F80] * 8])
    b = Tensor.from_words("bf16", (9, 1), [0x3F80] * 9)
    assert accepted(a, b, oracle.matmul(a, b))
    assert not accepted(a, b, oracle.matmul(a, b, accumulator="bf16"))


def test_the_bound_is_sharp_within_a_small_factor() -> None:
    """For K = 1 in fp32 the error is at most that of a product and a final rounding that changes nothing."""
    one = Tensor.from_bits("fp32", (1, 1), "3f800000")
    (limit,) = bounds.matmul(one, one)
    assert limit is not None
    assert limit.exact == 1
    assert Fraction(1, 1 << 24) < limit.error < Fraction(3, 1 << 24)


@pytest.mark.parametrize("code", [0x7F800000, 0x7FC00000, 0x7F7FFFFF])
def test_nothing_is_promised_beyond_the_range(code: int) -> None:
    a = Tensor.from_words("fp32", (1, 2), [code, code])
    assert bounds.matmul(a, Tensor.from_words("fp32", (2, 1), [0x3F800000] * 2)) == [None]


def test_only_finite_values_lie_within() -> None:
    limit = bounds.Enclosure(Fraction(0), Fraction(1))
    assert limit.holds(NEGATIVE_ZERO)
    assert not limit.holds(INFINITY)
    assert not limit.holds(NAN)


def test_an_infinite_factor_promises_nothing():
    """Where rounding to fp8 would saturate it, too: the factor itself is infinite."""
    left, right = Tensor.from_words("fp8_e5m2", (1, 2), [0x7C, 0x3C]), Tensor.from_words("fp8_e5m2", (2, 1), [0x3C] * 2)
    assert bounds.matmul(left, right) == [None]
