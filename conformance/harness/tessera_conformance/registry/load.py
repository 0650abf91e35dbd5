"""Reading the registry's files.

`read` takes in whatever is there and keeps a list of what is wrong, for `clauses check`; `load` wants a registry it can
rely on and raises `InvalidRegistry` otherwise.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tessera_conformance.registry import consistency, decode
from tessera_conformance.registry.errors import DuplicateId, InvalidRegistry, RegistryError, UnreadableFile
from tessera_conformance.registry.model import DOCUMENTS, Chapter, Clause, Document, Interpretation, Registry

INTERPRETATIONS = "interpretations.toml"
CHAPTERS = "chapters.toml"

Row = TypeVar("Row", Clause, Interpretation)


@dataclass(frozen=True)
class Reading:
    """What a directory holds: the registry as far as it could be read, the files as parsed, and the problems."""

    registry: Registry
    files: Mapping[str, Mapping[str, Any]]
    problems: tuple[RegistryError, ...]


def load_registry(directory: Path) -> Registry:
    """The registry of a directory; raises `InvalidRegistry` unless its files and references are sound."""
    reading = read(directory)
    problems = reading.problems or tuple(consistency.problems(reading.registry))
    if problems:
        raise InvalidRegistry(str(directory), problems)
    return reading.registry


def read(directory: Path) -> Reading:
    """Whatever can be read in a directory; a file with a problem contributes no rows."""
    return _Reader(directory).read()


class _Reader:
    """Collects rows and problems, file by file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.files: dict[str, Mapping[str, Any]] = {}
        self.problems: list[RegistryError] = []

    def read(self) -> Reading:
        documents: dict[str, Document] = {}
        clauses: dict[str, Clause] = {}
        for key in DOCUMENTS:
            self._read_document(key, documents, clauses)
        interpretations: dict[str, Interpretation] = {}
        for row in self._rows(INTERPRETATIONS, decode.INTERPRETATION_FILE):
            self._add(interpretations, decode.interpretation(row), INTERPRETATIONS)
        enforced: tuple[Chapter, ...] = tuple(map(decode.chapter, self._rows(CHAPTERS, decode.CHAPTER_FILE)))
        registry = Registry(documents, clauses, interpretations, enforced)
        return Reading(registry, self.files, tuple(self.problems))

    def _read_document(self, key: str, documents: dict[str, Document], clauses: dict[str, Clause]) -> None:
        file = f"{key}.toml"
        rows = self._rows(file, decode.CLAUSE_FILE)
        if file in self.files:
            documents[key] = decode.document(self.files[file]["document"])
        for row in rows:
            self._add(clauses, decode.clause(row, key), file)

    def _rows(self, file: str, table: decode.Table) -> list[Mapping[str, Any]]:
        """The rows of a valid file, which is kept; none, and a problem, of any other."""
        try:
            content = tomllib.loads((self.directory / file).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            self.problems.append(UnreadableFile(file, _reason(error)))
            return []
        violations = list(decode.violations(content, table, file))
        if violations:
            self.problems += violations
            return []
        self.files[file] = content
        rows: list[Mapping[str, Any]] = content.get(table.rows, [])
        return rows

    def _add(self, rows: dict[str, Row], row: Row, file: str) -> None:
        if row.id in rows:
            self.problems.append(DuplicateId(file, row.id, _file_of(rows[row.id])))
        else:
            rows[row.id] = row


def _file_of(row: Clause | Interpretation) -> str:
    return f"{row.document}.toml" if isinstance(row, Clause) else INTERPRETATIONS


def _reason(error: OSError | UnicodeDecodeError | tomllib.TOMLDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
