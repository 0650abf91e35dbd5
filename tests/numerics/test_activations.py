"""sigmoid, silu, gelu and relu against their definitions, step by step in exact arithmetic and MPFR."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tessera_reference.numerics import activations
from tessera_reference.numerics.array import Array, code_dtype, decode
from tessera_reference.numerics.errors import InvalidArgument
from tessera_reference.numerics.formats import DTYPES, UnsupportedDType, dtype

FLOATS = [name for name, each in DTYPES.items() if each.kind == "float"]
INF, NAN = math.inf, math.nan


class Definitions:
    """The compositions on one float, every step rounded to the accumulator type by the oracle."""

    def __init__(self, type_name: str, oracle, mpfr) -> None:
        self.acc = "fp64" if type_name == "fp64" else "fp32"
        self.type_name, self.oracle, self.mpfr = type_name, oracle, mpfr
        with mpfr.gmpy2.context(precision=300):
            self.half_root = mpfr.rounded(1 / mpfr.gmpy2.sqrt(mpfr.gmpy2.mpfr(2)), self.acc)
            self.factor = mpfr.rounded(mpfr.gmpy2.sqrt(2 / mpfr.gmpy2.const_pi()), self.acc)
        self.cube_factor = oracle.nearest(Fraction(44715, 1_000_000), self.acc)

    def function(self, name: str, x: float) -> float:
        return self.mpfr.nearest(name, self.acc, [x])[0]

    def add(self, a: float, b: float) -> float:
        return self.oracle.add(a, b, self.acc)

    def multiply(self, a: float, b: float) -> float:
        return self.oracle.multiply(a, b, self.acc)

    def final(self, x: float) -> float:
        return self.oracle.nearest_or_special(x, self.type_name)

    def wide_sigmoid(self, x: float) -> float:
        return self.oracle.divide(1.0, self.add(1.0, self.function("exp", -x)), self.acc)

    def sigmoid(self, x: float) -> float:
        return self.final(self.wide_sigmoid(x))

    def silu(self, x: float) -> float:
        return self.final(self.multiply(x, self.wide_sigmoid(x)))

    def gelu(self, x: float) -> float:
        second = self.add(1.0, self.function("erf", self.multiply(x, self.half_root)))
        return self.final(self.multiply(self.multiply(0.5, x), second))

    def gelu_tanh(self, x: float) -> float:
        cube = self.multiply(self.multiply(x, x), x)
        inner = self.multiply(self.factor, self.add(x, self.multiply(self.cube_factor, cube)))
        return self.final(self.multiply(self.multiply(0.5, x), self.add(1.0, self.function("tanh", inner))))


ACTIVATIONS = {
    "sigmoid": activations.sigmoid,
    "silu": activations.silu,
    "gelu": activations.gelu,
    "gelu_tanh": lambda x: activations.gelu(x, approximate="tanh"),
}


def inputs(type_name: str, rng: np.random.Generator) -> np.ndarray:
    form = dtype(type_name)
    if form.bits == 8:
        return decode(np.arange(256).astype(np.uint8), form)
    codes = rng.integers(0, np.iinfo(code_dtype(form)).max, 150, code_dtype(form))
    everyday = np.concatenate([rng.normal(0, 3, 300), rng.uniform(-110, 110, 100), [0.0, -0.0, INF, -INF, NAN]])
    if form.bits == 16:
        everyday = everyday.astype(np.float16).astype(np.float64)
        everyday = np.where(np.isfinite(everyday), np.rint(everyday * 16) / 16, everyday)
        everyday = everyday[np.abs(everyday) < 8]
    return np.concatenate([decode(codes, form), everyday.astype(form.carrier)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("type_name", FLOATS)
def test_against_the_definition(type_name, name, oracle, mpfr, rng):
    values = inputs(type_name, rng)
    found = ACTIVATIONS[name](Array(dtype(type_name), values))
    assert (found.dtype, found.shape) == (dtype(type_name), values.shape)
    defined = getattr(Definitions(type_name, oracle, mpfr), name)
    oracle.same(found.values.tolist(), [defined(x) for x in values.tolist()])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sigmoid", [0.5, 0.5, 1.0, 0.0, NAN]),
        ("silu", [0.0, -0.0, INF, NAN, NAN]),
        ("gelu", [0.0, -0.0, INF, NAN, NAN]),
        ("gelu_tanh", [0.0, -0.0, INF, NAN, NAN]),
    ],
)
@pytest.mark.parametrize("type_name", ["fp32", "fp64", "fp16"])
def test_special_values(type_name, name, expected, oracle):
    """The compositions are taken at their word: at -inf, silu and gelu are -inf * 0."""
    values = Array(dtype(type_name), np.array([0.0, -0.0, INF, -INF, NAN], dtype(type_name).carrier))
    oracle.same(ACTIVATIONS[name](values).values.tolist(), expected)


def test_infinity_saturates_in_fp8_unless_told_otherwise():
    values = Array(dtype("fp8_e5m2"), np.array([INF], np.float32))
    assert activations.silu(values).values.tolist() == [57344.0]
    assert activations.silu(values, overflow="nonfinite").values.tolist() == [INF]
    assert activations.gelu(values, overflow="nonfinite").values.tolist() == [INF]


@pytest.mark.parametrize("type_name", ["fp8_e5m2", "fp16", "fp32", "tf32", "fp64"])
def test_relu_of_floats(type_name, oracle):
    form = dtype(type_name)
    values = [-2.0, -0.0, 0.0, 1.5, INF, -INF, NAN, -form.min_subnormal, form.min_subnormal]
    found = activations.relu(Array(form, np.array(values, form.carrier)))
    assert found.dtype == form
    oracle.same(found.values.tolist(), [0.0, 0.0, 0.0, 1.5, INF, 0.0, NAN, 0.0, form.min_subnormal])


def test_relu_of_integers():
    assert activations.relu(Array(dtype("int8"), np.array([-128, 0, 127], np.int8))).values.tolist() == [0, 0, 127]


def test_shapes():
    for name, activation in {**ACTIVATIONS, "relu": activations.relu}.items():
        for shape in [(), (0,), (2, 3)]:
            assert activation(Array(dtype("fp32"), np.ones(shape, np.float32))).shape == shape, name


def test_what_is_refused():
    integers = Array(dtype("int32"), np.ones(2, np.int32))
    for name, activation in ACTIVATIONS.items():
        with pytest.raises(UnsupportedDType, match=f"{name.removesuffix('_tanh')} is not defined on int32"):
            activation(integers)
    with pytest.raises(UnsupportedDType, match="relu is not defined on complex64"):
        activations.relu(Array(dtype("complex64"), np.ones(2, np.complex64)))
    with pytest.raises(InvalidArgument, match="approximate is 'sigmoid'"):
        activations.gelu(Array(dtype("fp32"), np.ones(1, np.float32)), approximate="sigmoid")
