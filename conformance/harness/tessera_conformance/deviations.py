"""Known deviations: what an implementation is known to get wrong, with a reason, an owner and an expiry.

A deviation that matches no case, has expired, or whose must-fail case passes is an error: the list cannot rot.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tessera_conformance.documents import NoDocument, read_toml
from tessera_conformance.schemas import problems
from tessera_conformance.terminal import error_text
from tessera_conformance.verdicts import BAD_VERDICTS, Disposition

REPORTED = "the deviations of a run"


class MalformedDeviations(Exception):
    """The deviations file cannot be used; says where and why."""


@dataclass(frozen=True)
class Deviation:
    """One entry: cases by pattern, narrowed by clause where one is named."""

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
        """The entries of a TOML file.

        Raises `MalformedDeviations`: it cannot be read or does not follow `schemas/deviations.schema.json`.
        """
        try:
            text = path.read_text(encoding="utf-8")
            document = read_toml(text)
        except OSError as error:
            raise MalformedDeviations(f"{path}: {error.strerror}") from None
        except NoDocument as error:
            raise MalformedDeviations(f"{path}: {error}") from None
        except UnicodeDecodeError as error:
            raise MalformedDeviations(f"{path}: not TOML: {error}") from None
        complaints = problems("tessera:deviations", "file", _with_dates_as_text(document))
        if complaints:
            raise MalformedDeviations(*(_told(path, text, *problem) for problem in complaints))
        return cls([_entry(path, fields) for fields in document["deviation"]])

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], report: Path) -> Deviations:
        """The entries in the header of a report. Raises `MalformedDeviations`."""
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
        """One sentence for each entry whose time is over."""
        return [
            f"deviation {entry.cases!r} ({entry.owner}) expired on {entry.expires}: fix or renew it"
            for entry in self.entries
            if entry.expires < today
        ]

    def unmatched(self, cases: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
        """One sentence for each entry that is about none of the cases."""
        return [
            f"deviation {entry.cases!r}{f' with clause {entry.clause}' if entry.clause else ''} matches no case: "
            "remove or correct it"
            for entry in self.entries
            if not any(entry.matches(case, clauses) for case, clauses in cases)
        ]


def _told(path: Path, text: str, place: Sequence[str | int], complaint: str) -> str:
    """One problem with the line of its entry, or of its field where the entry has it."""
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
