"""MPFR's exponential against an enclosure made of integers, roots of unity, and special values by hand."""

from __future__ import annotations

import random
import struct
from fractions import Fraction

import pytest

from tessera_conformance.oracle.exact import INFINITY, NAN, NEGATIVE_INFINITY, NEGATIVE_ZERO, ZERO, Value, finite
from tessera_conformance.oracle.formats import FloatFormat, float_format
from tessera_conformance.oracle.functions import evaluate, sqrt_two_over_pi, turn, two_pi


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
