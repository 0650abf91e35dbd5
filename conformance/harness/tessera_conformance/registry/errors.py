"""What can be wrong with the registry, one type for each fault.

An error carries fields; its text is made where it is shown, by `explain`, and always says four things: what is wrong,
where, what was expected, and what to do about it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

COMMAND = "tessera-conformance clauses"


@dataclass(frozen=True)
class Explanation:
    """An error in words."""

    what: str
    where: str
    expected: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}\n  where:    {self.where}\n  expected: {self.expected}\n  remedy:   {self.remedy}"


class RegistryError(Exception, ABC):
    """Something is wrong with the registry, or with a question put to it."""

    @abstractmethod
    def explain(self) -> Explanation:
        """The error in words."""

    def __str__(self) -> str:
        return str(self.explain())


@dataclass(eq=False)
class InvalidRegistry(RegistryError):
    """The registry's files cannot be read as a registry; `problems` says why, one by one."""

    directory: str
    problems: tuple[RegistryError, ...]

    def explain(self) -> Explanation:
        """The first problem, and how many more there are."""
        first = self.problems[0].explain()
        return Explanation(
            f"the clause registry has {len(self.problems)} problem(s); the first: {first.what}",
            f"{self.directory}: {first.where}",
            first.expected,
            f"{first.remedy}; `{COMMAND} check` lists every problem",
        )


@dataclass(eq=False)
class UnreadableFile(RegistryError):
    """A file of the registry is missing or is not TOML, JSON or UTF-8."""

    file: str
    reason: str

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"{self.file} cannot be read: {self.reason}",
            self.file,
            "a readable file in the format its name promises",
            "restore the file, or correct it at the place named",
        )


@dataclass(eq=False)
class SchemaViolation(RegistryError):
    """A row lacks a field, has one too many, or holds a value of the wrong form."""

    file: str
    row: str
    field: str
    found: str
    required: str

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"{self.row}: {self.field} is {self.found}",
            f"{self.file}, {self.row}, field {self.field}",
            self.required,
            "correct the field; the schemas under schemas/registry give the form of every file",
        )


@dataclass(eq=False)
class DuplicateId(RegistryError):
    """Two rows have one id."""

    file: str
    id: str
    first_file: str

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"{self.id} is given to two rows",
            f"{self.file}, {self.id}, field id (first given in {self.first_file})",
            "an id that names one row for ever",
            "give the newer row the next free number of its section",
        )


@dataclass(eq=False)
class Inconsistent(RegistryError):
    """A field contradicts another field of its row, or the header of its file."""

    file: str
    id: str
    field: str
    found: str
    required: str

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"{self.id}: {self.field} is {self.found}",
            f"{self.file}, {self.id}, field {self.field}",
            self.required,
            "correct the field, or the one it contradicts",
        )


@dataclass(eq=False)
class BadReference(RegistryError):
    """A row names another that is unknown, withdrawn, or not fit to be named there."""

    file: str
    id: str
    field: str
    target: str
    problem: str
    required: str
    suggestions: tuple[str, ...] = ()

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"{self.id}: {self.field} names {self.target}, which {self.problem}",
            f"{self.file}, {self.id}, field {self.field}",
            self.required,
            f"name another row{_did_you_mean(self.suggestions)}, or take the name out",
        )


@dataclass(eq=False)
class ReusedId(RegistryError):
    """A withdrawn id was given another meaning."""

    file: str
    id: str

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"{self.id} was withdrawn and now stands for something else",
            f"{self.file}, {self.id}, fields status and summary",
            "a withdrawn id stays withdrawn: reports already published cite it",
            'set its status to "withdrawn" again and give the new row the next free number of its section',
        )


@dataclass(eq=False)
class VanishedId(RegistryError):
    """An id that was once issued has no row any more."""

    file: str
    id: str

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"{self.id} was issued and has no row any more",
            f"{self.file}, {self.id}, the whole row",
            "a row for every id ever issued, if only as a tombstone",
            'restore the row and set its status to "withdrawn"',
        )


@dataclass(eq=False)
class LockOutOfDate(RegistryError):
    """The lock does not hold what a row says."""

    file: str
    id: str
    field: str

    def explain(self) -> Explanation:
        """The error in words."""
        what = "is not in the lock" if self.field == "id" else f"has another {self.field} than the lock recorded"
        return Explanation(
            f"{self.id} {what}",
            f"{self.file}, {self.id}, field {self.field}; clauses.lock",
            "a lock that records every id with its source, statement and status",
            f"if the change is meant, run `{COMMAND} lock` and review the lock's diff",
        )


