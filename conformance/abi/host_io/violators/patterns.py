"""Patterns that write other bytes: byte order, rounding, sizes (D5; AMB-HIO-05, -06, -35, -36)."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from tessera_conformance.strength import Violation
from tessera_reference.host_io import frames
from tessera_reference.host_io import frames as numbers
from tessera_reference.host_io import frames as patterns
from tessera_reference.host_io.machine import SparseMemory
from tessera_reference.host_io.messages import Pattern

from .message_changes import changed

_element_bytes = patterns.element_bytes
_rounded = numbers.rounded
_fill = SparseMemory.fill

CLAUSES = {
    "zero": "HIO-D5-13",
    "fill_u8": "HIO-D5-14",
    "fill_u16": "HIO-D5-15",
    "fill_u32": "HIO-D5-16",
    "fill_fp16": "HIO-D5-17",
    "fill_fp32": "HIO-D5-18",
}


def other_element(kind: str, name: str, description: str, change: Callable[[Pattern, bytes], bytes]) -> Violation:
    """Return a violation in which patterns of a kind repeat another element."""

    def element_bytes(pattern: Pattern) -> bytes:
        right = _element_bytes(pattern)
        return change(pattern, right) if pattern.pattern_kind == kind else right

    return changed(CLAUSES[kind], name, description, ("host_io.endpoint.element_bytes", element_bytes))


def whole(pattern: Pattern) -> int:
    """Return the value of a pattern of integers."""
    return int(pattern.value or 0)


ELEMENTS = [
    other_element("fill_u16", "fill_u16_big_endian", "fill_u16 writes the highest byte first",
        lambda pattern, right: right[::-1]),
    other_element("fill_u16", "u16_saturates", "fill_u16 saturates at 32,767",
        lambda pattern, right: min(whole(pattern), 0x7FFF).to_bytes(2, "little")),
    other_element("fill_u32", "u32_through_fp32", "fill_u32 passes through fp32",
        lambda pattern, right: min(int(np.float32(whole(pattern))), 2**32 - 1).to_bytes(4, "little")),
    other_element("zero", "zero_of_ones", "zero writes ones", lambda pattern, right: b"\xff"),
]  # fmt: skip


def zero_of_its_value(pattern: Pattern) -> bytes:
    if pattern.pattern_kind == "zero" and pattern.value is not None:
        return bytes([int(pattern.value) & 255])
    return _element_bytes(pattern)


ZERO = changed(
    "HIO-D5-21",
    "zero_of_its_value",
    "zero writes the lowest byte of its value",
    ("host_io.endpoint.element_bytes", zero_of_its_value),
)

# Rounding


def rounding(dtype: str, name: str, description: str, change: Callable[[Any], float]) -> Violation:
    """Return a violation that rounds numbers of a dtype differently."""

    def rounded(value: int | Decimal, of: str) -> float:
        return change(value) if of == dtype else _rounded(value, of)

    return changed(
        CLAUSES[f"fill_{dtype}"], f"{dtype}_{name}", f"{dtype} {description}", ("host_io.frames.rounded", rounded)
    )


def half_away(dtype: str) -> Callable[[Any], float]:
    def change(value: Any) -> float:
        away = Decimal(value) * (Decimal(1) + Decimal("1e-20"))
        return _rounded(away, dtype) if value else _rounded(value, dtype)

    return change


def flushed(dtype: str) -> Callable[[Any], float]:
    least = {"fp16": 2.0**-14, "fp32": 2.0**-126}[dtype]

    def change(value: Any) -> float:
        found = _rounded(value, dtype)
        return math.copysign(0.0, found) if abs(found) < least else found

    return change


ROUNDING = [
    *(
        violation
        for dtype in ("fp16", "fp32")
        for violation in (
            rounding(dtype, "half_away", "rounds halves away from zero", half_away(dtype)),
            rounding(dtype, "flushed", "has no subnormals", flushed(dtype)),
            rounding(
                dtype,
                "without_negative_zero",
                "has no negative zero",
                lambda value, dtype=dtype: _rounded(value, dtype) + 0.0,
            ),
        )
    ),
    rounding("fp16", "through_fp32", "is rounded to fp32 first",
        lambda value: _rounded(Decimal(_rounded(value, "fp32")), "fp16")),
]  # fmt: skip

# Sizes and addresses


def filling(clause: str, name: str, description: str, change: Callable[[int, int, bytes], Any]) -> Violation:
    """Return a violation that fills other bytes: `change` gives address, size and element."""

    def fill(self: SparseMemory, pa: int, nbytes: int, element: bytes) -> None:
        pa, nbytes, element = change(pa, nbytes, element)
        _fill(self, pa, nbytes, element)

    return changed(clause, name, description, ("host_io.machine.SparseMemory.fill", fill))


FILLS = [
    filling("HIO-D5-07", "a_page_at_most", "a fill ends with its first 64 KiB",
        lambda pa, nbytes, one: (pa, min(nbytes, 65536), one)),
]  # fmt: skip


def wrapping(kind: str) -> Violation:
    """Return a violation that wraps values beyond the range of a kind."""
    right = frames._require_fit
    size = {"fill_u8": 1, "fill_u16": 2, "fill_u32": 4}[kind]
    of = kind.removeprefix("fill_")

    def require_fit(field: str, value: int | Decimal, dtype: str, clause: str) -> None:
        if dtype != of:
            right(field, value, dtype, clause)

    def element_bytes(pattern: Pattern) -> bytes:
        if pattern.pattern_kind != kind:
            return _element_bytes(pattern)
        return (whole(pattern) % 256**size).to_bytes(size, "little")

    return changed(
        CLAUSES[kind],
        f"{kind}_wraps",
        f"values past the range of {kind} wrap",
        ("host_io.frames._require_fit", require_fit),
        ("host_io.endpoint.element_bytes", element_bytes),
    )


WRAPPING = [wrapping(kind) for kind in ("fill_u8", "fill_u16", "fill_u32")]
