"""Steps of optimizers against the same steps taken with numpy's exact operations and mpmath's power."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.differences import first_difference
from tessera_conformance.oracle.exact import BadArgument
from tessera_conformance.tensors import Tensor

Values = Any
COUNT = 40


def single(number: float | Fraction) -> np.float32:
    """A number rounded once to fp32, where no fp64 lies near a midpoint of it."""
    return np.float32(float(number))


def power(base: np.float32, exponent: int) -> np.float32:
    with mpmath.workprec(100):
        return np.float32(float(mpmath.power(mpmath.mpf(float(base)), exponent)))


def tensor(values: Values, kind: str = "<f4") -> Tensor:
    values = np.ascontiguousarray(values, kind)
    return Tensor({"<f4": "fp32", "<f2": "fp16", "<i4": "int32"}[kind], values.shape, values.tobytes())


@pytest.mark.parametrize("kind", ["<f4", "<f2"])
def test_sgd(rng: np.random.Generator, kind: str) -> None:
    parameter, gradient, velocity = rng.standard_normal((3, COUNT)).astype(kind)
    p, g, v = (each.astype("<f4") for each in (parameter, gradient, velocity))
    moving = v * single(0.9) + g
    stepped = p - moving * single(0.05)
    found = oracle.sgd(*(tensor(each, kind) for each in (parameter, gradient, velocity)), rate=0.05)
    assert first_difference(found[0], tensor(stepped.astype(kind), kind)) is None
    assert first_difference(found[1], tensor(moving.astype(kind), kind)) is None


@pytest.mark.parametrize("step", [1, 2, 1000])
@pytest.mark.parametrize("kind", ["<f4", "<f2"])
def test_adamw(rng: np.random.Generator, kind: str, step: int) -> None:
    parameter, gradient, m = rng.standard_normal((3, COUNT)).astype(kind)
    v = (rng.standard_normal(COUNT) ** 2).astype(kind)
    p, g, first, second = (each.astype("<f4") for each in (parameter, gradient, m, v))
    first = first * single(0.9) + g * single(1 - Fraction(0.9))
    second = second * single(0.999) + (g * g) * single(1 - Fraction(0.999))
    mean = first / (np.float32(1) - power(single(0.9), step))
    square = second / (np.float32(1) - power(single(0.999), step))
    stepped = p - (mean / (np.sqrt(square) + single(1e-8)) + p * single(0.1)) * single(0.01)
    given = [tensor(each, kind) for each in (parameter, gradient, m, v)]
    found = oracle.adamw(*given, tensor(step, "<i4"), rate=0.01, decay=0.1)
    for answer, expected in zip(found, (stepped, first, second), strict=True):
        assert first_difference(answer, tensor(expected.astype(kind), kind)) is None


def test_the_state_may_be_wider_than_the_parameter() -> None:
    one, state = tensor([1.0], "<f2"), tensor([0.1])
    assert [each.dtype for each in oracle.sgd(one, one, state, rate=0.5)] == ["fp16", "fp32"]
    found = oracle.adamw(one, one, state, state, tensor(1, "<i4"), rate=0.5)
    assert [each.dtype for each in found] == ["fp16", "fp32", "fp32"]


def test_the_first_step_of_adam_is_the_rate_in_the_direction_of_the_gradient() -> None:
    """Both averages are the gradient's own, once what they lack is made up for."""
    zero = tensor([0.0, 0.0])
    found = oracle.adamw(zero, tensor([4.0, -0.5]), zero, zero, tensor(1, "<i4"), rate=0.25, beta1=0.5, beta2=0.5)
    assert np.frombuffer(found[0].data, "<f4") == pytest.approx([-0.25, 0.25], rel=1e-6)


def test_a_step_of_zero_is_refused() -> None:
    one = tensor([1.0])
    with pytest.raises(BadArgument, match="step"):
        oracle.adamw(one, one, one, one, tensor(0, "<i4"), rate=0.1)
