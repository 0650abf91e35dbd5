"""The registry read from its files and compared with the specifications, and the lock that fixes published ids."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tessera_conformance.documents import table_of
from tessera_conformance.registry import model
from tessera_conformance.registry.errors import RegistryError
from tessera_conformance.registry.model import (
    Chapter,
    Clause,
    Construct,
    Document,
    Interpretation,
    NamedProfile,
    Product,
    Registry,
)

# The digest that ties a clause to the lines of the specification from which it was read.
#
# The text itself stays with its authors; the registry records only a digest of it. The text is normalised first, so
# that changed indentation, trailing blanks or an inserted empty line do not count as a change, while a changed word
# does: each line is stripped, runs of white space become one space, empty lines are dropped, characters are composed
# (NFC), and the rest is joined by newlines.


@dataclass(frozen=True)
class Specification:
    """The text of one document, as its lines and the digest of its bytes."""

    lines: tuple[str, ...]
    sha256: str

    @classmethod
    def read(cls, path: Path) -> Specification:
        """Read a document; only newlines end its lines."""
        content = path.read_bytes()
        lines = content.decode("utf-8").removesuffix("\n").split("\n")
        return cls(tuple(lines), hashlib.sha256(content).hexdigest())

    def span(self, first: int, last: int) -> Sequence[str]:
        """Return the lines from `first` to `last`, both counted from one and included."""
        return self.lines[first - 1 : last]


def normalise(lines: Sequence[str]) -> str:
    """Return the lines as their digest sees them: words separated by one blank, without empty lines."""
    words = (" ".join(unicodedata.normalize("NFC", line).split()) for line in lines)
    return "\n".join(line for line in words if line)


def digest(lines: Sequence[str]) -> str:
    """Return the digest of the normalised lines, in the registry's spelling."""
    return "sha256:" + hashlib.sha256(normalise(lines).encode("utf-8")).hexdigest()


def read_specifications(
    documents: Iterable[Document], directory: Path
) -> tuple[dict[str, Specification], list[RegistryError]]:
    """Return the texts found in a directory, by document key, and an error for each missing one."""
    specifications: dict[str, Specification] = {}
    missing: list[RegistryError] = []
    for document in documents:
        path = directory / document.file
        try:
            specifications[document.key] = Specification.read(path)
        except (OSError, UnicodeDecodeError) as error:
            missing.append(RegistryError("source missing", document=document.key, file=str(path), error=error))
    return specifications, missing


def changed_sources(registry: Registry, specifications: Mapping[str, Specification]) -> Iterator[RegistryError]:
    """Yield the differences between the texts and the registry's record of them."""
    for key, specification in specifications.items():
        document = registry.documents[key]
        if specification.sha256 != document.sha256:
            lines = {"recorded_lines": document.lines, "lines": len(specification.lines)}
            yield RegistryError("document changed", document=key, file=document.file, **lines)
        for clause in registry.clauses_of(key):
            yield from changes_of(clause, specification)


def changes_of(clause: Clause, specification: Specification) -> Iterator[RegistryError]:
    """Yield the difference between the text of a clause and the registry's record of it, if there is one."""
    first, last = clause.lines
    if not clause.active or digest(specification.span(first, last)) == clause.source:
        return
    place = {name: getattr(clause, name) for name in ("document", "id", "section", "lines")}
    elsewhere = _find(clause, specification)
    if elsewhere is not None:
        yield RegistryError("source moved", **place, now=elsewhere)
    elif last > len(specification.lines):
        yield RegistryError("lines out of range", **place, available=len(specification.lines))
    else:
        yield RegistryError("source changed", **place)


def _find(clause: Clause, specification: Specification) -> tuple[int, int] | None:
    """Return the current lines of a clause's recorded text, as near as possible to the old ones."""
    first, last = clause.lines
    height = last - first
    starts = sorted(range(1, len(specification.lines) - height + 1), key=lambda start: abs(start - first))
    for start in starts:
        if digest(specification.span(start, start + height)) == clause.source:
            return start, start + height
    return None


def record_sources(registry: Registry, specifications: Mapping[str, Specification], directory: Path) -> None:
    """Write the digests of the current texts into the files, and the new lines of texts that only moved."""
    for key, specification in specifications.items():
        path = directory / f"{key}.toml"
        header, *rows = path.read_text(encoding="utf-8").split(_ROW)
        tables = [_with(header, lines=len(specification.lines), sha256=specification.sha256)]
        for clause, row in zip(registry.clauses_of(key), rows, strict=True):
            lines = _find(clause, specification) or clause.lines
            source = digest(specification.span(*lines))
            tables.append(_with(row, lines=list(lines), source=source) if clause.active else row)
        path.write_text(_ROW.join(tables), encoding="utf-8", newline="\n")


