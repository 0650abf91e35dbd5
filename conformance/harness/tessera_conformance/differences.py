"""The first difference of two values: of tensors in bits and in units in the last place, with their kinds.

Of bytes, texts, lists and structures: the first place that differs, the number of them, and the values there on either
side.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.exact import NAN, finite, is_infinite
from tessera_conformance.tensors import ElementFormat, Tensor


@dataclass(frozen=True)
class Kind:
    """Elements that differ in one way, and the first of them: several defects may show in one tensor."""

    kind: str
    elements: int
    index: tuple[int, ...]
    expected_bits: str
    actual_bits: str

    def sentence(self) -> str:
        """In words."""
        return f"{self.elements} {self.kind}, first {list(self.index)}: {self.actual_bits} for {self.expected_bits}"


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
    kinds: tuple[Kind, ...] = ()
    """The ways in which elements differ, in the order of their first elements, where there are several."""

    def sentence(self) -> str:
        """In words, as in the terminal summary."""
        if self.index is None:
            return self.reason
        ulp = "" if self.ulp is None else f"  {self.ulp} ULP"
        place = list(self.index)
        return (
            f"element {place}: {self.actual_bits}, expected {self.expected_bits}{ulp}"
            f"  ({self.elements} of {self.of} elements differ{self._in_kinds()})"
        )

    def _in_kinds(self) -> str:
        return ": " + "; ".join(kind.sentence() for kind in self.kinds) if self.kinds else ""


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
    actual_words, expected_words = actual.words(), expected.words()
    differs = (actual_words != expected_words) & ~(are_nan(actual) & are_nan(expected))
    if not differs.any():
        return None
    word = int(np.flatnonzero(differs)[0])
    elements = differs.reshape(-1, layout.words).any(axis=1)
    return Difference(
        reason="bits differ",
        index=tuple(expected.index_of(word // layout.words)),
        expected_bits=_hexadecimal(int(expected_words[word]), layout),
        actual_bits=_hexadecimal(int(actual_words[word]), layout),
        ulp=_ulp_distance(int(actual_words[word]), int(expected_words[word]), layout),
        elements=int(np.count_nonzero(elements)),
        of=expected.size,
        kinds=_kinds(actual, expected, differs),
    )


def _kinds(actual: Tensor, expected: Tensor, differs: Any) -> tuple[Kind, ...]:
    """The ways in which words differ, where there are several; integers differ in one way."""
    layout = expected.format
    if not layout.is_float:
        return ()
    places = np.flatnonzero(differs)
    actual_words, expected_words = actual.words()[places], expected.words()[places]
    kinds = []
    left = np.ones(len(places), dtype=bool)
    for name, mask in _masks(actual_words, expected_words, layout):
        mask = mask & left
        left &= ~mask
        if mask.any():
            first = int(np.flatnonzero(mask)[0])
            index = tuple(expected.index_of(int(places[first]) // layout.words))
            elements = len(np.unique(places[mask] // layout.words))
            bits = (_hexadecimal(int(words[first]), layout) for words in (expected_words, actual_words))
            kinds.append((first, Kind(name, elements, index, *bits)))
    return tuple(kind for _, kind in sorted(kinds)) if len(kinds) > 1 else ()


def _masks(actual: Any, expected: Any, layout: ElementFormat) -> Iterator[tuple[str, Any]]:
    """Yield each way in which a float may differ and where it does; the first that fits counts."""
    sign = 1 << (layout.exponent_bits + layout.fraction_bits)
    infinity = ((1 << layout.exponent_bits) - 1) << layout.fraction_bits
    one, other = actual & actual.dtype.type(sign - 1), expected & expected.dtype.type(sign - 1)
    yield "where NaN is expected", _are_nan(expected, layout)
    yield "NaN where a number is expected", _are_nan(actual, layout)
    if layout.has_infinity:
        yield "of infinities", (one == infinity) | (other == infinity)
    yield "of the sign of zero", (one == 0) & (other == 0)
    yield "where a subnormal or zero is expected", other < (1 << layout.fraction_bits)
    near = (actual ^ expected < sign) & (np.maximum(one, other) - np.minimum(one, other) == 1)
    yield "off by 1 ULP", near
    yield "off by several ULP", np.ones(actual.shape, dtype=bool)


SHORT = 64
"""Values of so many characters are shown whole."""
AROUND = 16
"""The bytes that are shown on either side of one that differs."""
LINES = 12
"""The most lines of a difference of two texts."""
_BYTES = re.compile(r"(?:[0-9a-f]{2})+")


def value_difference(actual: Any, expected: Any) -> Difference | None:
    """Return where two unequal values depart, as a sentence; None of values that are short enough to be shown whole."""
    if max(len(str(actual)), len(str(expected))) <= SHORT:
        return None
    path, actual_part, expected_part, number = _first_place(actual, expected)
    place = f"{path.removeprefix('.')}: " if path else ""
    further = f" ({number} places differ)" if number > 1 else ""
    if (
        isinstance(actual_part, str)
        and isinstance(expected_part, str)
        and max(len(actual_part), len(expected_part)) > SHORT
    ):
        if _BYTES.fullmatch(actual_part) and _BYTES.fullmatch(expected_part):
            return Difference(f"{place}{_of_bytes(bytes.fromhex(actual_part), bytes.fromhex(expected_part))}{further}")
        return Difference(f"{place}{_of_texts(actual_part, expected_part)}{further}")
    return Difference(f"{place}expected {_cut(expected_part)}, found {_cut(actual_part)}{further}")


def _first_place(actual: Any, expected: Any) -> tuple[str, Any, Any, int]:
    """Return the path of the first part that differs, both parts, and how many parts do.

    The members of a structure and the elements of a list are compared one by one where both sides have them.
    """
    if isinstance(actual, dict) and isinstance(expected, dict):
        names = [*expected, *(name for name in actual if name not in expected)]
        parts = [(f".{name}", actual.get(name, ABSENT), expected.get(name, ABSENT)) for name in names]
    elif isinstance(actual, list | tuple) and isinstance(expected, list | tuple):
        longest = max(len(actual), len(expected))
        sides = ([*values, *[ABSENT] * (longest - len(values))] for values in (actual, expected))
        parts = [(f"[{index}]", *pair) for index, pair in enumerate(zip(*sides, strict=True))]
    else:
        return "", actual, expected, 1
    unequal = [(name, *_first_place(one, other)) for name, one, other in parts if not same(one, other)]
    if not unequal:
        return "", actual, expected, 1
    name, path, actual_part, expected_part, _ = unequal[0]
    return name + path, actual_part, expected_part, sum(number for *_, number in unequal)


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()
"""A value that one side lacks."""


def same(actual: Any, expected: Any) -> bool:
    """Return whether two plain values are equal and of the same types: 1, 1.0 and true are three values."""
    if isinstance(actual, list | tuple) and isinstance(expected, list | tuple):
        return len(actual) == len(expected) and all(map(same, actual, expected))
    if isinstance(actual, dict) and isinstance(expected, dict):
        return actual.keys() == expected.keys() and all(same(actual[key], expected[key]) for key in expected)
    return type(actual) is type(expected) and bool(actual == expected)


def _of_bytes(actual: bytes, expected: bytes) -> str:
    common = min(len(actual), len(expected))
    one, other = (np.frombuffer(data[:common], np.uint8) for data in (actual, expected))
    places = np.flatnonzero(one != other)
    first = int(places[0]) if len(places) else common
    last = int(places[-1]) if len(places) else common
    lengths = f"{len(actual)} bytes for {len(expected)}; " if len(actual) != len(expected) else ""
    where = f"{len(places)} of {common} bytes differ, from byte {first} to byte {last}"
    start = max(0, first - AROUND)
    near = [data[start : first + AROUND].hex(" ") for data in (expected, actual)]
    return f"{lengths}{where}; from byte {start} on: expected {near[0]}, found {near[1]}"


def _of_texts(actual: str, expected: str) -> str:
    lines = list(
        difflib.unified_diff(expected.splitlines(), actual.splitlines(), "expected", "found", n=1, lineterm="")
    )
    shown = lines[2 : 2 + LINES]
    further = len(lines) - 2 - len(shown)
    return "\n".join(["the texts differ:", *shown, *([f"and {further} more lines"] if further > 0 else [])])


def _cut(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 4 * SHORT else f"{text[: 4 * SHORT]}... ({len(text)} characters)"


def values_of(tensor: Tensor) -> list[Fraction | None]:
    """The exact value of every word; None for infinities and NaN."""
    values = exact.values_of(tensor)
    return [None if value is NAN or is_infinite(value) else finite(value) for value in values]


def are_nan(x: Tensor) -> Any:
    """Return a mask of the words that are NaN."""
    return _are_nan(x.words(), x.format)


def _are_nan(words: Any, layout: ElementFormat) -> Any:
    if not layout.is_float:
        return np.zeros(words.shape, dtype=bool)
    magnitude = words & words.dtype.type((1 << (layout.exponent_bits + layout.fraction_bits)) - 1)
    infinity = ((1 << layout.exponent_bits) - 1) << layout.fraction_bits
    if layout.has_infinity:
        return magnitude > words.dtype.type(infinity)
    return magnitude == words.dtype.type(infinity + (1 << layout.fraction_bits) - 1)


def _ulp_distance(actual: int, expected: int, layout: ElementFormat) -> int | None:
    """Steps between two codes on the line of floats, the two zeros being one; None for integers and NaN."""
    pair = np.array([actual, expected], dtype=f"u{layout.word_bytes}")
    if not layout.is_float or bool(_are_nan(pair, layout).any()):
        return None
    sign = 1 << (layout.exponent_bits + layout.fraction_bits)
    ordered = [(word & (sign - 1)) * (-1 if word & sign else 1) for word in (actual, expected)]
    return abs(ordered[0] - ordered[1])


def _hexadecimal(word: int, layout: ElementFormat) -> str:
    return f"0x{word:0{2 * layout.word_bytes}x}"
