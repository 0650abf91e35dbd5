"""The search for hypotheses: which departures give the observed answers of an operation's failing questions.

First those that fit every question, then those that fit every question of a pair of dtypes, then two departures at
once, then those that fit most of what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TypeAlias

from tessera_conformance.diagnosis.catalogue import ANY, APPROXIMATION, ELEMENTARY, SHAPES, TILES, Hypothesis, catalogue
from tessera_conformance.diagnosis.departure import CANON, Budget, Departure, GaveUp, accumulator_of
from tessera_conformance.diagnosis.evidence import (
    FEWEST_BITS,
    FEWEST_BITS_OF_SOME,
    FEWEST_BITS_OF_TWO,
    bits_between,
    codes_of,
    is_special,
    lies_beyond,
    steps_between,
)
from tessera_conformance.diagnosis.kernels import answer
from tessera_conformance.diagnosis.questions import Long, Question
from tessera_conformance.oracle.formats import ACCUMULATORS, COMPONENTS, FORMATS, FloatFormat
from tessera_conformance.tensors import Tensor

FEWEST_OF_REST = 2
"""Cases that a hypothesis has to explain where it does not explain all of a pair of dtypes."""
NEARLY_ALL = 0.9
"""The share of the cases of a pair of dtypes that several hypotheses have to explain together."""
MOST_ULPS = 4
"""An elementary function is approximate up to so many units in the last place, and wrong beyond."""
MOST_RANKED, MOST_PASSING = 8, 24
"""So many hypotheses that fit alike are held against so many cases that pass."""
LONGEST = 8192
"""Elements of an answer that is computed for its hash."""
NO_MEANING = (ArithmeticError, ValueError, LookupError, TypeError, AssertionError)
"""The exceptions of a kernel where a departure has no meaning for the operands."""


@dataclass(eq=False)
class Compared:
    """A question beside its right answer, as codes."""

    question: Question
    right: Tensor
    budget: Budget
    _fits: dict[Departure, bool] = field(default_factory=dict)

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

    def differing(self) -> Iterator[tuple[int, int, int]]:
        """The observed and the right code of each element that differs, and how many bits of evidence it has."""
        for found, right in zip(self.found_codes, self.right_codes, strict=True):
            if found != right:
                yield found, right, bits_between(found, right, self.right.dtype)

    @cached_property
    def bits(self) -> int:
        """The evidence of all elements."""
        return sum(bits for _, _, bits in self.differing())

    @property
    def has_fit(self) -> bool:
        """True if some hypothesis has been found to give the observed answer."""
        return any(self._fits.values())

    def fits(self, departure: Departure) -> bool:
        """True if the departure gives the observed answer in every bit."""
        if departure not in self._fits:
            self._fits[departure] = self._compare(departure)
        return self._fits[departure]

    def known_to_fit(self, departure: Departure) -> bool:
        """True if the search has found that the departure fits."""
        return self._fits.get(departure, False)

    def _compare(self, departure: Departure) -> bool:
        seen = 0
        try:
            for place, code in answer(self.question.call, departure, self.budget, self.right.shape, self.right.dtype):
                if code != self.found_codes[place]:
                    return False
                seen += 1
        except NO_MEANING:
            return False
        return seen == len(self.right_codes)


Passing: TypeAlias = Callable[[], Sequence[Compared]]
"""The questions of an operation that were answered rightly, those with the least work first."""


@dataclass(frozen=True, eq=False)
class Explained:
    """Questions and the hypotheses that fit all of them, the first the simplest.

    A hypothesis that fits is the observed answer, so all have the same evidence.
    """

    questions: Sequence[Compared]
    hypotheses: Sequence[Hypothesis]
    more: tuple[str, ...] = ()
    """Further cases, whose answers are known by their hash."""

    @property
    def evidence(self) -> int:
        """The bits that tell the answers from the right ones."""
        return sum(each.bits for each in self.questions)


@cache
def singles(operation: str) -> Sequence[Hypothesis]:
    """The hypotheses of the catalogue about an operation."""
    return [each for each in catalogue() if each.applies(operation)]


@cache
def _pairs(operation: str) -> Sequence[Hypothesis]:
    """Two departures at once: an order or an accumulator with anything else."""
    kinds = {"order", "start", "accumulator", "product"}
    firsts = [each for each in singles(operation) if each.departure.changed <= kinds]
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

    Where some pair of dtypes is left unexplained, the others count only with more evidence: another cause may look like
    a known one in few elements.
    """
    if not questions:
        return []
    if fitting := _fitting(singles(operation), questions, FEWEST_BITS):
        return [Explained(questions, _ranked(fitting, questions, passing))]
    if seen := without_departure(operation, questions):
        return [Explained(questions, [seen])]
    grouped: dict[tuple[str, str], list[Compared]] = {}
    for each in questions:
        grouped.setdefault(each.group, []).append(each)
    groups = [Explained(group, _fitting(singles(operation), group, 1)) for group in grouped.values()]
    explained = [*_covered(groups)]
    try:
        for group in [each.questions for each in groups if not each.hypotheses]:
            explained += _of_group(operation, group)
    except GaveUp:
        pass  # what has been found is told, with more evidence
    some = sum(len(each.questions) for each in explained) < len(questions)
    return [
        Explained(each.questions, _ranked(each.hypotheses, each.questions, passing))
        for each in explained
        if not some or each.hypotheses[0].departure == CANON or each.evidence >= FEWEST_BITS_OF_SOME
    ]


