"""An open program: what each listed alternative gives is another reading; what no reading gives fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tessera_conformance.chapters.ir.kit.open_programs import ACCEPTED, QUESTIONS, REFUSED, Meaning, Question, judge
from tessera_conformance.check import Check, CheckFailed, OtherReading
from tessera_conformance.dsl import tensor_of
from tessera_conformance.observations import Diagnostic, Rejected, Returned

OTHERS = [
    pytest.param(question, alternative, meaning, id=f"{name}-{alternative}")
    for name, question in QUESTIONS.items()
    for alternative, meaning in question.alternatives.items()
]


def answering(question: Question, meaning: Meaning, category: str) -> Any:
    """An implementation that knows the twin and the program, and gives the program one meaning."""
    refusal = Rejected(category, "verify", "no", (Diagnostic(category, "no", line=3),))

    def verify(source: str) -> Any:
        return refusal if meaning == REFUSED and source == question.source else Returned({"warnings": []})

    def execute(**given: Any) -> Any:
        return Returned({"outputs": [tensor_of("int8", 99)] if meaning == ACCEPTED else [*meaning]})

    return SimpleNamespace(language=SimpleNamespace(verify=verify, execute=execute), level="strict")


@pytest.mark.parametrize(("question", "alternative", "meaning"), OTHERS)
def test_an_alternative_is_another_reading(question: Question, alternative: str, meaning: Meaning) -> None:
    check = Check()
    with pytest.raises(OtherReading) as other:
        judge(answering(question, meaning, question.category[0]), check, question)
    assert other.value.interpretation == question.interpretation
    assert check.records[-1].actual == alternative


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_the_decision_passes(question: Question) -> None:
    judge(answering(question, question.decision, question.category[0]), Check(), question)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_what_no_reading_gives_fails(question: Question) -> None:
    """Other values, or a refusal for another reason."""
    meaning: Meaning = REFUSED if question.decision == REFUSED else [tensor_of("int8", 99)]
    with pytest.raises(CheckFailed):
        judge(answering(question, meaning, "schedule"), Check(), question)
