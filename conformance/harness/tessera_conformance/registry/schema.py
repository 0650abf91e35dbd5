"""The registry's files judged by their published JSON Schemas.

`decode` judges every file first and names rows and fields; the schemas are what others rely on, so a file that only
they refuse is a problem too. A test holds both judges equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tessera_conformance.registry.errors import RegistryError, SchemaViolation
from tessera_conformance.registry.model import DOCUMENTS

LOCK_SCHEMA = "lock"


def schema_of(file: str) -> str:
    """The name of the schema a file of the registry obeys."""
    stem = file.partition(".")[0]
    if file.endswith(".lock"):
        return LOCK_SCHEMA
    return "clauses" if stem in DOCUMENTS else stem


def schema_violations(files: Mapping[str, Any]) -> Iterator[RegistryError]:
    """Everything that the schemas refuse in some parsed files."""
    from tessera_conformance.schemas import validator  # jsonschema costs 50 ms, which only a full check needs to pay

    for file, content in files.items():
        for violation in validator(f"tessera:registry/{schema_of(file)}").iter_errors(content):
            yield _as_registry_error(file, content, list(violation.absolute_path), violation.message)


def _as_registry_error(file: str, content: Any, path: list[str | int], message: str) -> RegistryError:
    row = "top level"
    if len(path) >= 2:
        place = content[path[0]][path[1]]
        named = isinstance(place, dict) and isinstance(place.get("id"), str)
        row = place["id"] if named else f"{path[0]}, {path[1]}"
    field = ".".join(str(step) for step in path[2:]) or ".".join(map(str, path)) or "(the file)"
    shortened = message if len(message) <= 200 else f"{message[:200]} ..."
    return SchemaViolation(file, row, field, "refused by the schema", shortened)
