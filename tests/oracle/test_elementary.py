"""Elementary functions of the oracle against mpmath and enclosures made of integers, and values of IEEE 754."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from tessera_conformance import oracle
from tessera_conformance.check import first_difference
from tessera_conformance.oracle.elementwise import evaluate
from tessera_conformance.oracle.exact import (
    FORMATS,
    INFINITY,
    NAN,
    NEGATIVE_INFINITY,
    NEGATIVE_ZERO,
    ZERO,
    FloatFormat,
    Value,
    finite,
    float_format,
    tensor_of,
)

FLOATS = [name for name, entry in FORMATS.items() if isinstance(entry, FloatFormat)]
ONE = Fraction(1)
WIDEST = 3000
DEFINITIONS: dict[str, Callable[[Any], Any]] = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.power(2, x),
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log1p": mpmath.log1p,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "tanh": mpmath.tanh,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "erf": mpmath.erf,
    "sqrt": mpmath.sqrt,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "reciprocal": lambda x: 1 / x,
}
POSITIVE = {"log", "log2", "sqrt", "rsqrt"}
EXPONENTIAL = {"exp", "exp2", "expm1", "sinh", "cosh"}


def number(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def fraction(found: Any) -> Value:
    """A number of mpmath; beyond every format it is an infinity, or next to nothing."""
    sign, mantissa, exponent, bits = map(int, found._mpf_)
    if not mantissa:
        return ZERO
    size = exponent + bits
    scaled = mantissa * Fraction(2) ** (max(min(exponent, WIDEST), -WIDEST - bits)) if abs(size) > WIDEST else None
    exact = Fraction(mantissa) * Fraction(2) ** exponent if scaled is None else scaled
    return -exact if sign else exact


def operands(draw: random.Random, name: str, format_: FloatFormat, count: int) -> list[Fraction]:
    """Any codes, and numbers around one, where the function has a value."""
    fractions: list[Fraction] = []
    while len(fractions) < count:
        near = format_.encode(Fraction(draw.gauss(0, 3)))
        value = format_.decode(draw.choice([draw.getrandbits(format_.sign_bit.bit_length()), near]))
        if not isinstance(value, Fraction) or not value:
            continue
        if (name in POSITIVE and value < 0) or (name == "log1p" and value <= -1):
            continue
        if name in EXPONENTIAL and abs(value) > 2000:
            continue
        fractions.append(value)
    return fractions


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_functions_are_correctly_rounded(draw: random.Random, name: str, dtype: str) -> None:
    format_ = float_format(dtype)
    values = operands(draw, name, format_, 40)
    actual = oracle.FUNCTIONS[f"oracle.{name}"](tensor_of(dtype, (40,), list(values)))
    with mpmath.workprec(3000 if dtype == "fp64" and name in ("sin", "cos", "tan", "expm1", "log1p") else 1500):
        expected = [fraction(DEFINITIONS[name](number(value))) for value in values]
    assert first_difference(actual, tensor_of(dtype, (40,), expected)) is None


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_are_correctly_rounded(draw: random.Random, dtype: str) -> None:
    format_ = float_format(dtype)
    bases = [abs(value) for value in operands(draw, "exp", format_, 60)]
    powers = [format_.round(Fraction(draw.gauss(0, 4))) for _ in bases]
    actual = oracle.pow_(tensor_of(dtype, (60,), list(bases)), tensor_of(dtype, (60,), list(powers)))
    with mpmath.workprec(1500):
        pairs = [
            (number(x), number(y if isinstance(y, Fraction) else ZERO)) for x, y in zip(bases, powers, strict=True)
        ]
        expected = [fraction(mpmath.power(x, y)) for x, y in pairs]
    assert first_difference(actual, tensor_of(dtype, (60,), expected)) is None


SPECIAL: dict[str, dict[Value, Value]] = {
    "exp": {NEGATIVE_ZERO: ONE, INFINITY: INFINITY, NEGATIVE_INFINITY: ZERO},
    "exp2": {ZERO: ONE, INFINITY: INFINITY, NEGATIVE_INFINITY: ZERO},
    "expm1": {ZERO: ZERO, NEGATIVE_ZERO: NEGATIVE_ZERO, INFINITY: INFINITY, NEGATIVE_INFINITY: -ONE},
    "log": {ZERO: NEGATIVE_INFINITY, NEGATIVE_ZERO: NEGATIVE_INFINITY, ONE: ZERO, -ONE: NAN, INFINITY: INFINITY},
    "log2": {ZERO: NEGATIVE_INFINITY, NEGATIVE_ZERO: NEGATIVE_INFINITY, ONE: ZERO, NEGATIVE_INFINITY: NAN},
    "log1p": {-ONE: NEGATIVE_INFINITY, NEGATIVE_ZERO: NEGATIVE_ZERO, ZERO: ZERO, Fraction(-2): NAN, INFINITY: INFINITY},
    "sin": {ZERO: ZERO, NEGATIVE_ZERO: NEGATIVE_ZERO, INFINITY: NAN, NEGATIVE_INFINITY: NAN},
    "cos": {ZERO: ONE, NEGATIVE_ZERO: ONE, INFINITY: NAN, NEGATIVE_INFINITY: NAN},
    "tan": {ZERO: ZERO, NEGATIVE_ZERO: NEGATIVE_ZERO, INFINITY: NAN, NEGATIVE_INFINITY: NAN},
    "tanh": {ZERO: ZERO, NEGATIVE_ZERO: NEGATIVE_ZERO, INFINITY: ONE, NEGATIVE_INFINITY: -ONE},
    "sinh": {ZERO: ZERO, NEGATIVE_ZERO: NEGATIVE_ZERO, INFINITY: INFINITY, NEGATIVE_INFINITY: NEGATIVE_INFINITY},
    "cosh": {ZERO: ONE, NEGATIVE_ZERO: ONE, INFINITY: INFINITY, NEGATIVE_INFINITY: INFINITY},
    "erf": {ZERO: ZERO, NEGATIVE_ZERO: NEGATIVE_ZERO, INFINITY: ONE, NEGATIVE_INFINITY: -ONE},
    "sqrt": {ZERO: ZERO, NEGATIVE_ZERO: NEGATIVE_ZERO, -ONE: NAN, INFINITY: INFINITY, NEGATIVE_INFINITY: NAN},
    "rsqrt": {ZERO: INFINITY, NEGATIVE_ZERO: NEGATIVE_INFINITY, -ONE: NAN, INFINITY: ZERO, NEGATIVE_INFINITY: NAN},
    "reciprocal": {ZERO: INFINITY, NEGATIVE_ZERO: NEGATIVE_INFINITY, INFINITY: ZERO, NEGATIVE_INFINITY: NEGATIVE_ZERO},
}


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32", "fp64", "fp8_e5m2"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values_are_those_of_ieee_754(name: str, dtype: str) -> None:
    cases = {**SPECIAL[name], NAN: NAN}
    x = tensor_of(dtype, (len(cases),), list(cases), nonfinite=True)
    expected = tensor_of(dtype, (len(cases),), list(cases.values()), nonfinite=True)
    actual = oracle.FUNCTIONS[f"oracle.{name}"](x, overflow="nonfinite")
    assert first_difference(actual, expected) is None


def exp_enclosure(x: Fraction, precision: int) -> tuple[Fraction, Fraction]:
    """Numbers below and above e**x, made of integers alone, closer together the higher the precision.

    |x| is halved until it is at most 1/2, its Taylor series is summed in integers that stand for multiples of
    2**-precision, rounded down in one sum and up in the other, and the sums are squared as often as |x| was halved.
    """
    one = 1 << precision
    halvings = max(0, (abs(x.numerator) // x.denominator).bit_length() + 1)
    scaled = abs(x) * one / (1 << halvings)
    below = scaled.numerator // scaled.denominator
    above = below + 1
    lower = upper = lower_term = upper_term = one
    n = 0
    while upper_term > 1:
        n += 1
        lower_term = lower_term * below // (n * one)
        upper_term = _divide_up(upper_term * above, n * one)
        lower += lower_term
        upper += upper_term
    upper += 1  # the terms left out shrink at least twofold each, so their sum is at most the last one added
    for _ in range(halvings):
        lower = lower * lower // one
        upper = _divide_up(upper * upper, one)
    if x < 0:
        return Fraction(one, upper), Fraction(one, lower)
    return Fraction(lower, one), Fraction(upper, one)


def _divide_up(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def exp(power: Value, target: FloatFormat) -> Value:
    return evaluate("exp", target, power)


def by_taylor(power: Fraction, target: FloatFormat) -> Value:
    precision = 64
    while True:
        lower, upper = exp_enclosure(power, precision)
        if target.encode(lower) == target.encode(upper):
            return target.round(lower)
        precision *= 2


@pytest.mark.parametrize(("dtype", "largest"), [("fp64", 1024), ("fp32", 128), ("fp16", 16), ("bf16", 128)])
def test_exp_is_that_of_its_taylor_series(draw: random.Random, dtype: str, largest: int) -> None:
    format_ = float_format(dtype)
    span = float(largest)
    for _ in range(300):
        number = draw.choice([draw.uniform(-1.1 * span, 0.72 * span), draw.gauss(0, 1), draw.gauss(0, 2.0**-20)])
        power = finite(format_.round(Fraction(struct.unpack("<f", struct.pack("<f", number))[0])))
        if power:
            assert exp(power, format_) == by_taylor(power, format_), number


@pytest.mark.parametrize(
    "power", [Fraction(1, 3), Fraction(-745), Fraction(709), Fraction(1, 1 << 1074), -Fraction(5, 2)]
)
def test_the_enclosure_narrows_and_stays_inside(power: Fraction) -> None:
    wide, narrow = exp_enclosure(power, 64), exp_enclosure(power, 256)
    assert wide[0] <= narrow[0] < narrow[1] <= wide[1]
    assert narrow[1] - narrow[0] < narrow[0] / (1 << 200)
