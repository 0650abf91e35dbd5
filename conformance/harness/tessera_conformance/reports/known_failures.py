"""Known deviations made from a report: `tessera-conformance deviations write`."""

from __future__ import annotations

import argparse
import datetime
import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tessera_conformance.cases import SuiteNotCollected
from tessera_conformance.deviations import Deviation
from tessera_conformance.registry.case_index import case_index
from tessera_conformance.reports.claim import Line, counts_against
from tessera_conformance.reports.journal import FILE_NAME, Report, UnreadableReport, read
from tessera_conformance.reports.publish import write_toml
from tessera_conformance.terminal import reporting_errors

# Known deviations made from a report: few patterns that match its failing cases and no others.
#
# A pattern is what ids have in common at their beginning and end, `ir/matmul/*/k-13`, or the same among the cases of
# one clause. The largest patterns that match nothing else are taken first.


LONGEST_REASON = 160
MODE = "must_fail"

Pattern = tuple[int, str, str]
"""The letters of the id that are written out, the pattern, and the clause that narrows it or nothing."""


class NoBaseline(Exception):
    """No deviations can be made from a report; says why."""


def baseline(
    report: Report, others: Mapping[str, Sequence[str]], owner: str, expires: datetime.date
) -> list[Deviation]:
    """Deviations under which the same run is green, and any case that is mended makes it red.

    `others` are the clauses of further cases of the suite, which the run left out: no pattern matches them. Entries
    under which the report was made are kept where they still hold.

    Raises `NoBaseline`: the report is no whole run, or a case of it was not run or is broken itself.
    """
    if report.claim == "invalid":
        raise NoBaseline(f"{report.path}: not a valid report: {report.problem}")
    lines = {line["case"]: line for line in report.observations}
    unfit = [case for case, line in lines.items() if line["verdict"] in ("not_run", "harness_error")]
    if unfit:
        verdict = lines[unfit[0]]["verdict"].replace("_", " ")
        raise NoBaseline(f"{unfit[0]}: {verdict}: no deviation of an implementation; run it again first")
    entries = _kept(report)
    failing = {
        case: line
        for case, line in lines.items()
        if line["disposition"] != "unexpected_pass"
        and line["verdict"] != "pass"
        and (counts_against(line) or line["disposition"] in ("known_deviation", "waived"))
        and not any(entry.matches(case, line["clauses"]) for entry in entries)
    }
    everything = {**others, **{case: line["clauses"] for case, line in lines.items()}}
    additions = [
        Deviation(pattern, MODE, _reason([failing[case] for case in cases]), owner, expires, clause or None)
        for (_, pattern, clause), cases in _cover(everything, failing)
    ]
    return sorted([*entries, *additions], key=lambda entry: (entry.cases, entry.clause or ""))


def _kept(report: Report) -> list[Deviation]:
    """The entries of the run itself, but those of which a case passed unexpectedly, that expired or match nothing."""
    rows = report.header["selection"]["deviations"]
    entries = [Deviation(**{**entry, "expires": datetime.date.fromisoformat(entry["expires"])}) for entry in rows]
    passed = [line for line in report.observations if line["disposition"] == "unexpected_pass"]
    problems = report.footer["problems"] if report.footer else []
    return [
        entry
        for entry in entries
        if not any(entry.matches(line["case"], line["clauses"]) for line in passed)
        and not any(repr(entry.cases) in problem for problem in problems)
    ]


def _cover(
    everything: Mapping[str, Sequence[str]], failing: Mapping[str, Line]
) -> Iterator[tuple[Pattern, Sequence[str]]]:
    """Patterns that together match the failing cases, each with those that no pattern before it matches."""
    matched: dict[Pattern, set[str]] = {}
    for case in failing:
        for pattern in _patterns(case, everything[case]):
            matched.setdefault(pattern, set()).add(case)
    for case in everything.keys() - failing.keys():
        for pattern in _patterns(case, everything[case]):
            matched.pop(pattern, None)
    heap = [(-len(cases), bool(pattern[2]), -pattern[0], pattern) for pattern, cases in matched.items()]
    heapq.heapify(heap)
    left = set(failing)
    while left:
        size, narrowed, letters, pattern = heapq.heappop(heap)
        fresh = matched[pattern] & left
        if len(fresh) < -size:  # others have taken some of its cases
            if fresh:
                heapq.heappush(heap, (-len(fresh), narrowed, letters, pattern))
            continue
        left -= fresh
        yield pattern, sorted(fresh)


