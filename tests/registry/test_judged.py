"""What a case judges, from the checks that ran, and which clauses it carries."""

from __future__ import annotations

import pytest

from tessera_conformance.check import Check
from tessera_conformance.observations import Rejected, Returned
from tessera_conformance.registry.model import carries, judged_by_checks

REFUSED = Rejected("TESS_ERR_INVALID_VALUE", "call", "no")


@pytest.mark.parametrize(
    ("kinds", "judged"),
    [
        (["returns", "equal"], ["effect"]),
        (["returns", "bits", "true"], ["effect"]),
        (["within"], ["effect"]),
        (["returns", "true"], ["effect"]),
        (["accepts"], ["acceptance"]),
        (["returns"], ["acceptance"]),
        (["accepts", "rejects"], ["acceptance", "refusal"]),
        (["returns", "status"], ["refusal"]),
        (["returns", "status", "true"], ["refusal"]),
        (["rejects", "true"], ["refusal"]),
        (["returns", "status", "equal"], ["effect", "refusal"]),
        (["given", "returns", "status"], ["refusal"]),
        (["given"], []),
        ([], []),
    ],
)
def test_it_follows_from_the_kinds_of_checks(kinds: list[str], judged: list[str]) -> None:
    assert list(judged_by_checks(kinds)) == judged


@pytest.mark.parametrize(
    ("judged", "mains"),
    [
        (["effect"], ["effect", "acceptance"]),
        (["acceptance"], ["acceptance"]),
        (["refusal"], ["refusal"]),
        (["acceptance", "refusal"], ["acceptance", "refusal"]),
        ([], []),
    ],
)
def test_what_had_an_effect_was_accepted_and_nothing_else_stands_for_another(
    judged: list[str], mains: list[str]
) -> None:
    assert [main for main in ("effect", "acceptance", "refusal") if carries(judged, main)] == mains


def test_a_refused_argument_after_a_legal_call_judges_a_refusal_alone() -> None:
    check = Check()
    check.given(True, "the machine has 2 devices")
    check.returns(Returned({"stream": 1}))
    check.status(REFUSED, "TESS_ERR_INVALID_VALUE")
    check.true("no" in REFUSED.message, "the message says why")
    assert judged_by_checks(record.kind for record in check.records) == ("refusal",)


def test_a_legal_program_beside_an_illegal_one_judges_both() -> None:
    check = Check()
    check.accepts(Returned({}))
    check.rejects(REFUSED, category="TESS_ERR_INVALID_VALUE")
    assert judged_by_checks(record.kind for record in check.records) == ("acceptance", "refusal")
