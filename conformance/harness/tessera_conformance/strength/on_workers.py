"""The violators of a kill matrix, spread over the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from tessera_conformance.executor.cases import seconds_of_case
from tessera_conformance.executor.engine import Engine, Lost, units_of
from tessera_conformance.plugin import CASE
from tessera_conformance.strength.matrix import Fate, Judged, Trial
from tessera_conformance.strength.violation import Violation

MODULE = "tessera_conformance.strength.unit_process"
LEAST_SECONDS = 20.0
"""The least seconds of a unit: its process collects the suite."""
MOST_OF_ONE = 3.0
"""Seconds of a violator: it is caught before all cases of its clause have run."""


def judge_on_workers(engine: Engine, trial: Trial, violations: Sequence[Violation], least: float) -> list[Judged]:
    """Return the fate of each violation, in order.

    One of which the process died is only crashed; one that no worker could judge is untold, which fails the run.

    Raises:
        ExecutorUnavailable: a worker that came later is not like this machine.
        ExecutorLost: the scheduler went away, or all workers did.
    """
    by_name = {violation.name: violation for violation in violations}

    def seconds(name: str) -> float:
        cases = [item.stash[CASE].id for item in trial.tagged(by_name[name])]
        return min(sum(map(seconds_of_case, cases)), MOST_OF_ONE)

    judged: dict[str, Judged] = {}
    for name, result in engine.results(units_of(list(by_name), seconds, engine.slots, least)):
        if isinstance(result, Lost):
            judged[name] = _lost(trial, by_name[name], result)
        else:
            (fate, killers, tagged, level), failures = result
            judged[name] = (fate, tuple(killers), tagged, level), failures
    return [judged[name] for name in by_name]


def _lost(trial: Trial, violation: Violation, lost: Lost) -> Judged:
    failures = [] if lost.by_task else [f"{violation.name}, which was not judged: {lost.reason}"]
    fate: Fate = "killed_by_fault" if lost.by_task else "survived"
    return (fate, (), len(trial.tagged(violation)), violation.level or "strict"), failures
