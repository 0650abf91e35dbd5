"""Exact sums of many numbers, fast: integer sums in windows of 64 bits, after Kulisch.

numpy does integer arithmetic here and nothing else. A number is a significand times a power of two. Significands whose
exponents fall into one window are shifted to its lower end and added as integers. These cannot overflow, so their order
does not matter. The windows are combined as Python integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.oracle.exact import COMPONENTS, BadArgument, FloatFormat
from tessera_conformance.tensors import ElementFormat, Tensor

Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

MOST_TERMS = 1 << 24
HALF_BITS = 27
"""Significands of more bits than an fp32 one are added in two halves, of which this is the lower."""


@dataclass(frozen=True)
class ExactSums:
    """The sums of rows of numbers: integers that count units of 2**exponent; None for a row with an infinity or NaN."""

    totals: list[int | None]
    exponent: int

    def fractions(self) -> list[Fraction | None]:
        """The sums as rational numbers."""
        unit = Fraction(2) ** self.exponent
        return [None if total is None else total * unit for total in self.totals]

    def rounded(self, target: FloatFormat) -> list[int | None]:
        """Return the codes of the sums, rounded once."""
        return [None if total is None else target.encode(total) for total in self.fractions()]


def exact_sum(x: Tensor, axis: int = -1, *, magnitudes: bool = False) -> ExactSums:
    """The exact sums of a real floating-point tensor along an axis, or of its magnitudes, row-major.

    Raises `BadArgument`: the tensor is not one of real floats, or has too many terms in a row.
    """
    if not x.format.is_float or x.dtype in COMPONENTS:
        raise BadArgument("dtype", x.dtype, "a real floating-point dtype")
    length = x.shape[axis]
    if length > MOST_TERMS:
        raise BadArgument("shape", list(x.shape), f"at most {MOST_TERMS} terms in a row")
    lines = np.moveaxis(x.words().reshape(x.shape), axis, -1)
    words = lines.reshape(math.prod(lines.shape[:-1]), length)
    significands, exponents, finite = _decoded(words, x.format)
    if magnitudes:
        significands = np.abs(significands)
    totals, lowest = _totals(significands, exponents, x.format.fraction_bits + 1)
    whole = finite.all(axis=1).tolist()
    return ExactSums([total if known else None for total, known in zip(totals, whole, strict=True)], lowest)


def _decoded(words: Any, layout: ElementFormat) -> tuple[Integers, Integers, Any]:
    """Return signed significands, exponents of their units, and the mask of finite elements; others count as zero."""
    codes = words.astype(np.int64)
    fields = (codes >> layout.fraction_bits) & ((1 << layout.exponent_bits) - 1)
    fractions = codes & ((1 << layout.fraction_bits) - 1)
    highest = (1 << layout.exponent_bits) - 1
    last = (1 << layout.fraction_bits) - 1
    finite = (fields < highest) if layout.has_infinity else (fields < highest) | (fractions < last)
    sizes = np.where(fields > 0, fractions | (1 << layout.fraction_bits), fractions) * finite
    negative = (codes >> (layout.exponent_bits + layout.fraction_bits)) & 1
    bias = (highest >> 1) + layout.fraction_bits
    return np.where(negative == 1, -sizes, sizes), np.maximum(fields, 1) - bias, finite


def _totals(significands: Integers, exponents: Integers, bits: int) -> tuple[list[int], int]:
    """Return the sum of each row, in units of the smallest exponent."""
    count = significands.shape[0]
    present = significands != 0
    if not present.any():
        return [0] * count, 0
    lowest = int(exponents[present].min())
    if bits <= HALF_BITS:
        return _windowed(significands, exponents - lowest, present, bits), lowest
    upper = significands >> HALF_BITS
    halves = (upper, HALF_BITS), (significands - (upper << HALF_BITS), 0)
    totals = [0] * count
    for half, shift in halves:
        part = _windowed(half, exponents - lowest, present, HALF_BITS)
        totals = [total + (more << shift) for total, more in zip(totals, part, strict=True)]
    return totals, lowest


def _windowed(significands: Integers, places: Integers, present: Any, bits: int) -> list[int]:
    """Return the sum of shifted significands, window by window; no window's sum reaches 63 bits."""
    count, length = significands.shape
    width = 62 - bits - length.bit_length()
    windows = places // width
    shifted = significands << (places - windows * width)
    totals = [0] * count
    used = np.unique(windows[present]).tolist()
    for window in used:
        sums = (shifted if len(used) == 1 else np.where(windows == window, shifted, 0)).sum(axis=1).tolist()
        totals = [total + (part << (window * width)) for total, part in zip(totals, sums, strict=True)]
    return totals
