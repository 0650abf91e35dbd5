"""The only way to judge: every assertion of a test goes through a `Check`, which counts and records it.

A check that cannot pass raises. The exception decides the verdict. `CheckFailed` is a wrong answer, `OtherReading` one
that a listed alternative of an interpretation allows. `Presumption` says that the machine lacks what the case presumes,
`Unanswered` that the implementation did not support the request or failed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

from tessera_conformance.differences import Difference, first_difference, same, value_difference, values_of
from tessera_conformance.protocol import Diagnostic, Fault, Observation, Rejected, Returned, Unsupported, describe
from tessera_conformance.tensors import Tensor

MOST_ERRORS = 10
"""A program that differs in one token from a legal one is not refused with a shotgun of diagnostics."""


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
    """The number of the case's exchanges before it. Not part of the report, as is `answer`."""
    answer: Observation | None = None
    """The answer that it judged, where it judged one as a whole."""


@dataclass(frozen=True)
class Figure:
    """Numbers for a plot of the report: what is drawn, of which of its lines, and the point."""

    plot: str
    line: str
    values: Mapping[str, int]


class Enclosure(Protocol):
    """An interval of allowed results."""

    @property
    def exact(self) -> Fraction:
        """The exact result."""

    @property
    def error(self) -> Fraction:
        """The largest error that it allows."""


class CheckFailed(AssertionError):
    """A judged assertion does not hold; `observation` is the answer that it judged, where it judged one as a whole."""

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
    """The implementation gave no answer to judge: it does not support the request, or went wrong."""

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
        """False where the implementation does not claim `last-error`: its words are its own (AMB-RT-82)."""

    def returns(self, observation: Observation, what: str = "the call succeeds") -> Any:
        """The call returned; gives the value."""
        return self._returned("returns", observation, what)

    def accepts(self, observation: Observation, what: str = "the program is legal") -> Any:
        """A legal program is not refused; gives the value. Unlike `returns` it judges that: `returns` is on the way."""
        return self._returned("accepts", observation, what)

    def given(self, condition: bool, what: str, actual: Any = None) -> None:
        """Presume something, such as enough devices. Where it does not hold the case is inapplicable.

        Raises `Presumption`: the condition is false.
        """
        record = CheckRecord("given", bool(condition), what, True, actual if actual is not None else condition)
        self.records.append(record)
        if not condition:
            raise Presumption(f"presumes that {what}; found {_shown(record.actual)}")

    def reading(self, interpretation: str, alternative: str, condition: bool) -> None:
        """End the case as another reading where the answer follows a listed alternative of an interpretation.

        Place it before the check that judges the decision. `alternative` is one of the interpretation's `alternatives`,
        letter for letter. Where `condition` is false, nothing is recorded.

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
        """The request is refused for the right reason: category, and where given phase and line of one diagnostic."""
        _require_answer(observation)
        categories = [category] if isinstance(category, str) else sorted(category)
        phases = [phase] if isinstance(phase, str) else sorted(phase or ())
        expected = f"a rejection of category {' or '.join(categories)}"
        expected += f" in phase {' or '.join(phases)}" if phases else ""
        expected += f" at line {at_line}" if at_line is not None else ""
        errors = _errors(observation) if isinstance(observation, Rejected) else []
        passed = len(errors) <= MOST_ERRORS and any(
            entry.category in categories and (at_line is None or entry.line == at_line) for entry in errors
        )
        passed = passed and isinstance(observation, Rejected) and (not phases or observation.phase in phases)
        record = CheckRecord("rejects", passed, "the program is refused", expected, _described(observation))
        self._judge(record, observation)
        assert isinstance(observation, Rejected)
        return observation

    def status(self, observation: Observation, code: str) -> None:
        """The call is refused with this status."""
        _require_answer(observation)
        passed = isinstance(observation, Rejected) and observation.code == code
        record = CheckRecord("status", passed, "the call reports the status", code, _described(observation))
        self._judge(record, observation)

    def equal(self, actual: Any, expected: Any, what: str = "the value") -> None:
        """Two plain values are equal, and of the same types: 1, 1.0 and true are three values."""
        passed = same(actual, expected)
        difference = None if passed else value_difference(actual, expected)
        self._judge(CheckRecord("equal", passed, what, expected, actual, difference))

    def true(self, condition: bool, what: str, actual: Any = None) -> None:
        """A property holds; `what` says it in words."""
        self._judge(CheckRecord("true", bool(condition), what, True, actual if actual is not None else condition))

    def names(self, message: str, *words: str) -> None:
        """The message of a refusal holds these words, where words are judged."""
        for word in words if self.judges_words else ():
            self.true(word in message, f"the message names {word}", message)

    def bits(self, actual: Any, expected: Tensor, what: str = "the bits") -> None:
        """Shape, dtype and every bit agree; any NaN equals any NaN."""
        difference = first_difference(actual, expected)
        self._judge(CheckRecord("bits", difference is None, what, expected, actual, difference))

    def within(
        self,
        actual: Any,
        exact: Sequence[Fraction | None],
        bounds: Sequence[Fraction],
        what: str = "the error bound",
    ) -> None:
        """Every element is finite and differs from its exact value by no more than its bound; None is not judged."""
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
        """Every element is in its enclosure; None is not judged."""
        exact = [None if enclosure is None else enclosure.exact for enclosure in enclosures]
        self.within(
            actual, exact, [Fraction(0) if enclosure is None else enclosure.error for enclosure in enclosures], what
        )

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


def explain(record: CheckRecord) -> str:
    """Return the expected and the found value for people."""
    if record.difference is not None:
        return f"{record.what}: {record.difference.sentence()}"
    return f"{record.what}: expected {_shown(record.expected)}, found {_shown(record.actual)}"


def _require_answer(observation: Observation) -> None:
    if isinstance(observation, Unsupported | Fault):
        raise Unanswered(observation)


def _errors(rejected: Rejected) -> Sequence[Diagnostic]:
    """The error diagnostics, or one made of the rejection itself where an implementation gives none."""
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
