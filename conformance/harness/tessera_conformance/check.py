"""Checks, the only way to judge, and the first difference of two values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.exact import NAN, finite, is_infinite
from tessera_conformance.protocol import Diagnostic, Fault, Observation, Rejected, Returned, Unsupported, describe
from tessera_conformance.tensors import ElementFormat, Tensor

if TYPE_CHECKING:
    from tessera_conformance.oracle.bounds.intervals import Enclosure

# The first difference of two values: of tensors in bits and in units in the last place, with its kinds.
#
# Of bytes, texts, lists and structures: the first place that differs, the number of such places, and both values there.


@dataclass(frozen=True)
class Kind:
    """Elements that differ in one way, and the first of them: one tensor may show several defects."""

    kind: str
    elements: int
    index: tuple[int, ...]
    expected_bits: str
    actual_bits: str

    def sentence(self) -> str:
        """Return the kind in words."""
        return f"{self.elements} {self.kind}, first {list(self.index)}: {self.actual_bits} for {self.expected_bits}"


@dataclass(frozen=True)
class Difference:
    """The first place where an actual tensor differs from the expected one; `index` is None if the form differs."""

    reason: str
    index: tuple[int, ...] | None = None
    expected_bits: str | None = None
    actual_bits: str | None = None
    ulp: int | None = None
    elements: int = 0
    of: int = 0
    kinds: tuple[Kind, ...] = ()
    """The ways in which elements differ, in the order of their first elements, if there are several."""

    def sentence(self) -> str:
        """Return the difference in words, as in the terminal summary."""
        if self.index is None:
            return self.reason
        ulp = "" if self.ulp is None else f"  {self.ulp} ULP"
        kinds = ": " + "; ".join(kind.sentence() for kind in self.kinds) if self.kinds else ""
        place = f"element {list(self.index)}: {self.actual_bits}, expected {self.expected_bits}{ulp}"
        return f"{place}  ({self.elements} of {self.of} elements differ{kinds})"


def first_difference(actual: Any, expected: Tensor) -> Difference | None:
    """Return None if dtype, shape and all bits agree; NaN payloads and signs are not compared."""
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
        index=_index(expected, word),
        expected_bits=_hexadecimal(int(expected_words[word]), layout),
        actual_bits=_hexadecimal(int(actual_words[word]), layout),
        ulp=_ulp_distance(int(actual_words[word]), int(expected_words[word]), layout),
        elements=int(np.count_nonzero(elements)),
        of=expected.size,
        kinds=_kinds(actual, expected, differs),
    )


def _index(tensor: Tensor, word: int) -> tuple[int, ...]:
    return tuple(map(int, np.unravel_index(word // tensor.format.words, tensor.shape)))


def _kinds(actual: Tensor, expected: Tensor, differs: Any) -> tuple[Kind, ...]:
    """Return the ways in which words differ, if there are several; integers differ in one way."""
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
            index = _index(expected, int(places[first]))
            elements = len(np.unique(places[mask] // layout.words))
            bits = (_hexadecimal(int(words[first]), layout) for words in (expected_words, actual_words))
            kinds.append((first, Kind(name, elements, index, *bits)))
    return tuple(kind for _, kind in sorted(kinds)) if len(kinds) > 1 else ()


def _masks(actual: Any, expected: Any, layout: ElementFormat) -> Iterator[tuple[str, Any]]:
    """Yield each way in which a float may differ and a mask of its places; the first that fits counts."""
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
"""The most characters of values that are shown whole."""
AROUND = 16
"""The bytes that are shown on either side of a differing one."""
LINES = 12
"""The most lines of a difference of two texts."""
_BYTES = re.compile(r"(?:[0-9a-f]{2})+")


def value_difference(actual: Any, expected: Any) -> Difference | None:
    """Return the first difference of two unequal values as a sentence; None for values that are shown whole."""
    if max(len(str(actual)), len(str(expected))) <= SHORT:
        return None
    path, actual_part, expected_part, number = _first_place(actual, expected)
    place = f"{path.removeprefix('.')}: " if path else ""
    further = f" ({number} places differ)" if number > 1 else ""
    parts = actual_part, expected_part
    if not all(isinstance(part, str) for part in parts) or max(map(len, parts)) <= SHORT:
        what = f"expected {_cut(expected_part)}, found {_cut(actual_part)}"
    elif all(map(_BYTES.fullmatch, parts)):
        what = _of_bytes(*map(bytes.fromhex, parts))
    else:
        what = _of_texts(*parts)
    return Difference(f"{place}{what}{further}")


def _first_place(actual: Any, expected: Any) -> tuple[str, Any, Any, int]:
    """Return the path of the first part that differs, both parts, and the number of differing parts.

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
    """Return the exact value of every word; None for infinities and NaN."""
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
    """Return steps between two codes on the line of floats, on which the zeros are one; None for integers and NaN."""
    pair = np.array([actual, expected], dtype=f"u{layout.word_bytes}")
    if not layout.is_float or bool(_are_nan(pair, layout).any()):
        return None
    sign = 1 << (layout.exponent_bits + layout.fraction_bits)
    ordered = [(word & (sign - 1)) * (-1 if word & sign else 1) for word in (actual, expected)]
    return abs(ordered[0] - ordered[1])


