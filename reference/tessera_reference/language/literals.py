"""Literals: from decimal digits to a number of the type that the place asks for (AMB-LANG-54; usage, "Literals").

The decimal value is taken exactly and rounded once. Digits and exponents may be as long as they like.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from ..ir.operation import require
from ..numerics.formats import DType
from ..numerics.rounding import round_exact

_DECADES = 400
"""No format reaches 10**400, or rounds 10**-400 to anything but zero."""

_DIGITS = 1200
"""More digits than any midpoint between two values of fp64 has; one sticky digit stands for the rest."""


def exact(text: str) -> Fraction:
    """The value of a decimal literal without sign; far beyond every format, some value that is as far beyond."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return Fraction(0)
    scale = _clamped(exponent) - len(fraction)
    if not -_DECADES <= len(digits) + scale <= _DECADES:
        return Fraction(10) ** (_DECADES if scale > 0 or len(digits) + scale > 0 else -_DECADES)
    kept = digits if len(digits) <= _DIGITS else f"{digits[:_DIGITS]}{int(bool(digits[_DIGITS:].strip('0')))}"
    return int(kept) * Fraction(10) ** (scale + len(digits) - len(kept))


def _clamped(exponent: str) -> int:
    sign, digits = re.fullmatch(r"([+-]?)0*([0-9]*)", exponent).groups()  # type: ignore[union-attr]
    return int(f"{sign}{digits if len(digits) <= 9 else '9' * 9}" if digits else 0)


def shown(text: str, negative: bool) -> str:
    """A literal in a message, its middle left out when it is long."""
    short = text if len(text) <= 40 else f"{text[:20]}...{text[-10:]}"
    return f"-{short}" if negative else short


def integer(text: str, negative: bool, dtype: DType) -> int:
    """An integer literal as an integer dtype. Refuses what does not fit."""
    digits = text.lstrip("0") or "0"
    value = int(digits) if len(digits) <= 20 else 10**20
    value = -value if negative else value
    require(
        dtype.int_min <= value <= dtype.int_max,
        "types",
        f"{shown(text, negative)} does not fit {dtype}",
        f"a value from {dtype.int_min} to {dtype.int_max}",
        "AMB-LANG-54",
    )
    return value


def floating(text: str, negative: bool, dtype: DType) -> float:
    """A literal as a float dtype, rounded once. Refuses what rounds beyond the largest finite value."""
    value = round_exact(exact(text), dtype, overflow="nonfinite")
    require(
        math.isfinite(value),
        "types",
        f"{shown(text, negative)} does not fit {dtype}",
        f"a magnitude up to {dtype.storage.max_finite!r}",
        "AMB-LANG-54",
    )
    return -value if negative else value


def number(text: str, negative: bool, is_float: bool, dtype: DType) -> int | float:
    """A numeric literal as `dtype`. Refuses a dtype that such a literal does not become."""
    if dtype.kind == "float":
        return floating(text, negative, dtype)
    require(
        dtype.kind == "int" and not is_float,
        "types",
        f"{'a float' if is_float else 'an integer'} literal stands where {dtype} is wanted",
        "a literal of the kind that its place asks for",
        "AMB-LANG-54",
        "did you mean true or false?" if dtype.kind == "bool" else "",
    )
    return integer(text, negative, dtype)
