"""The elements of patterns and scalars, by exact arithmetic (D5, D7; AMB-HIO-06, -35, -36)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal
from fractions import Fraction
from typing import NamedTuple

__all__ = ["EXACT", "FLOATS", "INTEGERS", "Float", "binary", "element", "filled", "float_bits", "number_of"]

EXACT = Context(prec=1200)
"""Enough digits for every sum and product of two elements, and for numbers between them."""


class Float(NamedTuple):
    """A binary format: its bytes, the bits of its fraction, and the exponent of its least normal number."""

    bytes: int
    fraction: int
    least: int


FLOATS: Mapping[str, Float] = {"fill_fp16": Float(2, 10, -14), "fill_fp32": Float(4, 23, -126)}
"""By kind of pattern."""
INTEGERS: Mapping[str, int] = {"fill_u8": 1, "fill_u16": 2, "fill_u32": 4}
"""Bytes, by kind of pattern."""


def float_bits(kind: str, value: Decimal) -> int:
    """Return the bits of the finite element nearest to a number, of two the even one; a zero has the number's sign.

    Bits count upwards with the values, so that a value's bits are its place among the multiples of its step.
    """
    form = FLOATS[kind]
    exact = abs(Fraction(value))
    exponent = form.least
    while exact >= Fraction(2) ** (exponent + 1):
        exponent += 1
    steps = round(exact / Fraction(2) ** (exponent - form.fraction))  # of a Fraction: to nearest, ties to even
    bits = steps + ((exponent - form.least) << form.fraction)
    sign = 1 << (8 * form.bytes - 1)
    return bits | (sign if value.is_signed() else 0)


def element(kind: str, value: int | Decimal | None) -> bytes:
    """Return one element, its lowest byte first; of `zero`, a byte."""
    if kind == "zero":
        return b"\0"
    assert value is not None
    if kind in INTEGERS:
        return bytes(int(value) >> 8 * place & 255 for place in range(INTEGERS[kind]))
    bits = float_bits(kind, Decimal(value))
    return bytes(bits >> 8 * place & 255 for place in range(FLOATS[kind].bytes))


def filled(kind: str, value: int | Decimal | None, nbytes: int) -> bytes:
    """Return the bytes that a pattern writes: the element, from the first byte on."""
    one = element(kind, value)
    return one * (nbytes // len(one))


def number_of(kind: str, data: bytes) -> Decimal:
    """Return the exact value of a finite element; a zero keeps its sign."""
    form = FLOATS[kind]
    bits = sum(byte << 8 * place for place, byte in enumerate(data))
    magnitude = bits & ((1 << (8 * form.bytes - 1)) - 1)
    steps, exponent = magnitude & ((1 << form.fraction) - 1), magnitude >> form.fraction
    if exponent:
        steps, exponent = steps + (1 << form.fraction), exponent - 1
    value = binary(steps, exponent + form.least - form.fraction)
    return value.copy_negate() if bits != magnitude else value


def binary(numerator: int, power: int) -> Decimal:
    """Return numerator * 2^power, exactly."""
    scale = EXACT.power(Decimal(2), abs(power))
    return EXACT.multiply(Decimal(numerator), scale) if power > 0 else EXACT.divide(Decimal(numerator), scale)