def _hexadecimal(word: int, layout: ElementFormat) -> str:
    return f"0x{word:0{2 * layout.word_bytes}x}"


# The only way to judge: every assertion of a test goes through a `Check`, which counts and records it.
#
# A check that cannot pass raises. The exception decides the verdict. `CheckFailed` is a wrong answer, `OtherReading`
# one that a listed alternative of an interpretation allows. `Presumption` means that the machine lacks what the case
# presumes, `Unanswered` that the implementation did not support the request or failed.


MOST_ERRORS = 10
"""The most error diagnostics for a program that differs in one token from a legal one."""


@dataclass(frozen=True)
class CheckRecord:
    """One judged assertion."""

    kind: str
    passed: bool
    what: str
    expected: Any = None
    actual: Any = None
    difference: Difference | None = None
    after: int | None = None
    """The number of the case's exchanges before it. Like `answer`, it is not part of the report."""
    answer: Observation | None = None
    """The answer that it judged, if it judged a whole one."""


@dataclass(frozen=True)
class Figure:
    """Numbers for a plot of the report: the plot, its line, and the point."""

    plot: str
    line: str
    values: Mapping[str, int]


class CheckFailed(AssertionError):
    """A judged assertion does not hold; `observation` is the answer that it judged, if it judged a whole one."""

    def __init__(self, record: CheckRecord, observation: Observation | None = None) -> None:
        super().__init__(explain(record))
        self.observation = observation


class Presumption(Exception):
    """The case presumes something that does not hold here, such as a second device."""


class OtherReading(Exception):
    """The implementation follows a listed alternative of an interpretation."""

    def __init__(self, interpretation: str, alternative: str) -> None:
        super().__init__(f"follows another reading, {interpretation}: {alternative}")
        self.interpretation = interpretation


class Unanswered(Exception):
    """The implementation gave no answer to judge: it does not support the request, or failed."""

    def __init__(self, observation: Unsupported | Fault) -> None:
        super().__init__(describe(observation))
        self.observation = observation


