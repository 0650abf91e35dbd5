"""The bytes that a pattern repeats (D5; AMB-HIO-05, AMB-HIO-06, AMB-HIO-35)."""

from __future__ import annotations

from typing import NamedTuple

from .messages import Pattern
from .numbers import bytes_of

__all__ = ["ELEMENTS", "Element", "element_bytes"]


class Element(NamedTuple):
    """What a kind of pattern repeats."""

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
