"""Elementary functions of the oracle against mpmath and enclosures made of integers, and special cases by hand."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from tessera_conformance import oracle
from tessera_conformance.differences import first_difference
from tessera_conformance.oracle.elementwise import evaluate, sqrt_two_over_pi, turn, two_pi
from tessera_conformance.oracle.exact import (
    FORMATS,
    INFINITY,
    NAN,
    NEGATIVE_INFINITY,
    NEGATIVE_ZERO,
    ZERO,
    BadArgument,
    FloatFormat,
    Value,
    finite,
    float_format,
    tensor_of,
    values_of,
)
from tessera_conformance.tensors import Tensor

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
    found: list[Fraction] = []
    while len(found) < count:
        near = format_.encode(Fraction(draw.gauss(0, 3)))
        value = format_.decode(draw.choice([draw.getrandbits(format_.sign_bit.bit_length()), near]))
        if not isinstance(value, Fraction) or not value:
            continue
        if (name in POSITIVE and value < 0) or (name == "log1p" and value <= -1):
            continue
        if name in EXPONENTIAL and abs(value) > 2000:
            continue
        found.append(value)
    return found


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_functions_are_correctly_rounded(draw: random.Random, name: str, dtype: str) -> None:
    format_ = float_format(dtype)
    values = operands(draw, name, format_, 40)
    found = oracle.FUNCTIONS[f"oracle.{name}"](tensor_of(dtype, (40,), list(values)))
    with mpmath.workprec(3000 if dtype == "fp64" and name in ("sin", "cos", "tan", "expm1", "log1p") else 1500):
        expected = [fraction(DEFINITIONS[name](number(value))) for value in values]
    assert first_difference(found, tensor_of(dtype, (40,), expected)) is None


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_are_correctly_rounded(draw: random.Random, dtype: str) -> None:
    format_ = float_format(dtype)
    bases = [abs(value) for value in operands(draw, "exp", format_, 60)]
    powers = [format_.round(Fraction(draw.gauss(0, 4))) for _ in bases]
    found = oracle.pow_(tensor_of(dtype, (60,), list(bases)), tensor_of(dtype, (60,), list(powers)))
    with mpmath.workprec(1500):
        pairs = [
            (number(x), number(y if isinstance(y, Fraction) else ZERO)) for x, y in zip(bases, powers, strict=True)
        ]
        expected = [fraction(mpmath.power(x, y)) for x, y in pairs]
    assert first_difference(found, tensor_of(dtype, (60,), expected)) is None


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
    "reciprocal": {
        ZERO: INFINITY,
        NEGATIVE_ZERO: NEGATIVE_INFINITY,
        INFINITY: ZERO,
        NEGATIVE_INFINITY: NEGATIVE_ZERO,
    },
}


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32", "fp64", "fp8_e5m2"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values_are_those_of_ieee_754(name: str, dtype: str) -> None:
    cases = {**SPECIAL[name], NAN: NAN}
    x = tensor_of(dtype, (len(cases),), list(cases), nonfinite=True)
    expected = tensor_of(dtype, (len(cases),), list(cases.values()), nonfinite=True)
    found = oracle.FUNCTIONS[f"oracle.{name}"](x, overflow="nonfinite")
    assert first_difference(found, expected) is None


POWERS: list[tuple[Value, Value, Value]] = [
    (NAN, ZERO, ONE),
    (NAN, NEGATIVE_ZERO, ONE),
    (ONE, NAN, ONE),
    (ONE, INFINITY, ONE),
    (-ONE, INFINITY, ONE),
    (-ONE, NEGATIVE_INFINITY, ONE),
    (NAN, ONE, NAN),
    (ZERO, NAN, NAN),
    (ZERO, Fraction(-3), INFINITY),
    (NEGATIVE_ZERO, Fraction(-3), NEGATIVE_INFINITY),
    (NEGATIVE_ZERO, Fraction(-2), INFINITY),
    (NEGATIVE_ZERO, Fraction(3), NEGATIVE_ZERO),
    (NEGATIVE_ZERO, Fraction(2), ZERO),
    (ZERO, NEGATIVE_INFINITY, INFINITY),
    (Fraction(-2), Fraction(3), Fraction(-8)),
    (Fraction(-2), Fraction(1, 2), NAN),
    (NEGATIVE_INFINITY, Fraction(3), NEGATIVE_INFINITY),
    (NEGATIVE_INFINITY, Fraction(-3), NEGATIVE_ZERO),
    (INFINITY, Fraction(-1), ZERO),
    (Fraction(1, 2), INFINITY, ZERO),
    (Fraction(1, 2), NEGATIVE_INFINITY, INFINITY),
    (Fraction(2), NEGATIVE_INFINITY, ZERO),
]


@pytest.mark.parametrize(("x", "y", "expected"), POWERS)
def test_special_powers_are_those_of_ieee_754(x: Value, y: Value, expected: Value) -> None:
    for dtype in ("fp16", "fp32", "fp64"):
        found = oracle.pow_(tensor_of(dtype, (), [x]), tensor_of(dtype, (), [y]))
        assert first_difference(found, tensor_of(dtype, (), [expected])) is None


@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_cases_are_exact(dtype: str) -> None:
    format_ = float_format(dtype)
    lowest, highest = format_.smallest_exponent, format_.encode(format_.largest) >> format_.fraction_bits
    exponents = [Fraction(k) for k in range(max(lowest, -20), min(highest - format_.bias, 15))]
    exponents = [k for k in exponents if format_.round(k) == k]
    x = tensor_of(dtype, (len(exponents),), list(exponents))
    powers = [Fraction(2) ** int(k) for k in exponents]
    assert values_of(oracle.exp2(x)) == powers
    assert values_of(oracle.log2(oracle.exp2(x))) == exponents
    squares = [Fraction(n * n, 16) for n in range(1, 5)]
    assert values_of(oracle.sqrt(tensor_of(dtype, (4,), list(squares)))) == [Fraction(n, 4) for n in range(1, 5)]


def test_a_power_that_is_a_tie_goes_to_even() -> None:
    """(1 + 2**-12)**2 has one bit more than fp32; so has (3 + 2**-11)**2, whose lower neighbour is odd."""
    bases = [1 + Fraction(1, 1 << 12), 1 + Fraction(3, 1 << 12), Fraction(5)]
    exact = [base * base for base in bases[:2]]
    target = float_format("fp32")
    assert [target.round(value) != value for value in exact] == [True, True]
    found = oracle.pow_(
        tensor_of("fp32", (3,), list(bases)), tensor_of("fp32", (3,), [Fraction(2)] * 2 + [Fraction(11)])
    )
    assert values_of(found) == [*(target.round(value) for value in exact), target.round(Fraction(5**11))]
    assert target.encode(exact[0]) % 2 == target.encode(exact[1]) % 2 == 0


def test_a_tie_below_the_smallest_number() -> None:
    """2**-150 is half of fp32's smallest number and rounds to zero; three times as much rounds up."""
    minus = tensor_of("fp32", (2,), [Fraction(-150), Fraction(-149)])
    assert values_of(oracle.exp2(minus)) == [0, Fraction(1, 1 << 149)]


