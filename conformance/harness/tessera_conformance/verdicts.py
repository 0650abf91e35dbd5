"""The verdict of a case from its answers, and its disposition from known deviations."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args

from tessera_conformance.check import CheckFailed, CheckRecord, OtherReading, Presumption, Unanswered, explain
from tessera_conformance.documents import NoDocument, read_file
from tessera_conformance.protocol import Fault, Hello, describe
from tessera_conformance.registry import Clause
from tessera_conformance.schemas import problems
from tessera_conformance.terminal import error_text
from tessera_conformance.transports import Inapplicable, Lacking

Verdict = Literal[
    "pass", "fail", "crash", "hang", "protocol_error", "harness_error", "unsupported", "inapplicable", "not_run"
]
Disposition = Literal["none", "known_deviation", "waived", "unexpected_pass", "other_reading"]
Cause = Literal["", "document", "profile", "level", "feature", "presumption", "blocked", "question"]
"""The causes of an unsupported or inapplicable case; "" for every other verdict. `document`, `profile` and `level`
follow from the selection, `feature` from the claims. `presumption`: the machine lacks what the case presumes.
`blocked`: a construct that the case depends on fails its control case. `question`: the answer would say nothing about
this implementation.
"""
Level = Literal["fast", "deterministic", "strict"]
Way = Literal["programs", "operations"]

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
FAULTY: frozenset[str] = frozenset({"fail", "crash", "hang", "protocol_error"})
"""The verdicts that are the fault of the implementation."""
BAD_VERDICTS: frozenset[str] = FAULTY | {"harness_error", "not_run"}
LEVELS: tuple[Level, ...] = get_args(Level)
WAYS: tuple[Way, ...] = get_args(Way)
"""The ways to request arithmetic: in programs of the language, or operation by operation."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reason in one sentence; the reason of a pass is empty.

    `interpretation` is the one whose listed alternative the implementation follows, if any.
    """

    verdict: Verdict
    reason: str = ""
    cause: Cause = ""
    interpretation: str = ""


def before_running(
    clauses: Sequence[Clause],
    features: Sequence[str],
    levels: Sequence[str],
    hello: Hello | Fault,
    profile: str,
    level: str,
) -> Judgement | None:
    """Return the judgement of a case that does not run, or None if it runs.

    A case is inapplicable if the implementation does not claim the documents of its clauses, if the profile leaves it
    out, or if it judges another numerics level. It is unsupported if a feature that is not core, of a clause or of the
    case itself, is not claimed.
    """
    if isinstance(hello, Fault):
        return Judgement(hello.kind, hello.detail)
    if level not in levels:
        return Judgement("inapplicable", f"judges level {' or '.join(levels)}, this run is {level}", "level")
    if profile == "core" and all(clause.profile == "extended" for clause in clauses):
        return Judgement("inapplicable", "extended clauses, this run is profile core", "profile")
    unclaimed = sorted({clause.document for clause in clauses if clause.document not in hello.documents})
    if unclaimed:
        return Judgement("inapplicable", f"the implementation does not claim {', '.join(unclaimed)}", "document")
    needed = [clause.feature for clause in clauses] + list(features)
    missing = [feature for feature in needed if feature != "core" and not hello.has(feature)]
    if missing:
        return Judgement("unsupported", f"the implementation does not claim the feature {missing[0]}", "feature")
    return None


def after_running(
    error: BaseException | None, records: Sequence[CheckRecord], fault: Fault | None, unclaimed: str = ""
) -> Judgement:
    """Return the verdict of a case that ran.

    An unsupported answer is a failure, since the request is core or claimed. If the method needs a feature that is not
    claimed, `unclaimed`, the case is unsupported. A case whose presumption does not hold, or whose question says
    nothing about the implementation, is inapplicable, if nothing else was wrong. `fault` is the first one among its
    calls and the following reset: it fails every case. So does a failed check that the test swallowed.
    """
    wrong = any(not record.passed and record.kind != "given" for record in records)
    match error:
        case OtherReading(interpretation=interpretation):
            return Judgement(fault.kind if fault else "fail", str(error), interpretation=interpretation)
        case CheckFailed():
            return Judgement("fail", str(error))
        case Presumption() if fault is None and not wrong:
            return Judgement("inapplicable", str(error), "presumption")
        case Inapplicable() if fault is None and not wrong:
            return Judgement("inapplicable", str(error), "question")
        case Lacking() if fault is None and not wrong:
            return Judgement("unsupported", str(error), "feature")
        case Unanswered(observation=Fault() as unanswered):
            return Judgement(unanswered.kind, unanswered.detail)
        case Unanswered() if unclaimed:
            return Judgement("unsupported", f"the implementation does not claim the feature {unclaimed}", "feature")
        case Unanswered(observation=observation):
            return Judgement("fail", f"claimed, but the implementation {describe(observation)}")
        case Inapplicable() | Lacking() | Presumption():
            pass
        case BaseException():
            return Judgement("harness_error", f"{type(error).__name__}: {error}")
        case None:
            pass
    if fault is not None:
        return Judgement(fault.kind, fault.detail)
    failed = next((record for record in records if not record.passed), None)
    if failed is not None:
        return Judgement("fail", explain(failed))
    if not records:
        return Judgement("harness_error", "the case made no checks, which is never a pass")
    return Judgement("pass")


# Known deviations: known failures of an implementation, with a reason, an owner and an expiry. An entry that matches no
# case, has expired, or whose must-fail case passes is an error, so that none becomes stale.


REPORTED = "the deviations of a run"


class MalformedDeviations(Exception):
    """The deviations file cannot be used; has the place and the reason."""


@dataclass(frozen=True)
class Deviation:
    """One entry: cases by pattern, narrowed by clause if it names one."""

    cases: str
    mode: str
    reason: str
    owner: str
    expires: datetime.date
    clause: str | None = None

    def matches(self, case: str, clauses: Sequence[str]) -> bool:
        """True if this entry is about the case."""
        return fnmatchcase(case, self.cases) and (self.clause is None or self.clause in clauses)


class Deviations:
    """The entries of one file, and which of them were used."""

    def __init__(self, entries: Sequence[Deviation] = ()) -> None:
        self.entries = tuple(entries)

    @classmethod
    def read(cls, path: Path) -> Deviations:
        """Return the entries of a TOML file.

        Raises `MalformedDeviations`: it cannot be read or does not follow `schemas/deviations.schema.json`.
        """
        try:
            document = read_file(path)
        except NoDocument as error:
            raise MalformedDeviations(str(error)) from None
        complaints = problems("tessera:deviations", "file", _with_dates_as_text(document))
        if complaints:
            text = path.read_text(encoding="utf-8")
            raise MalformedDeviations(*(_problem(path, text, *problem) for problem in complaints))
        return cls([_entry(path, fields) for fields in document["deviation"]])

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], report: Path) -> Deviations:
        """Return the entries in the header of a report. Raises `MalformedDeviations`."""
        entries = [{name: value for name, value in row.items() if value is not None} for row in rows]
        for place, complaint in problems("tessera:deviations", "file", {"deviation": entries}):
            where = ".".join(map(str, place))
            raise MalformedDeviations(error_text(str(report), f"in its header, {where}: {complaint}", REPORTED))
        return cls([_entry(report, entry) for entry in entries])

    def disposition(self, case: str, clauses: Sequence[str], verdict: str) -> tuple[Disposition, str]:
        """Return the disposition that the entries give a verdict, and the reason given in the entry."""
        if verdict not in BAD_VERDICTS and verdict != "pass":
            return "none", ""
        for entry in self.entries:
            if entry.matches(case, clauses):
                if verdict == "pass":
                    return ("unexpected_pass", entry.reason) if entry.mode == "must_fail" else ("none", "")
                return ("known_deviation" if entry.mode == "must_fail" else "waived"), entry.reason
        return "none", ""

    def expired(self, today: datetime.date) -> list[str]:
        """Return one sentence for each expired entry."""
        return [
            f"deviation {entry.cases!r} ({entry.owner}) expired on {entry.expires}: fix or renew it"
            for entry in self.entries
            if entry.expires < today
        ]

    def unmatched(self, cases: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
        """Return one sentence for each entry that matches none of the cases."""
        return [
            f"deviation {entry.cases!r}{f' with clause {entry.clause}' if entry.clause else ''} matches no case: "
            "remove or correct it"
            for entry in self.entries
            if not any(entry.matches(case, clauses) for case, clauses in cases)
        ]


def _problem(path: Path, text: str, place: Sequence[str | int], complaint: str) -> str:
    """Return one problem with the line of its entry, or of its field if the entry has it."""
    remedy = "correct the entry; docs/verdicts.md has one"
    if len(place) < 2:
        return error_text(str(path), complaint, "entries, [[deviation]]", remedy)
    lines = [*enumerate(text.splitlines(), start=1)]
    entries = [number for number, line in lines if line.strip().startswith("[[deviation]]")]
    entry, field = int(place[1]), str(place[2]) if len(place) > 2 else ""
    if entry >= len(entries):  # written as a list of tables in one line
        return error_text(f"{path}: deviation[{entry}]", complaint, do=remedy)
    after = [*entries, len(lines) + 1][entry + 1]
    own = [n for n, line in lines if entries[entry] < n < after and line.partition("=")[0].strip() == field]
    where = f"{path}:{(own or entries[entry:])[0]}"
    return error_text(where, f"{field}: {complaint}" if field else complaint, do=remedy)


def _entry(path: Path, fields: dict[str, Any]) -> Deviation:
    try:
        expires = datetime.date.fromisoformat(str(fields["expires"]))
    except ValueError as error:
        raise MalformedDeviations(f"{path}: deviation {fields['cases']!r}: expires: {error}") from None
    return Deviation(**{**fields, "expires": expires})


def _with_dates_as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_dates_as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_dates_as_text(item) for item in value]
    return value.isoformat() if isinstance(value, datetime.date) else value