class Check:
    """The assertions of one case."""

    __slots__ = ("asked", "figures", "judges_words", "records")

    def __init__(self) -> None:
        self.records: list[CheckRecord] = []
        self.figures: list[Figure] = []
        self.asked: Sized | None = None
        """The exchanges of the case so far."""
        self.judges_words = True
        """False if the implementation does not claim `last-error`: its words are then free (AMB-RT-82)."""

    def returns(self, observation: Observation, what: str = "the call succeeds") -> Any:
        """Check that the call returned, and return its value."""
        return self._returned("returns", observation, what)

    def accepts(self, observation: Observation, what: str = "the program is legal") -> Any:
        """Check that a legal program is not refused, and return the value. Unlike `returns`, it judges this."""
        return self._returned("accepts", observation, what)

    def given(self, condition: bool, what: str, actual: Any = None) -> None:
        """Presume something, such as enough devices. If it does not hold, the case is inapplicable.

        Raises `Presumption`: the condition is false.
        """
        record = CheckRecord("given", bool(condition), what, True, actual if actual is not None else condition)
        self.records.append(record)
        if not condition:
            raise Presumption(f"presumes that {what}; found {_shown(record.actual)}")

    def reading(self, interpretation: str, alternative: str, condition: bool) -> None:
        """End the case as another reading if the answer follows a listed alternative of an interpretation.

        Place it before the check that judges the decision. `alternative` is one of the interpretation's `alternatives`,
        letter for letter. If `condition` is false, nothing is recorded.

        Raises `OtherReading`: the condition is true.
        """
        if condition:
            self.records.append(CheckRecord("reading", False, interpretation, "the decision", alternative))
            raise OtherReading(interpretation, alternative)

    def rejects(
        self,
        observation: Observation,
        *,
        category: str | Collection[str],
        phase: str | Collection[str] | None = None,
        at_line: int | None = None,
    ) -> Rejected:
        """Check that a request is refused with the right category and, where given, phase and line of a diagnostic."""
        _require_answer(observation)
        categories = [category] if isinstance(category, str) else sorted(category)
        phases = [phase] if isinstance(phase, str) else sorted(phase or ())
        expected = f"a rejection of category {' or '.join(categories)}"
        expected += f" in phase {' or '.join(phases)}" if phases else ""
        expected += f" at line {at_line}" if at_line is not None else ""
        errors = _errors(observation) if isinstance(observation, Rejected) else []
        hit = any(entry.category in categories and at_line in (None, entry.line) for entry in errors)
        in_phase = isinstance(observation, Rejected) and (not phases or observation.phase in phases)
        passed = hit and in_phase and len(errors) <= MOST_ERRORS
        record = CheckRecord("rejects", passed, "the program is refused", expected, _described(observation))
        self._judge(record, observation)
        assert isinstance(observation, Rejected)
        return observation

    def status(self, observation: Observation, code: str) -> None:
        """Check that the call is refused with this status."""
        _require_answer(observation)
        passed = isinstance(observation, Rejected) and observation.code == code
        record = CheckRecord("status", passed, "the call reports the status", code, _described(observation))
        self._judge(record, observation)

    def equal(self, actual: Any, expected: Any, what: str = "the value") -> None:
        """Check that two plain values are equal, and of the same types: 1, 1.0 and true are three values."""
        passed = same(actual, expected)
        difference = None if passed else value_difference(actual, expected)
        self._judge(CheckRecord("equal", passed, what, expected, actual, difference))

    def true(self, condition: bool, what: str, actual: Any = None) -> None:
        """Check that a property holds; `what` states it in words."""
        self._judge(CheckRecord("true", bool(condition), what, True, actual if actual is not None else condition))

    def names(self, message: str, *words: str) -> None:
        """Check that the message of a refusal holds these words, if words are judged."""
        for word in words if self.judges_words else ():
            self.true(word in message, f"the message names {word}", message)

    def bits(self, actual: Any, expected: Tensor, what: str = "the bits") -> None:
        """Check that shape, dtype and every bit agree; any NaN equals any NaN."""
        difference = first_difference(actual, expected)
        self._judge(CheckRecord("bits", difference is None, what, expected, actual, difference))

    def within(
        self, actual: Any, exact: Sequence[Fraction | None], bounds: Sequence[Fraction], what: str = "the error bound"
    ) -> None:
        """Check that every element is finite and within its bound of its exact value; None is not judged."""
        values = values_of(actual) if isinstance(actual, Tensor) else None
        if values is None or len(values) != len(exact):
            self._judge(CheckRecord("within", False, what, f"a real tensor of {len(exact)} elements", actual))
            return
        for index, (value, target, bound) in enumerate(zip(values, exact, bounds, strict=True)):
            if target is not None and (value is None or abs(value - target) > bound):
                distance = "not finite" if value is None else f"off by {float(abs(value - target)):.6g}"
                expected = f"element {index}: {float(target):.9g} +- {float(bound):.6g}"
                self._judge(CheckRecord("within", False, what, expected, distance))
        self._judge(CheckRecord("within", True, what, f"{len(exact)} elements within their bounds", "all"))

    def enclosed(self, actual: Any, enclosures: Sequence[Enclosure | None], what: str = "the error bound") -> None:
        """Check that every element is in its enclosure; None is not judged."""
        exact = [None if enclosure is None else enclosure.exact for enclosure in enclosures]
        errors = [Fraction(0) if enclosure is None else enclosure.error for enclosure in enclosures]
        self.within(actual, exact, errors, what)

    def figure(self, plot: str, line: str, **values: int) -> None:
        """Keep numbers for a plot of the report. Judges nothing, and never makes a case pass."""
        self.figures.append(Figure(plot, line, values))

    def _returned(self, kind: str, observation: Observation, what: str) -> Any:
        _require_answer(observation)
        passed = isinstance(observation, Returned)
        self._judge(CheckRecord(kind, passed, what, "a result", describe(observation)), observation)
        assert isinstance(observation, Returned)
        return observation.value

    def _judge(self, record: CheckRecord, observation: Observation | None = None) -> None:
        record = replace(record, after=None if self.asked is None else len(self.asked), answer=observation)
        self.records.append(record)
        if not record.passed:
            raise CheckFailed(record, observation)


_REJECTION = re.compile(r"a rejection of category (.+?)(?: in phase (.+?))?(?: at line (\d+))?")


def expected_rejection(words: str) -> tuple[list[str], list[str], int | None] | None:
    """Return the categories, phases and line in the words of a check for a refusal; None for another check."""
    match = _REJECTION.fullmatch(words)
    if match is None:
        return None
    phases = match[2].split(" or ") if match[2] else []
    return match[1].split(" or "), phases, int(match[3]) if match[3] else None


def explain(record: CheckRecord) -> str:
    """Return the expected and the actual value for people."""
    if record.difference is not None:
        return f"{record.what}: {record.difference.sentence()}"
    return f"{record.what}: expected {_shown(record.expected)}, found {_shown(record.actual)}"


def _require_answer(observation: Observation) -> None:
    if isinstance(observation, Unsupported | Fault):
        raise Unanswered(observation)


def _errors(rejected: Rejected) -> Sequence[Diagnostic]:
    """Return the error diagnostics, or one made of the rejection itself if an implementation gives none."""
    errors = [entry for entry in rejected.diagnostics if entry.severity == "error"]
    return errors or [Diagnostic(category=rejected.code, message=rejected.message)]


def _described(observation: Observation) -> str:
    if not isinstance(observation, Rejected):
        return describe(observation)
    places = [f"{entry.category} at line {entry.line}" for entry in _errors(observation)]
    return f"{describe(observation)} ({', '.join(places)})"


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype}{list(value.shape)} {value.bits()[:64]}"
    return value if isinstance(value, str) else repr(value)[:400]
