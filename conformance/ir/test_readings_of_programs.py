"""Programs that the texts leave open: each means what the decision says, or what a listed alternative says."""

import pytest

from tessera_conformance.chapters.ir.kit.open_programs import QUESTIONS, judge
from tessera_conformance.marks import clause, title


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(
            question, id=name, marks=[clause(*question.clauses), title(f"{question.about} ({question.interpretation})")]
        )
        for name, question in QUESTIONS.items()
    ],
)
def test_an_open_program_means_what_the_decision_says(impl, check, question):
    """Its values or its refusal are the decision's; those of a listed alternative are another reading."""
    judge(impl, check, question)
