"""An enclosure of the exponential made of integers alone: what MPFR is checked against."""

from __future__ import annotations

from fractions import Fraction


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