@dataclass(eq=False)
class UnknownClause(RegistryError):
    """No clause has this id; `cited_by` says who asked for it, where that is known."""

    id: str
    suggestions: tuple[str, ...] = ()
    cited_by: tuple[str, ...] = ()

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"there is no clause {self.id}",
            ", ".join(self.cited_by) or "the id given",
            "the id of a clause of the registry",
            f"use another id{_did_you_mean(self.suggestions)}; `{COMMAND} list` prints them all",
        )


@dataclass(eq=False)
class UnknownInterpretation(RegistryError):
    """No interpretation has this id."""

    id: str
    suggestions: tuple[str, ...] = ()

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"there is no interpretation {self.id}",
            "the id given",
            "the id of a row of interpretations.toml",
            f"use another id{_did_you_mean(self.suggestions)}",
        )


@dataclass(eq=False)
class WithdrawnClause(RegistryError):
    """A test is tagged with a clause that was withdrawn."""

    id: str
    cited_by: tuple[str, ...]

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"{self.id} was withdrawn, and a test is tagged with it",
            ", ".join(self.cited_by),
            "tags that name active clauses",
            f"take the tag off, or name the clause that replaced it (`{COMMAND} show {self.id}`)",
        )


@dataclass(eq=False)
class UntestedClause(RegistryError):
    """A clause that a test can verify has neither a test nor a reason why not."""

    file: str
    id: str
    summary: str
    enforced: bool

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"{self.id} has no test: {self.summary}",
            f"{self.file}, {self.id}",
            "a test tagged with it" + (", since its chapter is enforced" if self.enforced else ""),
            f'tag a test with @clause("{self.id}"), or record in the field reason why there is none',
        )


@dataclass(eq=False)
class SourceMissing(RegistryError):
    """A specification is not where it was said to be."""

    document: str
    file: str
    reason: str

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"the text of {self.document} cannot be read: {self.reason}",
            self.file,
            "the five specifications in the directory given with --specs, under the names the registry records",
            "name the directory that holds them",
        )


@dataclass(eq=False)
class DocumentChanged(RegistryError):
    """A specification is not the edition that the registry describes."""

    document: str
    file: str
    recorded_lines: int
    lines: int

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"{self.file} is another edition than the registry records ({self.recorded_lines} lines, now {self.lines})",
            f"{self.document}.toml, [document], fields sha256 and lines",
            "the edition whose SHA-256 the registry records",
            f"settle the clauses listed, look for new ones, then run `{COMMAND} check --specs DIR --update-sources`",
        )


@dataclass(eq=False)
class SourceChanged(RegistryError):
    """The words a clause was read from are no longer in the text."""

    document: str
    id: str
    section: str
    lines: tuple[int, int]

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"the source of {self.id} changed (section {self.section}, {_lines(self.lines)})",
            f"{self.document}.toml, {self.id}, field source",
            "the text this clause was read from",
            f"read {_lines(self.lines)} again; correct lines, summary and level, or withdraw the clause; review its "
            f"tests; then run `{COMMAND} check --specs DIR --update-sources`",
        )


@dataclass(eq=False)
class SourceMoved(RegistryError):
    """The words a clause was read from stand, unchanged, at other lines."""

    document: str
    id: str
    section: str
    lines: tuple[int, int]
    now: tuple[int, int]

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"the source of {self.id} moved (section {self.section}, {_lines(self.lines)}) to {_lines(self.now)}",
            f"{self.document}.toml, {self.id}, field lines",
            "the lines where its text stands",
            f"run `{COMMAND} check --specs DIR --update-sources`",
        )


@dataclass(eq=False)
class LinesOutOfRange(RegistryError):
    """A clause names lines that the text does not have."""

    document: str
    id: str
    lines: tuple[int, int]
    available: int

    def explain(self) -> Explanation:
        """The error in words."""
        return Explanation(
            f"{self.id} was read from {_lines(self.lines)}, and the text ends at line {self.available}",
            f"{self.document}.toml, {self.id}, field lines",
            f"lines between 1 and {self.available}",
            "find the statement in the new edition and correct lines, or withdraw the clause",
        )


def _lines(lines: tuple[int, int]) -> str:
    first, last = lines
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _did_you_mean(suggestions: tuple[str, ...]) -> str:
    return f" (did you mean {' or '.join(suggestions)}?)" if suggestions else ""
