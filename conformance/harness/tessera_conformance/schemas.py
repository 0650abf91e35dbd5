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

from tessera_conformance.locations import schemas_directory
from tessera_conformance.tensors import Tensor

Validator = jsonschema.protocols.Validator

TENSOR = "tessera:protocol/messages#/$defs/tensor"


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
    """A validator for a whole schema, or for one definition: `("tessera:protocol/messages", "outcome")`.

    References are replaced by what they name beforehand: resolving them at each use takes most of the time of a small
    message. No schema of the project refers to itself.
    """
    return cast(Validator, jsonschema.Draft202012Validator(_part(schema, definition)))


@cache
def decoded_validator(schema: str, definition: str) -> Validator:
    """The same for messages whose tensors are already `Tensor` objects, which have checked themselves."""
    return cast(Validator, _DecodedValidator(_part(schema, definition, {TENSOR: {"type": "tensor"}})))


_DecodedValidator = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "tensor", lambda checker, value: isinstance(value, Tensor)
    ),
)


def _part(schema: str, definition: str, instead: Mapping[str, Any] | None = None) -> Any:
    document = schemas()[schema]
    return _inlined(document["$defs"][definition] if definition else document, schema, instead or {})


def _inlined(node: Any, schema: str, instead: Mapping[str, Any]) -> Any:
    """`node` with every reference replaced by what it names, or by what stands for that in `instead`."""
    if isinstance(node, list):
        return [_inlined(item, schema, instead) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target, _, definition = node["$ref"].partition("#/$defs/")
        target = target or schema
        reference = f"{target}#/$defs/{definition}"
        return instead.get(reference) or _part(target, definition, instead)
    return {key: _inlined(value, schema, instead) for key, value in node.items() if key != "$defs"}


def has_definition(schema: str, definition: str) -> bool:
    """Whether the project publishes this definition."""
    return definition in schemas().get(schema, {}).get("$defs", {})


def first_problem(schema: str, definition: str, value: Any) -> str | None:
    """What is wrong with `value`: the field's path and the complaint of the deepest error, or None."""
    return explain(validator(schema, definition), value)


def explain(judge: Validator, value: Any) -> str | None:
    """The deepest error that a validator finds, with its place; None where it finds none."""
    error = jsonschema.exceptions.best_match(judge.iter_errors(value))
    if error is None:
        return None
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    return f"{path.lstrip('.') or 'message'}: {error.message[:300]}"
