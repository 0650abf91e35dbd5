"""Diagnoses of the arithmetic of failing cases: `diagnose(lines)` names hypotheses whose bits are the observed ones.

The failing questions of one operation are one cause. A hypothesis explains a question if its answer equals the observed
one in every bit (NaN equals NaN). It is told if it explains all of them, all of a pair of dtypes, or else most of the
rest, and if at least 16 bits tell its answers from the right ones (`evidence`). Where none fits, the diagnosis says how
far off the answers are and where.

A cause takes at most `MOST_STEPS` steps of arithmetic, all causes of a report `MOST_STEPS_OF_ALL`, the same on every
machine, and a cause `MOST_SECONDS` of processor time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tessera_conformance.diagnosis.catalogue import ACCUMULATION, ACROSS_OPERATIONS, GEMM, ONE_ROUNDING, PRODUCTS
from tessera_conformance.diagnosis.departure import CANON, OWN, Budget, Departure, GaveUp
from tessera_conformance.diagnosis.evidence import FEWEST_BITS_OF_SOME, description, within_bounds
from tessera_conformance.diagnosis.kernels import answer
from tessera_conformance.diagnosis.questions import Asked, Line, Question, Vectors, asked, golden_vector, passed
from tessera_conformance.diagnosis.search import (
    NO_MEANING,
    Compared,
    Explained,
    explanations,
    extended,
    merged,
    nearest,
    singles,
)
from tessera_conformance.oracle.formats import ACCUMULATORS
from tessera_conformance.tensors import MalformedTensor, Tensor

MOST_STEPS = 300_000
MOST_STEPS_OF_ALL = 2_000_000
"""Of all causes of a report together: each may take an equal share of what those of fewer cases have left."""
MOST_SECONDS = 5.0
MOST_WORK = 4096
"""Questions with more elements and terms are held against the hypotheses that fit the others."""


@dataclass(frozen=True)
class Diagnosis:
    """A cause of failing arithmetic.

    `says` is what people read, `clauses` begins with the clause that it speaks of, and `cases` are those that it
    explains, of so many that fail in the operation. `hypothesis` is a name of the catalogue, empty where none fits;
    `evidence` is how many bits tell its answers from the right ones.
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
        """The whole in words, with the number of cases."""
        cases = f"{self.operation} case{'' if self.failing == 1 else 's'}"
        return f"{len(self.cases)} of {self.failing} {cases}: {self.says}"


