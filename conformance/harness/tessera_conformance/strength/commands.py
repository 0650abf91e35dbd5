"""`tessera-conformance strength`: run the violators, publish the kill matrix, and run the legal variants."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from errno import EINVAL
from pathlib import Path
from typing import Any

from tessera_conformance.cases import SuiteNotCollected, clauses_directory, in_shard, parse_shard
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.documents import read_json
from tessera_conformance.executor.engine import Engine, ExecutorLost, ExecutorUnavailable
from tessera_conformance.options import add_executor
from tessera_conformance.protocol import Hello
from tessera_conformance.registry import Registry, RegistryError, load_registry
from tessera_conformance.registry.cases import cases_by_clause
from tessera_conformance.reports.summary import table
from tessera_conformance.strength import sharing
from tessera_conformance.strength.matrix import (
    Judged,
    Kill,
    KillMatrix,
    Trial,
    kill_matrix,
    suite_of,
    write_results,
)
from tessera_conformance.strength.mutants import chosen_mutants, configure_mutants, judge_mutants
from tessera_conformance.strength.variants import (
    SAMPLE,
    chosen_variants,
    configure_variants,
    put_variants,
    require_reach,
)
from tessera_conformance.strength.violation import Violation, load_violations
from tessera_conformance.suite_run import SuiteRun
from tessera_conformance.terminal import error_text, print_error
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import DirectTransport, load_adapter


def configure_strength(parser: argparse.ArgumentParser) -> None:
    """The command `strength`."""
    parser.add_argument("--control", default="reference", metavar="IMPL", help="what the violators are variants of")
    parser.add_argument("--only", metavar="TEXT", help="only violators or variants whose name or clause contains TEXT")
    parser.add_argument(
        "--cases", action="append", metavar="TEXT", help="only cases whose id contains TEXT; may be repeated"
    )
    shard_help = "every Nth violator and variant, the k-th of N parts by the digests of their names"
    parser.add_argument("--shard", metavar="k/N", help=shard_help)
    parser.add_argument("--violators", type=Path, metavar="DIR", help="a folder of them (default: the chapters')")
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="write kill-matrix.json and .md, or their kin, there"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="processes to share the work (all processors)")
    parser.add_argument("--thorough", action="store_true", help="name all cases that catch a violator")
    add_executor(parser.add_argument, sharing.LEAST_SECONDS)
    known_help = "a kill-matrix.json, or a mutants.jsonl: what caught a violator or a mutant comes first"
    parser.add_argument("--known", type=Path, metavar="FILE", help=known_help)
    configure_mutants(parser)
    configure_variants(parser)
    parser.set_defaults(handler=strength)


def strength(arguments: argparse.Namespace) -> int:
    """Return 0 if every violation is killed and every variant passes, 1 if one does not, 2 if they cannot be run.

    A whole run puts a sample of cases to the variants after the violators; `--variants` puts all of them.
    """
    try:
        instead = arguments.mutants is not None or arguments.variants is not None
        whole = not instead and all(option is None for option in (arguments.violators, arguments.only, arguments.cases))
        if arguments.executor and (arguments.jobs or instead):
            raise ValueError("--executor goes with none of --jobs, --mutants and --variants: they are of one machine")
        registry = load_registry(clauses_directory())
        load_adapter(arguments.control)
        mutants = [] if arguments.mutants is None else chosen_mutants(arguments)
        violations = [] if instead else load_violations(arguments.violators)
        chosen = [] if instead else _chosen(violations, arguments, registry)
        variants = chosen_variants(arguments, registry) if whole or arguments.variants is not None else []
        suite = suite_of(arguments.cases or [])
        for variant in variants if arguments.cases is None else ():
            require_reach(variant, suite.items)
    except (RegistryError, ImplementationUnavailable, SuiteNotCollected, ValueError) as error:
        print_error(error)
        return 2
    if arguments.variants is not None:
        return put_variants(arguments, variants, suite, registry)
    if arguments.mutants is not None:
        return judge_mutants(arguments, mutants, suite, registry)
    left_out = Counter(entry.missing for entry in chosen if entry.missing)
    for reason, count in left_out.items():
        print(f"{count} violators are left out: {reason}", file=sys.stderr)
    chosen = [entry for entry in chosen if not entry.missing]
    control = SuiteRun(DirectTransport(lambda: load_adapter(arguments.control), "control"), registry)
    lacking = _lacking(chosen, suite, control)
    for features, count in Counter(lacking.values()).items():
        print(f"{count} violators are not judged: needs {features}, which the control does not claim", file=sys.stderr)
    chosen = [entry for entry in chosen if entry.name not in lacking]
    if lacking and not chosen:
        print_error(
            error_text("strength", "no violator is left to judge", do="name a control that claims what they need")
        )
        return 2
    killers = {} if arguments.known is None else _killers(arguments.known)
    try:
        matrix = kill_matrix(
            suite,
            registry,
            chosen,
            lambda: load_adapter(arguments.control),
            arguments.thorough,
            killers,
            _judge_all(arguments, killers),
        )
    except (ExecutorUnavailable, ExecutorLost) as error:
        print_error(error)
        return 2
    print(text(matrix))
    if arguments.output is not None:
        page = markdown(matrix, registry, suite, {entry.clause for entry in violations})
        write_results(arguments.output, "kill-matrix", as_json(matrix), page)
    failed = bool(matrix.survivors or matrix.control_failures)
    if whole:
        failed |= bool(put_variants(arguments, variants, suite, registry, SAMPLE))
    return 1 if failed else 0


def _chosen(violations: Sequence[Violation], arguments: argparse.Namespace, registry: Registry) -> list[Violation]:
    """Return the violators that the options name. Raise `ValueError` if there are none or the shard is malformed."""
    for violation in violations:
        registry.clause(violation.clause)
    only = arguments.only or ""
    shard = parse_shard(arguments.shard or "1/1")
    named = [entry for entry in violations if only in entry.name or only in entry.clause]
    chosen = [entry for entry in named if in_shard(entry.name, shard)]
    if not chosen:
        raise ValueError(f"no violator's name or clause contains {only!r}" if not named else "the shard is empty")
    return chosen


def _lacking(violations: Sequence[Violation], suite: CollectedSuite, control: SuiteRun) -> dict[str, str]:
    """Return, by violator, the fewest features that a case of its clause needs and the control does not claim.

    Only violators whose clause has no case for the control are listed: no case of the clause could catch them.
    """
    hello = control.hello
    if not isinstance(hello, Hello):
        return {}
    index = suite.index()
    lacks = {name: [feature for feature in case.features if not hello.has(feature)] for name, case in index.items()}
    cases = cases_by_clause(index)
    lacking: dict[str, str] = {}
    for violation in violations:
        clause = control.registry.clause(violation.clause)
        own = [*cases.get(clause.id, ()), *cases.get(clause.duplicate_of or "", ())]
        if own and all(lacks[case] for case in own):
            least: list[str] = min((lacks[case] for case in own), key=len)
            lacking[violation.name] = ", ".join(least)
    return lacking


def _judge_all(
    arguments: argparse.Namespace, killers: Mapping[str, Collection[str]]
) -> Callable[[Trial, Sequence[Violation]], Sequence[Judged]]:
    """Return the function that shares the violators out: to processes of this machine, or to workers of a cluster."""

    def among_processes(trial: Trial, violations: Sequence[Violation]) -> Sequence[Judged]:
        return sharing.share_out(arguments.jobs or sharing.available_processes(), trial.judge, violations)

    def among_workers(trial: Trial, violations: Sequence[Violation]) -> Sequence[Judged]:
        settings = {
            "control": arguments.control,
            "violators": arguments.violators and str(arguments.violators.resolve()),
            "cases": arguments.cases or [],
            "thorough": arguments.thorough,
            "known": {violation.name: sorted(killers.get(violation.name, ())) for violation in violations},
        }
        with Engine(arguments.executor, sharing.MODULE, settings) as engine:
            return sharing.judge_on_workers(engine, trial, violations, arguments.unit_seconds)

    return among_workers if arguments.executor else among_processes


def _killers(path: Path) -> dict[str, frozenset[str]]:
    """Return the cases that caught each violator of a published matrix, by the violator's name."""
    try:
        rows = read_json(path.read_text(encoding="utf-8"))["violators"]
        return {row["name"]: frozenset(row["killers"]) for row in rows}
    except (ValueError, LookupError, TypeError) as error:
        raise OSError(EINVAL, f"no kill matrix: {error}", str(path)) from None


