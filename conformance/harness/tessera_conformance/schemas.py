"""The published JSON Schemas, loaded once, and checked by plain Python functions with the verdicts of jsonschema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from itertools import islice
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from tessera_conformance.cases import schemas_directory
from tessera_conformance.documents import NoDocument, read_file
from tessera_conformance.tensors import Tensor

if TYPE_CHECKING:
    import jsonschema  # 50 ms, and only a refused message needs it

# JSON Schemas as plain Python functions: the verdicts of jsonschema, many times faster.
#
# A run judges thousands of messages, nearly all of them sound, so only a refused one is given to jsonschema, which
# reports the place and the reason. `tests/interface/test_messages.py` compares the two.


Check: TypeAlias = Callable[[Any], bool]

ANNOTATIONS = {"title", "description", "default", "$comment", "$schema", "$id", "$defs"}
"""Keywords that refuse nothing."""


class OutsideTheSubset(Exception):
    """A schema uses a keyword without a plain function; jsonschema judges by it instead."""


def check_of(schema: Any) -> Check:
    """Return a function that checks a value against a schema of draft 2020-12 without references.

    Raises `OutsideTheSubset` for a keyword that no schema of messages, reports and vectors uses.
    """
    if isinstance(schema, bool):
        return lambda value: schema
    keywords = sorted(schema.keys() - ANNOTATIONS, key=lambda keyword: (keyword != "type", keyword))
    checks = [_check(keyword, schema) for keyword in keywords]
    return reduce(_both, checks) if checks else check_of(True)


def _both(first: Check, second: Check) -> Check:
    return lambda value: first(value) and second(value)


def _check(keyword: str, schema: Mapping[str, Any]) -> Check:
    if keyword not in KEYWORDS:
        raise OutsideTheSubset(f"the keyword {keyword}")
    judged, make = KEYWORDS[keyword]
    check = make(schema[keyword], schema)
    if judged is None or schema.get("type") in (judged, *NARROWER.get(judged, ())):
        return check  # an earlier check refused values of other types
    applies = TYPES[judged]
    return lambda value: not applies(value) or check(value)


def _number(value: Any) -> bool:
    return isinstance(value, Number) and not isinstance(value, bool)


TYPES: Mapping[str, Check] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number": _number,
    "integer": lambda value: type(value) is int or (_number(value) and _whole(value)),
    "tensor": lambda value: isinstance(value, Tensor),
}


NARROWER = {"number": ("integer",)}
"""The types that are part of another one."""


def _whole(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _type(names: str | Sequence[str], schema: Any) -> Check:
    if isinstance(names, str):
        return TYPES[names]
    checks = [TYPES[name] for name in names]
    return lambda value: any(check(value) for check in checks)


def _constant(expected: Any, schema: Any) -> Check:
    if isinstance(expected, bool) or expected is None:
        return lambda value: value is expected
    if isinstance(expected, int | float):
        return lambda value: _number(value) and bool(value == expected)
    if isinstance(expected, str):
        return lambda value: isinstance(value, str) and value == expected
    raise OutsideTheSubset(f"the constant {expected!r}")


def _enumeration(expected: Sequence[Any], schema: Any) -> Check:
    if all(isinstance(constant, str) for constant in expected):
        words = frozenset(expected)
        return lambda value: isinstance(value, str) and value in words
    constants = [_constant(constant, schema) for constant in expected]
    return lambda value: any(check(value) for check in constants)


def _one_of(schemas: Sequence[Any], whole: Any) -> Check:
    checks = [check_of(schema) for schema in schemas]
    return lambda value: sum(check(value) for check in checks) == 1


def _comparison(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Check]:
    return lambda operand, schema: lambda value: holds(value, operand)


HEXADECIMAL = re.compile(r"^\^\((\[[^]]+])\{(\d+)}\)\*\$$")
"""A pattern of a group of so many characters of one class, repeated to the end. Python remembers each repetition of a
group, 90 bytes for every byte of a message; the class alone, possessive, matches in one way and three times as fast."""


def _pattern(pattern: str, schema: Any) -> Check:
    group = HEXADECIMAL.match(pattern)
    if group is None:
        search = re.compile(pattern).search
        return lambda value: search(value) is not None
    repeated, width = re.compile(f"{group[1]}*+$").match, int(group[2])
    return lambda value: (found := repeated(value)) is not None and found.end() % width == 0


def _each(schema: Any, whole: Any) -> Check:
    """Return every item of a list, or every name in an object."""
    check = check_of(schema)
    return lambda value: all(map(check, value))


def _unique(unique: bool, schema: Any) -> Check:
    items = schema.get("items", {})
    if not unique or not (items.get("type") == "string" or "enum" in items):
        raise OutsideTheSubset("unique items other than texts")
    return lambda value: len({repr(element) for element in value}) == len(value)


def _members(schemas: Mapping[str, Any], whole: Mapping[str, Any]) -> Check:
    checks = {name: check_of(schema) for name, schema in schemas.items()}
    others = check_of(whole.get("additionalProperties", True))
    return lambda value: all(checks.get(name, others)(member) for name, member in value.items())


def _other_members(schema: Any, whole: Mapping[str, Any]) -> Check:
    """Return the check of members that `properties`, if present, does not judge."""
    return check_of(True) if "properties" in whole else _members({}, whole)


def _required(names: Sequence[str], schema: Any) -> Check:
    required = frozenset(names)
    return lambda value: value.keys() >= required


_at_least = _comparison(lambda value, least: len(value) >= least)
_at_most = _comparison(lambda value, most: len(value) <= most)

KEYWORDS: Mapping[str, tuple[str | None, Callable[[Any, Any], Check]]] = {
    "type": (None, _type),
    "const": (None, _constant),
    "enum": (None, _enumeration),
    "oneOf": (None, _one_of),
    # NaN, which has no order, is within every bound.
    "minimum": ("number", _comparison(lambda value, least: not value < least)),
    "exclusiveMinimum": ("number", _comparison(lambda value, least: not value <= least)),
    "exclusiveMaximum": ("number", _comparison(lambda value, most: not value >= most)),
    "minLength": ("string", _at_least),
    "pattern": ("string", _pattern),
    "items": ("array", _each),
    "minItems": ("array", _at_least),
    "maxItems": ("array", _at_most),
    "uniqueItems": ("array", _unique),
    "properties": ("object", _members),
    "additionalProperties": ("object", _other_members),
    "required": ("object", _required),
    "propertyNames": ("object", _each),
    "minProperties": ("object", _at_least),
    "maxProperties": ("object", _at_most),
}
"""The type of the values that each keyword judges, if it judges one alone, and the function that makes its check."""

# The published JSON Schemas, loaded once, and checks of values against them.
#
# A schema is named by its `$id`, `tessera:protocol/messages`, and a part of it by a definition: `tessera:report/lines`
# with `observation`. The files are in `schemas/`.


TENSOR = "tessera:protocol/messages#/$defs/tensor"


@cache
def schemas() -> Mapping[str, dict[str, Any]]:
    """Return every schema file of the project, by `$id`."""
    documents = {}
    for path in sorted(schemas_directory().rglob("*.schema.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        documents[document["$id"]] = document
    return documents


def has_definition(schema: str, definition: str) -> bool:
    """True if the project publishes this definition."""
    return definition in schemas().get(schema, {}).get("$defs", {})


def first_problem(schema: str, definition: str, value: Any, *, decoded: bool = False) -> str | None:
    """Return the fault of `value`: the field's path and the complaint of the deepest error, or None.

    A `decoded` message holds `Tensor` objects, which have checked themselves, where the schema has tensors.
    """
    if _schemas_check(schema, definition, decoded)(value):
        return None
    return _explanation(validator(schema, definition, decoded), value)


def read_valid(path: Path, schema: str, definition: str) -> Any:
    """Return the value of a TOML or JSON file that follows a definition. Raises `NoDocument`, which names the file."""
    value = read_file(path)
    problem = first_problem(schema, definition, value)
    if problem is not None:
        raise NoDocument(f"{path}: {problem}")
    return value


@cache
def validator(schema: str, definition: str = "", decoded: bool = False) -> jsonschema.protocols.Validator:
    """Return the validator of jsonschema for a whole schema, or for one definition."""
    import jsonschema

    draft = jsonschema.Draft202012Validator
    types = draft.TYPE_CHECKER.redefine("tensor", lambda checker, value: isinstance(value, Tensor))
    extended = jsonschema.validators.extend(draft, type_checker=types)  # type: ignore[no-untyped-call]
    return cast("jsonschema.protocols.Validator", extended(_part(schema, definition, decoded)))


@cache
def _schemas_check(schema: str, definition: str, decoded: bool) -> Check:
    try:
        return check_of(_part(schema, definition, decoded))
    except OutsideTheSubset:
        return validator(schema, definition, decoded).is_valid


def _part(schema: str, definition: str, decoded: bool = False) -> Any:
    """Return a schema with every reference replaced by its target; no schema of the project refers to itself."""
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
"""The most errors that are examined for an explanation: an answer of 300,000 wrong elements has as many."""


def problems(schema: str, definition: str, value: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """Return every problem of `value`: the place and the complaint, in the order of places."""
    errors = islice(validator(schema, definition).iter_errors(value), MOST_ERRORS)
    complaints = [(tuple(error.absolute_path), error.message[:300]) for error in errors]
    return sorted(complaints, key=lambda complaint: [*map(str, complaint[0])])


def _explanation(judge: jsonschema.protocols.Validator, value: Any) -> str | None:
    """Return the deepest error that a validator finds, with its place; None if it finds none."""
    import jsonschema

    error = jsonschema.exceptions.best_match(islice(judge.iter_errors(value), MOST_ERRORS))
    if error is None:
        return None
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    return f"{path.lstrip('.') or 'message'}: {error.message[:300]}"
