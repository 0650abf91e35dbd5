"""Rounding of exact values to a number format in any direction that IEEE 754 names, by integer division."""

from __future__ import annotations

from fractions import Fraction

from tessera_conformance.arithmetic.model import NodeArithmetic, Rounding
from tessera_conformance.oracle.exact import (
    NAN,
    NEGATIVE_ZERO,
    Value,
    exponent_of,
    finite,
    is_infinite,
    is_negative,
    is_zero,
    zero,
)
from tessera_conformance.oracle.formats import FloatFormat, Format


def rounded(value: Value, format_: Format, direction: Rounding = "nearest_even") -> Value:
    """`value` in a format; integers wrap, whatever the direction."""
    if direction == "nearest_even" or not isinstance(format_, FloatFormat):
        return format_.round(value)
    return _directed(value, format_, direction)


def flushed(value: Value, format_: Format) -> Value:
    """`value`, or the zero of its sign where it is a subnormal of the format."""
    if isinstance(value, Fraction) and isinstance(format_, FloatFormat) and 0 < abs(value) < format_.smallest_normal:
        return zero(value < 0)
    return value


def result_of(value: Value, model: NodeArithmetic) -> Value:
    """What a node makes of the exact value of its sum."""
    result = rounded(value, model.format, model.rounding)
    return flushed(result, model.format) if model.subnormals == "flushed" else result


def _directed(value: Value, format_: FloatFormat, direction: Rounding) -> Value:
    if value is NAN or is_infinite(value) or is_zero(value):
        return format_.round(value)
    negative = is_negative(value)
    magnitude, kept = _truncated(abs(finite(value)), format_)
    rest = abs(finite(value)) - kept
    if rest and _rounds_away(direction, negative, rest, kept, magnitude, format_):
        magnitude += 1
    if magnitude > format_.largest_code:
        return _overflowed(negative, format_, direction)
    return format_.decode(magnitude | (format_.sign_bit if negative else 0))


def _truncated(number: Fraction, format_: FloatFormat) -> tuple[int, Fraction]:
    """The code at or below a positive number, as if there were no largest exponent, and its value."""
    exponent = exponent_of(number)
    binade = max(exponent - format_.fraction_bits - format_.smallest_exponent, 0)
    spacing = Fraction(2) ** (binade + format_.smallest_exponent)
    significand = number // spacing
    return (binade << format_.fraction_bits) + significand, significand * spacing


def _rounds_away(
    direction: Rounding, negative: bool, rest: Fraction, kept: Fraction, magnitude: int, format_: FloatFormat
) -> bool:
    if direction == "nearest_away":
        binade = max((magnitude >> format_.fraction_bits) - 1, 0)
        return 2 * rest >= Fraction(2) ** (binade + format_.smallest_exponent)
    return direction == ("down" if negative else "up")


def _overflowed(negative: bool, format_: FloatFormat, direction: Rounding) -> Value:
    """Directions that point to zero stop at the largest value; others go where the format overflows to."""
    stops = direction == "toward_zero" or direction == ("up" if negative else "down")
    if stops:
        return -format_.largest if negative else format_.largest
    beyond = format_.largest * 4
    return format_.round(-beyond if negative else beyond)


def zero_sum(all_negative: bool, none_negative: bool, direction: Rounding) -> Value:
    """The zero that terms of sum zero give: of their common sign, else +0, or -0 where rounding goes down."""
    if all_negative or (direction == "down" and not none_negative):
        return NEGATIVE_ZERO
    return Fraction(0)
