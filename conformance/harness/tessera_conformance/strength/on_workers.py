"""The violators of a kill matrix, spread over the workers of a cluster."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tessera_conformance.cases import clauses_directory
from tessera_conformance.executor.answers import AnswerWriter, do_unit
from tessera_conformance.executor.cases import seconds_of_case
from tessera_conformance.executor.engine import Engine, Lost, units_of
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import load_registry
from tessera_conformance.strength.matrix import Fate, Judged, Trial, suite_of
from tessera_conformance.strength.violation import Violation, load_violations
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import load_adapter

MODULE = "tessera_conformance.strength.on_workers"
LEAST_SECONDS = 20.0
"""The least seconds of a unit: its process collects the suite."""
MOST_OF_ONE = 3.0
"""Seconds of a violator: it is caught before all cases of its clause have run."""


def judge_on_workers(engine: Engine, trial: Trial, violations: Sequence[Violation], least: float) -> list[Judged]:
    """Return the fate of each violation, in order.

    One of which the process died is only crashed; one that no worker could judge is untold, which fails the run.

    Raises `ExecutorUnavailable`: a worker that came later is not like this machine; or `ExecutorLost`: the scheduler
    went away, or all workers did.
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


# The process that judges a unit of violators, after it has collected the suite.


def judge(settings: Mapping[str, Any], names: Sequence[str], answers: AnswerWriter) -> None:
    """Judge the violators of these names; without any, only look whether they and their control are here."""
    folder = settings["violators"] and Path(settings["violators"])
    if folder and not folder.is_dir():
        answers.refuses(f"has no folder {folder}, where the violators are")
        return
    violations = {violation.name: violation for violation in load_violations(folder)}
    try:
        load_adapter(settings["control"])
    except ImplementationUnavailable as error:
        answers.refuses(str(error))
        return
    for name in names:
        missing = violations[name].missing if name in violations else "there is none of that name"
        if missing:
            answers.refuses(f"cannot run the violator {name}: {missing}")
            return
    if not names:
        return
    registry, control = load_registry(clauses_directory()), settings["control"]
    suite = suite_of(settings["cases"])
    trial = Trial(suite.items, registry, lambda: load_adapter(control), settings["thorough"], settings["known"])
    for name in names:
        answers.begins(name)
        answers.gives(name, trial.judge(violations[name]))


if __name__ == "__main__":
    sys.exit(do_unit(judge))
