"""The search for the departures that explain wrong answers, and the judgement of one departure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

from tessera_conformance.diagnosis.catalogue import (
    ACCUMULATION,
    ACROSS_OPERATIONS,
    ANY,
    APPROXIMATION,
    ELEMENTARY,
    GEMM,
    ONE_ROUNDING,
    PRODUCTS,
    SHAPES,
    TILES,
    Hypothesis,
    catalogue,
)
from tessera_conformance.diagnosis.departure import OWN, REFERENCE, Budget, Departure, GaveUp, accumulator_of
from tessera_conformance.diagnosis.evidence import (
    FEWEST_BITS,
    FEWEST_BITS_OF_SOME,
    NO_MEANING,
    Compared,
    Line,
    Question,
    TooLong,
    asked,
    description,
    evidence_of,
    is_special,
    lies_beyond,
    steps_between,
)
from tessera_conformance.diagnosis.kernels import answer
from tessera_conformance.oracle.exact import ACCUMULATORS
from tessera_conformance.tensors import MalformedTensor, Tensor

# Diagnoses of the arithmetic of failing cases: `diagnose(lines)` names hypotheses with exactly the observed bits.
#
# The failing questions of one operation are one cause. A hypothesis explains a question if its answer equals the
# observed one in every bit (NaN equals NaN). It is reported if it explains all of them or all of a pair of dtypes, and
# if at least 16 bits distinguish its answers from the right ones (`evidence`). If none fits, the diagnosis describes
# the distances and places of the differences.
#
# A cause takes at most `MOST_STEPS` steps of arithmetic, the same on every machine, and `MOST_SECONDS` of processor
# time.


MOST_STEPS = 300_000
MOST_SECONDS = 5.0
MOST_WORK = 4096
"""Questions with more elements and terms are compared with the hypotheses that fit the others."""


@dataclass(frozen=True)
class Diagnosis:
    """A cause of failing arithmetic.

    `says` is the text for people. `clauses` begins with the clause of the hypothesis. `cases` are those that it
    explains, among all that fail in the operation. `hypothesis` is a name of the catalogue, empty if none fits;
    `evidence` is the number of bits that distinguish its answers from the right ones.
    """

    operation: str
    hypothesis: str
    says: str
    clauses: tuple[str, ...]
    cases: tuple[str, ...]
    failing: int
    evidence: int = 0

    @property
    def sentence(self) -> str:
        """The diagnosis in words, with the number of cases."""
        cases = f"{self.operation} case{'' if self.failing == 1 else 's'}"
        return f"{len(self.cases)} of {self.failing} {cases}: {self.says}"


def diagnose(lines: Sequence[Line]) -> list[Diagnosis]:
    """Return the diagnoses of the failing arithmetic in a report's observation lines, those of most cases first."""
    causes: dict[str, list[Question | TooLong]] = {}
    for one in asked(lines):
        operation = one.operation if isinstance(one, TooLong) else one.call.operation
        causes.setdefault(operation, []).append(one)
    diagnoses: list[Diagnosis] = []
    for operation, questions in sorted(causes.items()):
        diagnoses += _Cause(operation, questions, Budget(MOST_STEPS, MOST_SECONDS)).diagnoses()
    return sorted(diagnoses, key=lambda one: (-len(one.cases), one.operation, one.hypothesis))


