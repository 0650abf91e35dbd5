"""Cases whose inputs follow from the seed of the run, and whose answers the oracle computes when they run.

The answers of frozen vectors are public; those of a new seed are not.
"""

from __future__ import annotations

from tessera_conformance.check import Check
from tessera_conformance.fuzz.tree import Chooser, SeededChooser
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import Question, counted
from tessera_conformance.vectors.files import Provenance, Vector
from tessera_conformance.vectors.judging import judge


def chooser_of(impl: Implementation, case: str) -> Chooser:
    """Return the decisions of a case: the same for the same seed on every machine."""
    return SeededChooser(f"{impl.seed}/{case}")


def numbers(choose: Chooser, dtype: str, *shape: int, exponents: tuple[int, int] = (-6, 6)) -> Tensor:
    """Return a tensor of drawn elements; floats have exponents of a range."""
    return counted(dtype, shape, choose.below(1 << 30), exponents)


def judge_question(impl: Implementation, check: Check, question: Question) -> None:
    """Ask a question, and judge the answer at the level of the run by that of the oracle."""
    expected = question.check.answers(question.call.inputs)
    asked = Vector(
        "drawn", "", question.clauses, "", question.call, expected, Provenance("", question.check), question.features
    )
    judge(impl, check, asked)
