"""MPFR with directed rounding: numbers proved to lie below and above a real number.

MPFR rounds every function correctly in the direction asked for, so what it gives under `RoundDown` and `RoundUp`
encloses the exact result. The exponent range is far wider than that of any format here, and yet small enough that its
extremes are ordinary fractions.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import gmpy2

from tessera_conformance.oracle.exact import (
    INFINITY,
    NAN,
    NEGATIVE_INFINITY,
    NEGATIVE_ZERO,
    Special,
    Value,
    infinity,
    zero,
)
from tessera_conformance.oracle.formats import FloatFormat

Number: TypeAlias = Any
"""An MPFR number."""
Context: TypeAlias = Any
"""The precision and direction that an operation of MPFR rounds with."""
Enclosing: TypeAlias = Callable[[Context, Context], tuple[Number, Number]]
"""Gives a lower and an upper end, from contexts that round down and up."""

FIRST_PRECISION = 64
"""More than a significand and its rounding bit in any format: where a result is exact or a tie, both ends are it."""
LARGEST_EXPONENT = 20_000
_SPECIALS = {NEGATIVE_ZERO: "-0", INFINITY: "inf", NEGATIVE_INFINITY: "-inf", NAN: "nan"}


@cache
def contexts(precision: int) -> tuple[Context, Context]:
    """Contexts of that many bits that round down and up."""
    span = {"precision": precision, "emin": -LARGEST_EXPONENT, "emax": LARGEST_EXPONENT}
    return gmpy2.context(round=gmpy2.RoundDown, **span), gmpy2.context(round=gmpy2.RoundUp, **span)


def number(value: Value) -> Number:
    """The MPFR number that a value is, exactly.

    Raises:
        ValueError: the value is no multiple of a power of two.
    """
    if isinstance(value, Special):
        return gmpy2.mpfr(_SPECIALS[value])
    numerator, denominator = value.numerator, value.denominator
    if denominator & (denominator - 1):
        raise ValueError(f"{value} is not a binary fraction")
    trailing_zeros = max((numerator & -numerator).bit_length() - 1, 0)
    precision = max(numerator.bit_length() - trailing_zeros, 2)
    return gmpy2.mpfr(gmpy2.mpq(numerator, denominator), precision)


def value(found: Number) -> Value:
    """The value that an MPFR number is."""
    if gmpy2.is_nan(found):
        return NAN
    if gmpy2.is_infinite(found):
        return infinity(found < 0)
    if gmpy2.is_zero(found):
        return zero(gmpy2.is_signed(found))
    return fraction(found)


def fraction(found: Number) -> Fraction:
    """The fraction that a finite MPFR number is."""
    numerator, denominator = found.as_integer_ratio()
    return Fraction(int(numerator), int(denominator))


def correctly_rounded(enclose: Enclosing, target: FloatFormat, *, nonfinite: bool = False) -> Value:
    """What a real number rounds to."""
    return target.decode(rounded_code(enclose, target, nonfinite=nonfinite))


def rounded_code(enclose: Enclosing, target: FloatFormat, *, nonfinite: bool = False) -> int:
    """The code that a real number rounds to: its enclosure is narrowed until both ends round alike.

    This ends unless the number is a tie that no precision represents, and no function here has such a result: ties have
    one bit more than the format, so that MPFR gives them exactly.
    """
    precision = FIRST_PRECISION
    while True:
        lower, upper = enclose(*contexts(precision))
        code = _code(lower, target, nonfinite)
        if lower == upper or code == _code(upper, target, nonfinite):
            return code
        precision *= 2


def _code(found: Number, target: FloatFormat, nonfinite: bool) -> int:
    """The code that an MPFR number rounds to."""
    if not gmpy2.is_finite(found) or gmpy2.is_zero(found):
        return target.encode(value(found), nonfinite=nonfinite)
    numerator, denominator = found.as_integer_ratio()
    return target.encode_ratio(int(numerator), int(denominator), nonfinite=nonfinite)
