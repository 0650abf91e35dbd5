"""Random terms that tell orders and arithmetics apart, the same for every run.

Four kinds of rows by turns: plain ones, whose magnitudes spread over several binades; cancelling ones, narrow and wide,
in which every number stands beside its negation at another leaf, so that nothing but rounding errors remains, and these
show even where the result has few bits; and cancelling rows of powers of two in which exact ties are common.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from tessera_conformance.oracle.formats import ACCUMULATORS, float_format
from tessera_conformance.probe.calls import Words, words_of
from tessera_conformance.tensors import Tensor

Style: TypeAlias = Literal["plain", "cancelling", "wide", "ties"]

STYLES: tuple[Style, ...] = ("plain", "cancelling", "wide", "ties")
NARROW = {"fp16": 4, "fp8_e4m3": 2, "fp8_e5m2": 3}
"""Binades on both sides of 1 of plain and cancelling rows; other dtypes take 8."""
WIDE = {"fp16": 12, "fp8_e4m3": 5, "fp8_e5m2": 12, "fp64": 40}
"""The same of wide rows; other dtypes take 20."""


@dataclass(frozen=True)
class Sample:
    """The terms of one sum; `right` are the second factors of products."""

    left: Words
    right: Words | None


def samples(dtype: str, terms: int, rows: int, products: bool, seed: int = 0) -> list[Sample]:
    """Rows of terms, the styles by turns."""
    draw = random.Random(f"{dtype} {terms} {products} {seed}")
    return [_sample(dtype, terms, products, STYLES[row % len(STYLES)], draw) for row in range(rows)]


def stacked(rows: Sequence[Sample], dtype: str) -> tuple[Tensor, Tensor | None]:
    """The rows as matrices."""
    shape = (len(rows), len(rows[0].left))
    left = Tensor(dtype, shape, b"".join(row.left.tobytes() for row in rows))
    rights = [row.right for row in rows if row.right is not None]
    return left, Tensor(dtype, shape, b"".join(right.tobytes() for right in rights)) if rights else None


def _sample(dtype: str, terms: int, products: bool, style: Style, draw: random.Random) -> Sample:
    left = _tying(dtype, terms, draw) if style == "ties" else _numbers(dtype, terms, style == "wide", draw)
    right = _numbers(dtype, terms, False, draw) if products else None
    if right is not None and style == "ties":
        right[:] = words_of([Fraction(1)], dtype)
    if style != "plain":
        places = np.array(draw.sample(range(terms), terms))
        one, other = places[0 : terms - 1 : 2], places[1::2]
        left[other] = left[one] ^ left.dtype.type(float_format(dtype).sign_bit)
        if right is not None:
            right[other] = right[one]
    return Sample(left, right)


def _numbers(dtype: str, terms: int, wide: bool, draw: random.Random) -> Words:
    """Codes of normal numbers: random signs, exponents around that of 1, and fractions."""
    format_ = float_format(dtype)
    spread = min(WIDE.get(dtype, 20) if wide else NARROW.get(dtype, 8), format_.bias - 2)
    words = np.frombuffer(draw.randbytes(8 * terms), "<u8")
    exponents = np.frombuffer(draw.randbytes(4 * terms), "<u4") % (2 * spread + 1) + (format_.bias - spread)
    fractions = words & np.uint64((1 << format_.fraction_bits) - 1)
    signs = (words >> np.uint64(63)) * np.uint64(format_.sign_bit)
    codes: np.ndarray[Any, np.dtype[np.uint64]] = (
        signs | (exponents.astype(np.uint64) << np.uint64(format_.fraction_bits)) | fractions
    )
    return codes.astype(f"<u{format_.sign_bit.bit_length() // 8}")


def _tying(dtype: str, terms: int, draw: random.Random) -> Words:
    """Powers of two: ones, and halves of their last place in the accumulator and in the dtype."""
    format_ = float_format(dtype)
    steps = [float_format(ACCUMULATORS[dtype]).fraction_bits + 1, format_.fraction_bits + 1]
    exponents = [0, 0, *(max(-step, format_.smallest_exponent) for step in steps), -steps[1] + 1]
    numbers = words_of([sign * Fraction(2) ** exponent for exponent in exponents for sign in (1, -1)], dtype)
    return numbers[[draw.randrange(len(numbers)) for _ in range(terms)]]
