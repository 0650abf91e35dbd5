"""Faults of the registry, one type for each.

An error carries fields; `explain` makes its text where it is shown. The text states the fault, its place, what was
expected, and the remedy. A type states the four as templates over its fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tessera_conformance.terminal import error_text

COMMAND = "tessera-conformance clauses"


class RegistryError(Exception):
    """A fault of the registry, or of a query."""

    what: ClassVar[str]
    where: ClassVar[str]
    expected: ClassVar[str]
    remedy: ClassVar[str]

    def words(self) -> dict[str, str]:
        """Return the fields as text, by their names in the templates."""
        return {name: _in_words(name, value) for name, value in vars(self).items()}

    def explain(self) -> dict[str, str]:
        """Return the text of the error: the fault, its place, what was expected, and the remedy."""
        words = self.words()
        return {name: getattr(self, name).format_map(words) for name in ("what", "where", "expected", "remedy")}

    def __str__(self) -> str:
        text = self.explain()
        return error_text(text["where"], text["what"], text["expected"], text["remedy"])


@dataclass(eq=False)
class InvalidRegistry(RegistryError):
    """The registry's files cannot be read as a registry; `problems` are the reasons."""

    directory: str
    problems: tuple[RegistryError, ...]

    def explain(self) -> dict[str, str]:
        """Return the first problem, and the number of the others."""
        first = self.problems[0].explain()
        return {
            "what": f"the clause registry has {len(self.problems)} problem(s); the first: {first['what']}",
            "where": f"{self.directory}: {first['where']}",
            "expected": first["expected"],
            "remedy": f"{first['remedy']}; `{COMMAND} check` lists every problem",
        }


@dataclass(eq=False)
class UnreadableFile(RegistryError):
    """A file of the registry is missing or is not TOML, JSON or UTF-8."""

    file: str
    error: Exception

    what = "{file} cannot be read: {error}"
    where = "{file}"
    expected = "a readable file in the format its name promises"
    remedy = "restore the file, or correct it at the place named"


@dataclass(eq=False)
class SchemaViolation(RegistryError):
    """A row lacks a field, has one too many, or holds a value of the wrong form."""

    file: str
    row: str
    field: str
    found: str
    required: str

    what = "{row}: {field} is {found}"
    where = "{file}, {row}, field {field}"
    expected = "{required}"
    remedy = "correct the field; the schemas under schemas/registry give the form of every file"


@dataclass(eq=False)
class _RowError(RegistryError):
    """A fault in one row of a file."""

    file: str
    id: str

    where = "{file}, {id}, field {field}"


@dataclass(eq=False)
class DuplicateId(_RowError):
    """Two rows have one id."""

    first_file: str

    what = "{id} is given to two rows"
    where = "{file}, {id}, field id (first given in {first_file})"
    expected = "an id that names one row forever"
    remedy = "give the newer row the next free number of its section"


@dataclass(eq=False)
class Inconsistent(_RowError):
    """A field contradicts another field of its row, or the header of its file."""

    field: str
    found: str
    required: str

    what = "{id}: {field} is {found}"
    expected = "{required}"
    remedy = "correct the field, or the one it contradicts"


@dataclass(eq=False)
class BadReference(_RowError):
    """A row names another that is unknown, withdrawn, or of the wrong kind."""

    field: str
    target: str
    problem: str
    required: str
    suggestions: tuple[str, ...] = ()

    what = "{id}: {field} names {target}, which {problem}"
    expected = "{required}"
    remedy = "name another row{suggestions}, or take the name out"


@dataclass(eq=False)
class ReusedId(_RowError):
    """A withdrawn id was given another meaning."""

    what = "{id} was withdrawn and now has another meaning"
    where = "{file}, {id}, fields status and summary"
    expected = "a withdrawn id stays withdrawn: reports already published cite it"
    remedy = 'set its status to "withdrawn" again and give the new row the next free number of its section'


@dataclass(eq=False)
class VanishedId(_RowError):
    """An id that was once issued has no row any more."""

    what = "{id} was issued and has no row any more"
    where = "{file}, {id}, the whole row"
    expected = "a row for every id ever issued, if only as a tombstone"
    remedy = 'restore the row and set its status to "withdrawn"'


