"""The generator as hypothesis strategies: the same programs, shrunk."""

from __future__ import annotations

from hypothesis import HealthCheck, find, given, settings

from tessera_conformance.fuzz import KINDS, GeneratedProgram, Trial, programs, trials

QUICK = settings(
    max_examples=60, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)


@QUICK
@given(programs())
def test_programs_are_drawn(program: GeneratedProgram) -> None:
    assert "module" in program.source
    assert program.declared[0][1]


@QUICK
@given(trials(kinds=("illegal",)))
def test_trials_of_a_kind_are_drawn(trial: Trial) -> None:
    assert trial.kind == "illegal"
    assert trial.categories
    assert "illegal" in KINDS


def test_what_is_found_is_small() -> None:
    found = find(programs(), lambda program: "barrier" in program.source, settings=settings(QUICK, max_examples=300))
    assert len(found.source) < 200