@pytest.mark.parametrize(("dtype", "infinite"), [("fp8_e4m3", [0x7F, 0x7F]), ("fp8_e5m2", [0x7C, 0xFC])])
def test_fp8_saturates_unless_told_not_to(dtype: str, infinite: list[int]) -> None:
    largest = float_format(dtype).largest_code
    zeros = tensor_of(dtype, (2,), [ZERO, NEGATIVE_ZERO])
    assert oracle.reciprocal(zeros).words().tolist() == [largest, largest | 0x80]
    assert oracle.reciprocal(zeros, overflow="nonfinite").words().tolist() == infinite
    hundred = tensor_of(dtype, (1,), [Fraction(96)])
    assert oracle.exp(hundred).words().tolist() == [largest]
    assert oracle.exp(hundred, overflow="nonfinite").words().tolist() == infinite[:1]


@pytest.mark.parametrize(
    ("name", "code", "once", "twice"),
    [("exp", 0x1F79, 0x3C07, 0x3C08), ("sin", 0x5CB0, 0xBBFF, 0xBC00), ("cosh", 0x2800, 0x3C01, 0x3C00)],
)
def test_a_function_is_rounded_in_its_own_type_and_not_through_fp32(
    name: str, code: int, once: int, twice: int
) -> None:
    """Rounded to fp32 first, these become ties of fp16 and go astray."""
    function = oracle.FUNCTIONS[f"oracle.{name}"]
    x = Tensor.from_words("fp16", (1,), [code])
    assert function(x).words().tolist() == [once]
    assert oracle.cast(function(oracle.cast(x, dtype="fp32")), dtype="fp16").words().tolist() == [twice]


