"""Derivatives enclosed: what mpmath differentiates lies at the centre, what another form gives within the bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from tessera_conformance.oracle.bounds.derivatives import (
    SLOPES,
    Arithmetic,
    Model,
    Number,
    enclosed,
    function,
    gradient,
    numbers_of,
    sigmoid,
    total,
)
from tessera_conformance.oracle.bounds.intervals import FAST, Enclosure
from tessera_conformance.oracle.formats import float_format, tensor_of
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import tensor

MODELS: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(mpmath, name) for name in "exp expm1 log log1p sin cos tan sinh cosh tanh erf sqrt".split()},
    "exp2": lambda x: mpf(2) ** x,
    "log2": lambda x: mpmath.log(x, 2),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "reciprocal": lambda x: 1 / x,
}
POINTS = [Fraction(3, 8), Fraction(5, 4), Fraction(7, 2), Fraction(1, 64)]


def each(name: str) -> Model:
    return lambda xs: [function(name, x) for x in xs]


def near(found: Enclosure | None, expected: Any) -> bool:
    assert found is not None
    off = abs(mpf(found.exact.numerator) / found.exact.denominator - expected)
    return bool(off <= mpf(10) ** -25 * (1 + abs(expected)))


def test_every_function_but_pow_is_compared_here() -> None:
    assert SLOPES.keys() == MODELS.keys() | {"pow"}


@pytest.mark.parametrize("name", MODELS)
def test_the_centre_is_the_derivative(name: str) -> None:
    x, weights = tensor("fp64", POINTS), tensor("fp64", [1, -2, 3, Fraction(1, 2)])
    with mp.workdps(60):
        for found, point, weight in zip(enclosed(each(name), [x], weights), POINTS, [1, -2, 3, 0.5], strict=True):
            slope = mpmath.diff(MODELS[name], mpf(point.numerator) / point.denominator)
            assert near(found, weight * slope)
            assert found is not None and found.error < Fraction(1, 10**12) * (1 + abs(found.exact))


@pytest.mark.parametrize("which", [0, 1])
def test_powers(which: int) -> None:
    model: Model = lambda a, b: [function("pow", a[0], b[0])]  # noqa: E731
    (found,) = enclosed(model, [tensor("fp64", [2.5]), tensor("fp64", [1.25])], tensor("fp64", [1]), which)
    with mp.workdps(60):
        assert near(found, mpmath.diff(lambda a, b: a**b, (2.5, 1.25), (1 - which, which)))


def softmax(xs: Sequence[Number]) -> list[Number]:
    top = max(xs, key=lambda x: x.ideal.high).constant
    powers = [function("exp", x - top) for x in xs]
    return [power / total(powers) for power in powers]


def test_a_composition_of_several_operands() -> None:
    x, weights = tensor("fp64", [0.5, -1, 2]), tensor("fp64", [1, 2, -3])

    def weighted(*xs: Any) -> Any:
        powers = [mpmath.exp(each) for each in xs]
        return sum(w * p for w, p in zip([1, 2, -3], powers, strict=True)) / sum(powers)

    with mp.workdps(60):
        for place, found in enumerate(enclosed(softmax, [x], weights)):
            order = tuple(int(place == at) for at in range(3))
            assert near(found, mpmath.diff(weighted, (0.5, -1, 2), order))


def test_derivatives_have_derivatives() -> None:
    arithmetic = Arithmetic(float_format("fp64"), FAST)
    (x,) = numbers_of(tensor("fp64", [3]), arithmetic)
    one = x.beside(1)
    (first,) = gradient([x * x * x], [one], [x])
    (second,) = gradient([first], [one], [x])
    (third,) = gradient([second], [one], [x])
    assert [float(each.ideal.low) for each in (first, second, third)] == [27, 18, 6]


def test_what_does_not_depend_on_an_operand_has_the_derivative_zero() -> None:
    model: Model = lambda a, b: [a[0] * a[0]]  # noqa: E731
    (found,) = enclosed(model, [tensor("fp32", [3]), tensor("fp32", [2])], tensor("fp32", [1]), 1)
    assert found == Enclosure(Fraction(0), Fraction(0), "the textbook adjoint, its error twice")


def test_nothing_is_promised_beside_a_nan() -> None:
    assert enclosed(each("exp"), [tensor("fp32", [1, float("nan")])], tensor("fp32", [1, 1])) == [None, None]


FORMS: list[tuple[str, Model, Callable[[Any], Any]]] = [
    ("tanh by its value", each("tanh"), lambda x: 1 - np.tanh(x) * np.tanh(x)),
    ("tanh by cosh", each("tanh"), lambda x: 1 / (np.cosh(x) * np.cosh(x))),
    ("tan by cos", each("tan"), lambda x: 1 / (np.cos(x) * np.cos(x))),
    ("rsqrt by x", each("rsqrt"), lambda x: -(1 / np.sqrt(x)) / (x + x)),
    ("expm1 by exp", each("expm1"), lambda x: np.exp(x)),
    ("expm1 by its value", each("expm1"), lambda x: np.expm1(x) + np.float32(1)),
    ("sqrt by x", each("sqrt"), lambda x: np.sqrt(x) / (x + x)),
    ("sigmoid by exp", lambda xs: [sigmoid(x) for x in xs], lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2),
]


@pytest.mark.parametrize(("model", "form"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS])
def test_other_forms_of_an_adjoint_lie_within_the_bound(model: Model, form: Callable[[Any], Any]) -> None:
    values = np.linspace(0.01, 1.5, 400, dtype=np.float32)
    x = Tensor("fp32", values.shape, values.tobytes())
    found = enclosed(model, [x], Tensor("fp32", values.shape, np.ones_like(values).tobytes()))
    for single, slope in zip(found, form(values).tolist(), strict=True):
        assert single is not None and single.holds(Fraction(slope))


def test_a_slope_of_another_sign_or_a_hundred_units_off_does_not() -> None:
    (found,) = enclosed(each("tanh"), [tensor("fp32", [0.5])], tensor("fp32", [1]))
    assert found is not None
    assert found.holds(found.exact) and not found.holds(-found.exact)
    assert not found.holds(found.exact * (1 + Fraction(100, 1 << 23)))


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
def test_narrow_types_err_more(dtype: str) -> None:
    x = tensor_of(dtype, (1,), [Fraction(1, 2)])
    (found,) = enclosed(each("exp"), [x], tensor_of(dtype, (1,), [Fraction(1)]))
    assert found is not None
    unit = Fraction(1, 2 << float_format(dtype).fraction_bits)
    assert 2 * unit * found.exact < found.error < 60 * unit * found.exact


def test_sums_are_left_folds() -> None:
    arithmetic = Arithmetic(float_format("fp32"), FAST)
    terms = numbers_of(tensor("fp32", [1, 2, 3, 4]), arithmetic)
    assert total(terms).ideal == reduce(lambda a, b: a + b, terms).ideal
