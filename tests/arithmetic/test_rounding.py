"""Directed rounding, held against a search through all values of a small format."""

from __future__ import annotations

import random
from bisect import bisect_left
from fractions import Fraction

import pytest

from tessera_conformance.arithmetic.exact_sums import flushed, result_of, rounded
from tessera_conformance.arithmetic.model import NodeArithmetic, Rounding
from tessera_conformance.oracle.exact import INFINITY, NAN, NEGATIVE_INFINITY, NEGATIVE_ZERO, Value, exponent_of
from tessera_conformance.oracle.formats import FORMATS, FloatFormat, float_format

DIRECTIONS: tuple[Rounding, ...] = ("nearest_even", "nearest_away", "toward_zero", "up", "down")
SMALL = FloatFormat(exponent_bits=4, fraction_bits=3)
CODES = range(SMALL.largest_code + 1)
VALUES = [Fraction(SMALL.decode(code)) for code in CODES]  # type: ignore[arg-type]


def expected(number: Fraction, direction: Rounding) -> Value:
    """By search: the neighbours in the list of all values, one step beyond the largest standing for infinity."""
    negative, size = number < 0, abs(number)
    values = [*VALUES, 2 * VALUES[-1] - VALUES[-2]]
    place = bisect_left(values, size)
    if place >= len(values):
        below, above = len(values) - 1, len(values) - 1
    else:
        above = place
        below = place if values[place] == size else place - 1
    outward = direction == ("down" if negative else "up")
    if direction in ("toward_zero", "up", "down"):
        chosen = above if outward else below
        if not outward:
            chosen = min(chosen, len(VALUES) - 1)
    else:
        low, high = size - values[below], values[above] - size
        tied = above if direction == "nearest_away" or above % 2 == 0 else below
        chosen = below if low < high else above if high < low else tied
    if chosen >= len(VALUES):
        return NEGATIVE_INFINITY if negative else INFINITY
    if VALUES[chosen] == 0:
        return NEGATIVE_ZERO if negative else Fraction(0)
    return -VALUES[chosen] if negative else VALUES[chosen]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_against_all_values_of_a_small_format(direction: Rounding) -> None:
    chance = random.Random(direction)
    grid = SMALL.smallest / 8
    for _ in range(4000):
        number = grid * chance.randint(1, 1 << chance.randint(1, 21)) * chance.choice((-1, 1))
        assert rounded(number, SMALL, direction) == expected(number, direction), number


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_values_of_the_format_stay(direction: Rounding) -> None:
    for value in [*VALUES, *(-value for value in VALUES[1:]), NEGATIVE_ZERO, INFINITY, NEGATIVE_INFINITY, NAN]:
        assert rounded(value, SMALL, direction) == value


def test_eight_bit_floats_stop_at_their_largest_value() -> None:
    e4m3 = float_format("fp8_e4m3")
    assert rounded(Fraction(10**6), e4m3, "up") == 448
    assert rounded(Fraction(-(10**6)), e4m3, "nearest_away") == -448


def test_integers_wrap_in_every_direction() -> None:
    assert rounded(Fraction(2**31), FORMATS["int32"], "up") == -(2**31)


def test_flushing_keeps_the_sign() -> None:
    format_ = float_format("fp32")
    assert flushed(-format_.smallest_normal / 2, format_) is NEGATIVE_ZERO
    assert flushed(format_.smallest_normal / 2, format_) == 0
    assert flushed(format_.smallest_normal, format_) == format_.smallest_normal
    model = NodeArithmetic("fp32", subnormals="flushed")
    assert result_of(format_.smallest_normal * 3 / 4, model) == 0
    assert result_of(format_.smallest_normal * 3 / 4, model.but(subnormals="kept")) == format_.smallest_normal * 3 / 4


@pytest.mark.parametrize(("number", "exponent"), [("1", 0), ("3/2", 0), ("2", 1), ("7/8", -1), ("-1/3", -2), ("4", 2)])
def test_exponents(number: str, exponent: int) -> None:
    assert exponent_of(Fraction(number)) == exponent
