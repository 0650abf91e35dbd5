"""The registry's files judged by their published JSON Schemas, with the row and the field of everything refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tessera_conformance.registry.errors import SchemaViolation
from tessera_conformance.registry.model import DOCUMENTS

LOCK_SCHEMA = "lock"
LONGEST = 200
"""Characters of a value or a rule that an error shows."""


def schema_of(file: str) -> str:
    """The name of the schema a file of the registry obeys."""
    stem = file.partition(".")[0]
    if file.endswith(".lock"):
        return LOCK_SCHEMA
    return "clauses" if stem in DOCUMENTS else stem


def schema_violations(file: str, content: Any) -> list[SchemaViolation]:
    """Everything that the schema of a file refuses in its parsed content."""
    from tessera_conformance.schemas import validator  # jsonschema takes 60 ms to import

    errors = validator(f"tessera:registry/{schema_of(file)}").iter_errors(content)
    faults = [fault for error in errors for fault in _faults(content, error)]
    return [SchemaViolation(file, *fault) for fault in dict.fromkeys(faults)]


def _faults(content: Any, error: Any) -> Iterator[tuple[str, str, str, str]]:
    """Row, field, what was found and what is required."""
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
        for name in _unknown(error.instance, rules):
            yield row, ".".join(filter(None, [field, name])), "unknown", _known(rules)
    else:
        yield row, field or "(the whole)", _shortened(repr(error.instance)), required


def _place(content: Any, path: Sequence[str | int]) -> tuple[str, str]:
    """The row of a path in a parsed file, and the field in that row."""
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


def _unknown(entry: Mapping[str, Any], rules: Mapping[str, Any]) -> list[str]:
    patterns = rules.get("patternProperties", {})
    known = rules.get("properties", {})
    return sorted(name for name in entry if name not in known and not any(re.search(each, name) for each in patterns))


def _known(rules: Mapping[str, Any]) -> str:
    patterns = [f"a name such as {pattern}" for pattern in rules.get("patternProperties", {})]
    return f"one of {', '.join([*rules.get('properties', {}), *patterns])}"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
