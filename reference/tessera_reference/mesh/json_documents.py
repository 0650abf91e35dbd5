"""Reading JSON documents that a JSON Schema describes: an error names the file, the JSON path and what is expected."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from ..abi.status import Failure, Status
from ..ir.spelling import did_you_mean
from ..numerics.errors import shown

__all__ = ["InvalidDocument", "parse", "require_form"]

TYPES = {"object": "an object", "array": "an array", "string": "a string", "integer": "a whole number"}


class InvalidDocument(Failure):
    """A document that cannot be read: `file`, JSON `path`, what is there and what is expected."""

    def __init__(self, file: str, path: str, found: str, expected: str) -> None:
        super().__init__(Status.TESS_ERR_INVALID_VALUE, file, f"{path} {found}", expected)
        self.file = file
        self.path = path
        self.found = found
        self.expected = expected


def parse(text: str, file: str) -> Any:
    """The value of a JSON text. Raises `InvalidDocument`, also for NaN and for a member given twice."""

    def members_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidDocument(file, "$", f"holds an object with two members {shown(twice)}", "one of each name")
        return members

    def no_constant(name: str) -> NoReturn:
        raise InvalidDocument(file, "$", f"holds {name}", "numbers that JSON has")

    try:
        return json.loads(text, object_pairs_hook=members_once, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidDocument(file, "$", f"is not JSON ({error})", "a JSON document") from None


def require_form(document: object, schema: Mapping[str, Any], file: str) -> None:
    """A document has the form that a schema describes. Raises `InvalidDocument`."""
    from jsonschema import Draft202012Validator  # slow to import, and the topologies of the package do not need it

    error = next(Draft202012Validator(schema).iter_errors(document), None)
    if error is not None:
        raise InvalidDocument(file, error.json_path, *_described(error))


def _described(error: Any) -> tuple[str, str]:
    """What is wrong by a `jsonschema.ValidationError`, and what the schema expects instead."""
    value, form, bound = error.instance, error.schema, error.validator_value
    found = f"is {shown(value)}"
    match error.validator:
        case "required":
            return "lacks one", f"a member {next(name for name in bound if name not in value)!r}"
        case "additionalProperties":
            known = tuple(form["properties"])
            unknown = next(name for name in value if name not in known)
            return f"has an unknown member {shown(unknown)}", _one_of(known, unknown)
        case "minItems" | "maxItems":
            return f"has {len(value)} elements", f"{form.get('minItems', 0)} to {form['maxItems']}"
        case "minimum" | "maximum":
            return found, f"{form['minimum']} to {form['maximum']}"
        case "maxLength":
            return found, f"a string of at most {bound} characters"
        case "enum":
            return found, f"one of {_one_of(bound, value)}"
        case "const":
            return found, shown(bound)
        case "type":
            return found, TYPES[bound]
        case _:
            return found, form["description"]


def _one_of(known: tuple[str, ...], value: object) -> str:
    hint = did_you_mean(value, known) if isinstance(value, str) else ""
    return ", ".join(known) + (f": {hint}" if hint else "")
