"""Reading the registry's files.

`read` takes in whatever is there and keeps a list of what is wrong, for `clauses check`; `load` wants a registry it can
rely on and raises `InvalidRegistry` otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tessera_conformance.registry import consistency
from tessera_conformance.registry.errors import DuplicateId, InvalidRegistry, RegistryError, UnreadableFile
from tessera_conformance.registry.kept_tables import table_of
from tessera_conformance.registry.model import (
    CONSTRUCTS,
    DOCUMENTS,
    INTERPRETATIONS,
    PROFILES,
    Chapter,
    Clause,
    Construct,
    Document,
    Interpretation,
    NamedProfile,
    Product,
    Registry,
)
from tessera_conformance.registry.schema import schema_violations

CHAPTERS = "chapters.toml"

Row = TypeVar("Row", Clause, Interpretation)


@dataclass(frozen=True)
class Reading:
    """What a directory holds: the registry as far as it could be read, and the problems."""

    registry: Registry
    problems: tuple[RegistryError, ...]


def load_registry(directory: Path) -> Registry:
    """The registry of a directory; raises `InvalidRegistry` unless it can be read and its references are sound.

    The schemas, which take longer than all the rest, are asked only where something is wrong; `clauses check` and the
    project's tests always ask them.
    """
    try:
        reading = _Reader(directory, by_schema=False).read()
        sound = not reading.problems and not any(True for _ in consistency.problems(reading.registry))
    except (AttributeError, KeyError, TypeError, ValueError):  # a row that is not of its type's form
        sound = False
    if not sound:
        reading = read(directory)
        raise InvalidRegistry(str(directory), reading.problems or tuple(consistency.problems(reading.registry)))
    return reading.registry


def read(directory: Path) -> Reading:
    """Whatever can be read in a directory; a file that its schema refuses contributes no rows."""
    return _Reader(directory, by_schema=True).read()


class _Reader:
    """Collects rows and problems, file by file."""

    def __init__(self, directory: Path, by_schema: bool) -> None:
        self.directory = directory
        self.by_schema = by_schema
        self.problems: list[RegistryError] = []

    def read(self) -> Reading:
        documents: dict[str, Document] = {}
        clauses: dict[str, Clause] = {}
        for key in DOCUMENTS:
            file = f"{key}.toml"
            content = self._content(file)
            if content:
                documents[key] = Document(**content["document"])
            for row in content.get("clause", ()):
                self._add(clauses, Clause(document=key, **_with_tuples(row)), file)
        interpretations: dict[str, Interpretation] = {}
        for row in self._content(INTERPRETATIONS).get("interpretation", ()):
            self._add(interpretations, Interpretation(**_with_tuples(row)), INTERPRETATIONS)
        enforced = tuple(Chapter(**_with_tuples(row)) for row in self._content(CHAPTERS).get("enforced", ()))
        table = self._content(PROFILES)
        profiles = tuple(NamedProfile(**_with_tuples(row)) for row in table.get("profile", ()))
        products = tuple(Product(**_with_tuples(row)) for row in table.get("product", ()))
        constructs = tuple(Construct(**_with_tuples(row)) for row in self._content(CONSTRUCTS).get("construct", ()))
        registry = Registry(documents, clauses, interpretations, enforced, profiles, constructs, products)
        return Reading(registry, tuple(self.problems))

    def _content(self, file: str) -> Mapping[str, Any]:
        """The parsed file; nothing, and a problem, of one that cannot be read or is refused."""
        try:
            content = table_of(self.directory / file)
        except (OSError, ValueError) as error:
            self.problems.append(UnreadableFile(file, error))
            return {}
        violations = schema_violations(file, content) if self.by_schema else []
        if violations:
            self.problems += violations
            return {}
        return content

    def _add(self, rows: dict[str, Row], row: Row, file: str) -> None:
        if row.id in rows:
            self.problems.append(DuplicateId(file, row.id, rows[row.id].file))
        else:
            rows[row.id] = row


def _with_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
