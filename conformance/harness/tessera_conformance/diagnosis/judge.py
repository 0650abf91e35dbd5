"""Diagnoses of the arithmetic of failing cases: `diagnose(lines)` names hypotheses whose bits are the observed ones.

The failing questions of one operation are one cause. A hypothesis explains a question if its answer equals the observed
one in every bit (NaN equals NaN). It is told if it explains all of them, all of a dtype, or else most of the rest, and
if it differs there from the right answer by at least 16 bits (`evidence`). Where none fits, the diagnosis says how
far off the answers are and where.

A cause takes at most `MOST_STEPS` steps of arithmetic, the same on every machine, and `MOST_SECONDS` of processor time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

from tessera_conformance.diagnosis.catalogue import ACCUMULATION, GEMM, ONE_ROUNDING, PRODUCTS, Hypothesis, catalogue
from tessera_conformance.diagnosis.departure import CANON, OWN, Budget, Departure, GaveUp, accumulator_of
from tessera_conformance.diagnosis.evidence import FEWEST_BITS, FEWEST_BITS_OF_TWO, bits_between, codes_of
from tessera_conformance.diagnosis.kernels import answer
from tessera_conformance.diagnosis.places import description
from tessera_conformance.diagnosis.questions import Asked, Line, Question, Vectors, asked, frozen_vector
from tessera_conformance.oracle.formats import ACCUMULATORS
from tessera_conformance.tensors import Tensor

MOST_STEPS = 300_000
MOST_SECONDS = 5.0
FEWEST_OF_REST = 2
"""Cases that a hypothesis has to explain where it does not explain all of a dtype."""


@dataclass(frozen=True)
class Diagnosis:
    """A cause of failing arithmetic.

    `sentence` is what people read; `clauses` begins with the clause that the diagnosis speaks of; `cases` are those
    that it explains. `hypothesis` is a name of the catalogue, empty where none fits; `evidence` is how many bits tell
    it from the right answer.
    """

    operation: str
    hypothesis: str
    sentence: str
    clauses: tuple[str, ...]
    cases: tuple[str, ...]
    evidence: int = 0


def diagnose(lines: Sequence[Line], vectors: Vectors = frozen_vector) -> list[Diagnosis]:
    """The diagnoses of the failing arithmetic in the observation lines of a report, those of most cases first."""
    causes: dict[str, list[Asked]] = {}
    for each in asked(lines, vectors):
        for operation in dict.fromkeys([each.operation, *(q.call.operation for q in each.questions)]):
            causes.setdefault(operation, []).append(each)
    found = [one for operation, cases in causes.items() for one in _of_operation(operation, cases)]
    return sorted(found, key=lambda one: (-len(one.cases), one.operation, one.hypothesis))


def ordered_clauses(clauses: Sequence[str], diagnosis: Diagnosis) -> list[str]:
    """The clauses of a case, that of which the diagnosis speaks first."""
    return list(dict.fromkeys([*diagnosis.clauses[:1], *clauses]))


class _Clock(Budget):
    """The budget of a cause: steps, and as a guard the time of the processor."""

    def __init__(self) -> None:
        super().__init__(MOST_STEPS)
        self._end = time.process_time() + MOST_SECONDS

    def spend(self, steps: int = 1) -> None:
        super().spend(steps)
        if self.left % 64 == 0 and time.process_time() > self._end:
            self.left = 0
            raise GaveUp


@dataclass(eq=False)
class Compared:
    """A question beside its right answer, as codes."""

    question: Question
    right: Tensor
    budget: Budget
    _fits: dict[Departure, int | None] = field(default_factory=dict)

    @cached_property
    def found_codes(self) -> Sequence[int]:
        """The observed answer."""
        return codes_of(self.question.found)

    @cached_property
    def right_codes(self) -> Sequence[int]:
        """The right answer."""
        return codes_of(self.right)

    @property
    def group(self) -> tuple[str, str]:
        """The dtypes of the operands and of the result."""
        return self.question.call.dtype, self.right.dtype

    @property
    def has_form(self) -> bool:
        """True if dtype and shape are right."""
        found = self.question.found
        return (found.dtype, found.shape) == (self.right.dtype, self.right.shape)

    @property
    def has_fit(self) -> bool:
        """True if some hypothesis gives the observed answer."""
        return any(bits is not None for bits in self._fits.values())

    def fits(self, hypothesis: Hypothesis) -> bool:
        """True if the hypothesis has been found to give the observed answer."""
        return self._fits.get(hypothesis.departure) is not None

    def evidence(self, departure: Departure) -> int | None:
        """The bits by which the hypothesis differs from the right answer; None where it is not the observed one."""
        if departure not in self._fits:
            self._fits[departure] = self._compare(departure)
        return self._fits[departure]

    def _compare(self, departure: Departure) -> int | None:
        bits = seen = 0
        try:
            codes = answer(self.question.call, departure, self.budget, self.right.shape, self.right.dtype)
            for place, code in codes:
                if code != self.found_codes[place]:
                    return None
                bits += bits_between(code, self.right_codes[place], self.right.dtype)
                seen += 1
        except (ArithmeticError, ValueError, LookupError, TypeError, AssertionError):
            return None  # the departure has no meaning for these operands
        return bits if seen == len(self.right_codes) else None


@dataclass(frozen=True, eq=False)
class _Explained:
    """Questions and the hypotheses that fit all of them, the first the simplest."""

    questions: Sequence[Compared]
    hypotheses: Sequence[Hypothesis]

    @property
    def evidence(self) -> int:
        """The bits of the first hypothesis."""
        return _bits(self.hypotheses[0], self.questions)


def _of_operation(operation: str, cases: Sequence[Asked]) -> Iterator[Diagnosis]:
    """The diagnoses of the failing cases that asked for an operation."""
    budget = _Clock()
    questions: list[Compared] = []
    gave_up = False
    try:
        questions += _compared(operation, cases, budget)
    except GaveUp:
        gave_up = True
    shaped = [each for each in questions if each.has_form]
    names = _cases_of(questions)
    if unlike := [each for each in questions if not each.has_form]:
        yield _of_forms(operation, unlike, len(names))
    explained: list[_Explained] = []
    try:
        for each in _explanations(operation, sorted(shaped, key=lambda one: one.question.work), budget):
            explained.append(each)
    except GaveUp:
        gave_up = True
    for each in _merged(explained):
        yield _told(operation, each, len(names))
    known = {id(one) for each in explained for one in each.questions}
    rest = [each for each in shaped if id(each) not in known]
    faint = [] if gave_up else [each for each in rest if each.has_fit]
    if faint:
        yield _faint(operation, faint, len(names))
    if len(rest) > len(faint) or (gave_up and not questions):
        yield _undiagnosed(operation, [each for each in rest if each not in faint], len(names), gave_up)


def _compared(operation: str, cases: Sequence[Asked], budget: Budget) -> Iterator[Compared]:
    """The questions of an operation that were answered wrongly."""
    for case in cases:
        for question in case.questions:
            if question.call.operation != operation:
                continue
            right = question.right or _canonical(question, budget)
            if right is None:
                continue
            compared = Compared(question, right, budget)
            if not compared.has_form or compared.found_codes != compared.right_codes:
                yield compared


def _canonical(question: Question, budget: Budget) -> Tensor | None:
    """The right answer, computed; None where the found one has so many elements that it is another form."""
    found = question.found
    codes = [0] * (found.size * found.format.words)
    try:
        for place, code in answer(question.call, CANON, budget, found.shape, found.dtype):
            codes[place] = code
    except (ArithmeticError, ValueError, LookupError, TypeError, AssertionError):
        return None
    return Tensor.from_words(found.dtype, found.shape, codes)


# The search


@cache
def _singles(operation: str) -> Sequence[Hypothesis]:
    return [each for each in catalogue() if each.applies(operation)]


@cache
def _pairs(operation: str) -> Sequence[Hypothesis]:
    """Two departures at once: an order or an accumulator with anything else."""
    kinds = {"order", "accumulator", "product"}
    firsts = [each for each in _singles(operation) if each.departure.changed <= kinds]
    return [
        Hypothesis(
            f"{first.name}+{second.name}",
            frozenset({operation}),
            f"{first.says}, and {second.says}",
            first.advice,
            first.clause,
            first.departure | second.departure,
        )
        for at, first in enumerate(firsts)
        for second in _singles(operation)
        if not first.departure.changed & second.departure.changed and second not in firsts[:at]
    ]


def _explanations(operation: str, questions: Sequence[Compared], budget: Budget) -> Iterator[_Explained]:
    """What explains all questions, or those of each pair of dtypes, or parts of these."""
    if not questions:
        return
    singles = _singles(operation)
    if fitting := _fitting(singles, questions, FEWEST_BITS):
        yield _Explained(questions, fitting)
        return
    grouped: dict[tuple[str, str], list[Compared]] = {}
    for each in questions:
        grouped.setdefault(each.group, []).append(each)
    groups = [_Explained(group, _fitting(singles, group, 1)) for group in grouped.values()]
    yield from _covered(groups)
    for group in [each.questions for each in groups if not each.hypotheses]:
        if fitting := _fitting(_pairs(operation), group, FEWEST_BITS_OF_TWO):
            yield _Explained(group, fitting)
        else:
            yield from _parts(singles, group)


def _covered(groups: Sequence[_Explained]) -> Iterator[_Explained]:
    """Groups by the hypothesis that fits most of them, then by that which fits most of the rest.

    A group that few bits tell from the right answer counts with the others that the same hypothesis fits.
    """
    rest = list(groups)
    while True:
        taken: dict[Hypothesis, list[_Explained]] = {}
        for group in rest:
            for each in group.hypotheses:
                taken.setdefault(each, []).append(group)
        enough = {each: own for each, own in taken.items() if _bits(each, _questions(own)) >= FEWEST_BITS}
        if not enough:
            return
        most = max(map(len, enough.values()))
        best = next(own for own in enough.values() if len(own) == most)
        yield _Explained(_questions(best), [each for each, own in enough.items() if own == best])
        rest = [group for group in rest if group not in best]


def _questions(groups: Sequence[_Explained]) -> Sequence[Compared]:
    return [question for group in groups for question in group.questions]


def _fitting(hypotheses: Iterable[Hypothesis], questions: Sequence[Compared], fewest: int) -> Sequence[Hypothesis]:
    """The hypotheses that fit every question, and differ enough from the right answers."""
    dtypes = {each.question.call.dtype for each in questions}
    alive = [each for each in hypotheses if _is_meant(each.departure, dtypes)]
    for question in questions:
        alive = [each for each in alive if question.evidence(each.departure) is not None]
    return [each for each in alive if _bits(each, questions) >= fewest and _is_seen_twice(each, questions)]


def _is_meant(departure: Departure, dtypes: Iterable[str]) -> bool:
    """False where the accumulator that a departure names is the right one of all dtypes."""
    known = [each for each in dtypes if each in ACCUMULATORS]
    return not departure.accumulator or any(accumulator_of(each, departure) != ACCUMULATORS[each] for each in known)


def _is_seen_twice(hypothesis: Hypothesis, questions: Sequence[Compared]) -> bool:
    """False for a tail of which there is one only: the end of sorted operands is special without it."""
    return hypothesis.departure.tail is None or len(questions) > 1 or questions[0].right.shape[:-1] != ()


def _parts(hypotheses: Sequence[Hypothesis], questions: Sequence[Compared]) -> Iterator[_Explained]:
    """The hypothesis that fits most questions, then that which fits most of the rest."""
    rest = list(questions)
    while len(rest) >= FEWEST_OF_REST:
        best = _Explained([], [])
        for each in hypotheses:
            fitted = [one for one in rest if one.evidence(each.departure) is not None]
            if len(fitted) > len(best.questions) and _bits(each, fitted) >= FEWEST_BITS:
                best = _Explained(fitted, [each])
        if len(best.questions) < FEWEST_OF_REST:
            return
        yield best
        rest = [one for one in rest if one not in best.questions]


def _bits(hypothesis: Hypothesis, questions: Sequence[Compared]) -> int:
    return sum(question.evidence(hypothesis.departure) or 0 for question in questions)


def _merged(explained: Sequence[_Explained]) -> Iterator[_Explained]:
    """Explanations of several dtypes by one hypothesis as one."""
    by_name: dict[str, list[_Explained]] = {}
    for each in explained:
        by_name.setdefault(each.hypotheses[0].name, []).append(each)
    for several in by_name.values():
        shared = [one for one in several[0].hypotheses if all(one in each.hypotheses for each in several)]
        questions = [question for each in several for question in each.questions]
        yield _Explained(questions, shared or several[0].hypotheses[:1])


# Words


def _told(operation: str, explained: _Explained, count: int) -> Diagnosis:
    hypothesis, questions = explained.hypotheses[0], explained.questions
    cases = _cases_of(questions)
    dtypes = sorted({each.question.call.dtype for each in questions})
    right = sorted({ACCUMULATORS.get(dtype, dtype) for dtype in dtypes})
    used = hypothesis.departure.accumulator
    words = {
        "accumulator": used if used and used != OWN else right[0] if len(right) == 1 else "the accumulator type",
        "right_accumulator": right[0] if len(right) == 1 else "the accumulator type of the operands",
    }
    clauses = _clauses(operation, hypothesis.clause, questions)
    others = [each for each in explained.hypotheses if each.departure.changed != hypothesis.departure.changed]
    also = f" (or {others[0].says.format(**words)})" if others else ""
    says, advice = hypothesis.says.format(**words), hypothesis.advice.format(**words)
    of_dtypes = "" if len(cases) == count else f" ({', '.join(dtypes)})"
    sentence = (
        f"{len(cases)} of {_counted(count, operation)}{of_dtypes}: bits equal {says}{also}; {advice} ({clauses[0]})"
    )
    return Diagnosis(operation, hypothesis.name, sentence, clauses, tuple(cases), explained.evidence)


def _of_forms(operation: str, questions: Sequence[Compared], count: int) -> Diagnosis:
    """Results of another dtype or shape."""
    cases, first = _cases_of(questions), min(questions, key=lambda each: each.question.work)
    found, right = first.question.found, first.right
    dtypes = {each.question.found.dtype for each in questions if each.question.found.dtype != each.right.dtype}
    what, name = "shape", "other_shape"
    if len(dtypes) == 1 and all(each.question.found.shape == each.right.shape for each in questions):
        what, name = "dtype", "other_dtype"
    sentence = (
        f"{len(cases)} of {_counted(count, operation)}: the result has another {what}, such as "
        f"{found.dtype}{list(found.shape)} for {right.dtype}{list(right.shape)}"
    )
    return Diagnosis(operation, name, sentence, _clauses(operation, ONE_ROUNDING, questions), tuple(cases))


def _faint(operation: str, questions: Sequence[Compared], count: int) -> Diagnosis:
    """Cases that hypotheses fit, of which too few bits differ from the right ones to tell one."""
    cases = _cases_of(questions)
    names = [each.name for each in _singles(operation) if all(one.fits(each) for one in questions)][:3]
    which = f" (what fits: {', '.join(names)})" if names else ""
    sentence = f"{len(cases)} of {_counted(count, operation)}: too few elements differ to name a cause{which}"
    return Diagnosis(operation, "", sentence, _clauses(operation, ONE_ROUNDING, questions), tuple(cases))


def _undiagnosed(operation: str, questions: Sequence[Compared], count: int, gave_up: bool) -> Diagnosis:
    cases = _cases_of(questions)
    end = f"; the diagnosis gave up after {MOST_STEPS:,} steps" if gave_up else ""
    where = description([(each.question.call, each.question.found, each.right) for each in questions])
    sentence = f"{len(cases)} of {_counted(count, operation)}: nothing in the catalogue has these bits{where}{end}"
    return Diagnosis(operation, "", sentence, _clauses(operation, ONE_ROUNDING, questions), tuple(cases))


def _clauses(operation: str, clause: str, questions: Sequence[Compared]) -> tuple[str, ...]:
    """The clause of a diagnosis, and those of its cases, most frequent first."""
    counted = Counter(name for each in questions for name in each.question.clauses)
    tagged = [name for name, _ in counted.most_common()]
    if clause == ONE_ROUNDING and clause not in tagged:
        return tuple(tagged) or (clause,)
    if clause == ACCUMULATION and operation in PRODUCTS:
        clause = GEMM
    return tuple(dict.fromkeys([clause, *tagged]))


def _cases_of(questions: Sequence[Compared]) -> list[str]:
    return sorted({each.question.case for each in questions})


def _counted(count: int, operation: str) -> str:
    return f"{count} {operation} case{'' if count == 1 else 's'}"
