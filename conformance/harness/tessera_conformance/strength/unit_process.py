"""The process that judges a unit of violators, after it has collected the suite."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tessera_conformance.cases import clauses_directory
from tessera_conformance.executor.answers import AnswerWriter, do_unit
from tessera_conformance.registry import load_registry
from tessera_conformance.strength.matrix import Trial, suite_of
from tessera_conformance.strength.violation import load_violations
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import load_adapter


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
