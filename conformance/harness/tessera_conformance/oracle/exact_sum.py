"""Exact sums of many numbers, fast: an integer for each exponent, after Kulisch.

numpy does integer arithmetic here and nothing else. A number is a significand times a power of two. Significands of one
exponent are added as integers of 64 bits, which cannot overflow, so their order does not matter. The sums of all
exponents are combined as Python integers.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tessera_conformance.oracle.exact import COMPONENTS, BadArgument
from tessera_conformance.tensors import Tensor

MOST_TERMS = 1 << 24
HALF_BITS = 27
"""Significands are added in two halves, of which this is the lower: those of fp64 would overflow."""


def exact_sum(x: Tensor, axis: int = -1, *, magnitudes: bool = False) -> list[Fraction | None]:
    """The exact sums of a real floating-point tensor along an axis, or of its magnitudes; None beside infinity or NaN.

    Raises `BadArgument`: the tensor is not one of real floats, or has too many terms in a row.
    """
    layout, length = x.format, x.shape[axis]
    if not layout.is_float or x.dtype in COMPONENTS:
        raise BadArgument("dtype", x.dtype, "a real floating-point dtype")
    if length > MOST_TERMS:
        raise BadArgument("shape", list(x.shape), f"at most {MOST_TERMS} terms in a row")
    lines = np.moveaxis(x.words().reshape(x.shape), axis, -1)
    codes = lines.reshape(math.prod(lines.shape[:-1]), length).astype(np.int64)
    highest, last = (1 << layout.exponent_bits) - 1, (1 << layout.fraction_bits) - 1
    fields, fractions = (codes >> layout.fraction_bits) & highest, codes & last
    finite = fields < highest if layout.has_infinity else (fields < highest) | (fractions < last)
    significands = np.where(fields > 0, fractions + last + 1, fractions) * finite
    if not magnitudes:
        negative = (codes >> (layout.exponent_bits + layout.fraction_bits)) & 1
        significands = significands * (1 - 2 * negative)
    upper = significands >> HALF_BITS
    rows = np.arange(len(codes)).reshape(-1, 1)
    totals = [0] * len(codes)
    for half, shift in ((upper, HALF_BITS), (significands - (upper << HALF_BITS), 0)):
        sums = np.zeros((len(codes), highest + 1), np.int64)
        np.add.at(sums, (rows, np.maximum(fields, 1)), half)
        for row, exponent in zip(*map(np.ndarray.tolist, sums.nonzero()), strict=True):
            totals[row] += int(sums[row, exponent]) << (exponent + shift)
    unit = Fraction(1, 1 << ((highest >> 1) + layout.fraction_bits))
    return [total * unit if finite[row].all() else None for row, total in enumerate(totals)]
