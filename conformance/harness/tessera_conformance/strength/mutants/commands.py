"""`tessera-conformance strength --mutants N`: samples mutants of the control's code, and says which survive."""

from __future__ import annotations

import argparse
import json
import os
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from tessera_conformance.adapter import Adapter
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.registry import Registry
from tessera_conformance.strength import processes
from tessera_conformance.strength.mutants.sites import Mutant, mutants_of, sample
from tessera_conformance.strength.mutants.trial import Result, Trials, executions
from tessera_conformance.strength.violation import load_whole
from tessera_conformance.terminal.errors import print_error
from tessera_conformance.transports.locate import load_adapter

# Mutants that no case can tell, each with the reason: they stand in files that people wrote.


def read_equivalents(path: Path) -> Mapping[str, str]:
    """The reasons, of a file or of every `.toml` file of a folder.

    An entry speaks of one mutant (`name`, and what its place `becomes`), of every mutant of a `function` whose result
    no case may judge, such as a diagnostic's words, or of every mutant of a `module` of which no case can ask.

    Raises:
        ValueError: the file is no TOML, or an entry lacks what it speaks of or its reason.
    """
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    return {about: reason for file in files for about, reason in _entries(file)}


def _entries(file: Path) -> Iterable[tuple[str, str]]:
    try:
        entries = tomllib.loads(file.read_text(encoding="utf-8")).get("mutant", [])
    except (OSError, ValueError) as error:
        raise ValueError(f"{file.name}: {error}") from None
    for number, entry in enumerate(entries, 1):
        about = next(([kind] for kind in ("function", "module") if kind in entry), ["name", "becomes"])
        missing = [name for name in (*about, "reason") if not entry.get(name)]
        if missing:
            raise ValueError(f"{file.name}: entry {number} lacks {', '.join(missing)}")
        yield " ".join(entry[name] for name in about), entry["reason"]


def explained(mutant: Mutant, equivalents: Mapping[str, str]) -> bool:
    """Whether an entry speaks of it."""
    return not equivalents.keys().isdisjoint(_known_by(mutant))


def stale(equivalents: Mapping[str, str], mutants: Iterable[Mutant]) -> Sequence[str]:
    """Entries that speak of no mutant: the code has changed since they were written."""
    known = {name for mutant in mutants for name in _known_by(mutant)}
    return [entry for entry in equivalents if entry not in known]


def _known_by(mutant: Mutant) -> tuple[str, str, str]:
    """What entries call it: a place that has become something else since is another mutant."""
    function = mutant.name.partition("/")[0]
    becomes = " ".join(mutant.change.after.split())
    return f"{mutant.name} {becomes}", function, mutant.module.partition(".")[2]


# The journal of an earlier run of mutants, a line each: by it, what caught a mutant comes first.


def read_killers(path: Path) -> Mapping[str, str]:
    """The case that caught a mutant, by the mutant's name.

    Raises:
        ValueError: the file cannot be read, or a line is no object with `name` and `killer`.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name}: {error}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            found[entry["name"]] = entry["killer"]
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"{path.name}, line {number}: no object with name and killer") from None
    return found


# The result of a run of mutants, for the terminal, for people and for programs.


Judged = Sequence[tuple[Mutant, Result]]


def survivors(judged: Judged, equivalents: Mapping[str, str]) -> list[tuple[Mutant, Result]]:
    """Mutants that nothing caught and nobody explains."""
    return [
        (mutant, result)
        for mutant, result in judged
        if result.fate in ("survived", "not executed") and not explained(mutant, equivalents)
    ]


def share_killed(judged: Judged, equivalents: Mapping[str, str]) -> float:
    """The share of mutants that are killed or explained, from 0 to 1."""
    counted = [each for each in judged if each[1].fate != "not installed"]
    return 1 - len(survivors(counted, equivalents)) / len(counted) if counted else 0.0


def text(judged: Judged, equivalents: Mapping[str, str]) -> str:
    """The figure of each room, and every survivor."""
    lines = [
        f"{room:10} {figures['mutants']:5} mutants  {figures['killed']:5} killed ({figures['near']} near)  "
        f"{figures['explained']:4} explained  {figures['survived']:4} survived  "
        f"{figures['not executed']:4} not executed  {100 * figures['share']:.1f} %"
        for room, figures in _figures(judged, equivalents).items()
    ]
    lines += [
        f"  {result.fate}: {mutant.name} {mutant.description}" for mutant, result in survivors(judged, equivalents)
    ]
    return "\n".join(lines)


def as_json(judged: Judged, equivalents: Mapping[str, str], seed: int) -> dict[str, Any]:
    """The figures, and every mutant that survived."""
    return {
        "format": 1,
        "seed": seed,
        "rooms": {room: dict(figures) for room, figures in _figures(judged, equivalents).items()},
        "survivors": [
            {
                "name": mutant.name,
                "line": mutant.change.line,
                "before": mutant.change.before,
                "after": mutant.change.after,
            }
            | {"fate": result.fate, "cases": result.cases}
            for mutant, result in survivors(judged, equivalents)
        ],
    }


def markdown(judged: Judged, equivalents: Mapping[str, str], seed: int) -> str:
    """The figures by room, and the survivors."""
    rows = [
        f"| {room} | {figures['mutants']} | {figures['killed']} | {figures['near']} | {figures['explained']} | "
        f"{figures['survived']} | {figures['not executed']} | {100 * figures['share']:.1f} % |"
        for room, figures in _figures(judged, equivalents).items()
    ]
    left = [f"- `{mutant.name}`, {mutant.description}" for mutant, _ in survivors(judged, equivalents)]
    head = "| room | mutants | killed | by cases of the module's clauses | explained | survived | not executed |"
    return "\n".join(
        [
            "# Mutants",
            "",
            f"Changes of the reference by rule, sampled by seed {seed}, each against the cases that execute it.",
            "",
            f"{head} killed or explained |",
            "|---|---:|---:|---:|---:|---:|---:|---:|",
            *rows,
            "",
            "Survivors:",
            "",
            *(left or ["none"]),
            "",
        ]
    )


def _figures(judged: Judged, equivalents: Mapping[str, str]) -> Mapping[str, Mapping[str, Any]]:
    """By room, and for all of them together."""
    rooms = {mutant.room: [pair for pair in judged if pair[0].room == mutant.room] for mutant, _ in judged}
    return {room: _counted(pairs, equivalents) for room, pairs in {**rooms, "all": list(judged)}.items()}


def _counted(judged: Judged, equivalents: Mapping[str, str]) -> Mapping[str, Any]:
    left = Counter(result.fate for _, result in survivors(judged, equivalents))
    fates = Counter(result.fate for _, result in judged)
    total = len(judged) - fates["not installed"]
    return {
        "mutants": total,
        "killed": fates["killed"],
        "near": sum(result.near for _, result in judged),
        "explained": total - fates["killed"] - left["survived"] - left["not executed"],
        "survived": left["survived"],
        "not executed": left["not executed"],
        "share": round(share_killed(judged, equivalents), 4),
    }


# `tessera-conformance strength --mutants N`: sample mutants of the control's code, and say which survive.


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