def diagnose(lines: Sequence[Line], vectors: Vectors = golden_vector) -> list[Diagnosis]:
    """The diagnoses of the failing arithmetic in the observation lines of a report, those of most cases first."""
    causes: dict[str, list[Asked]] = {}
    for each in asked(lines, vectors):
        for operation in dict.fromkeys([each.operation, *(q.call.operation for q in each.questions)]):
            causes.setdefault(operation, []).append(each)
    found: list[Diagnosis] = []
    left = MOST_STEPS_OF_ALL
    ordered = sorted(causes.items(), key=lambda cause: (len(cause[1]), cause[0]))
    for number, (operation, cases) in enumerate(ordered):
        budget = _Clock(min(MOST_STEPS, left // (len(ordered) - number)))
        found += _Cause(operation, cases, lines, vectors, budget).diagnoses()
        left -= budget.taken
    return sorted(found, key=lambda one: (-len(one.cases), one.operation, one.hypothesis))


def ordered_clauses(clauses: Sequence[str], diagnosis: Diagnosis) -> list[str]:
    """The clauses of a case, that of which the diagnosis speaks first."""
    return list(dict.fromkeys([*diagnosis.clauses[:1], *clauses]))


class _Clock(Budget):
    """The budget of a cause: steps, and as a guard the time of the processor."""

    def __init__(self, steps: int) -> None:
        super().__init__(steps)
        self._steps = self._look = steps
        self._end = time.process_time() + MOST_SECONDS

    @property
    def taken(self) -> int:
        """The steps that were taken."""
        return min(self._steps - self.left, self._steps)

    def spend(self, steps: int = 1) -> None:
        super().spend(steps)
        if self.left < self._look - 256:
            self._look = self.left
            if time.process_time() > self._end:
                self.left = 0
                raise GaveUp


class _Cause:
    """The failing cases that asked for one operation."""

    def __init__(
        self, operation: str, cases: Sequence[Asked], lines: Sequence[Line], vectors: Vectors, budget: _Clock
    ) -> None:
        self.operation, self.cases = operation, cases
        self.lines, self.vectors = lines, vectors
        self.budget = budget
        self.failing = 0

    def diagnoses(self) -> Iterator[Diagnosis]:
        """Yield the diagnoses that explain the cases, then the cases that are left unexplained."""
        questions: list[Compared] = []
        explained: list[Explained] = []
        gave_up = False
        try:
            for each in self._compared():
                questions.append(each)
            shaped = sorted((each for each in questions if each.has_form), key=lambda one: one.question.work)
            early = [each for each in shaped if each.question.work <= MOST_WORK] or shaped
            explained += merged(explanations(self.operation, early, self._passing))
        except GaveUp:
            gave_up = True
        long = [each.case for each in self.cases if each.too_long]
        self.failing = len({*_cases_of(questions), *long})
        if unlike := [each for each in questions if not each.has_form]:
            yield self._of_forms(unlike)
        explained = self._extended(explained, [each for each in questions if each.has_form])
        yield from map(self._told, explained)
        long = sorted({*long} - {case for each in explained for case in each.more})
        known = [*unlike, *(one for each in explained for one in each.questions)]
        rest = [each for each in questions if each not in known]
        gave_up = gave_up or self.budget.left < 0
        faint = [] if gave_up else [each for each in rest if each.has_fit]
        faint = faint if Explained(faint, []).evidence < FEWEST_BITS_OF_SOME else []
        if faint:
            yield self._faint(faint)
        if left := [each for each in rest if each not in faint]:
            yield self._undiagnosed(left, gave_up)
        if long:
            yield self._diagnosis(
                "", "tensors that are too long for the report are not diagnosed", ONE_ROUNDING, [], long
            )

    def _extended(self, explained: Sequence[Explained], questions: Sequence[Compared]) -> list[Explained]:
        """The explanations with the questions that were left for later."""
        known = {id(one) for each in explained for one in each.questions}
        late = [each for each in questions if id(each) not in known and each.question.work > MOST_WORK]
        long = [each.long for each in self.cases if each.long is not None and each.operation == self.operation]
        found = []
        for each in explained:
            found.append(extended(self.operation, each, late, long))
            late = [one for one in late if one not in found[-1].questions]
        return found

    def _compared(self) -> Iterator[Compared]:
        """The questions of the operation that were answered wrongly."""
        for question in (one for case in self.cases for one in case.questions):
            if question.call.operation == self.operation:
                right = question.right or self._canonical(question)
                if right is not None:
                    compared = Compared(question, right, self.budget)
                    if not compared.has_form or compared.found_codes != compared.right_codes:
                        yield compared

    def _passing(self) -> Sequence[Compared]:
        """The questions of the operation that were answered rightly, in the files of the failing ones."""
        files = {each.case.rsplit("/golden", 1)[0] for each in self.cases}
        found = []
        for line in self.lines:
            if line["verdict"] == "pass" and line["case"].rsplit("/golden", 1)[0] in files:
                question = passed(line, self.operation, self.vectors)
                found += [] if question is None else [Compared(question, question.found, self.budget)]
        return sorted(found, key=lambda each: each.question.work)

    def _canonical(self, question: Question) -> Tensor | None:
        """The right answer, computed in the form of the found one; None where it has another."""
        found = question.found
        codes = [-1] * (found.size * found.format.words)
        try:
            for place, code in answer(question.call, CANON, self.budget, found.shape, found.dtype):
                codes[place] = code
            return Tensor.from_words(found.dtype, found.shape, codes)
        except (*NO_MEANING, OverflowError, MalformedTensor):
            return None

    # Words

    def _told(self, explained: Explained) -> Diagnosis:
        hypothesis, questions = explained.hypotheses[0], explained.questions
        dtypes = sorted({each.question.call.dtype for each in questions})
        right = sorted({ACCUMULATORS.get(dtype, dtype) for dtype in dtypes})
        used = hypothesis.departure.accumulator
        words = {
            "accumulator": used if used and used != OWN else right[0] if len(right) == 1 else "the accumulator type",
            "right_accumulator": right[0] if len(right) == 1 else "the accumulator type of the operands",
        }
        others = [each for each in explained.hypotheses[1:] if _is_other(each.departure, hypothesis.departure)]
        also = f" (or {others[0].says.format(**words)})" if others else ""
        says, advice = hypothesis.says.format(**words), hypothesis.advice.format(**words)
        cases = sorted({*_cases_of(questions), *explained.more})
        of_dtypes = "" if len(cases) == self.failing else f"{', '.join(dtypes)}: "
        sentence = f"{of_dtypes}{hypothesis.verb}{says}{also}; {advice}"
        found = self._diagnosis(hypothesis.name, sentence, hypothesis.clause, questions, cases, explained.evidence)
        return replace(found, says=f"{sentence} ({found.clauses[0]})")

    def _of_forms(self, questions: Sequence[Compared]) -> Diagnosis:
        """Results of another dtype or shape."""
        first = min(questions, key=lambda each: each.question.work)
        found, right = first.question.found, first.right
        same_shape = all(each.question.found.shape == each.right.shape for each in questions)
        what = "dtype" if same_shape else "shape"
        example = f"{found.dtype}{list(found.shape)} for {right.dtype}{list(right.shape)}"
        says = f"the result has another {what}, such as {example}"
        return self._diagnosis(f"other_{what}", says, ONE_ROUNDING, questions)

    def _faint(self, questions: Sequence[Compared]) -> Diagnosis:
        """Cases that hypotheses fit, of which too few bits differ from the right ones to tell one."""
        fitting = [each.name for each in singles(self.operation) if all(one.fits(each.departure) for one in questions)]
        which = f" (what fits: {', '.join(fitting[:3])})" if fitting else ""
        return self._diagnosis("", f"too few elements differ to name a cause{which}", ONE_ROUNDING, questions)

    def _undiagnosed(self, questions: Sequence[Compared], gave_up: bool) -> Diagnosis:
        differing = [(each.question.call, each.question.found, each.right) for each in questions]
        where = description(differing)
        if within_bounds(differing):
            where += "; every answer is within its bound at the level fast, which can be claimed"
        end = f"; the diagnosis gave up after {self.budget.taken:,} steps" if gave_up else ""
        if (near := nearest(self.operation, questions)) is not None:
            end = f"; {near.hypotheses[0].name} fits {len(_cases_of(near.questions))} of them{end}"
        return self._diagnosis("", f"nothing in the catalogue has all these bits{where}{end}", ONE_ROUNDING, questions)

    def _diagnosis(
        self,
        name: str,
        says: str,
        clause: str,
        questions: Sequence[Compared],
        cases: Sequence[str] = (),
        evidence: int = 0,
    ) -> Diagnosis:
        clauses = self._clauses(clause, questions)
        return Diagnosis(
            self.operation, name, says, clauses, tuple(cases or _cases_of(questions)), self.failing, evidence
        )

    def _clauses(self, clause: str, questions: Sequence[Compared]) -> tuple[str, ...]:
        """The clause of a diagnosis, and those of its cases, most frequent first."""
        counted = Counter(name for each in questions for name in each.question.clauses)
        tagged = [name for name, _ in counted.most_common()]
        if clause not in (*ACROSS_OPERATIONS, *tagged):
            return tuple(tagged) or (clause,)
        if clause == ACCUMULATION and self.operation in PRODUCTS:
            clause = GEMM
        return tuple(dict.fromkeys([clause, *tagged]))


def _is_other(one: Departure, told: Departure) -> bool:
    """True if a departure that fits as well is another cause: not an order beside an order, nor the same and more."""
    if one.changed == told.changed:
        return one.changed <= {"accumulator", "operands", "through"}
    return not told.changed <= one.changed


def _cases_of(questions: Sequence[Compared]) -> list[str]:
    return sorted({each.question.case for each in questions})
