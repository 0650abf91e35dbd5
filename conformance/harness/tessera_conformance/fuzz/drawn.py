"""Cases with random values: inputs drawn from the run's seed, or values drawn by hypothesis, which shrinks them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from tessera_conformance.check import Check, CheckFailed, Unanswered
from tessera_conformance.fuzz.statements import GeneratedProgram, generate
from tessera_conformance.fuzz.tree import Chooser, SeededChooser
from tessera_conformance.fuzz.trials import KINDS, Kind, Trial, make_trial
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import Question, counted
from tessera_conformance.vectors.files import Provenance, Vector
from tessera_conformance.vectors.judging import judge

# Cases whose inputs follow from the seed of the run, and whose answers the oracle computes during the run.
#
# The answers of frozen vectors are public; those of a new seed are not.


def chooser_of(impl: Implementation, case: str) -> Chooser:
    """Return the source of a case's decisions: the same for the same seed on every machine."""
    return SeededChooser(f"{impl.seed}/{case}")


def numbers(choose: Chooser, dtype: str, *shape: int, exponents: tuple[int, int] = (-6, 6)) -> Tensor:
    """Return a tensor of random elements; the exponents of floats are in a range."""
    return counted(dtype, shape, choose.below(1 << 30), exponents)


def judge_question(impl: Implementation, check: Check, question: Question) -> None:
    """Ask a question, and judge the answer by the oracle's at the level of the run."""
    expected = question.check.answers(question.call.inputs)
    asked = Vector(
        "drawn", "", question.clauses, "", question.call, expected, Provenance("", question.check), question.features
    )
    judge(impl, check, asked)


# The same generator as hypothesis strategies, which shrink: for the tests of a front end's own authors.


class DrawnChooser(Chooser):
    """Decisions that hypothesis draws."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        super().__init__()
        self._drawn = draw

    def _draw(self, bound: int) -> int:
        return self._drawn(st.integers(0, bound - 1))


@st.composite
def programs(draw: Any, features: Collection[str] = ()) -> GeneratedProgram:
    """Return legal programs of the core and the given features."""
    return generate(DrawnChooser(draw), features)


@st.composite
def trials(draw: Any, features: Collection[str] = (), kinds: Collection[Kind] = KINDS) -> Trial:
    """Return trials of the given kinds: legal programs, pairs of one meaning, illegal programs, mutated texts."""
    return make_trial(DrawnChooser(draw), features, kinds)


# Cases with random values: the first that fails is shrunk, and the case reports the smallest.


T = TypeVar("T")


def judge_each(
    check: Check, make: Callable[[Chooser], T], judge: Callable[[T], None], *, examples: int, number: int
) -> None:
    """Judge `examples` values of a generator, the same ones for the same `number`.

    The failed checks of larger values are removed. A missing answer ends the case: shrinking a crash would take a new
    process each time. An implementation that fails once and then passes has failed.
    """
    failures: list[CheckFailed] = []
    missing: list[Unanswered] = []
    before = 0

    def one(value: T) -> None:
        nonlocal before
        if missing:
            return
        if failures:
            del check.records[before:]
        before = len(check.records)
        try:
            judge(value)
        except CheckFailed as failed:
            failures.append(failed)
            raise
        except Unanswered as unanswered:
            missing.append(unanswered)

    @st.composite
    def values(draw: st.DrawFn) -> T:
        return make(DrawnChooser(draw))

    bounded = settings(
        max_examples=examples,
        phases=(Phase.generate, Phase.shrink),
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with suppress(CheckFailed, Flaky):
        seed(number)(bounded(given(values())(one)))()
    if missing:
        raise missing[0]
    if failures:
        raise failures[-1]