@pytest.mark.parametrize("dtype", ["int32", "bool", "complex64"])
def test_only_real_floats_have_them(dtype: str) -> None:
    x = Tensor(dtype, (0,), b"")
    for function in (oracle.exp, oracle.sigmoid, oracle.softmax):
        with pytest.raises(BadArgument, match="dtype"):
            function(x)


def test_an_overflow_has_two_values() -> None:
    with pytest.raises(BadArgument, match="overflow: 'wrap' is not allowed; expected saturate or nonfinite"):
        oracle.exp(Tensor("fp32", (0,), b""), overflow="wrap")  # type: ignore[arg-type]


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


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32", "fp64"])
def test_special_powers(dtype: str) -> None:
    format_ = float_format(dtype)
    assert exp(ZERO, format_) == exp(NEGATIVE_ZERO, format_) == 1
    assert exp(NEGATIVE_INFINITY, format_) == exp(-format_.largest, format_) == 0
    assert exp(INFINITY, format_) is exp(format_.largest, format_) is INFINITY
    assert exp(NAN, format_) is NAN
    assert exp(format_.smallest, format_) == exp(-format_.smallest, format_) == 1


def test_the_thresholds_of_fp32() -> None:
    """The largest power with a finite result, the smallest with one that is not zero, and their neighbours."""
    format_ = float_format("fp32")
    codes = [0x42B17217, 0x42B17218, 0xC2CFF1B4, 0xC2CFF1B5]
    results = [format_.encode(exp(format_.decode(code), format_)) for code in codes]
    assert results == [0x7F7FFF84, 0x7F800000, 0x00000001, 0x00000000]


def test_a_wide_number_is_not_rounded_on_its_way_in() -> None:
    """MPFR's contexts have fewer bits than this power."""
    power = 1 + Fraction(1, 1 << 200)
    assert exp(power, FloatFormat(19, 300)) == by_taylor(power, FloatFormat(19, 300))
    assert exp(power, FloatFormat(19, 300)) != exp(Fraction(1), FloatFormat(19, 300))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 60])
@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
def test_roots_of_unity(n: int, dtype: str) -> None:
    """Against mpmath, and by symmetry; what is rational is exact and zeros are +0."""
    mpmath = pytest.importorskip("mpmath")
    format_ = float_format(dtype)
    with mpmath.workprec(300):
        for m in range(n):
            cosine, sine = turn(m, n, format_)
            angle = 2 * mpmath.pi * m / n
            for found, wanted in ((cosine, mpmath.cos(angle)), (sine, mpmath.sin(angle))):
                assert isinstance(found, Fraction)
                if abs(wanted) < mpmath.mpf(2) ** -200:
                    assert found == 0
                else:
                    mantissa, exponent = mpmath.frexp(wanted)
                    scaled = Fraction(int(mpmath.ldexp(mantissa, 290))) * Fraction(2) ** (int(exponent) - 290)
                    assert found == format_.round(scaled)
            assert turn(-m, n, format_) == (cosine, -sine if sine else sine)
    assert turn(1, 6, format_)[0] == Fraction(1, 2)


def test_constants_of_fp64() -> None:
    """Published roundings of 2 pi and of the square root of 2 / pi."""
    target = float_format("fp64")
    assert two_pi(target) == Fraction(float.fromhex("0x1.921fb54442d18p+2"))
    assert sqrt_two_over_pi(target) == Fraction(float.fromhex("0x1.9884533d43651p-1"))
