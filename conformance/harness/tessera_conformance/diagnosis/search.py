"""The search for the departures that explain wrong answers, and the judgement of one departure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

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
    FEWEST_BITS_OF_TWO,
    NO_MEANING,
    Compared,
    Line,
    Question,
    TooLong,
    asked,
    description,
    evidence_of,
    float_form,
    is_special,
    lies_beyond,
    passed,
    steps_between,
    within_bounds,
)
from tessera_conformance.diagnosis.kernels import Call, answer
from tessera_conformance.oracle.exact import ACCUMULATORS
from tessera_conformance.tensors import MalformedTensor, Tensor

# Diagnoses of the arithmetic of failing cases: `diagnose(lines)` names hypotheses with exactly the observed bits.
#
# The failing questions of one operation are one cause. A hypothesis explains a question if its answer equals the
# observed one in every bit (NaN equals NaN). It is reported if it explains all of them, all of a pair of dtypes, or
# else most of the rest, and if at least 16 bits distinguish its answers from the right ones (`evidence`). If none fits,
# the diagnosis describes the distances and places of the differences.
#
# A cause takes at most `MOST_STEPS` steps of arithmetic, all causes of a report `MOST_STEPS_OF_ALL`, the same on every
# machine, and a cause `MOST_SECONDS` of processor time.


MOST_STEPS = 300_000
MOST_STEPS_OF_ALL = 2_000_000
"""The steps for all causes of a report: each may take an equal share of the steps that earlier causes left."""
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
    left = MOST_STEPS_OF_ALL
    ordered = sorted(causes.items(), key=lambda cause: (len({one.case for one in cause[1]}), cause[0]))
    for number, (operation, questions) in enumerate(ordered):
        budget = Budget(min(MOST_STEPS, left // (len(ordered) - number)), MOST_SECONDS)
        diagnoses += _Cause(operation, questions, lines, budget).diagnoses()
        left -= budget.taken
    return sorted(diagnoses, key=lambda one: (-len(one.cases), one.operation, one.hypothesis))


class _Cause:
    """The questions about one operation in the failing cases."""

    def __init__(
        self, operation: str, questions: Sequence[Question | TooLong], lines: Sequence[Line], budget: Budget
    ) -> None:
        self.operation, self.lines, self.budget = operation, lines, budget
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
                if compared is not None and (not compared.has_form or compared.differing):
                    questions.append(compared)
            shaped = sorted((question for question in questions if question.has_form), key=lambda one: one.work)
            early = [question for question in shaped if question.work <= MOST_WORK] or shaped
            explained += merged(explanations(self.operation, early, self._passing))
        except GaveUp:
            gave_up = True
        long = {one.case for one in self.long}
        self.failing = len({*_cases_of(questions), *long})
        if unlike := [question for question in questions if not question.has_form]:
            yield self._of_forms(unlike)
        explained = self._extended(explained, [question for question in questions if question.has_form])
        yield from map(self._explained, explained)
        accounted = [*unlike, *(one for explanation in explained for one in explanation.questions)]
        rest = [question for question in questions if question not in accounted]
        gave_up = gave_up or self.budget.left < 0
        faint = [] if gave_up else [question for question in rest if question.has_fit]
        faint = faint if evidence_of(faint) < FEWEST_BITS_OF_SOME else []
        if faint:
            yield self._faint(faint)
        if left := [question for question in rest if question not in faint]:
            yield self._undiagnosed(left, gave_up)
        if unknown := sorted(long - {case for explanation in explained for case in explanation.more}):
            says = "tensors that are too long for the report are not diagnosed"
            yield self._diagnosis("", says, ONE_ROUNDING, [], unknown)

    def _extended(self, explained: Sequence[Explained], questions: Sequence[Compared]) -> list[Explained]:
        """Return the explanations with the questions that were deferred."""
        ids = {id(one) for other in explained for one in other.questions}
        late = [question for question in questions if id(question) not in ids and question.work > MOST_WORK]
        extensions = []
        for explanation in explained:
            extensions.append(extended(self.operation, explanation, late, self.long))
            late = [one for one in late if one not in extensions[-1].questions]
        return extensions

    def _compared(self, question: Question) -> Compared | None:
        """Return a question with its right answer; None if it has none."""
        right = question.right or self._canonical(question)
        own = (question.case, question.clauses, question.call, question.found)
        return None if right is None else Compared(*own, right, self.budget)

    def _passing(self) -> Sequence[Compared]:
        """Return the questions of the operation that were answered rightly, in the files of the failing ones."""
        files = {_file(case) for case in [*(one.case for one in self.asked), *(one.case for one in self.long)]}
        lines = [line for line in self.lines if line["verdict"] == "pass" and _file(line["case"]) in files]
        questions = [question for line in lines if (question := passed(line, self.operation)) is not None]
        comparisons = [compared for compared in map(self._compared, questions) if compared is not None]
        return sorted(comparisons, key=lambda candidate: candidate.work)

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
        cases = sorted({*_cases_of(questions), *explained.more})
        of_dtypes = "" if len(cases) == self.failing else f"{', '.join(dtypes)}: "
        sentence = f"{of_dtypes}{hypothesis.verb}{says}{also}; {advice}"
        diagnosis = self._diagnosis(hypothesis.name, sentence, hypothesis.clause, questions, cases, explained.evidence)
        return replace(diagnosis, says=f"{sentence} ({diagnosis.clauses[0]})")

    def _of_forms(self, questions: Sequence[Compared]) -> Diagnosis:
        """Return the diagnosis of results with another dtype or shape."""
        first = min(questions, key=lambda question: question.work)
        same_shape = all(question.found.shape == question.right.shape for question in questions)
        what = "dtype" if same_shape else "shape"
        found, right = (f"{answer.dtype}{list(answer.shape)}" for answer in (first.found, first.right))
        says = f"the result has another {what}, such as {found} for {right}"
        return self._diagnosis(f"other_{what}", says, ONE_ROUNDING, questions)

    def _faint(self, questions: Sequence[Compared]) -> Diagnosis:
        """Return the diagnosis of cases that too few bits distinguish from the right answers to name a hypothesis."""
        fitting = [
            single.name for single in singles(self.operation) if all(one.fits(single.departure) for one in questions)
        ]
        which = f" (what fits: {', '.join(fitting[:3])})" if fitting else ""
        return self._diagnosis("", f"too few elements differ to name a cause{which}", ONE_ROUNDING, questions)

    def _undiagnosed(self, questions: Sequence[Compared], gave_up: bool) -> Diagnosis:
        where = description(questions)
        if within_bounds(questions):
            where += "; every answer is within its bound at the level fast, which can be claimed"
        end = f"; the diagnosis gave up after {self.budget.taken:,} steps" if gave_up else ""
        if (near := nearest(self.operation, questions)) is not None:
            end = f"; {near.hypotheses[0].name} fits {len(_cases_of(near.questions))} of them{end}"
        return self._diagnosis("", f"nothing in the catalogue has all these bits{where}{end}", ONE_ROUNDING, questions)

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


def _file(case: str) -> str:
    return case.rsplit("/golden", 1)[0]


def _cases_of(questions: Sequence[Compared]) -> list[str]:
    return sorted({question.case for question in questions})


# The search for hypotheses: departures that give the observed answers of an operation's failing questions.
#
# It tries departures that fit every question, then those that fit every question of a pair of dtypes, then two
# departures at once, then those that fit most of the rest.


FEWEST_OF_REST = 2
"""The least number of cases of a hypothesis that does not explain all of a pair of dtypes."""
NEARLY_ALL = 0.9
"""The least share of the cases of a pair of dtypes that several hypotheses must explain together."""
MOST_ULPS = 4
"""The most units in the last place of an error of an approximate elementary function; a larger error is wrong."""
MOST_RANKED, MOST_PASSING = 8, 24
"""The most equally fitting hypotheses that are tried, and the most passing cases on which they are tried."""
LONGEST = 8192
"""The most elements of an answer that is computed for its hash."""


Passing: TypeAlias = Callable[[], Sequence[Compared]]
"""The questions of an operation that were answered rightly, those with the least work first."""


@dataclass(frozen=True, eq=False)
class Explained:
    """Questions and the hypotheses that fit all of them, the simplest first.

    All fitting hypotheses give the observed answer, so they have the same evidence.
    """

    questions: Sequence[Compared]
    hypotheses: Sequence[Hypothesis]
    more: tuple[str, ...] = ()
    """Further cases, whose answers match by their hash."""

    @property
    def evidence(self) -> int:
        """The bits that distinguish the answers from the right ones."""
        return evidence_of(self.questions)


@cache
def singles(operation: str) -> Sequence[Hypothesis]:
    """Return the hypotheses of the catalogue about an operation."""
    return [departure for departure in catalogue() if departure.applies(operation)]


@cache
def _pairs(operation: str) -> Sequence[Hypothesis]:
    """Yield two departures at once: an order or an accumulator with any other."""
    kinds = {"order", "start", "accumulator", "product"}
    firsts = [single for single in singles(operation) if single.departure.changed <= kinds]
    return [
        Hypothesis(
            f"{first.name}+{second.name}",
            frozenset({operation}),
            f"{first.says}, and {second.says}",
            first.advice,
            first.clause,
            first.departure | second.departure,
            only=first.only or second.only,
        )
        for at, first in enumerate(firsts)
        for second in singles(operation)
        if not first.departure.changed & second.departure.changed and second not in firsts[:at]
    ]


def explanations(operation: str, questions: Sequence[Compared], passing: Passing) -> Sequence[Explained]:
    """Return explanations of all questions; or of each pair of dtypes, or of nearly all of these in parts.

    If some pair of dtypes is unexplained, explanations of the others need more evidence: another cause may look like a
    known one in few elements.
    """
    if not questions:
        return []
    if fitting := _fitting(singles(operation), questions, FEWEST_BITS):
        return [Explained(questions, _ranked(fitting, questions, passing))]
    if hypothesis := without_departure(operation, questions):
        return [Explained(questions, [hypothesis])]
    grouped: dict[tuple[str, str], list[Compared]] = {}
    for question in questions:
        grouped.setdefault(question.group, []).append(question)
    groups = [Explained(group, _fitting(singles(operation), group, 1)) for group in grouped.values()]
    explained = [*_covered(groups)]
    try:
        for group in [group_.questions for group_ in groups if not group_.hypotheses]:
            explained += _of_group(operation, group)
    except GaveUp:
        pass  # the evidence so far is reported
    some = sum(len(explanation.questions) for explanation in explained) < len(questions)
    return [
        Explained(explanation.questions, _ranked(explanation.hypotheses, explanation.questions, passing))
        for explanation in explained
        if not some or explanation.hypotheses[0].departure == REFERENCE or explanation.evidence >= FEWEST_BITS_OF_SOME
    ]


def _ranked(hypotheses: Sequence[Hypothesis], questions: Sequence[Compared], passing: Passing) -> Sequence[Hypothesis]:
    """Return equally fitting hypotheses: first those that give the right answers of passing cases, then simple ones."""
    ranked = sorted(hypotheses, key=lambda hypothesis: len(hypothesis.departure.changed))
    if len(ranked) < 2:
        return ranked
    groups = {question.group for question in questions}
    right = [question for question in passing() if question.group in groups][:MOST_PASSING]
    try:
        wrong = {
            hypothesis: sum(not one.fits(hypothesis.departure) for one in right) for hypothesis in ranked[:MOST_RANKED]
        }
    except GaveUp:
        return ranked
    return sorted(ranked, key=lambda hypothesis: wrong.get(hypothesis, len(right)))


def _of_group(operation: str, questions: Sequence[Compared]) -> Sequence[Explained]:
    """Return explanations of the questions of a pair of dtypes that no single hypothesis fits."""
    if hypothesis := without_departure(operation, questions):
        return [Explained(questions, [hypothesis])]
    parts = [*_parts(singles(operation), questions)]
    if sum(len(part.questions) for part in parts) >= NEARLY_ALL * len(questions):
        return parts
    fitting = _fitting(_pairs(operation), questions, FEWEST_BITS_OF_TWO)
    return [Explained(questions, fitting)] if fitting else []


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


def _fitting(hypotheses: Iterable[Hypothesis], questions: Sequence[Compared], fewest: int) -> Sequence[Hypothesis]:
    """Return the hypotheses that fit every question, and differ enough from the right answers."""
    dtypes = {answer.call.dtype for answer in questions}
    alive = [hypothesis for hypothesis in hypotheses if _is_meant(hypothesis, dtypes)]
    for question in questions:
        alive = [process for process in alive if question.fits(process.departure)]
    enough = evidence_of(questions) >= fewest
    return [process for process in alive if enough and _is_seen_twice(process, questions)]


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


def _parts(hypotheses: Sequence[Hypothesis], questions: Sequence[Compared]) -> Iterator[Explained]:
    """Yield the hypothesis that fits most questions, then the one that fits most of the rest."""
    rest = list(questions)
    while len(rest) >= FEWEST_OF_REST:
        best = Explained([], [])
        for hypothesis in hypotheses:
            meant = [one for one in rest if _is_meant(hypothesis, {one.call.dtype})]
            fitted = [one for one in meant if one.fits(hypothesis.departure)]
            if len(fitted) > len(best.questions) and evidence_of(fitted) >= FEWEST_BITS:
                best = Explained(fitted, [hypothesis])
        if len(best.questions) < FEWEST_OF_REST:
            return
        yield best
        rest = [one for one in rest if one not in best.questions]


def merged(explained: Sequence[Explained]) -> Iterator[Explained]:
    """Yield explanations of several dtypes by one hypothesis as one."""
    by_name: dict[str, list[Explained]] = {}
    for explanation in explained:
        by_name.setdefault(explanation.hypotheses[0].name, []).append(explanation)
    for several in by_name.values():
        shared = [one for one in several[0].hypotheses if all(one in other.hypotheses for other in several)]
        questions = [question for other in several for question in other.questions]
        yield Explained(questions, shared or several[0].hypotheses[:1])


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


def nearest(operation: str, questions: Sequence[Compared]) -> Explained | None:
    """Return the tried hypothesis that fits most of the questions, with enough evidence; None without one."""
    fitted = (
        Explained([one for one in questions if one.known_to_fit(single.departure)], [single])
        for single in singles(operation)
    )
    enough = [one for one in fitted if len(one.questions) >= FEWEST_OF_REST and one.evidence >= FEWEST_BITS_OF_SOME]
    return max(enough, key=lambda explanation: len(explanation.questions), default=None)


def extended(operation: str, explained: Explained, late: Sequence[Compared], long: Sequence[TooLong]) -> Explained:
    """Return an explanation with the deferred questions, and those known by a hash, that it fits too."""
    hypothesis, questions, more = explained.hypotheses[0], list(explained.questions), list(explained.more)
    try:
        for transfer in late:
            if hypothesis.departure == REFERENCE:
                seen = without_departure(operation, [*questions, transfer])
                fits = seen is not None and seen.name == hypothesis.name
            else:
                fits = transfer.fits(hypothesis.departure)
            questions += [transfer] if fits else []
        for one in long if questions and hypothesis.departure != REFERENCE else ():
            if one.vector is None or one.vector[1].size > LONGEST:
                continue
            if one.sha256 in _hashes(*one.vector, hypothesis.departure, questions[0].budget):
                more.append(one.case)
    except GaveUp:
        pass
    return Explained(questions, explained.hypotheses, tuple(more))


def _hashes(call: Call, right: Tensor, departure: Departure, budget: Budget) -> set[str]:
    """Return the hashes of the answers under a departure, with NaN of either sign; none if it is undefined."""
    codes = right.words().tolist()
    try:
        for place, code in answer(call, departure, budget, right.shape, right.dtype):
            codes[place] = code
    except NO_MEANING:
        return set()
    form = float_form(right.dtype)
    nan, sign = (-1, 0) if form is None else (form.nan_code, form.sign_bit)
    signed = [code | sign if code == nan else code for code in codes]
    return {Tensor.from_words(right.dtype, right.shape, words).sha256 for words in (codes, signed)}