class _Cause:
    """The questions about one operation in the failing cases."""

    def __init__(self, operation: str, questions: Sequence[Question | TooLong], budget: Budget) -> None:
        self.operation, self.budget = operation, budget
        self.asked = [one for one in questions if isinstance(one, Question)]
        self.long = [one for one in questions if isinstance(one, TooLong)]
        self.failing = 0

    def diagnoses(self) -> Iterator[Diagnosis]:
        """Yield the diagnoses that explain cases, then those of unexplained cases."""
        questions: list[Compared] = []
        explained: list[Explained] = []
        gave_up = False
        try:
            for compared in map(self._compared, self.asked):
                if compared is not None and compared.differing:
                    questions.append(compared)
            ordered = sorted(questions, key=lambda question: question.work)
            early = [question for question in ordered if question.work <= MOST_WORK] or ordered
            explained += explanations(self.operation, early)
        except GaveUp:
            gave_up = True
        long = sorted({one.case for one in self.long})
        self.failing = len({*_cases_of(questions), *long})
        rest = [question for question in questions if question not in _questions(explained)]
        for explanation in explained:
            late = [question for question in rest if question.work > MOST_WORK]
            whole = with_deferred(self.operation, explanation, late)
            rest = [question for question in rest if question not in whole.questions]
            yield self._explained(whole)
        gave_up = gave_up or self.budget.left < 0
        faint = [] if gave_up else [question for question in rest if question.has_fit]
        faint = faint if evidence_of(faint) < FEWEST_BITS_OF_SOME else []
        if faint:
            yield self._faint(faint)
        if left := [question for question in rest if question not in faint]:
            yield self._undiagnosed(left, gave_up)
        if long:
            says = "tensors that are too long for the report are not diagnosed"
            yield self._diagnosis("", says, ONE_ROUNDING, [], long)

    def _compared(self, question: Question) -> Compared | None:
        """Return a question with its right answer; None if it has none, or one of another dtype or shape."""
        right, actual = question.right or self._canonical(question), question.found
        if right is None or (right.dtype, right.shape) != (actual.dtype, actual.shape):
            return None
        return Compared(question.case, question.clauses, question.call, actual, right, self.budget)

    def _canonical(self, question: Question) -> Tensor | None:
        """Return the right answer, computed in the form of the actual one; None if it has another form."""
        actual = question.found
        codes = [-1] * (actual.size * actual.format.words)
        try:
            for place, code in answer(question.call, REFERENCE, self.budget, actual.shape, actual.dtype):
                codes[place] = code
            return Tensor.from_words(actual.dtype, actual.shape, codes)
        except (*NO_MEANING, OverflowError, MalformedTensor):
            return None

    # Words

    def _explained(self, explained: Explained) -> Diagnosis:
        hypothesis, questions = explained.hypotheses[0], explained.questions
        dtypes = sorted({question.call.dtype for question in questions})
        right = sorted({ACCUMULATORS.get(dtype, dtype) for dtype in dtypes})
        used = hypothesis.departure.accumulator
        words = {
            "accumulator": used if used and used != OWN else right[0] if len(right) == 1 else "the accumulator type",
            "right_accumulator": right[0] if len(right) == 1 else "the accumulator type of the operands",
        }
        others = [other for other in explained.hypotheses[1:] if _is_other(other.departure, hypothesis.departure)]
        also = f" (or {others[0].says.format(**words)})" if others else ""
        says, advice = hypothesis.says.format(**words), hypothesis.advice.format(**words)
        cases = _cases_of(questions)
        of_dtypes = "" if len(cases) == self.failing else f"{', '.join(dtypes)}: "
        sentence = f"{of_dtypes}{hypothesis.verb}{says}{also}; {advice}"
        diagnosis = self._diagnosis(hypothesis.name, sentence, hypothesis.clause, questions, cases, explained.evidence)
        return replace(diagnosis, says=f"{sentence} ({diagnosis.clauses[0]})")

    def _faint(self, questions: Sequence[Compared]) -> Diagnosis:
        """Return the diagnosis of cases that too few bits distinguish from the right answers to name a hypothesis."""
        fitting = [
            single.name for single in singles(self.operation) if all(one.fits(single.departure) for one in questions)
        ]
        which = f" (what fits: {', '.join(fitting[:3])})" if fitting else ""
        return self._diagnosis("", f"too few elements differ to name a cause{which}", ONE_ROUNDING, questions)

    def _undiagnosed(self, questions: Sequence[Compared], gave_up: bool) -> Diagnosis:
        end = f"; the diagnosis gave up after {self.budget.taken:,} steps" if gave_up else ""
        says = f"nothing in the catalogue has all these bits{description(questions)}{end}"
        return self._diagnosis("", says, ONE_ROUNDING, questions)

    def _diagnosis(
        self, name: str, says: str, clause: str, questions: Sequence[Compared], cases: Sequence[str] = (), bits: int = 0
    ) -> Diagnosis:
        clauses, cases = self._clauses(clause, questions), tuple(cases or _cases_of(questions))
        return Diagnosis(self.operation, name, says, clauses, cases, self.failing, bits)

    def _clauses(self, clause: str, questions: Sequence[Compared]) -> tuple[str, ...]:
        """Return the clause of a diagnosis, and those of its cases, most frequent first."""
        counted = Counter(name for question in questions for name in question.clauses)
        tagged = [name for name, _ in counted.most_common()]
        if clause not in (*ACROSS_OPERATIONS, *tagged):
            return tuple(tagged) or (clause,)
        if clause == ACCUMULATION and self.operation in PRODUCTS:
            clause = GEMM
        return tuple(dict.fromkeys([clause, *tagged]))


