"""Cases with random values: inputs drawn from the run's seed, or values drawn by hypothesis, which shrinks them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from tessera_conformance.check import Check, CheckFailed, Unanswered
from tessera_conformance.fuzz.tree import Chooser, seeded
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
    return seeded(f"{impl.seed}/{case}")


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


# The generator as a hypothesis strategy, which shrinks; and cases whose first failure is shrunk, and which report the
# smallest.


T = TypeVar("T")


@st.composite
def drawn(draw: st.DrawFn, make: Callable[[Chooser], T]) -> T:
    """Return values that are made of decisions that hypothesis draws."""
    return make(Chooser(lambda bound: draw(st.integers(0, bound - 1))))


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

    bounded = settings(
        max_examples=examples,
        phases=(Phase.generate, Phase.shrink),
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with suppress(CheckFailed, Flaky):
        seed(number)(bounded(given(drawn(make))(one)))()
    if missing:
        raise missing[0]
    if failures:
        raise failures[-1]
