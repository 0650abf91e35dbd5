"""`tessera-conformance strength --mutants N`: sample mutants of the control's code, and say which survive."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from tessera_conformance.adapter import Adapter
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.registry import Registry
from tessera_conformance.strength import processes
from tessera_conformance.strength.loading import load_whole
from tessera_conformance.strength.mutants.equivalent import read_equivalents, stale
from tessera_conformance.strength.mutants.executed import executions
from tessera_conformance.strength.mutants.killers import read_killers
from tessera_conformance.strength.mutants.report import as_json, markdown, survivors, text
from tessera_conformance.strength.mutants.sites import Mutant, mutants_of, sample
from tessera_conformance.strength.mutants.trial import Result, Trials
from tessera_conformance.terminal.errors import print_error
from tessera_conformance.transports.locate import load_adapter

__all__ = ["configure_mutants", "judge_mutants", "mutants_in_rooms"]

ROOMS = "numerics,ir,graph,language,runtime,abi"
PATIENCE = 600.0
"""Seconds for a mutant: its calls have deadlines of their own."""


def configure_mutants(parser: argparse.ArgumentParser) -> None:
    """The options of `strength` for mutants."""
    group = parser.add_argument_group("mutants", "changes of the control's own code, made by rule")
    group.add_argument("--mutants", type=int, metavar="N", help="judge so many mutants instead of the violators")
    group.add_argument("--seed", type=int, default=0, help="which are sampled (0)")
    group.add_argument("--rooms", default=ROOMS, metavar="NAMES", help=f"packages of the control ({ROOMS})")
    most_help = "cases of each kind, of the module's clauses and others, before a mutant counts as survived (60)"
    group.add_argument("--most", type=int, default=60, metavar="N", help=most_help)
    equivalents_help = "TOML, or a folder of it: mutants that no case can tell, and why"
    group.add_argument("--equivalents", type=Path, metavar="FILE", help=equivalents_help)


def mutants_in_rooms(arguments: argparse.Namespace) -> list[Mutant]:
    """Every mutant of the packages that the options name. Raises `ValueError` where the control has no such package.

    The control is loaded whole, so that the process of each mutant has it and need not import it.
    """
    control = load_adapter(arguments.control)
    load_whole(control)
    package = type(control).__module__.partition(".")[0]
    return mutants_of(package, arguments.rooms.split(","))


def judge_mutants(
    arguments: argparse.Namespace, every: Sequence[Mutant], suite: CollectedSuite, registry: Registry
) -> int:
    """0 where every mutant is killed or explained, 1 where one survives, 2 where it cannot be run."""
    try:
        equivalents = {} if arguments.equivalents is None else read_equivalents(arguments.equivalents)
        known = {} if arguments.known is None else read_killers(arguments.known)
    except ValueError as error:
        print_error(error)
        return 2
    chosen = [each for each in sample(every, arguments.mutants, arguments.seed) if (arguments.only or "") in each.name]
    jobs = arguments.jobs or processes.available()

    def control() -> Adapter:
        return load_adapter(arguments.control)

    executed = executions(suite.items, registry, control, {each.reached for each in chosen}, jobs)
    trials = Trials(suite.items, registry, control, executed, arguments.most, known)
    output = Path(os.devnull) if arguments.output is None else arguments.output / "mutants.jsonl"
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("w", encoding="utf-8") as journal:
        judged = _judged(trials, chosen, jobs, journal)
    print(text(judged, equivalents))
    for entry in stale(equivalents, every):
        print(f"  speaks of no mutant (the code has changed): {entry}")
    if arguments.output is not None:
        document = json.dumps(as_json(judged, equivalents, arguments.seed), indent=1) + "\n"
        (arguments.output / "mutants.json").write_text(document, encoding="utf-8")
        (arguments.output / "mutants.md").write_text(markdown(judged, equivalents, arguments.seed), encoding="utf-8")
    return 1 if survivors(judged, equivalents) else 0


def _judged(trials: Trials, chosen: Sequence[Mutant], jobs: int, journal: TextIO) -> list[tuple[Mutant, Result]]:
    """Every mutant with what became of it, which is also written down at once; one whose process dies is caught."""
    found: dict[int, Result] = {}
    for place, ended in processes.isolated(jobs, trials.judge, chosen, PATIENCE):
        found[place] = ended or Result("killed", "", "crash")
        journal.write(json.dumps({"name": chosen[place].name} | asdict(found[place])) + "\n")
        journal.flush()
    return [(mutant, found[place]) for place, mutant in enumerate(chosen)]
