"""Faults of the registry: a table of their kinds, and one error for all of them.

An error carries its kind and fields; `explain` makes its text where it is shown. The text states the fault, its place,
what was expected, and the remedy, which the table has as templates over the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tessera_conformance.terminal import error_text

COMMAND = "tessera-conformance clauses"


class Templates(NamedTuple):
    """The text of a kind of fault."""

    what: str
    where: str
    expected: str
    remedy: str


FAULTS: Mapping[str, Templates] = {
    # the files
    "unreadable file": Templates(
        "{file} cannot be read: {error}",
        "{file}",
        "a readable file in the format its name promises",
        "restore the file, or correct it at the place named",
    ),
    "schema violation": Templates(
        "{row}: {field} is {found}",
        "{file}, {row}, field {field}",
        "{required}",
        "correct the field; the schemas under schemas/registry give the form of every file",
    ),
    "invalid registry": Templates(  # with the text of the first problem
        "the clause registry has {number} problem(s); the first: {what}",
        "{directory}: {where}",
        "{expected}",
        f"{{remedy}}; `{COMMAND} check` lists every problem",
    ),
    # the rows; `file` and `id` name one
    "duplicate id": Templates(
        "{id} is given to two rows",
        "{file}, {id}, field id (first given in {first_file})",
        "an id that names one row forever",
        "give the newer row the next free number of its section",
    ),
    "inconsistent": Templates(
        "{id}: {field} is {found}",
        "{file}, {id}, field {field}",
        "{required}",
        "correct the field, or the one it contradicts",
    ),
    "bad reference": Templates(
        "{id}: {field} names {target}, which {problem}",
        "{file}, {id}, field {field}",
        "{required}",
        "name another row{suggestions}, or take the name out",
    ),
    "reused id": Templates(
        "{id} was withdrawn and now has another meaning",
        "{file}, {id}, fields status and summary",
        "a withdrawn id stays withdrawn: reports already published cite it",
        'set its status to "withdrawn" again and give the new row the next free number of its section',
    ),
    "vanished id": Templates(
        "{id} was issued and has no row any more",
        "{file}, {id}, the whole row",
        "a row for every id ever issued, if only as a tombstone",
        'restore the row and set its status to "withdrawn"',
    ),
    "lock out of date": Templates(
        "{id} {difference}",
        "{file}, {id}, field {field}; clauses.lock",
        "a lock that records every id with its source, statement and status",
        f"if the change is meant, run `{COMMAND} lock` and review the lock's diff",
    ),
    # the ids in a query, in tests and in the methods of the interface; `cited_by` are those that name one
    "unknown clause": Templates(
        "there is no clause {id}",
        "{cited_by}",
        "the id of a clause of the registry",
        f"use another id{{suggestions}}; `{COMMAND} list` prints them all",
    ),
    "unknown interpretation": Templates(
        "there is no interpretation {id}",
        "",
        "the id of a row of interpretations.toml",
        "use another id{suggestions}",
    ),
    "withdrawn clause": Templates(
        "{id} was withdrawn, and a test is tagged with it",
        "{cited_by}",
        "tags that name active clauses",
        f"take the tag off, or name the clause that replaced it (`{COMMAND} show {{id}}`)",
    ),
    "untested clause": Templates(
        "{id} has no test: {summary}",
        "{file}, {id}",
        "a test tagged with it{enforced}",
        'tag a test with @clause("{id}"), or record in the field reason why there is none',
    ),
    # the specifications; `lines` are those of a clause
    "source missing": Templates(
        "the text of {document} cannot be read: {error}",
        "{file}",
        "the five specifications in the directory given with --specs, under the names the registry records",
        "name the directory that holds them",
    ),
    "document changed": Templates(
        "{file} is another edition than the registry records ({recorded_lines} lines, now {lines})",
        "{document}.toml, [document], fields sha256 and lines",
        "the edition whose SHA-256 the registry records",
        f"settle the clauses listed, look for new ones, then run `{COMMAND} check --specs DIR --update-sources`",
    ),
    "source changed": Templates(
        "the source of {id} changed (section {section}, {lines})",
        "{document}.toml, {id}, field source",
        "the text this clause was read from",
        "read {lines} again; correct lines, summary and level, or withdraw the clause; review its "
        f"tests; then run `{COMMAND} check --specs DIR --update-sources`",
    ),
    "source moved": Templates(
        "the source of {id} moved (section {section}, {lines}) to {now}",
        "{document}.toml, {id}, field lines",
        "the lines of its text",
        f"run `{COMMAND} check --specs DIR --update-sources`",
    ),
    "lines out of range": Templates(
        "{id} was read from {lines}, and the text ends at line {available}",
        "{document}.toml, {id}, field lines",
        "lines between 1 and {available}",
        "find the statement in the new edition and correct lines, or withdraw the clause",
    ),
}


class RegistryError(Exception):
    """A fault of the registry, or of a query, of a kind of `FAULTS` with the fields of its templates."""

    id: str
    document: str
    field: str

    def __init__(self, kind: str, **fields: Any) -> None:
        super().__init__(kind)
        self.kind = kind
        vars(self).update(fields)

    def explain(self) -> dict[str, str]:
        """Return the text of the error: the fault, its place, what was expected, and the remedy."""
        words = {name: _in_words(name, value) for name, value in vars(self).items()}
        return {name: text.format_map(words) for name, text in FAULTS[self.kind]._asdict().items()}

    def __str__(self) -> str:
        text = self.explain()
        return error_text(text["where"], text["what"], text["expected"], text["remedy"])


def _in_words(name: str, value: object) -> str:
    """Return a field as text."""
    match name, value:
        case "suggestions", tuple():
            return f" (did you mean {' or '.join(value)}?)" if value else ""
        case "cited_by", tuple():
            return ", ".join(value)
        case _, OSError(strerror=str(reason)):
            return reason
        case "enforced", bool():
            return ", since its chapter is enforced" if value else ""
        case _, (int(first), int(last)):
            return f"line {first}" if first == last else f"lines {first}-{last}"
    return str(value)
