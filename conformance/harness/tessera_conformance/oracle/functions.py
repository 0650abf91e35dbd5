"""Elementary functions, correctly rounded: an enclosure is narrowed until both of its ends round to the same code.

Canon of arithmetic: elementary functions are correctly rounded in the result type (LANG-10-11, AMB-LANG-45).
"""

from __future__ import annotations

from fractions import Fraction

from tessera_conformance.oracle.exact import INFINITY, NAN, ZERO, Value, finite, is_infinite, is_negative
from tessera_conformance.oracle.formats import FloatFormat


def exp(x: Value, target: FloatFormat) -> Value:
    """e to the power x, rounded once to `target`.

    The loop ends: e to a rational power other than 0 is irrational, so it is never a tie.
    """
    if x is NAN:
        return NAN
    if is_infinite(x):
        return ZERO if is_negative(x) else INFINITY
    power = finite(x)
    if power == 0:
        return Fraction(1)
    if power <= target.smallest_exponent - 1:
        return ZERO  # e**x < 2**x, which is at most half of the smallest positive value
    if power > target.bias + 1:
        return target.round(INFINITY)  # e**x > 2**x, which is beyond the largest value
    precision = 64
    while True:
        lower, upper = exp_enclosure(power, precision)
        if target.encode(lower) == target.encode(upper):
            return target.round(lower)
        precision *= 2


def exp_enclosure(x: Fraction, precision: int) -> tuple[Fraction, Fraction]:
    """Numbers below and above e**x, closer together the higher the precision.

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