_ROW = "\n[[clause]]\n"


def _with(table: str, **values: Any) -> str:
    """Return the text of a table with new values of existing fields."""
    for name, value in values.items():
        table = re.sub(rf"^{name} = .*$", f"{name} = {json.dumps(value)}", table, count=1, flags=re.MULTILINE)
    return table


# The registry's files judged by their published JSON Schemas, with the row and the field of everything refused.


LOCK_SCHEMA = "lock"
LONGEST = 200
"""Characters of a value or a rule that an error shows."""


def schema_of(file: str) -> str:
    """Return the name of the schema that a file of the registry obeys."""
    stem = file.partition(".")[0]
    if file.endswith(".lock"):
        return LOCK_SCHEMA
    return "clauses" if stem in model.DOCUMENTS else stem


def schema_violations(file: str, content: Any) -> list[RegistryError]:
    """Return every violation of its schema by a parsed file."""
    from tessera_conformance.schemas import validator  # jsonschema takes 60 ms to import

    refusals = validator(f"tessera:registry/{schema_of(file)}").iter_errors(content)
    faults = dict.fromkeys(fault for refusal in refusals for fault in _faults(content, refusal))
    names = ("row", "field", "found", "required")
    return [RegistryError("schema violation", file=file, **dict(zip(names, fault, strict=True))) for fault in faults]


def _faults(content: Any, error: Any) -> Iterator[tuple[str, str, str, str]]:
    """Yield row, field, actual value and requirement."""
    row, field = _place(content, list(error.absolute_path))
    rules, required = error.schema, _shortened(error.message)
    if "description" in rules:
        required = f"{rules['description']} ({required})"
    if error.validator == "required":
        for name in error.validator_value:
            if name not in error.instance:
                described = rules.get("properties", {}).get(name, rules).get("description")
                yield row, ".".join(filter(None, [field, name])), "missing", described or f"a value for {name}"
    elif error.validator == "additionalProperties":
        properties, patterns = rules.get("properties", {}), rules.get("patternProperties", {})
        known = f"one of {', '.join([*properties, *(f'a name such as {pattern}' for pattern in patterns)])}"
        for name in sorted(error.instance.keys() - properties):
            if not any(re.search(pattern, name) for pattern in patterns):
                yield row, ".".join(filter(None, [field, name])), "unknown", known
    else:
        yield row, field or "(the whole)", _shortened(repr(error.instance)), required


def _place(content: Any, path: Sequence[str | int]) -> tuple[str, str]:
    """Return the row at a path in a parsed file, and the field in that row."""
    row, rest = "top level", list(path)
    match path:
        case ["document", *rest]:
            row = "[document]"
        case ["ids", str(name), *rest]:
            row = f"ids, {name}"
        case [str(table), int(index), *rest]:
            entry = content[table][index]
            named = isinstance(entry, dict) and isinstance(entry.get("id"), str)
            row = entry["id"] if named else f"[[{table}]] number {index + 1}"
    return row, ".".join(map(str, rest))


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


# Relations of the registry's rows to each other and to the headers of their files.
#
# An id starts with its document's prefix and its section. Lines are in the document. Every row named exists and may be
# named there. A clause names an interpretation exactly if that interpretation says that it affects the clause.


Row = TypeVar("Row", Clause, Interpretation)

REQUIRED = {
    "duplicate_of": "an active clause that is no duplicate",
    "interpretations": "an active interpretation whose affects names this clause",
    "affects": "a clause whose interpretations name this one",
    "clauses": "an active testable core MUST clause",
}
"""The fields that name another row, and the required kind of row."""


def problems(registry: Registry) -> Iterator[RegistryError]:
    """Yield every contradiction between rows, in the order of the rows."""
    for key, document in registry.documents.items():
        if document.key != key:
            yield _inconsistent(
                f"{key}.toml", "[document]", "key", repr(document.key), f'"{key}", the name of its file'
            )
    for clause in registry.clauses.values():
        yield from _problems_of_clause(clause, registry)
    for interpretation in registry.interpretations.values():
        yield from _problems_of_interpretation(interpretation, registry)
    for profile in registry.profiles:
        yield from _problems_of_profile(profile, registry)