def _is_other(one: Departure, other: Departure) -> bool:
    """True if a second fitting departure is another cause: not a variant of the first, and not a superset of it."""
    if one.changed == other.changed:
        return one.changed <= {"accumulator", "operands", "through"}
    return not other.changed <= one.changed


def _cases_of(questions: Sequence[Compared]) -> list[str]:
    return sorted({question.case for question in questions})


# The search for hypotheses: departures that give the observed answers of an operation's failing questions.
#
# It tries departures that fit every question, then those that fit every question of a pair of dtypes.


MOST_ULPS = 4
"""The most units in the last place of an error of an approximate elementary function; a larger error is wrong."""


@dataclass(frozen=True, eq=False)
class Explained:
    """Questions and the hypotheses that fit all of them, the simplest first.

    All fitting hypotheses give the observed answer, so they have the same evidence.
    """

    questions: Sequence[Compared]
    hypotheses: Sequence[Hypothesis]

    @property
    def evidence(self) -> int:
        """The bits that distinguish the answers from the right ones."""
        return evidence_of(self.questions)


@cache
def singles(operation: str) -> Sequence[Hypothesis]:
    """Return the hypotheses of the catalogue about an operation."""
    return [departure for departure in catalogue() if departure.applies(operation)]


def explanations(operation: str, questions: Sequence[Compared]) -> Sequence[Explained]:
    """Return the explanation of all questions, or those of pairs of dtypes.

    If some pair of dtypes is unexplained, explanations of the others need more evidence: another cause may look like a
    known one in few elements.
    """
    whole = _group(operation, questions, FEWEST_BITS)
    if whole.hypotheses:
        return [whole]
    grouped: dict[tuple[str, str], list[Compared]] = {}
    for question in questions:
        grouped.setdefault(question.group, []).append(question)
    explained = [*_covered([_group(operation, group, 1) for group in grouped.values()])]
    some = sum(len(explanation.questions) for explanation in explained) < len(questions)
    return [
        explanation
        for explanation in explained
        if not some or explanation.hypotheses[0].departure == REFERENCE or explanation.evidence >= FEWEST_BITS_OF_SOME
    ]


def _group(operation: str, questions: Sequence[Compared], fewest: int) -> Explained:
    """Return questions with the hypotheses that fit all of them, if any do."""
    if fitting := _fitting(operation, questions, fewest):
        return Explained(questions, fitting)
    hypothesis = without_departure(operation, questions)
    return Explained(questions, [] if hypothesis is None else [hypothesis])


