"""What the schema of the messages says about a value, with the member at fault and its clause (AMB-HIO-31)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from .errors import ErrorCode, RequestFailed

__all__ = ["definitions", "require_form"]

OF_MESSAGE = {"MemoryWrite": "memory_write", "MemoryRead": "memory_read", "KernelLaunch": "kernel_launch"}


@cache
def definitions() -> Mapping[str, Any]:
    """The definitions of the published schema, by name."""
    schema = json.loads(files(__package__).joinpath("messages.schema.json").read_text(encoding="utf-8"))
    found: Mapping[str, Any] = schema["$defs"]
    return found


def require_form(definition: str, value: Any, *, fast: bool = True) -> None:
    """A value has the form of a definition; with `fast`, fastjsonschema judges where it is installed.

    Raises `RequestFailed` with INVALID_MESSAGE, the path of the member, what is expected, and the clause.
    """
    if fast and (sound := _fast_judge(definition)) is not None and sound(value):
        return
    from jsonschema.exceptions import best_match  # slow to import, and sound messages do not need it

    error = best_match(_judge(definition).iter_errors(value))
    if error is not None:
        raise _failure(definition, error)


@cache
def _judge(definition: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": definitions()})


@cache
def _fast_judge(definition: str) -> Callable[[Any], bool] | None:
    """The judge of the extra `host-io`, or None without it."""
    if find_spec("fastjsonschema") is None:
        return None
    import fastjsonschema

    # draft 7, the newest that it knows, says the same about every keyword that the schema uses
    draft = {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": f"#/$defs/{definition}"}
    judge = fastjsonschema.compile({**draft, "$defs": definitions()}, use_default=False)

    def sound(value: Any) -> bool:
        try:
            judge(value)
        except fastjsonschema.JsonSchemaValueException:
            return False
        return True

    return sound


def _failure(definition: str, error: Any) -> RequestFailed:
    """What is told of an error of jsonschema; of a missing or unknown member, the member itself is at fault."""
    path, expected = list(error.absolute_path), error.message
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        path, expected = [*path, missing], "is missing"
    elif error.validator == "additionalProperties":
        unknown = min(set(error.instance) - set(error.schema["properties"]))
        return _told(definition, path, f"no member {unknown!r}", _spelled([*path, unknown]))
    return _told(definition, path, expected, _spelled(path))


def _told(definition: str, path: Iterable[str | int], reason: str, field: str) -> RequestFailed:
    return RequestFailed(ErrorCode.INVALID_MESSAGE, reason[:300], field, _clause(definition, path))


def _spelled(path: Iterable[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _clause(definition: str, path: Iterable[str | int]) -> str:
    """The first clause of the innermost part along a path that has one."""
    node = definitions()[definition]
    found: str = next(iter(node.get("x-clauses", ())), "")
    for part in path:
        node = _inner(node, part)
        found = next(iter(node.get("x-clauses", ())), found)
    return found


def _inner(node: Mapping[str, Any], part: str | int) -> Mapping[str, Any]:
    """The definition of a member, or of an item; of an argument, what its kinds have together."""
    for each in _parts(node):
        inner = each.get("items") if isinstance(part, int) else each.get("properties", {}).get(part)
        if inner is not None:
            return _merged(inner)
    return {}


def _parts(node: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """A definition with those that it refers to."""
    yield node
    for key in ("then", "else"):
        if key in node:
            yield from _parts(_merged(node[key]))


def _merged(node: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in node:
        return node
    return {**_merged(definitions()[node["$ref"].removeprefix("#/$defs/")]), **node}