def _problems_of_clause(clause: Clause, registry: Registry) -> Iterator[RegistryError]:
    document = registry.documents[clause.document]
    chapter, point, rest = clause.section.partition(".")
    number = chapter.zfill(2) if chapter.isdigit() else chapter  # so that ids sort as the document reads
    stem = f"{document.prefix}-{number}{point}{rest}-"
    if not clause.id.startswith(stem):
        yield _inconsistent(clause.file, clause.id, "id", repr(clause.id), f"an id that begins with {stem}")
    first, last = clause.lines
    if not first <= last <= document.lines:
        required = f"first <= last <= {document.lines}, the lines of {document.file}"
        yield _inconsistent(clause.file, clause.id, "lines", f"[{first}, {last}]", required)

    def of_twin(twin: Clause) -> str:
        if twin.id == clause.id:
            return "is the clause itself"
        if clause.active and not twin.active:
            return "is withdrawn"
        return f"is itself a duplicate, of {twin.duplicate_of}" if twin.duplicate_of is not None else ""

    def of_cited(row: Interpretation) -> str:
        if clause.active and not row.active:
            return "is withdrawn"
        return "" if clause.id in row.affects else "does not say that it affects this clause"

    twins = () if clause.duplicate_of is None else (clause.duplicate_of,)
    yield from _bad_references(clause, "duplicate_of", twins, registry.clauses, of_twin)
    yield from _bad_references(clause, "interpretations", clause.interpretations, registry.interpretations, of_cited)


def _problems_of_interpretation(row: Interpretation, registry: Registry) -> Iterator[RegistryError]:
    document = registry.documents.get(row.document)
    if document and not row.id.startswith(f"AMB-{document.prefix}-"):
        yield _inconsistent(row.file, row.id, "id", repr(row.id), f"an id that begins with AMB-{document.prefix}-")

    def of_affected(clause: Clause) -> str:
        return "" if row.id in clause.interpretations else "does not name this interpretation"

    yield from _bad_references(row, "affects", row.affects, registry.clauses, of_affected)


def _problems_of_profile(profile: NamedProfile, registry: Registry) -> Iterator[RegistryError]:
    others = {name for other in registry.profiles if other is not profile for name in other.features}
    for feature in profile.features:
        known = feature in registry.features
        if not known or feature in others:
            required = "features of no other profile" if known else "features of the registry"
            yield _inconsistent(profile.file, profile.id, "features", repr(feature), required)

    def of_clause(clause: Clause) -> str:
        is_core = (clause.level, clause.profile) == ("MUST", "core")
        return "" if clause.active and clause.testable and is_core else "is no testable core MUST"

    yield from _bad_references(profile, "clauses", profile.clauses, registry.clauses, of_clause)


def _inconsistent(file: str, row: str, field: str, found: str, required: str) -> RegistryError:
    return RegistryError("inconsistent", file=file, id=row, field=field, found=found, required=required)


def _bad_references(
    row: Clause | Interpretation | NamedProfile,
    field: str,
    names: Iterable[str],
    targets: Mapping[str, Row],
    problem_of: Callable[[Row], str],
) -> Iterator[RegistryError]:
    """Yield the rows that a field names and that do not exist, or have a problem."""
    for name in names:
        problem = problem_of(targets[name]) if name in targets else "does not exist"
        if problem:
            suggestions = () if name in targets else model.nearest(name, targets)
            wrong = {"target": name, "problem": problem, "required": REQUIRED[field], "suggestions": suggestions}
            yield RegistryError("bad reference", file=row.file, id=row.id, field=field, **wrong)


# Reading the registry's files.
#
# `read` returns everything readable with a list of the problems, for `clauses check`; `load_registry` returns a sound
# registry or raises the first problem.


CHAPTERS = "chapters.toml"


def load_registry(directory: Path) -> Registry:
    """Return the registry of a directory; raise `RegistryError` unless it can be read and its references are sound.

    The schemas, which take longer than everything else, are checked only if something is wrong; `clauses check` and the
    project's tests always check them.
    """
    try:
        registry, wrong = read(directory, by_schema=False)
        sound = not wrong and not any(True for _ in problems(registry))
    except (AttributeError, KeyError, TypeError, ValueError):  # a row that is not of its type's form
        sound = False
    if not sound:
        registry, wrong = read(directory)
        wrong += () if wrong else problems(registry)
        text = wrong[0].explain()
        raise RegistryError("invalid registry", directory=str(directory), problems=wrong, number=len(wrong), **text)
    return registry


