"""The table of illegal programs as cases of the suite: one test function a phase, one case for each program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tessera_conformance.check import Check
from tessera_conformance.marks import clause, feature, title
from tessera_conformance.protocol import Returned
from tessera_conformance.session import Implementation

from .rejections import Rejection, load

__all__ = ["judge", "rejected"]

SYNTACTIC = ("lex", "parse")


def rejected(phase: str) -> Callable[[Any], Any]:
    """Parametrize a test over the programs of a phase: clauses, features and title come from each."""
    return pytest.mark.parametrize(
        "rejection",
        [
            pytest.param(
                entry,
                id=entry.id,
                marks=[clause(*entry.clauses), feature(*entry.features), title(entry.about)],
            )
            for entry in load(phase)
        ],
    )


def judge(impl: Implementation, check: Check, rejection: Rejection) -> None:
    """Check that the twin is accepted, and the program itself refused with a right category."""
    language = impl.language
    if rejection.phase in SYNTACTIC:
        check.accepts(language.parse(source=rejection.legal))
        check.rejects(language.parse(source=rejection.illegal), category=rejection.categories, phase=SYNTACTIC)
        return
    check.accepts(language.verify(source=rejection.legal))
    observation = language.verify(source=rejection.illegal)
    if rejection.late:
        check.returns(language.execute(source=rejection.legal, function="f", inputs={}))
        if isinstance(observation, Returned):
            observation = language.execute(source=rejection.illegal, function="f", inputs={})
    check.rejects(observation, category=rejection.categories)