@dataclass(eq=False)
class LockOutOfDate(_RowError):
    """The lock differs from a row."""

    field: str

    what = "{id} {difference}"
    where = "{file}, {id}, field {field}; clauses.lock"
    expected = "a lock that records every id with its source, statement and status"
    remedy = f"if the change is meant, run `{COMMAND} lock` and review the lock's diff"

    def words(self) -> dict[str, str]:
        """Return the fields, and the difference of the lock from the row."""
        missing = self.field == "id"
        difference = "is not in the lock" if missing else f"has another {self.field} than the lock recorded"
        return super().words() | {"difference": difference}


@dataclass(eq=False)
class UnknownClause(RegistryError):
    """No clause has this id; `cited_by` are the tests and methods that name it, if any."""

    id: str
    suggestions: tuple[str, ...] = ()
    cited_by: tuple[str, ...] = ()

    what = "there is no clause {id}"
    where = "{cited_by}"
    expected = "the id of a clause of the registry"
    remedy = f"use another id{{suggestions}}; `{COMMAND} list` prints them all"


@dataclass(eq=False)
class UnknownInterpretation(RegistryError):
    """No interpretation has this id."""

    id: str
    suggestions: tuple[str, ...] = ()

    what = "there is no interpretation {id}"
    where = ""
    expected = "the id of a row of interpretations.toml"
    remedy = "use another id{suggestions}"


@dataclass(eq=False)
class WithdrawnClause(RegistryError):
    """A test is tagged with a clause that was withdrawn."""

    id: str
    cited_by: tuple[str, ...]

    what = "{id} was withdrawn, and a test is tagged with it"
    where = "{cited_by}"
    expected = "tags that name active clauses"
    remedy = f"take the tag off, or name the clause that replaced it (`{COMMAND} show {{id}}`)"


@dataclass(eq=False)
class UntestedClause(_RowError):
    """A clause that a test can verify has neither a test nor a reason why not."""

    summary: str
    enforced: bool

    what = "{id} has no test: {summary}"
    where = "{file}, {id}"
    expected = "a test tagged with it{enforced}"
    remedy = 'tag a test with @clause("{id}"), or record in the field reason why there is none'


@dataclass(eq=False)
class SourceMissing(RegistryError):
    """A specification is not at the given path."""

    document: str
    file: str
    error: Exception

    what = "the text of {document} cannot be read: {error}"
    where = "{file}"
    expected = "the five specifications in the directory given with --specs, under the names the registry records"
    remedy = "name the directory that holds them"


@dataclass(eq=False)
class DocumentChanged(RegistryError):
    """A specification is not the edition that the registry describes."""

    document: str
    file: str
    recorded_lines: int
    lines: int

    what = "{file} is another edition than the registry records ({recorded_lines} lines, now {lines})"
    where = "{document}.toml, [document], fields sha256 and lines"
    expected = "the edition whose SHA-256 the registry records"
    remedy = f"settle the clauses listed, look for new ones, then run `{COMMAND} check --specs DIR --update-sources`"


@dataclass(eq=False)
class _SourceError(RegistryError):
    """The lines from which a clause was read do not hold its text."""

    document: str
    id: str
    section: str
    lines: tuple[int, int]

    where = "{document}.toml, {id}, field lines"


@dataclass(eq=False)
class SourceChanged(_SourceError):
    """The text from which a clause was read is no longer in the specification."""

    what = "the source of {id} changed (section {section}, {lines})"
    where = "{document}.toml, {id}, field source"
    expected = "the text this clause was read from"
    remedy = (
        "read {lines} again; correct lines, summary and level, or withdraw the clause; review its "
        f"tests; then run `{COMMAND} check --specs DIR --update-sources`"
    )


@dataclass(eq=False)
class SourceMoved(_SourceError):
    """The text of a clause is, unchanged, at other lines."""

    now: tuple[int, int]

    what = "the source of {id} moved (section {section}, {lines}) to {now}"
    expected = "the lines of its text"
    remedy = f"run `{COMMAND} check --specs DIR --update-sources`"


@dataclass(eq=False)
class LinesOutOfRange(_SourceError):
    """A clause names lines that the text does not have."""

    available: int

    what = "{id} was read from {lines}, and the text ends at line {available}"
    expected = "lines between 1 and {available}"
    remedy = "find the statement in the new edition and correct lines, or withdraw the clause"


def _in_words(name: str, value: object) -> str:
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