def read(directory: Path, *, by_schema: bool = True) -> tuple[Registry, list[RegistryError]]:
    """Return everything readable in a directory, and the problems; a file that its schema refuses has no rows."""
    wrong: list[RegistryError] = []

    def content(file: str) -> Mapping[str, Any]:
        """Return the parsed file; record a problem and return {} if it cannot be read or is refused."""
        try:
            table = table_of(directory / file)
        except (OSError, ValueError) as error:
            wrong.append(RegistryError("unreadable file", file=file, error=error))
            return {}
        violations = schema_violations(file, table) if by_schema else []
        wrong.extend(violations)
        return {} if violations else table

    def add(rows: dict[str, Row], row: Row, file: str) -> None:
        if row.id in rows:
            wrong.append(RegistryError("duplicate id", file=file, id=row.id, first_file=rows[row.id].file))
        else:
            rows[row.id] = row

    documents: dict[str, Document] = {}
    clauses: dict[str, Clause] = {}
    for key in model.DOCUMENTS:
        table = content(f"{key}.toml")
        if table:
            documents[key] = Document(**table["document"])
        for row in table.get("clause", ()):
            add(clauses, Clause(document=key, **_with_tuples(row)), f"{key}.toml")
    interpretations: dict[str, Interpretation] = {}
    for row in content(model.INTERPRETATIONS).get("interpretation", ()):
        add(interpretations, Interpretation(**_with_tuples(row)), model.INTERPRETATIONS)
    enforced = tuple(Chapter(**_with_tuples(row)) for row in content(CHAPTERS).get("enforced", ()))
    table = content(model.PROFILES)
    profiles = tuple(NamedProfile(**_with_tuples(row)) for row in table.get("profile", ()))
    products = tuple(Product(**_with_tuples(row)) for row in table.get("product", ()))
    constructs = tuple(Construct(**_with_tuples(row)) for row in content(model.CONSTRUCTS).get("construct", ()))
    registry = Registry(documents, clauses, interpretations, enforced, profiles, constructs, products)
    return registry, wrong


def _with_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}


# The lock: every id ever issued, with its meaning, so that no id is ever given a second meaning.
#
# The lock records each row's status, the digest of its statement and, for a clause, the digest of its source. `clauses
# lock` writes it and `clauses check` compares it; its diff shows a reviewer the changed meanings.


FILE = "clauses.lock"
FORMAT = 1


Lock = Mapping[str, Mapping[str, str]]
"""The status of each id, the digest of its statement and, for a clause, the digest of its source."""


def lock_of(registry: Registry) -> dict[str, dict[str, str]]:
    """Return the lock that matches a registry."""
    return {name: _entry(row) for name, row in registry.rows.items()}


def _entry(row: Clause | Interpretation) -> dict[str, str]:
    statement = row.summary if isinstance(row, Clause) else f"{row.issue}\n{row.decision}"
    entry = {"status": row.status, "statement": f"sha256:{hashlib.sha256(statement.encode()).hexdigest()}"}
    return entry | ({"source": row.source} if isinstance(row, Clause) else {})


def read_lock(directory: Path) -> tuple[Lock, list[RegistryError]]:
    """Return the lock of a directory, and the problems of its file."""
    try:
        content = json.loads((directory / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return {}, [RegistryError("unreadable file", file=FILE, error=error)]
    wrong = schema_violations(FILE, content)
    return {} if wrong else content["ids"], wrong


def write_lock(registry: Registry, directory: Path) -> None:
    """Write the lock that matches a registry: JSON, sorted, one id a line."""
    lines = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(lock_of(registry).items())]
    text = "\n".join(["{", f'"format": {FORMAT},', '"ids": {', ",\n".join(lines), "}", "}", ""])
    (directory / FILE).write_text(text, encoding="utf-8", newline="\n")


def broken_promises(registry: Registry, lock: Lock) -> Iterator[RegistryError]:
    """Yield ids that vanished without a tombstone or returned with another meaning; no new lock may hide them."""
    files = {document.prefix: f"{document.key}.toml" for document in registry.documents.values()}
    for name, entry in lock.items():
        row = registry.rows.get(name)
        if row is None:
            file = files.get(name.partition("-")[0], model.INTERPRETATIONS)
            yield RegistryError("vanished id", file=file, id=name)
        elif entry["status"] == "withdrawn" and _entry(row) | {"status": "withdrawn"} != entry:
            yield RegistryError("reused id", file=row.file, id=name)


def differences(registry: Registry, lock: Lock) -> Iterator[RegistryError]:
    """Yield the differences of the lock from the rows, which `clauses lock` settles."""
    for name, row in registry.rows.items():
        entry = _entry(row) if name in lock else {"id": name}
        for field in [field for field, value in entry.items() if value != lock.get(name, {}).get(field)]:
            difference = "is not in the lock" if field == "id" else f"has another {field} than the lock recorded"
            yield RegistryError("lock out of date", file=row.file, id=name, field=field, difference=difference)


# The whole check of a registry: form, schemas, references, lock, in that order.
#
# Each step needs the one before it: if a file cannot be read, every id in it looks vanished.


def examine(directory: Path) -> tuple[Registry | None, list[RegistryError]]:
    """Return the registry of a directory, or None if its files cannot be read, and all problems."""
    registry, wrong = read(directory)
    if wrong:
        return None, wrong
    lock, wrong = read_lock(directory)
    wrong += problems(registry)
    if not wrong:
        broken = list(broken_promises(registry, lock))
        named = {problem.id for problem in broken}
        wrong = [*broken, *(problem for problem in differences(registry, lock) if problem.id not in named)]
    return registry, wrong
