"""Known deviations made from a report: few patterns that match its failing cases and no others.

A pattern is what ids have in common at their beginning and end, `ir/matmul/*/k-13`, or the same among the cases of one
clause. The largest patterns that match nothing else are taken first.
"""

from __future__ import annotations

import datetime
import heapq
import json
from collections.abc import Iterator, Mapping, Sequence

from tessera_conformance.deviations import Deviation
from tessera_conformance.reports.claim import Line, counts_against
from tessera_conformance.reports.journal import Report

LONGEST_REASON = 160
MODE = "must_fail"

Pattern = tuple[int, str, str]
"""How many letters of the id are written out, the pattern, and the clause that narrows it or nothing."""


class NoBaseline(Exception):
    """No deviations can be made from a report; says why."""


def baseline(
    report: Report, others: Mapping[str, Sequence[str]], owner: str, expires: datetime.date
) -> list[Deviation]:
    """Deviations under which the same run is green, and any case that is mended makes it red.

    `others` are the clauses of further cases of the suite, which the run left out: no pattern matches them. Entries
    under which the report was made are kept where they still hold.

    Raises:
        NoBaseline: the report is no whole run, or a case of it was not run or is broken itself.
    """
    if report.claim == "invalid":
        raise NoBaseline(f"{report.path}: not a valid report: {report.problem}")
    lines = {line["case"]: line for line in report.observations}
    unfit = [case for case, line in lines.items() if line["verdict"] in ("not_run", "harness_error")]
    if unfit:
        verdict = lines[unfit[0]]["verdict"].replace("_", " ")
        raise NoBaseline(f"{unfit[0]}: {verdict}: no deviation of an implementation; run it again first")
    kept = _kept(report)
    failing = {
        case: line
        for case, line in lines.items()
        if line["disposition"] != "unexpected_pass"
        and line["verdict"] != "pass"
        and (counts_against(line) or line["disposition"] in ("known_deviation", "waived"))
        and not any(entry.matches(case, line["clauses"]) for entry in kept)
    }
    everything = {**others, **{case: line["clauses"] for case, line in lines.items()}}
    made = [
        Deviation(pattern, MODE, _reason([failing[case] for case in cases]), owner, expires, clause or None)
        for (_, pattern, clause), cases in _cover(everything, failing)
    ]
    return sorted([*kept, *made], key=lambda entry: (entry.cases, entry.clause or ""))


def _kept(report: Report) -> list[Deviation]:
    """The entries of the run itself, but those of which a case passed unexpectedly, that expired or match nothing."""
    told = report.header["selection"]["deviations"]
    entries = [Deviation(**{**each, "expires": datetime.date.fromisoformat(each["expires"])}) for each in told]
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
    """What came of the first of some cases, and how many others there are."""
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
