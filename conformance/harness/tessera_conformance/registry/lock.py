"""The lock, in which no id is ever given a second meaning, and the whole check of a registry."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tessera_conformance.registry import load
from tessera_conformance.registry import load as consistency
from tessera_conformance.registry.errors import LockOutOfDate, RegistryError, ReusedId, UnreadableFile, VanishedId
from tessera_conformance.registry.load import schema_violations
from tessera_conformance.registry.model import INTERPRETATIONS, Clause, Interpretation, Registry, Status

# The lock: every id ever issued, with what it stood for, so that no id is ever given a second meaning.
#
# The lock records of each row its status, a digest of its statement and, for a clause, the digest of its source. It
# is written by `clauses lock` and compared by `clauses check`; its diff shows a reviewer which meanings changed.


FILE = "clauses.lock"
FORMAT = 1


@dataclass(frozen=True)
class Entry:
    """The meaning of an id when the lock was written; `source` is absent for interpretations."""

    status: Status
    statement: str
    source: str | None = None


Lock = Mapping[str, Entry]


def lock_of(registry: Registry) -> dict[str, Entry]:
    """The lock that fits a registry."""
    return {name: _entry(row) for name, row in _rows(registry).items()}


def _rows(registry: Registry) -> dict[str, Clause | Interpretation]:
    return {**registry.clauses, **registry.interpretations}


def _entry(row: Clause | Interpretation) -> Entry:
    if isinstance(row, Clause):
        return Entry(row.status, _digest(row.summary), row.source)
    return Entry(row.status, _digest(row.issue, row.decision))


def _digest(*statement: str) -> str:
    return "sha256:" + hashlib.sha256("\n".join(statement).encode("utf-8")).hexdigest()


def parsed(directory: Path) -> Any:
    """The JSON of the lock file; raises `UnreadableFile`."""
    try:
        return json.loads((directory / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnreadableFile(FILE, error) from error


def entries(content: Any) -> dict[str, Entry]:
    """The lock in parsed JSON that its schema accepts."""
    return {name: Entry(**entry) for name, entry in content["ids"].items()}


def read(directory: Path) -> dict[str, Entry]:
    """The lock of a directory; raises `UnreadableFile` or `SchemaViolation`."""
    content = parsed(directory)
    for violation in schema_violations(FILE, content):
        raise violation
    return entries(content)


def write(registry: Registry, directory: Path) -> None:
    """Write the lock that fits a registry."""
    (directory / FILE).write_text(written(lock_of(registry)), encoding="utf-8", newline="\n")


def written(lock: Lock) -> str:
    """A lock as text: JSON, sorted, one id a line."""
    lines = [f"  {json.dumps(name)}: {_fields(lock[name])}" for name in sorted(lock)]
    return "\n".join(["{", f'"format": {FORMAT},', '"ids": {', ",\n".join(lines), "}", "}", ""])


def _fields(entry: Entry) -> str:
    return json.dumps({name: value for name, value in asdict(entry).items() if value is not None})


def broken_promises(registry: Registry, lock: Lock) -> Iterator[VanishedId | ReusedId]:
    """Ids that vanished without a tombstone, or came back with another meaning: what no new lock may hide."""
    rows = _rows(registry)
    for name, entry in lock.items():
        if name not in rows:
            yield VanishedId(_probable_file(name, registry), name)
        elif entry.status == "withdrawn" and _meaning(_entry(rows[name])) != _meaning(entry):
            yield ReusedId(rows[name].file, name)


def differences(registry: Registry, lock: Lock) -> Iterator[LockOutOfDate]:
    """Rows that the lock does not hold as they are: what `clauses lock` writes down."""
    rows = _rows(registry)
    for name, entry in lock_of(registry).items():
        row = rows[name]
        if name not in lock:
            yield LockOutOfDate(row.file, name, "id")
            continue
        for field, value in asdict(entry).items():
            if value != getattr(lock[name], field):
                yield LockOutOfDate(row.file, name, field)


def _meaning(entry: Entry) -> tuple[str, str | None]:
    return entry.statement, entry.source


def _probable_file(name: str, registry: Registry) -> str:
    prefix = name.partition("-")[0]
    keys = [document.key for document in registry.documents.values() if document.prefix == prefix]
    return f"{keys[0]}.toml" if keys else INTERPRETATIONS


# The whole check of a registry: form, schemas, references, lock, in that order.
#
# Each step needs the one before it: a file that cannot be read would make every id in it look vanished.


def examine(directory: Path) -> tuple[Registry | None, list[RegistryError]]:
    """The registry of a directory, unless its files cannot be read as one, and everything that is wrong with it."""
    reading = load.read(directory)
    if reading.problems:
        return None, list(reading.problems)
    problems, locked = _form_of_the_lock(directory)
    problems += consistency.problems(reading.registry)
    if not problems:
        problems += _broken_by(reading.registry, entries(locked))
    return reading.registry, problems


def _form_of_the_lock(directory: Path) -> tuple[list[RegistryError], Any]:
    try:
        locked = parsed(directory)
    except RegistryError as error:
        return [error], None
    return [*schema_violations(FILE, locked)], locked


def _broken_by(registry: Registry, entries: Lock) -> Iterator[RegistryError]:
    broken = list(broken_promises(registry, entries))
    yield from broken
    named = {problem.id for problem in broken}
    yield from (problem for problem in differences(registry, entries) if problem.id not in named)
