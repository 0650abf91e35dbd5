"""The published JSON Schemas, loaded once and turned into validators.

A schema is named by its `$id`, `tessera:protocol/messages`, and a part of it by a definition: `tessera:report/lines`
with `observation`. The files live in `schemas/`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import jsonschema
import referencing
from referencing.jsonschema import DRAFT202012

from tessera_conformance.locations import schemas_directory

Validator = jsonschema.protocols.Validator


@cache
def schemas() -> Mapping[str, dict[str, Any]]:
    """Every schema file of the project, by `$id`."""
    found = {}
    for path in sorted(schemas_directory().rglob("*.schema.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        found[document["$id"]] = document
    return found


@cache
def validator(schema: str, definition: str = "") -> Validator:
    """A validator for a whole schema, or for one definition: `("tessera:protocol/messages", "outcome")`."""
    resources = [(name, DRAFT202012.create_resource(document)) for name, document in schemas().items()]
    registry: referencing.Registry[Any] = referencing.Registry().with_resources(resources)
    reference = {"$ref": f"{schema}#/$defs/{definition}" if definition else schema}
    return cast(Validator, jsonschema.Draft202012Validator(reference, registry=registry))


def has_definition(schema: str, definition: str) -> bool:
    """Whether the project publishes this definition."""
    return definition in schemas().get(schema, {}).get("$defs", {})


def first_problem(schema: str, definition: str, value: Any) -> str | None:
    """What is wrong with `value`: the field's path and the complaint of the deepest error, or None."""
    error = jsonschema.exceptions.best_match(validator(schema, definition).iter_errors(value))
    if error is None:
        return None
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    return f"{path.lstrip('.') or 'message'}: {error.message[:300]}"
