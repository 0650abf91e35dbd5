"""The reports of the shards of one run, joined into the report of the whole run.

Everything but the shard must be the same in all of them, as one run has one implementation and one selection. What
only the whole run can say, such as that a deviation matches no case, is said here.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from tessera_conformance.deviations import Deviation, Deviations
from tessera_conformance.reports.claim import Line
from tessera_conformance.reports.journal import FILE_NAME, JournalWriter, Report, without_run

_SHARD = re.compile(r"(\d+)/(\d+)")


class CannotMerge(Exception):
    """The reports are not the shards of one run; says which report, and why."""


def merge(parts: Sequence[Report], directory: Path) -> Report:
    """Write the joined report file into the directory.

    Raises:
        CannotMerge: a report is invalid, a shard is missing or there twice, or the reports are of different runs.
    """
    parts = _in_order(parts)
    for part in parts[1:]:
        _require_same_header(parts[0], part)
    _require_disjoint(parts)
    path = directory / FILE_NAME
    if any(path.resolve() == part.path.resolve() for part in parts):
        raise CannotMerge(f"{path} is one of the reports to join: name another directory")
    header = dict(parts[0].header)
    selection = header["selection"] | {"shard": None}
    writer = JournalWriter(path)
    writer.header(header | {"selection": selection, "run": _run(parts)})
    plans = [part.plan for part in parts]
    cases = [case for plan in plans for case in plan["cases"]]
    writer.plan(cases, plans[0]["musts"], plans[0]["profiles"], plans[0]["products"])
    for part in parts:
        for line in part.observations:
            writer.observation(line)
    seconds = [_footer(part)["run"].get("seconds", 0) for part in parts]
    return writer.finish(_problems(parts), {"seconds": round(sum(seconds), 3)})


def _in_order(parts: Sequence[Report]) -> list[Report]:
    """The reports by shard, once it is certain that each shard of one number of shards is there once."""
    by_shard: dict[int, Report] = {}
    totals: dict[int, Report] = {}
    for part in parts:
        if part.claim == "invalid":
            raise CannotMerge(f"{part.path} is not a valid report: {part.problem}")
        found = _SHARD.fullmatch(part.header["selection"]["shard"] or "")
        if found is None:
            raise CannotMerge(f"{part.path} is not the report of a shard: run the suite with --shard=K/N")
        number, total = int(found[1]), int(found[2])
        if number in by_shard and total in totals:
            raise CannotMerge(f"shard {number}/{total} is there twice: {by_shard[number].path} and {part.path}")
        by_shard[number] = totals[total] = part
    if len(totals) > 1:
        differing = " and ".join(f"of {total} ({part.path})" for total, part in sorted(totals.items()))
        raise CannotMerge(f"the shards are of different runs: {differing}")
    (total,) = totals
    missing = [f"{number}/{total}" for number in range(1, total + 1) if number not in by_shard]
    if missing:
        raise CannotMerge(f"shard {', '.join(missing)} is missing")
    return [by_shard[number] for number in sorted(by_shard)]


def _require_same_header(first: Report, other: Report) -> None:
    before, after = _comparable(first), _comparable(other)
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            raise CannotMerge(
                f"the headers differ in {key}: {before.get(key)!r} in {first.path}, {after.get(key)!r} in {other.path}"
            )


def _comparable(report: Report) -> Mapping[str, Any]:
    """The header's fields by name, without those that differ between the shards of one run."""
    fields = dict(_flat(without_run(report.header)))
    del fields["selection.shard"]
    return fields


def _flat(value: Line, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, dict) and item:
            yield from _flat(item, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", item


def _require_disjoint(parts: Sequence[Report]) -> None:
    for one, other in combinations(parts, 2):
        both = sorted(set(one.plan["cases"]) & set(other.plan["cases"]))
        if both:
            raise CannotMerge(f"{both[0]} is both in {one.path} and in {other.path}")


def _problems(parts: Sequence[Report]) -> list[str]:
    """The problems of the parts, each once, and, of a whole suite, the deviations that match no case of any part."""
    problems = [problem for part in parts for problem in _footer(part)["problems"]]
    if not parts[0].header["selection"]["complete"]:
        return list(dict.fromkeys(problems))
    entries = parts[0].header["selection"]["deviations"]
    deviations = Deviations(
        [Deviation(**entry | {"expires": datetime.date.fromisoformat(entry["expires"])}) for entry in entries]
    )
    observed = [(line["case"], line["clauses"]) for part in parts for line in part.observations]
    return list(dict.fromkeys([*problems, *deviations.unmatched(observed)]))


def _run(parts: Sequence[Report]) -> Line:
    """How the first shard was run, and when the first of them started."""
    started = [part.header["run"]["started"] for part in parts if "started" in part.header["run"]]
    first: dict[str, Any] = parts[0].header["run"]
    return first | ({"started": min(started)} if started else {})


def _footer(part: Report) -> Line:
    assert part.footer is not None, "a valid report has a footer"
    return part.footer
