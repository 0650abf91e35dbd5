"""The report file: written line by line as cases end, and sealed by a footer; and the merging of a run's shards.

A run that is killed leaves a file without a footer: readable, and invalid. `schemas/report/lines.schema.json` describes
the lines.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from tessera_conformance.documents import read_json
from tessera_conformance.reports.claim import (
    Line,
    Outcome,
    claimed,
    counts_against,
    left_out_profiles,
    outcomes_of_musts,
    settled,
    tallies,
)
from tessera_conformance.reports.lines import ObservedLine, short, whole, without_run
from tessera_conformance.schemas import first_problem
from tessera_conformance.terminal import error_text
from tessera_conformance.verdicts import VERDICTS, Deviations

FORMAT = 5
FILE_NAME = "report.jsonl"
REPORT = f"the {FILE_NAME} of a run"
MOST_BYTES, MOST_LINES, MOST_LINE, MOST_HEADER = 1 << 30, 200_000, 1 << 26, 1 << 20
"""The most bytes of a report, four times those of the suite with all evidence; its most lines; the most bytes of a line
and of the header.
"""

NO_PLAN: Line = {"record": "plan", "cases": [], "musts": {}, "profiles": {}, "products": {}}
"""The plan of a report that was cut off before its own."""


class UnreadableReport(Exception):
    """A file that is not a report; says which line is wrong and why."""


@dataclass(frozen=True, eq=False)
class Report:
    """A report as read; `problem` says why an invalid one is invalid."""

    path: Path
    header: Line
    plan: Line
    """The cases that were planned, the MUST clauses that were to be judged, and the profiles."""
    observations: Sequence[Line]
    footer: Line | None
    problem: str | None

    @property
    def claim(self) -> str:
        """success, partial or failure; invalid where the file is not a whole, unedited report."""
        return "invalid" if self.problem is not None or self.footer is None else str(self.footer["claim"])

    @property
    def hello(self) -> Line:
        """The Hello of the implementation; empty if it did not start."""
        return self.header["implementation"]["hello"] or {}

    @property
    def identity(self) -> Mapping[str, str]:
        """The name, the version and the device, as the implementation gave them; empty if it did not start."""
        return {**self.hello.get("implementation", {})}

    @property
    def is_part(self) -> bool:
        """True if the run selected less than the suite, so that a missing case was not removed."""
        selection = self.header["selection"]
        return selection["shard"] is not None or not selection["complete"]

    @cached_property
    def observed(self) -> Sequence[Line]:
        """One observation for each case: of two lines of a case, as a killed run may leave them, the worse counts."""
        lines: dict[str, Line] = {}
        for line in self.observations:
            if line["case"] not in lines or not counts_against(lines[line["case"]]):
                lines[line["case"]] = line
        return list(lines.values())

    @cached_property
    def outcomes(self) -> Mapping[str, Outcome]:
        """The outcome of every testable MUST clause of the claimed documents."""
        return outcomes_of_musts(self.plan, self.observed)

    @cached_property
    def left_out_profiles(self) -> Mapping[str, int]:
        """The number of core MUST clauses that are unsupported for lack of a profile's features, by named profile."""
        return left_out_profiles(self.hello, self.plan, self.observed)

    @property
    def failures(self) -> list[Line]:
        """Observations that count against the claim."""
        return [line for line in self.observations if counts_against(line)]


