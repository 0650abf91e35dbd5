"""The published JSON Schemas, loaded once, and whether a value follows one.

A schema is named by its `$id`, `tessera:protocol/messages`, and a part of it by a definition: `tessera:report/lines`
with `observation`. The files live in `schemas/`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from tessera_conformance.locations import schemas_directory
from tessera_conformance.schema_checks import Check, OutsideTheSubset, check_of
from tessera_conformance.tensors import Tensor

if TYPE_CHECKING:
    import jsonschema  # 50 ms, and only a refused message needs it

TENSOR = "tessera:protocol/messages#/$defs/tensor"


@cache
def schemas() -> Mapping[str, dict[str, Any]]:
    """Every schema file of the project, by `$id`."""
    found = {}
    for path in sorted(schemas_directory().rglob("*.schema.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        found[document["$id"]] = document
    return found


def has_definition(schema: str, definition: str) -> bool:
    """Whether the project publishes this definition."""
    return definition in schemas().get(schema, {}).get("$defs", {})


def first_problem(schema: str, definition: str, value: Any, *, decoded: bool = False) -> str | None:
    """What is wrong with `value`: the field's path and the complaint of the deepest error, or None.

    A `decoded` message holds `Tensor` objects, which have checked themselves, where the schema has tensors.
    """
    if _check(schema, definition, decoded)(value):
        return None
    return _explanation(validator(schema, definition, decoded), value)


@cache
def validator(schema: str, definition: str = "", decoded: bool = False) -> jsonschema.protocols.Validator:
    """The validator of jsonschema for a whole schema, or for one definition."""
    import jsonschema

    draft = jsonschema.Draft202012Validator
    types = draft.TYPE_CHECKER.redefine("tensor", lambda checker, value: isinstance(value, Tensor))
    extended = jsonschema.validators.extend(draft, type_checker=types)  # type: ignore[no-untyped-call]
    return cast("jsonschema.protocols.Validator", extended(_part(schema, definition, decoded)))


@cache
def _check(schema: str, definition: str, decoded: bool) -> Check:
    try:
        return check_of(_part(schema, definition, decoded))
    except OutsideTheSubset:
        return validator(schema, definition, decoded).is_valid


def _part(schema: str, definition: str, decoded: bool = False) -> Any:
    """A schema with every reference replaced by what it names; no schema of the project refers to itself."""
    document = schemas()[schema]
    return _inlined(document["$defs"][definition] if definition else document, schema, decoded)


def _inlined(node: Any, schema: str, decoded: bool) -> Any:
    if isinstance(node, list):
        return [_inlined(item, schema, decoded) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target, _, definition = node["$ref"].partition("#/$defs/")
        if decoded and f"{target or schema}#/$defs/{definition}" == TENSOR:
            return {"type": "tensor"}
        return _part(target or schema, definition, decoded)
    return {key: _inlined(value, schema, decoded) for key, value in node.items() if key != "$defs"}


def complete_schema(schema: str, definition: str) -> dict[str, Any]:
    """Return a definition as a schema of its own, which refers to no other file."""
    document = schemas()[schema]
    return {"$schema": document["$schema"], "title": document["title"], **_part(schema, definition)}


MOST_ERRORS = 20
"""Errors that are looked at to explain what is wrong: an answer of 300,000 wrong elements has as many."""


def problems(schema: str, definition: str, value: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """Everything that is wrong with `value`: the place and the complaint, in the order of places."""
    found = islice(validator(schema, definition).iter_errors(value), MOST_ERRORS)
    complaints = [(tuple(error.absolute_path), error.message[:300]) for error in found]
    return sorted(complaints, key=lambda each: [*map(str, each[0])])


def _explanation(judge: jsonschema.protocols.Validator, value: Any) -> str | None:
    """The deepest error that a validator finds, with its place; None where it finds none."""
    import jsonschema

    error = jsonschema.exceptions.best_match(islice(judge.iter_errors(value), MOST_ERRORS))
    if error is None:
        return None
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    return f"{path.lstrip('.') or 'message'}: {error.message[:300]}"
