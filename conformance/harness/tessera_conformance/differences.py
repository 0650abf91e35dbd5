"""Where two tensors first differ, in bits and in units in the last place."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tessera_conformance.oracle import formats
from tessera_conformance.oracle.exact import NAN, finite, is_infinite
from tessera_conformance.tensors import ElementFormat, Tensor


@dataclass(frozen=True)
class Difference:
    """The first place where an actual tensor departs from the expected one; `index` is None where the form differs."""

    reason: str
    index: tuple[int, ...] | None = None
    expected_bits: str | None = None
    actual_bits: str | None = None
    ulp: int | None = None
    elements: int = 0
    of: int = 0

    def sentence(self) -> str:
        """In words, as in the terminal summary."""
        if self.index is None:
            return self.reason
        ulp = "" if self.ulp is None else f"  {self.ulp} ULP"
        place = list(self.index)
        return (
            f"element {place}: {self.actual_bits}, expected {self.expected_bits}{ulp}"
            f"  ({self.elements} of {self.of} elements differ)"
        )


def first_difference(actual: Any, expected: Tensor) -> Difference | None:
    """None where dtype, shape and all bits agree; NaN payloads and signs are not compared."""
    if not isinstance(actual, Tensor):
        return Difference(f"expected a tensor, found {type(actual).__name__}")
    if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
        wanted_form = f"{expected.dtype} of shape {list(expected.shape)}"
        return Difference(f"expected {wanted_form}, found {actual.dtype} of shape {list(actual.shape)}")
    if actual.data == expected.data:
        return None
    layout = expected.format
    found, wanted = actual.words(), expected.words()
    differs = (found != wanted) & ~(are_nan(actual) & are_nan(expected))
    if not differs.any():
        return None
    word = int(np.flatnonzero(differs)[0])
    elements = differs.reshape(-1, layout.words).any(axis=1)
    return Difference(
        reason="bits differ",
        index=tuple(expected.index_of(word // layout.words)),
        expected_bits=_hexadecimal(int(wanted[word]), layout),
        actual_bits=_hexadecimal(int(found[word]), layout),
        ulp=_ulp_distance(int(found[word]), int(wanted[word]), layout),
        elements=int(np.count_nonzero(elements)),
        of=expected.size,
    )


def values_of(tensor: Tensor) -> list[Fraction | None]:
    """The exact value of every word; None for infinities and NaN."""
    values = formats.values_of(tensor)
    return [None if value is NAN or is_infinite(value) else finite(value) for value in values]


def are_nan(x: Tensor) -> Any:
    """Which words are NaN."""
    return _are_nan(x.words(), x.format)


def _are_nan(words: Any, layout: ElementFormat) -> Any:
    if not layout.is_float:
        return np.zeros(words.shape, dtype=bool)
    magnitude = words & words.dtype.type((1 << (layout.exponent_bits + layout.fraction_bits)) - 1)
    infinity = ((1 << layout.exponent_bits) - 1) << layout.fraction_bits
    if layout.has_infinity:
        return magnitude > words.dtype.type(infinity)
    return magnitude == words.dtype.type(infinity + (1 << layout.fraction_bits) - 1)


def _ulp_distance(found: int, wanted: int, layout: ElementFormat) -> int | None:
    """Steps between two codes on the line of floats, the two zeros being one; None for integers and NaN."""
    pair = np.array([found, wanted], dtype=f"u{layout.word_bytes}")
    if not layout.is_float or bool(_are_nan(pair, layout).any()):
        return None
    sign = 1 << (layout.exponent_bits + layout.fraction_bits)
    ordered = [(word & (sign - 1)) * (-1 if word & sign else 1) for word in (found, wanted)]
    return abs(ordered[0] - ordered[1])


def _hexadecimal(word: int, layout: ElementFormat) -> str:
    return f"0x{word:0{2 * layout.word_bytes}x}"