def _ranked(hypotheses: Sequence[Hypothesis], questions: Sequence[Compared], passing: Passing) -> Sequence[Hypothesis]:
    """Hypotheses that fit alike: first those that give the right answers of cases that pass, then simple ones."""
    ranked = sorted(hypotheses, key=lambda each: len(each.departure.changed))
    if len(ranked) < 2:
        return ranked
    groups = {each.group for each in questions}
    right = [each for each in passing() if each.group in groups][:MOST_PASSING]
    try:
        wrong = {each: sum(not one.fits(each.departure) for one in right) for each in ranked[:MOST_RANKED]}
    except GaveUp:
        return ranked
    return sorted(ranked, key=lambda each: wrong.get(each, len(right)))


def _of_group(operation: str, questions: Sequence[Compared]) -> Sequence[Explained]:
    """Return explanations of the questions of a pair of dtypes that no single hypothesis fits."""
    if seen := without_departure(operation, questions):
        return [Explained(questions, [seen])]
    parts = [*_parts(singles(operation), questions)]
    if sum(len(each.questions) for each in parts) >= NEARLY_ALL * len(questions):
        return parts
    fitting = _fitting(_pairs(operation), questions, FEWEST_BITS_OF_TWO)
    return [Explained(questions, fitting)] if fitting else []


def _covered(groups: Sequence[Explained]) -> Iterator[Explained]:
    """Groups by the hypothesis that fits most of them, then by that which fits most of the rest.

    A group that few bits tell from the right answer counts with the others that the same hypothesis fits.
    """
    rest = list(groups)
    while True:
        taken: dict[Hypothesis, list[Explained]] = {}
        for group in rest:
            for each in group.hypotheses:
                taken.setdefault(each, []).append(group)
        enough = {
            each: own for each, own in taken.items() if Explained(_questions(own), [each]).evidence >= FEWEST_BITS
        }
        if not enough:
            return
        most = max(map(len, enough.values()))
        best = next(own for own in enough.values() if len(own) == most)
        yield Explained(_questions(best), [each for each, own in enough.items() if own == best])
        rest = [group for group in rest if group not in best]


def _questions(groups: Sequence[Explained]) -> Sequence[Compared]:
    return [question for group in groups for question in group.questions]


def _fitting(hypotheses: Iterable[Hypothesis], questions: Sequence[Compared], fewest: int) -> Sequence[Hypothesis]:
    """The hypotheses that fit every question, and differ enough from the right answers."""
    dtypes = {each.question.call.dtype for each in questions}
    alive = [each for each in hypotheses if _is_meant(each, dtypes)]
    for question in questions:
        alive = [each for each in alive if question.fits(each.departure)]
    enough = Explained(questions, []).evidence >= fewest
    return [each for each in alive if enough and _is_seen_twice(each, questions)]


def _is_meant(hypothesis: Hypothesis, dtypes: set[str]) -> bool:
    """False where a hypothesis speaks of another dtype, or names the right accumulator of all."""
    departure = hypothesis.departure
    if hypothesis.only and dtypes != {hypothesis.only}:
        return False
    known = [each for each in dtypes if each in ACCUMULATORS]
    return not departure.accumulator or any(accumulator_of(each, departure) != ACCUMULATORS[each] for each in known)


def _is_seen_twice(hypothesis: Hypothesis, questions: Sequence[Compared]) -> bool:
    """False for a tail of which there is one only: the end of sorted operands is special without it."""
    return hypothesis.departure.tail is None or len(questions) > 1 or questions[0].right.shape[:-1] != ()


