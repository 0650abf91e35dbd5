"""Elementwise operators against exact rational arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tessera_reference.numerics import arithmetic
from tessera_reference.numerics.array import Array, decode
from tessera_reference.numerics.errors import DivisionByZero
from tessera_reference.numerics.formats import DTYPES, UnsupportedDType, dtype

OPERATORS = ["add", "subtract", "multiply", "divide"]


COMPARISONS = ["equal", "not_equal", "less", "greater", "less_equal", "greater_equal"]


FLOATS = [name for name, each in DTYPES.items() if each.kind == "float"]


INTS = ["int8", "int16", "int32", "int64"]


def array(name: str, values: object) -> Array:
    return Array(dtype(name), np.array(values, dtype(name).carrier))


def random_values(name: str, rng: np.random.Generator, count: int) -> np.ndarray:
    """Values all over the range: random codes, so subnormals, infinities and NaN are among them."""
    code = f"u{dtype(name).storage_bytes}"
    return decode(rng.integers(0, np.iinfo(code).max, count, code, endpoint=True), dtype(name))


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", ["fp8_e4m3", "fp8_e5m2"])
def test_every_pair_of_fp8_numbers(name, operator, oracle):
    values = decode(np.arange(256, dtype=np.uint8), dtype(name))
    found = getattr(arithmetic, operator)(Array(dtype(name), values[:, None]), Array(dtype(name), values[None, :]))
    numbers = values.tolist()
    exact = getattr(oracle, operator)
    oracle.same(found.values.ravel().tolist(), [exact(a, b, name) for a in numbers for b in numbers])


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", ["fp16", "bf16", "tf32", "fp32", "fp64"])
def test_random_pairs_from_the_whole_range(name, operator, oracle, rng):
    a, b = random_values(name, rng, 2500), random_values(name, rng, 2500)
    found = getattr(arithmetic, operator)(Array(dtype(name), a), Array(dtype(name), b))
    exact = getattr(oracle, operator)
    oracle.same(found.values.tolist(), [exact(x, y, name) for x, y in zip(a.tolist(), b.tolist(), strict=True)])


@pytest.mark.parametrize("name", ["fp16", "bf16"])
@pytest.mark.parametrize("operator", ["multiply", "divide"])
def test_narrow_results_among_the_subnormals_round_once(name, operator, oracle, rng):
    form = oracle.formats[name]
    significands = rng.integers(1 << (form.precision - 1), 1 << form.precision, (2, 3000)).astype(np.float64)
    a = np.ldexp(significands[0], form.min_exponent + rng.integers(-4, 2, 3000) - form.precision)
    b = significands[1] / 2.0 ** (form.precision - 1)  # within [1, 2)
    a = np.where(a < dtype(name).min_normal, dtype(name).min_normal, a)
    b = (
        b * 2.0 ** rng.integers(1, form.precision + 2, 3000)
        if operator == "divide"
        else b / 2.0 ** rng.integers(1, 9, 3000)
    )
    a, b = a.astype(np.float32), b.astype(np.float32)
    found = getattr(arithmetic, operator)(Array(dtype(name), a), Array(dtype(name), b)).values
    exact = getattr(oracle, operator)
    oracle.same(found.tolist(), [exact(x, y, name) for x, y in zip(a.tolist(), b.tolist(), strict=True)])
    assert (np.abs(found) < dtype(name).min_normal).mean() > 0.5


def wrap(value: int, name: str) -> int:
    bits = dtype(name).bits
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


PYTHON_INTEGERS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", INTS)
def test_integers_wrap_and_division_truncates(name, operator, rng):
    low, high = dtype(name).int_min, dtype(name).int_max
    special = [low, low + 1, -7, -2, -1, 1, 2, 7, high - 1, high]
    values = [*special, *(v or 1 for v in rng.integers(low, high, 40, np.int64, endpoint=True).tolist())]
    found = getattr(arithmetic, operator)(array(name, values), array(name, [[v] for v in values])).values
    expected = [[wrap(PYTHON_INTEGERS[operator](a, b), name) for a in values] for b in values]
    assert found.tolist() == expected
    assert arithmetic.negate(array(name, values)).values.tolist() == [wrap(-v, name) for v in values]


def test_integer_division_by_zero_says_where():
    with pytest.raises(DivisionByZero, match=r"element \[1, 2\]") as caught:
        arithmetic.divide(array("int32", [[1], [2]]), array("int32", [[1, 1, 1], [1, 1, 0]]))
    assert caught.value.index == (1, 2)
    with pytest.raises(DivisionByZero) as caught:
        arithmetic.divide(array("int8", 3), array("int8", 0))
    assert caught.value.index == ()
    assert arithmetic.divide(array("int8", []), array("int8", 0)).shape == (0,)


@pytest.mark.parametrize("operator", COMPARISONS)
@pytest.mark.parametrize("name", [*FLOATS, *INTS])
def test_comparisons_are_those_of_ieee(name, operator):
    values = [-2.0, -0.0, 0.0, 1.0, math.nan] if name in FLOATS else [-2, 0, 1, 5]
    found = getattr(arithmetic, operator)(array(name, [[v] for v in values]), array(name, values))
    python = {
        "equal": "eq",
        "not_equal": "ne",
        "less": "lt",
        "greater": "gt",
        "less_equal": "le",
        "greater_equal": "ge",
    }
    assert found.dtype.name == "bool"
    assert found.values.tolist() == [[getattr(a, f"__{python[operator]}__")(b) for b in values] for a in values]


def test_bool_and_complex_know_equality_only():
    assert arithmetic.equal(array("bool", [True, False]), array("bool", [True, True])).values.tolist() == [True, False]
    assert arithmetic.not_equal(array("complex64", [1j]), array("complex64", [1j, 1])).values.tolist() == [False, True]
    for name in ("bool", "complex64", "complex128"):
        for operator in ("less", "greater", "less_equal", "greater_equal", "maximum", "minimum", "divide"):
            with pytest.raises(UnsupportedDType, match=f"{operator} is not defined on {name}"):
                getattr(arithmetic, operator)(array(name, [1]), array(name, [1]))
    for operator in ("add", "subtract", "multiply"):
        with pytest.raises(UnsupportedDType):
            getattr(arithmetic, operator)(array("bool", [1]), array("bool", [1]))
    with pytest.raises(UnsupportedDType):
        arithmetic.negate(array("bool", [1]))


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_numbers_round_every_step(name, oracle, rng):
    part = dtype(name).component.name
    numbers = array(part, rng.standard_normal((4, 300))).values
    a, b, c, d = numbers.tolist()
    x = np.empty(300, dtype(name).carrier)
    y = x.copy()
    x.real, x.imag, y.real, y.imag = numbers
    product = arithmetic.multiply(Array(dtype(name), x), Array(dtype(name), y)).values
    total = arithmetic.subtract(Array(dtype(name), x), Array(dtype(name), y)).values

    def combine(last, p, q, r, s):  # p q (+ or -) r s, every operation rounded
        return last(oracle.multiply(p, q, part), oracle.multiply(r, s, part), part)

    oracle.same(product.real.tolist(), [combine(oracle.subtract, *t) for t in zip(a, c, b, d, strict=True)])
    oracle.same(product.imag.tolist(), [combine(oracle.add, *t) for t in zip(a, d, b, c, strict=True)])
    oracle.same(total.real.tolist(), [oracle.subtract(p, q, part) for p, q in zip(a, c, strict=True)])
    oracle.same(total.imag.tolist(), [oracle.subtract(p, q, part) for p, q in zip(b, d, strict=True)])