class JournalWriter:
    """Writes the file of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("wb")
        self._header: Line = {}
        self._plan: Line = {}
        self._observations: dict[str, Line] = {}

    def header(self, line: Line) -> None:
        """Write the first line."""
        self._header = {"record": "header", "format": FORMAT, **line}
        self._append(self._header)

    def plan(self, cases: Iterable[str], rules: Line = NO_PLAN) -> None:
        """Write the second line: the planned cases, and as rules the MUST clauses, the profiles and the products."""
        self._plan = {**NO_PLAN, **rules, "cases": sorted(cases)}
        self._append(self._plan)

    def observation(self, line: Line) -> None:
        """Write the line of a case that ended; it replaces an earlier line of the case, unless that failed."""
        line = line if isinstance(line, ObservedLine) else {"record": "observation", **line}
        earlier = self._observations.get(line["case"])
        if earlier is None or not counts_against(earlier):
            self._observations[line["case"]] = line
        self._append(line)

    def finish(self, problems: Sequence[str], run: Line) -> Report:
        """Sort the observations by case id, add the cases that did not run, and seal the file."""
        self._file.close()
        for case in self._plan["cases"]:
            self._observations.setdefault(case, _not_run(case))
        observations = list(settled([self._observations[case] for case in sorted(self._observations)]))
        lines = [self._header, self._plan, *observations]
        footer = seal(lines, problems) | {"run": run}
        sealed = self.path.with_suffix(".sealing")
        with sealed.open("wb") as file:
            file.writelines(f"{dump(line)}\n".encode() for line in [*lines, footer])
        os.replace(sealed, self.path)
        return Report(self.path, self._header, self._plan, observations, footer, None)

    def _append(self, line: Line) -> None:
        self._file.write(f"{dump(line)}\n".encode())
        self._file.flush()


def seal(lines: Sequence[Line], problems: Sequence[str]) -> dict[str, Any]:
    """Return the footer for these lines, without its run field."""
    observed = (line for line in lines if line["record"] == "observation")
    observations = [line if isinstance(line, ObservedLine) else whole(line) for line in observed]
    verdicts = Counter(line["verdict"] for line in observations)
    dispositions = Counter(line["disposition"] for line in observations)
    plan = next((line for line in lines if line["record"] == "plan"), NO_PLAN)
    return {
        "record": "footer",
        "claim": claimed(lines[0], plan, observations, problems),
        "musts": tallies(plan, outcomes_of_musts(plan, observations)),
        "verdicts": {verdict: verdicts[verdict] for verdict in VERDICTS if verdicts[verdict]},
        "dispositions": dict(sorted(dispositions.items())),
        "problems": list(problems),
        "sha256": _digest(lines),
    }


def _digest(lines: Sequence[Line]) -> str:
    """Return the digest of the lines without what differs between two runs of the same behaviour."""
    digest = hashlib.sha256()
    for number, line in enumerate(lines):
        text = line.text_without_run if isinstance(line, ObservedLine) else dump(without_run(line))
        digest.update(f"{chr(10) if number else ''}{text}".encode())
    return digest.hexdigest()


def content(path: Path) -> bytes:
    """Return the bytes of a report file, decompressed if it is a `.gz`.

    Raises `UnreadableReport`: it cannot be opened, or is larger than any report.
    """
    return b"".join(lines_of(path))


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a report file with their ends. Raises `UnreadableReport`."""
    size = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number in range(1, MOST_LINES + 2):
                most = MOST_HEADER if number == 1 else MOST_LINE
                line: bytes = file.readline(most + 1)
                size += len(line)
                if not line:
                    return
                if len(line) > most or size > MOST_BYTES or number > MOST_LINES:
                    raise UnreadableReport(f"{path}:{number}: larger than any report, or than such a line of one")
                yield line
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableReport(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def report_in(path: Path) -> Path:
    """Return the report file at a path: the path itself, or the file in that folder, compressed if only that exists."""
    if not path.is_dir():
        return path
    packed = path / f"{FILE_NAME}.gz"
    return packed if packed.exists() and not (path / FILE_NAME).exists() else path / FILE_NAME


def read(path: Path) -> Report:
    """Return a report file, valid or not, compressed (`.gz`) or not.

    Raises `UnreadableReport`: it cannot be opened, or does not begin with a header.
    """
    lines: list[Line] = []
    single: dict[str, Line] = {}
    problem: str | None = "the file is empty"
    for number, raw in enumerate(lines_of(path), start=1):
        line, problem = _parsed(raw, number)
        if number == 1 and line is not None and line["record"] != "header":
            problem = "it is of another record"
        elif line is not None and line["record"] in single:
            problem = f"line {number}: a second {line['record']}"
        if line is None or problem is not None:
            break
        if line["record"] != "observation":
            single[line["record"]] = line
        lines.append(line)
    if not lines:
        what = f"not the header of a report: {str(problem).removeprefix('line 1').removeprefix(':').strip()}"
        raise UnreadableReport(error_text(f"{path}:1", what, REPORT, "run the suite again"))
    footer = single.get("footer")
    observations = [line for line in lines if line["record"] == "observation"]
    problem = problem or _seal_problem(lines, footer)
    return Report(path, lines[0], single.get("plan", NO_PLAN), observations, footer, problem)


def _parsed(raw: bytes, number: int) -> tuple[Line | None, str | None]:
    """Return a line of a report file, or its fault."""
    try:
        text = raw.decode("utf-8").removesuffix("\n")
        line = read_json(text)
        record = line.get("record")
    except UnicodeDecodeError as error:
        return None, f"line {number} is not UTF-8 text: {error}"
    except (ValueError, AttributeError):
        return None, f"line {number} is not a JSON object: the run was cut off, or the file was edited"
    if record not in ("header", "plan", "observation", "footer"):
        missing = "the line has no record" if record is None else f"the line has an unknown record {record!r:.40}"
        return None, f"line {number}: {missing}"
    wrong = first_problem("tessera:report/lines", record, line)
    if wrong is None and record == "header" and line["implementation"]["hello"] is not None:
        wrong = first_problem("tessera:protocol/session", "open.result", line["implementation"]["hello"])
    if wrong is not None:
        return None, f"line {number}: {wrong}"
    return ObservedLine(text) if record == "observation" else whole(line), None


def _seal_problem(lines: Sequence[Line], footer: Line | None) -> str | None:
    if footer is None:
        return "there is no footer: the run did not end"
    if lines[-1] is not footer:
        return "the footer is not the last line"
    expected = seal(lines[:-1], footer["problems"])
    for key, value in expected.items():
        if footer[key] != value:
            return f"the footer's {key} does not follow from the lines above it: the file was edited"
    return None


def dump(line: Line) -> str:
    """One line of JSON in the one canonical spelling."""
    if isinstance(line, ObservedLine):
        return line.text
    return json.dumps(short(line), separators=(",", ":"), allow_nan=False)


def _not_run(case: str) -> Line:
    line = {"record": "observation", "case": case, "title": "", "clauses": [], "levels": [], "judges": []}
    line |= {"verdict": "not_run", "reason": "planned, but the run ended before it"}
    return {**whole(line), "run": {}}


# The reports of the shards of one run, merged into the report of the whole run.
#
# Everything but the shard must be the same in all of them, since one run has one implementation and one selection.
# Problems that only the whole run shows, such as a deviation that matches no case, are reported here.


_SHARD = re.compile(r"(\d+)/(\d+)")


class CannotMerge(Exception):
    """The reports are not the shards of one run; says which report is wrong, and why."""


def merge(parts: Sequence[Report], directory: Path) -> Report:
    """Write the merged report file into the directory.

    Raises `CannotMerge`: a report is invalid, a shard is missing or given twice, or the reports are of different runs.
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
    started = [part.header["run"]["started"] for part in parts if "started" in part.header["run"]]
    run = header["run"] | ({"started": min(started)} if started else {})
    writer.header(header | {"selection": selection, "run": run})
    writer.plan([case for part in parts for case in part.plan["cases"]], parts[0].plan)
    for part in parts:
        for line in part.observations:
            writer.observation(line)
    footers = [part.footer for part in parts if part.footer is not None]  # a valid report has one
    problems = dict.fromkeys(problem for footer in footers for problem in footer["problems"])
    if header["selection"]["complete"]:
        deviations = Deviations.of(selection["deviations"], parts[0].path)
        observed = [(line["case"], line["clauses"]) for part in parts for line in part.observations]
        problems |= dict.fromkeys(deviations.unmatched(observed))
    seconds = sum(footer["run"].get("seconds", 0) for footer in footers)
    return writer.finish([*problems], {"seconds": round(seconds, 3)})


def _in_order(parts: Sequence[Report]) -> list[Report]:
    """Return the reports in order of their shards. Raises `CannotMerge` unless each shard of one run is given once."""
    shards: dict[tuple[int, int], Report] = {}
    for part in parts:
        if part.claim == "invalid":
            raise CannotMerge(f"{part.path} is not a valid report: {part.problem}")
        match = _SHARD.fullmatch(part.header["selection"]["shard"] or "")
        if match is None:
            raise CannotMerge(f"{part.path} is not the report of a shard: run the suite with --shard=K/N")
        shard = int(match[1]), int(match[2])
        if shard in shards:
            raise CannotMerge(f"shard {match[0]} is there twice: {shards[shard].path} and {part.path}")
        shards[shard] = part
    totals = {total: part for (_, total), part in shards.items()}
    if len(totals) > 1:
        differing = " and ".join(f"of {total} ({part.path})" for total, part in sorted(totals.items()))
        raise CannotMerge(f"the shards are of different runs: {differing}")
    (total,) = totals
    missing = [f"{number}/{total}" for number in range(1, total + 1) if (number, total) not in shards]
    if missing:
        raise CannotMerge(f"shard {', '.join(missing)} is missing")
    return [shards[shard] for shard in sorted(shards)]


def _require_same_header(first: Report, other: Report) -> None:
    before, after = (dict(_flat(without_run(report.header))) for report in (first, other))
    for key in sorted((before.keys() | after.keys()) - {"selection.shard"}):
        if before.get(key) != after.get(key):
            raise CannotMerge(
                f"the headers differ in {key}: {before.get(key)!r} in {first.path}, {after.get(key)!r} in {other.path}"
            )


def _flat(value: Line, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of a header by their names, such as `selection.level`."""
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
