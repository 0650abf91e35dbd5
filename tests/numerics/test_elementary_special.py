"""Elementary functions: special values, exact cases, shapes and errors, the latter also through `apply`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.elementary import FUNCTIONS, apply
from tessera_reference.numerics.errors import DTypeMismatch, InvalidArgument, ShapeMismatch, WrongCarrier
from tessera_reference.numerics.formats import DTYPES, UnsupportedDType, dtype

FLOATS = [name for name, each in DTYPES.items() if each.kind == "float"]
UNARY = [name for name in FUNCTIONS if name != "pow"]
INF, NAN = math.inf, math.nan

# Results at +0, -0, +inf, -inf (IEEE 754-2019, 9.2.1), and at 1, where it is exact.
SPECIAL = {
    "exp": [1.0, 1.0, INF, 0.0],
    "exp2": [1.0, 1.0, INF, 0.0, 2.0],
    "expm1": [0.0, -0.0, INF, -1.0],
    "log": [-INF, -INF, INF, NAN, 0.0],
    "log2": [-INF, -INF, INF, NAN, 0.0],
    "log1p": [0.0, -0.0, INF, NAN],
    "sin": [0.0, -0.0, NAN, NAN],
    "cos": [1.0, 1.0, NAN, NAN],
    "tan": [0.0, -0.0, NAN, NAN],
    "tanh": [0.0, -0.0, 1.0, -1.0],
    "sinh": [0.0, -0.0, INF, -INF],
    "cosh": [1.0, 1.0, INF, INF],
    "erf": [0.0, -0.0, 1.0, -1.0],
    "sqrt": [0.0, -0.0, INF, NAN, 1.0],
    "rsqrt": [INF, -INF, 0.0, NAN, 1.0],
    "reciprocal": [INF, -INF, 0.0, -0.0, 1.0],
}


def saturated(value: float, largest: float) -> float:
    return math.copysign(largest, value) if math.isinf(value) else value


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("type_name", FLOATS)
def test_special_values(type_name, name, oracle):
    expected = [NAN, *SPECIAL[name]]
    values = [NAN, 0.0, -0.0, INF, -INF, 1.0][: len(expected)]
    form = dtype(type_name)
    held = np.array(values, form.carrier)
    found = FUNCTIONS[name](held, form).tolist()
    oracle.same(found, [saturated(each, oracle.formats[type_name].beyond) for each in expected])
    beyond = INF if form.has_infinity else NAN
    oracle.same(FUNCTIONS[name](held, form, "nonfinite").tolist(), [saturated(each, beyond) for each in expected])


@pytest.mark.parametrize("type_name", FLOATS)
def test_outside_the_domain(type_name, oracle):
    form = dtype(type_name)
    negative = np.array([-1, -form.min_subnormal, -form.max_finite], form.carrier)
    for name in ("log", "log2", "sqrt", "rsqrt"):
        oracle.same(FUNCTIONS[name](negative, form).tolist(), [NAN] * 3)
    found = FUNCTIONS["log1p"](np.array([-1, -2, -form.max_finite], form.carrier), form).tolist()
    oracle.same(found, [-oracle.formats[type_name].beyond, NAN, NAN])


@pytest.mark.parametrize("type_name", FLOATS)
def test_exact_cases(type_name, oracle):
    """Powers of two: exp2, log2, rsqrt and reciprocal are exact, and some results lie on midpoints and go to even."""
    form = dtype(type_name)
    exponents = range(form.min_exponent - form.fraction_bits, form.max_exponent + 1)
    powers = np.array([2.0**each for each in exponents], form.carrier)
    found = FUNCTIONS["log2"](powers, form).tolist()
    oracle.same(found, [oracle.nearest_or_special(float(each), type_name) for each in exponents])

    whole = [each for each in exponents if oracle.nearest_or_special(float(each), type_name) == each]
    found = FUNCTIONS["exp2"](np.array(whole, form.carrier), form).tolist()
    oracle.same(found, [2.0**each for each in whole])

    even = np.array([2.0**each for each in exponents if each % 2 == 0], form.carrier)
    found = FUNCTIONS["rsqrt"](even, form).tolist()
    oracle.same(found, [2.0 ** (-each // 2) for each in exponents if each % 2 == 0])


@pytest.mark.parametrize(
    ("type_name", "name", "x", "expected"),
    [
        ("fp64", "exp2", -1075.0, 0.0),  # half the smallest number: a tie, to even
        ("fp64", "exp2", -1074.0, 2.0**-1074),
        ("fp64", "exp2", math.nextafter(-1075.0, 0), 2.0**-1074),
        ("fp32", "exp2", -150.0, 0.0),
        ("fp32", "exp2", -149.0, 2.0**-149),
        ("fp16", "exp2", -25.0, 0.0),
        ("fp8_e4m3", "exp2", -10.0, 0.0),
        ("fp8_e5m2", "log2", 2.0**9, 8.0),  # 9 lies between 8 and 10
        ("fp8_e5m2", "log2", 2.0**11, 12.0),
        ("fp8_e5m2", "log2", 2.0**-13, -12.0),
        ("fp8_e4m3", "reciprocal", 2.0**-9, 448.0),
        ("fp16", "reciprocal", 2.0**-16, INF),
        ("fp16", "rsqrt", 2.0**-24, 4096.0),
        ("fp16", "cosh", 2.0**-5, 1 + 2.0**-10),  # above the midpoint by x**4/24
        ("fp64", "cosh", 2.0**-26, 1 + 2.0**-52),
        ("fp64", "exp", 2.0**-53, 1 + 2.0**-52),  # above the midpoint by x**2/2
        ("fp64", "exp", -(2.0**-54), 1.0),
        ("bf16", "exp", 2.0**-8, 1 + 2.0**-7),
        ("fp16", "exp", 2.0**-11, 1 + 2.0**-10),
        ("fp32", "exp", -(2.0**-25), 1.0),
    ],
)
def test_results_on_or_next_to_a_midpoint(type_name, name, x, expected):
    assert FUNCTIONS[name](np.array([x], dtype(type_name).carrier), dtype(type_name))[0] == expected


@pytest.mark.parametrize("name", ["sin", "tan", "tanh", "sinh", "expm1", "log1p"])
@pytest.mark.parametrize("type_name", FLOATS)
def test_the_smallest_numbers_are_their_own_images(type_name, name):
    form = dtype(type_name)
    values = np.array([form.min_subnormal, -form.min_subnormal, form.min_normal], form.carrier)
    if type_name in ("fp8_e4m3", "fp8_e5m2"):
        values = values[:2]
    assert np.array_equal(FUNCTIONS[name](values, form), values)


@pytest.mark.parametrize("type_name", ["fp16", "fp8_e4m3"])
def test_numbers_that_are_not_of_the_type_are_taken_as_they_are(type_name, oracle):
    """So a table is never asked for what it does not hold."""
    values = np.array([1e30, -1e30, 1.0 + 2.0**-20, INF], np.float32)
    found = FUNCTIONS["exp"](values, dtype(type_name)).tolist()
    beyond = oracle.formats[type_name].beyond
    assert found == [beyond, 0.0, 2.71875 if type_name == "fp16" else 2.75, beyond]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("type_name", ["fp16", "fp32", "fp64"])
def test_a_result_depends_on_its_input_only(type_name, name):
    """Neither position, nor length, nor memory order: the trap of vectorised libraries."""
    form = dtype(type_name)
    values = np.linspace(-90, 80, 10007).astype(np.float16).astype(form.carrier)
    whole = FUNCTIONS[name](values, form)
    assert np.array_equal(FUNCTIONS[name](values[::-1], form)[::-1], whole, equal_nan=True)
    assert np.array_equal(FUNCTIONS[name](values[7:].reshape(-1, 4), form).ravel(), whole[7:], equal_nan=True)
    assert np.array_equal(FUNCTIONS[name](values[100], form), whole[100], equal_nan=True)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("type_name", FLOATS)
def test_shapes_and_carriers(type_name, name):
    form = dtype(type_name)
    for shape in [(), (0,), (2, 0), (3, 1, 2)]:
        found = FUNCTIONS[name](np.ones(shape, form.carrier), form)
        assert (found.shape, found.dtype) == (shape, form.carrier)
        assert isinstance(found, np.ndarray)


def test_the_names_of_the_canon():
    names = "exp exp2 expm1 log log2 log1p sin cos tan tanh sinh cosh erf sqrt rsqrt reciprocal pow"
    assert list(FUNCTIONS) == names.split()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_refused(name):
    operands = 2 if name == "pow" else 1
    with pytest.raises(UnsupportedDType, match=f"{name} is not defined on int32"):
        FUNCTIONS[name](*[np.zeros(1, np.int32)] * operands, dtype("int32"))
    with pytest.raises(WrongCarrier):
        FUNCTIONS[name](*[np.zeros(1, np.float64)] * operands, dtype("fp32"))
    with pytest.raises(UnsupportedDType, match=f"{name} is not defined on complex64"):
        apply(name, *[Array(dtype("complex64"), np.zeros(1, np.complex64))] * operands)
    with pytest.raises(InvalidArgument, match="number of operands"):
        apply(name, *[Array(dtype("fp32"), np.zeros(1, np.float32))] * 3)


def test_apply(oracle):
    two = Array(dtype("fp8_e4m3"), np.array([[2.0], [NAN]], np.float32))
    found = apply("pow", two, Array(dtype("fp8_e4m3"), np.array([0.0, 3.0, 10.0], np.float32)), overflow="nonfinite")
    assert (found.dtype, found.shape) == (two.dtype, (2, 3))
    oracle.same(found.values.ravel().tolist(), [1.0, 8.0, NAN, 1.0, NAN, NAN])
    assert apply("exp2", Array(dtype("bf16"), np.array([3.0], np.float32))).values.tolist() == [8.0]
    with pytest.raises(InvalidArgument, match="'arcsin', allowed is one of exp, exp2"):
        apply("arcsin", two)
    with pytest.raises(DTypeMismatch):
        apply("pow", two, Array(dtype("fp32"), np.ones(1, np.float32)))
    with pytest.raises(ShapeMismatch, match="do not broadcast"):
        apply("pow", two, Array(dtype("fp8_e4m3"), np.ones((3, 1), np.float32)))
