"""Patterns that write other bytes: byte order, rounding, sizes (D5; AMB-HIO-05, -06, -35, -36)."""

import math
from decimal import Decimal

import numpy as np

from tessera_reference.host_io import frames

from ....ir.violators.changes import around, breaks, changed, wrapped
from .accepted import PATTERNS

ROUNDED, ELEMENT_BYTES = frames.rounded, "host_io.endpoint.element_bytes"

CLAUSES = {kind: f"HIO-D5-{number}" for number, kind in enumerate(PATTERNS, 13)}


def other_element(kind, name, description, change):
    def element_bytes(usual, pattern):
        right = usual(pattern)
        return change(pattern, right) if pattern.pattern_kind == kind else right

    return wrapped(CLAUSES[kind], name, description, ELEMENT_BYTES, element_bytes)


def whole(pattern):
    return int(pattern.value or 0)


@breaks("HIO-D5-21", "zero writes the lowest byte of its value", ELEMENT_BYTES)
def zero_of_its_value(usual, pattern):
    valued = pattern.pattern_kind == "zero" and pattern.value is not None
    return bytes([int(pattern.value) & 255]) if valued else usual(pattern)


def rounding(dtype, name, description, change):
    def rounded(usual, value, of):
        return change(value, dtype) if of == dtype else usual(value, of)

    clause = CLAUSES[f"fill_{dtype}"]
    return wrapped(clause, f"{dtype}_{name}", f"{dtype} {description}", "host_io.frames.rounded", rounded)


def half_away(value, dtype):
    away = Decimal(value) * (Decimal(1) + Decimal("1e-20"))
    return ROUNDED(away, dtype) if value else ROUNDED(value, dtype)


def flushed(value, dtype):
    least = {"fp16": 2.0**-14, "fp32": 2.0**-126}[dtype]
    found = ROUNDED(value, dtype)
    return math.copysign(0.0, found) if abs(found) < least else found


@breaks("HIO-D5-16", "begins every page with a whole element", "host_io.machine.SparseMemory.fill")
def whole_at_pages(usual, self, pa, nbytes, element):
    usual(self, pa, nbytes, element)
    page = -(-pa // 4096) * 4096
    self.write(page, (element * nbytes)[: max(0, pa + nbytes - page)])


def wrapping(kind):
    """Return a violation that wraps values beyond the range of a kind."""
    size = {"fill_u8": 1, "fill_u16": 2, "fill_u32": 4}[kind]

    def require_fit(usual, field, value, dtype, clause):
        if dtype != kind.removeprefix("fill_"):
            usual(field, value, dtype, clause)

    def element_bytes(usual, pattern):
        wraps = pattern.pattern_kind == kind
        return (whole(pattern) % 256**size).to_bytes(size, "little") if wraps else usual(pattern)

    changes = ("host_io.frames._require_fit", around(require_fit)), (ELEMENT_BYTES, around(element_bytes))
    return changed(CLAUSES[kind], f"{kind}_wraps", f"values past the range of {kind} wrap", *changes)


VIOLATORS = [
    other_element("fill_u16", "fill_u16_big_endian", "fill_u16 writes the highest byte first",
        lambda pattern, right: right[::-1]),
    other_element("fill_u16", "u16_saturates", "fill_u16 saturates at 32,767",
        lambda pattern, right: min(whole(pattern), 0x7FFF).to_bytes(2, "little")),
    other_element("fill_u32", "u32_through_fp32", "fill_u32 passes through fp32",
        lambda pattern, right: min(int(np.float32(whole(pattern))), 2**32 - 1).to_bytes(4, "little")),
    other_element("zero", "zero_of_ones", "zero writes ones", lambda pattern, right: b"\xff"),
    *(rounding(dtype, name, description, change)
        for dtype in ("fp16", "fp32")
        for name, description, change in (
            ("half_away", "rounds halves away from zero", half_away),
            ("flushed", "has no subnormals", flushed),
            ("without_negative_zero", "has no negative zero", lambda value, dtype: ROUNDED(value, dtype) + 0.0),
        )),
    rounding("fp16", "through_fp32", "is rounded to fp32 first",
        lambda value, dtype: ROUNDED(Decimal(ROUNDED(value, "fp32")), dtype)),
    *(wrapping(kind) for kind in ("fill_u8", "fill_u16", "fill_u32")),
    wrapped("HIO-D5-07", "a_page_at_most", "a fill ends with its first 64 KiB", "host_io.machine.SparseMemory.fill",
        lambda usual, self, pa, nbytes, element: usual(self, pa, min(nbytes, 65536), element)),
]  # fmt: skip