def _covered(groups: Sequence[Explained]) -> Iterator[Explained]:
    """Yield groups by the hypothesis that fits most of them, then by the one that fits most of the rest.

    A group that few bits distinguish from the right answer counts with the others that the same hypothesis fits.
    """
    rest = list(groups)
    while True:
        groups_of: dict[Hypothesis, list[Explained]] = {}
        for group in rest:
            for hypothesis in group.hypotheses:
                groups_of.setdefault(hypothesis, []).append(group)
        enough = {candidate: own for candidate, own in groups_of.items() if evidence_of(_questions(own)) >= FEWEST_BITS}
        if not enough:
            return
        most = max(map(len, enough.values()))
        best = next(own for own in enough.values() if len(own) == most)
        yield Explained(_questions(best), [candidate for candidate, own in enough.items() if own == best])
        rest = [group for group in rest if group not in best]


def _questions(groups: Sequence[Explained]) -> Sequence[Compared]:
    return [question for group in groups for question in group.questions]


def _fitting(operation: str, questions: Sequence[Compared], fewest: int) -> Sequence[Hypothesis]:
    """Return the hypotheses that fit every question, and differ enough from the right answers."""
    dtypes = {answer.call.dtype for answer in questions}
    alive = [hypothesis for hypothesis in singles(operation) if _is_meant(hypothesis, dtypes)]
    for question in questions:
        alive = [hypothesis for hypothesis in alive if question.fits(hypothesis.departure)]
    if evidence_of(questions) < fewest:
        return []
    seen = [hypothesis for hypothesis in alive if _is_seen_twice(hypothesis, questions)]
    return sorted(seen, key=lambda hypothesis: len(hypothesis.departure.changed))


def _is_meant(hypothesis: Hypothesis, dtypes: set[str]) -> bool:
    """False if a hypothesis is about another dtype, or names an accumulator that is right for all dtypes."""
    departure = hypothesis.departure
    if hypothesis.only and dtypes != {hypothesis.only}:
        return False
    narrow = [dtype for dtype in dtypes if dtype in ACCUMULATORS]
    return not departure.accumulator or any(accumulator_of(dtype, departure) != ACCUMULATORS[dtype] for dtype in narrow)


def _is_seen_twice(hypothesis: Hypothesis, questions: Sequence[Compared]) -> bool:
    """False for a single tail: the end of sorted operands is special anyway."""
    return hypothesis.departure.tail is None or len(questions) > 1 or questions[0].right.shape[:-1] != ()


def without_departure(operation: str, questions: Sequence[Compared]) -> Hypothesis | None:
    """Return a hypothesis from the answers alone: an approximate function, or a tile that is not written."""
    if evidence_of(questions) < FEWEST_BITS:
        return None
    wrong = [(*codes, question.right.dtype) for question in questions for codes in question.differing]
    if operation in ELEMENTARY and not any(is_special(*element) for element in wrong):
        ulps = max(steps_between(*element) for element in wrong)
        if ulps <= MOST_ULPS:
            says = f"off by at most {ulps} ULP: an approximate {operation}"
            advice = f"declare an accuracy of {ulps} ULP at the level deterministic, or claim the level fast"
            return Hypothesis("approximate", ELEMENTARY, says, advice, APPROXIMATION, REFERENCE, verb="elements are ")
    for size in TILES:
        if lies_beyond(size, questions):
            says = f"wrong in every element beyond a multiple of {size} in the last axis, and only there"
            advice = "write the last, partial tile too"
            return Hypothesis(f"stale_tail_of_{size}", ANY, says, advice, SHAPES, REFERENCE, verb="results are ")
    return None


def with_deferred(operation: str, explained: Explained, late: Sequence[Compared]) -> Explained:
    """Return an explanation with the deferred questions that it fits too, as far as the budget reaches."""
    hypothesis, questions = explained.hypotheses[0], list(explained.questions)
    with suppress(GaveUp):
        for question in late:
            if hypothesis.departure == REFERENCE:
                seen = without_departure(operation, [*questions, question])
                fits = seen is not None and seen.name == hypothesis.name
            else:
                fits = question.fits(hypothesis.departure)
            questions += [question] if fits else []
    return Explained(questions, explained.hypotheses)