def _parts(hypotheses: Sequence[Hypothesis], questions: Sequence[Compared]) -> Iterator[Explained]:
    """The hypothesis that fits most questions, then that which fits most of the rest."""
    rest = list(questions)
    while len(rest) >= FEWEST_OF_REST:
        best = Explained([], [])
        for each in hypotheses:
            meant = [one for one in rest if _is_meant(each, {one.question.call.dtype})]
            fitted = [one for one in meant if one.fits(each.departure)]
            candidate = Explained(fitted, [each])
            if len(fitted) > len(best.questions) and candidate.evidence >= FEWEST_BITS:
                best = candidate
        if len(best.questions) < FEWEST_OF_REST:
            return
        yield best
        rest = [one for one in rest if one not in best.questions]


def merged(explained: Sequence[Explained]) -> Iterator[Explained]:
    """Explanations of several dtypes by one hypothesis as one."""
    by_name: dict[str, list[Explained]] = {}
    for each in explained:
        by_name.setdefault(each.hypotheses[0].name, []).append(each)
    for several in by_name.values():
        shared = [one for one in several[0].hypotheses if all(one in each.hypotheses for each in several)]
        questions = [question for each in several for question in each.questions]
        yield Explained(questions, shared or several[0].hypotheses[:1])


def without_departure(operation: str, questions: Sequence[Compared]) -> Hypothesis | None:
    """Return a hypothesis seen in the answers alone: an approximate function, or a tile that is not written."""
    if Explained(questions, []).evidence < FEWEST_BITS:
        return None
    differing = [(found, right, each.right.dtype) for each in questions for found, right, _ in each.differing()]
    if operation in ELEMENTARY and not any(is_special(*each) for each in differing):
        ulps = max(steps_between(*each) for each in differing)
        if ulps <= MOST_ULPS:
            says = f"off by at most {ulps} ULP: an approximate {operation}"
            advice = f"declare an accuracy of {ulps} ULP at the level deterministic, or claim the level fast"
            return Hypothesis("approximate", ELEMENTARY, says, advice, APPROXIMATION, CANON, "elements are ")
    pairs = [(each.question.found, each.right) for each in questions]
    for size in TILES:
        if lies_beyond(size, pairs):
            says = f"wrong in every element beyond a multiple of {size} in the last axis, and only there"
            advice = "write the last, partial tile too"
            return Hypothesis(f"stale_tail_of_{size}", ANY, says, advice, SHAPES, CANON, "results are ")
    return None


def nearest(operation: str, questions: Sequence[Compared]) -> Explained | None:
    """The hypothesis that the search found to fit most of the questions, with enough evidence; None without one."""
    fitted = [(each, [one for one in questions if one.known_to_fit(each.departure)]) for each in singles(operation)]
    found = [Explained(own, [each]) for each, own in fitted if len(own) >= FEWEST_OF_REST]
    enough = [each for each in found if each.evidence >= FEWEST_BITS_OF_SOME]
    return max(enough, key=lambda each: len(each.questions), default=None)


def extended(operation: str, explained: Explained, late: Sequence[Compared], long: Sequence[Long]) -> Explained:
    """An explanation with the questions that take much work, and with those known by a hash, which it fits too."""
    hypothesis, questions, more = explained.hypotheses[0], list(explained.questions), list(explained.more)
    try:
        for each in late:
            if hypothesis.departure == CANON:
                seen = without_departure(operation, [*questions, each])
                fits = seen is not None and seen.name == hypothesis.name
            else:
                fits = each.fits(hypothesis.departure)
            questions += [each] if fits else []
        short = [each for each in long if each.right.size <= LONGEST]
        for question in short if questions and hypothesis.departure != CANON else ():
            budget = questions[0].budget
            if question.sha256 in _hashes(question, hypothesis.departure, budget):
                more.append(question.case)
    except GaveUp:
        pass
    return Explained(questions, explained.hypotheses, tuple(more))


def _hashes(question: Long, departure: Departure, budget: Budget) -> set[str]:
    """The hashes of what an implementation with this departure answers, NaN of either sign; none without a meaning."""
    right = question.right
    codes = right.words().tolist()
    try:
        for place, code in answer(question.call, departure, budget, right.shape, right.dtype):
            codes[place] = code
    except NO_MEANING:
        return set()
    form = FORMATS[COMPONENTS.get(right.dtype, right.dtype)]
    nan, sign = (form.nan_code, form.sign_bit) if isinstance(form, FloatFormat) else (-1, 0)
    signed = [code | sign if code == nan else code for code in codes]
    return {Tensor.from_words(right.dtype, right.shape, each).sha256 for each in (codes, signed)}