def _patterns(case: str, clauses: Sequence[str]) -> Iterator[Pattern]:
    """Every pattern that matches a case: itself, and what it begins and ends with, by its parts, or its words."""
    parts = case.split("/")
    yield len(case), case, ""
    shared = {
        "/".join([*parts[:first], "*", *parts[len(parts) - last :]])
        for first in range(1, len(parts))
        for last in range(len(parts) - first)
    }
    shared |= {f"{case[: place + 1]}*" for place, letter in enumerate(case[:-1]) if letter in "/-"}
    for pattern in shared:
        for clause in ("", *clauses):
            yield len(pattern) - 1, pattern, clause


def _reason(lines: Sequence[Line]) -> str:
    """Return the reason of the first of some cases, and the number of the others."""
    first = lines[0]
    reason = " ".join(f"{first['verdict']}: {first['reason']}".split())
    shown = reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 4]} ..."
    return shown if len(lines) == 1 else f"{shown} ({len(lines)} cases)"


def as_toml(entries: Sequence[Deviation], heading: str) -> str:
    """The file of some deviations."""
    return (
        f"# {heading}\n" + "".join(f"\n{_table(entry)}" for entry in entries) + ("" if entries else "deviation = []\n")
    )


def _table(entry: Deviation) -> str:
    fields = {"cases": entry.cases, "clause": entry.clause, "mode": entry.mode, "reason": entry.reason}
    lines = [f"{name} = {json.dumps(value)}" for name, value in {**fields, "owner": entry.owner}.items() if value]
    return "\n".join(["[[deviation]]", *lines, f"expires = {entry.expires.isoformat()}"]) + "\n"


# `tessera-conformance deviations write`: what fails today as known deviations, so that a run is green until then.


DAYS = 90
"""The days for which a deviation lasts where no day is given."""


def configure_deviations(parser: argparse.ArgumentParser) -> None:
    """The command `deviations`."""
    parser.description = "Known deviations, which --deviations of a run takes."
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    write = commands.add_parser("write", help="those under which the run of a report is green")
    write.add_argument("report", type=Path, metavar="REPORT", help=f"{FILE_NAME}, or the directory that holds it")
    write.add_argument("--output", type=Path, required=True, metavar="FILE", help="the TOML file to write")
    write.add_argument("--owner", required=True, help="who mends them")
    write.add_argument(
        "--expires", type=datetime.date.fromisoformat, metavar="DAY", help=f"YYYY-MM-DD (default: in {DAYS} days)"
    )
    write.set_defaults(handler=reporting_errors(write_deviations, UnreadableReport, NoBaseline, SuiteNotCollected))


def write_deviations(arguments: argparse.Namespace) -> int:
    """Write the file; 0 where it is written, 2 where the report gives none."""
    path = arguments.report
    report = read(path / FILE_NAME if path.is_dir() else path)
    expires = arguments.expires or datetime.date.today() + datetime.timedelta(days=DAYS)
    complete = report.header["selection"]["complete"] and not report.header["selection"]["shard"]
    others = {} if complete else {identifier: case.clauses for identifier, case in case_index().items()}
    entries = baseline(report, others, arguments.owner, expires)
    identity = (report.header["implementation"]["hello"] or {}).get("implementation", {})
    name = " ".join(filter(None, [identity.get("name"), identity.get("version")])) or "an implementation"
    write_toml(arguments.output, as_toml(entries, f"What {name} is known to get wrong."), "deviations")
    excused = sum(
        line["verdict"] != "pass" and any(entry.matches(line["case"], line["clauses"]) for entry in entries)
        for line in report.observations
    )
    print(f"{arguments.output}: {len(entries)} deviations for {excused} cases, until {expires}")
    return 0