def text(matrix: KillMatrix) -> str:
    """Return the counts, and every row that is not a plain kill, for the terminal."""
    fates = Counter(kill.fate for kill in matrix.kills)
    lines = [
        f"{len(matrix.kills)} violators against {matrix.cases} cases: {fates['killed']} killed, "
        f"{fates['killed_by_fault']} only crashed, {fates['killed_by_unrelated']} killed only by unrelated cases, "
        f"{fates['survived']} survived, "
        f"{fates['untested']} break a clause without a case"
    ]
    lines += [f"  control does not pass {failure}" for failure in matrix.control_failures]
    lines += [f"  {kill.fate}: {_row(kill)}" for kill in matrix.survivors]
    return "\n".join(lines)


def _row(kill: Kill) -> str:
    by = f" (noticed only by {kill.killers[0]})" if kill.fate == "killed_by_unrelated" else ""
    return f"{kill.violation.name} breaks {kill.violation.clause}: {kill.violation.description}{by}"


def as_json(matrix: KillMatrix) -> dict[str, Any]:
    """Return the matrix as published."""
    return {
        "format": 1,
        "cases": matrix.cases,
        "control_failures": list(matrix.control_failures),
        "violators": [
            {
                "name": kill.violation.name,
                "clause": kill.violation.clause,
                "description": kill.violation.description,
                "level": kill.level,
                "fate": kill.fate,
                "killers": list(kill.killers),
                "tagged_cases": kill.tagged,
            }
            for kill in matrix.kills
        ],
    }


def markdown(matrix: KillMatrix, registry: Registry, suite: CollectedSuite, broken: Collection[str]) -> str:
    """Return the matrix as Markdown, with the clauses that have cases but no violator: `broken` has those with one."""
    head = ("clause", "violator", "what it does wrong", "level", "fate", "killed by tagged cases")
    rows = [
        (
            kill.violation.clause,
            kill.violation.name,
            kill.violation.description,
            kill.level,
            kill.fate,
            f"{len(kill.killers)} of {kill.tagged}",
        )
        for kill in sorted(matrix.kills, key=lambda kill: (kill.violation.clause, kill.violation.name))
    ]
    waiting = cases_by_clause(suite.index()).keys() - set(broken)
    missing = [
        clause.id
        for clause in registry.clauses.values()
        if clause.id in waiting and clause.level == "MUST" and clause.duplicate_of is None
    ]
    return f"""\
# Kill matrix

{text(matrix).splitlines()[0]}.

{table(head, rows)}

Clauses of level MUST that have cases and no violator: {", ".join(missing) or "none"}.
"""
