"""Numbers of messages as elements of a dtype, and the bytes that a pattern repeats.

D5; AMB-HIO-05, -06, -35, -36."""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_05UP, Context, Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..numerics.formats import DTYPES
from ..numerics.rounding import round_exact
from .messages import Pattern

# Numbers of messages as elements of a dtype: exact, then rounded once, to nearest even (AMB-HIO-06, AMB-HIO-36).


INTEGERS = {
    "u8": (0, 2**8 - 1),
    "u16": (0, 2**16 - 1),
    "u32": (0, 2**32 - 1),
    "i32": (-(2**31), 2**31 - 1),
    "i64": (-(2**63), 2**63 - 1),
}
"""The least and the largest of each integer dtype."""
FLOATS = {"fp16": DTYPES["fp16"], "fp32": DTYPES["fp32"]}

_BEYOND = 64
"""A power of ten that passes every fp32, and whose inverse is nearest to zero."""
_SHORT = Context(prec=200, rounding=ROUND_05UP, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""More digits than a value halfway between two elements has; the last one says whether any were dropped."""


class MinusZero(int):
    """The whole number that a message writes as -0: 0 for an integer dtype, -0 for a float (AMB-HIO-33)."""


def rounded(value: int | Decimal, dtype: str) -> float:
    """The element of fp16 or fp32 that is nearest, infinite past the largest; zeros keep their sign."""
    number = Decimal("-0" if isinstance(value, MinusZero) else value)
    sign = -1.0 if number.is_signed() else 1.0
    if not number or number.adjusted() < -_BEYOND:
        return math.copysign(0.0, sign)
    if number.adjusted() > _BEYOND:
        return math.copysign(math.inf, sign)
    return math.copysign(round_exact(Fraction(_SHORT.plus(number)), FLOATS[dtype], "nonfinite"), sign)


def overflows(value: int | Decimal, dtype: str) -> bool:
    """True if a number rounds past the largest element."""
    return math.isinf(rounded(value, dtype))


def bytes_of(value: int | Decimal | bool, dtype: str) -> bytes:
    """The element as it is in memory, little-endian; a bool is one byte."""
    if dtype in FLOATS:
        return np.array(rounded(value, dtype), FLOATS[dtype].storage.carrier).astype(f"<f{_SIZES[dtype]}").tobytes()
    return int(value).to_bytes(_SIZES[dtype], "little", signed=dtype.startswith("i"))


_SIZES = {"u8": 1, "u16": 2, "u32": 4, "i32": 4, "i64": 8, "fp16": 2, "fp32": 4, "bool": 1}

# The bytes that a pattern repeats (D5; AMB-HIO-05, AMB-HIO-06, AMB-HIO-35).


class Element(NamedTuple):
    """The repeated element of a kind of pattern."""

    dtype: str
    size: int


ELEMENTS = {
    "zero": Element("u8", 1),
    "fill_u8": Element("u8", 1),
    "fill_u16": Element("u16", 2),
    "fill_u32": Element("u32", 4),
    "fill_fp16": Element("fp16", 2),
    "fill_fp32": Element("fp32", 4),
}
"""By kind of pattern."""


def element_bytes(pattern: Pattern) -> bytes:
    """One element, little-endian; a byte of zeros for `zero`, whatever its value (HIO-D5-13 to -18, HIO-D5-21)."""
    value = 0 if pattern.value is None or pattern.pattern_kind == "zero" else pattern.value
    return bytes_of(value, ELEMENTS[pattern.pattern_kind].dtype)
