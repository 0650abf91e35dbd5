"""Exact arithmetic on the values that floating-point codes stand for, and the error for arguments without a result."""

from __future__ import annotations

import math
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

# The error for arguments that the oracle has no result for.


class BadArgument(ValueError):
    """An argument without a meaning: which one, what was given, what is allowed, and the clause."""

    def __init__(self, argument: str, given: object, allowed: str, clause: str | None = None) -> None:
        self.argument, self.given, self.allowed, self.clause = argument, given, allowed, clause
        place = f" ({clause})" if clause else ""
        super().__init__(f"{argument}: {given!r} is not allowed; expected {allowed}{place}")


# Exact arithmetic on the values that floating-point codes stand for.
#
# A value is a `Fraction`, or one of the four things that a Fraction cannot be: negative zero, the infinities and NaN.
# The functions here follow IEEE 754 and are exact; rounding is the business of `formats`.


class Special(Enum):
    """A value that is not a Fraction."""

    NEGATIVE_ZERO = "-0"
    INFINITY = "inf"
    NEGATIVE_INFINITY = "-inf"
    NAN = "nan"


Value: TypeAlias = Fraction | Special

ZERO = Fraction(0)
NEGATIVE_ZERO, INFINITY, NEGATIVE_INFINITY, NAN = Special


def is_negative(x: Value) -> bool:
    """True if the sign bit is set; NaN counts as positive."""
    return x.numerator < 0 if isinstance(x, Fraction) else x in (NEGATIVE_ZERO, NEGATIVE_INFINITY)


def is_infinite(x: Value) -> bool:
    """True if `x` is one of the infinities."""
    return x is INFINITY or x is NEGATIVE_INFINITY


def is_zero(x: Value) -> bool:
    """True if `x` is one of the zeros."""
    return x is NEGATIVE_ZERO or x == 0


def finite(x: Value) -> Fraction:
    """The number behind a value that is neither infinite nor NaN; raises ValueError for those."""
    if isinstance(x, Fraction):
        return x
    if x is not NEGATIVE_ZERO:
        raise ValueError(f"{x.value} is not a number")
    return ZERO


def zero(negative: bool) -> Value:
    """The zero of the given sign."""
    return NEGATIVE_ZERO if negative else ZERO


def infinity(negative: bool) -> Value:
    """The infinity of the given sign."""
    return NEGATIVE_INFINITY if negative else INFINITY


def negate(x: Value) -> Value:
    """The sign flipped, that of zeros and infinities too."""
    if x is NAN:
        return NAN
    if is_infinite(x):
        return infinity(not is_negative(x))
    return zero(not is_negative(x)) if is_zero(x) else -finite(x)


def add(x: Value, y: Value) -> Value:
    """The sum; exact cancellation gives +0, and only -0 + -0 gives -0."""
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x + y
    if x is NAN or y is NAN or (is_infinite(x) and is_infinite(y) and x is not y):
        return NAN
    if is_infinite(x) or is_infinite(y):
        return x if is_infinite(x) else y
    if x is NEGATIVE_ZERO and y is NEGATIVE_ZERO:
        return NEGATIVE_ZERO
    return finite(x) + finite(y)


def subtract(x: Value, y: Value) -> Value:
    """The difference."""
    return add(x, negate(y))


def multiply(x: Value, y: Value) -> Value:
    """The product; zero times infinity is NaN."""
    if isinstance(x, Fraction) and isinstance(y, Fraction) and (product := x * y):
        return product
    if x is NAN or y is NAN:
        return NAN
    negative = is_negative(x) != is_negative(y)
    if is_infinite(x) or is_infinite(y):
        return NAN if is_zero(x) or is_zero(y) else infinity(negative)
    return zero(negative)


def divide(x: Value, y: Value) -> Value:
    """The quotient; a number by zero is infinite, 0/0 and inf/inf are NaN."""
    if x is NAN or y is NAN or (is_infinite(x) and is_infinite(y)) or (is_zero(x) and is_zero(y)):
        return NAN
    negative = is_negative(x) != is_negative(y)
    if is_infinite(x) or is_zero(y):
        return infinity(negative)
    if is_infinite(y) or is_zero(x):
        return zero(negative)
    return finite(x) / finite(y)


def compare(x: Value, y: Value) -> int | None:
    """-1, 0 or 1 as x is below, equal to or above y, the zeros being equal; None where either is NaN."""
    if x is NAN or y is NAN:
        return None
    if is_infinite(x) or is_infinite(y):
        ranks = [(-1 if is_negative(v) else 1) if is_infinite(v) else 0 for v in (x, y)]
        return (ranks[0] > ranks[1]) - (ranks[0] < ranks[1])
    return (finite(x) > finite(y)) - (finite(x) < finite(y))


def maximum(x: Value, y: Value) -> Value:
    """The larger of two; NaN wins, and -0 lies below +0."""
    order = compare(x, y)
    if order is None:
        return NAN
    if order == 0:
        return y if is_negative(x) else x
    return x if order > 0 else y


def minimum(x: Value, y: Value) -> Value:
    """The smaller of two; NaN wins, and -0 lies below +0."""
    return negate(maximum(negate(x), negate(y)))


def exponent_of(number: Fraction) -> int:
    """floor(log2 |number|) of a number that is not zero."""
    return exponent_of_ratio(abs(number.numerator), number.denominator)


def exponent_of_ratio(numerator: int, denominator: int) -> int:
    """floor(log2(numerator / denominator)) of positive numbers."""
    exponent = numerator.bit_length() - denominator.bit_length()
    is_less = numerator << -exponent < denominator if exponent < 0 else numerator < denominator << exponent
    return exponent - is_less


def value_of(number: float) -> Value:
    """The value that a float is."""
    if math.isnan(number):
        return NAN
    if math.isinf(number):
        return INFINITY if number > 0 else NEGATIVE_INFINITY
    return NEGATIVE_ZERO if number == 0 and math.copysign(1, number) < 0 else Fraction(number)
