"""What the schema of the messages says about a value, with the member at fault and its clause (AMB-HIO-31).

Every reference of the schema is replaced by what it names, once. An argument of a launch is judged by the definition of
its kind, so that an error is one of that kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, TypeAlias

from .errors import ErrorCode, RequestFailed

__all__ = ["definitions", "require_form"]

ARGUMENTS = {"tensor": "tensor_argument", "scalar": "scalar_argument"}
"""The definition of each kind of argument."""
Path: TypeAlias = Sequence[str | int]


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
    _require(definition, value, (), fast)
    if definition == "kernel_launch":
        for place, argument in enumerate(value["args"]):
            kind = argument.get("arg_kind") if isinstance(argument, dict) else None
            if isinstance(kind, str) and kind in ARGUMENTS:
                _require(ARGUMENTS[kind], argument, ("args", place), fast)
            else:
                raise _strange(argument, place)


def _require(definition: str, value: Any, within: Path, fast: bool) -> None:
    """A value has the form of a definition, the arguments of a launch left aside. Raises `RequestFailed`."""
    if fast and (sound := _fast_judge(definition)) is not None and sound(value):
        return
    judge = _judge(definition)
    if judge.is_valid(value):
        return
    from jsonschema.exceptions import best_match  # slow to import, and sound messages do not need it

    raise _failure(definition, best_match(judge.iter_errors(value)), within)


@cache
def _inlined(definition: str) -> Mapping[str, Any]:
    """A definition without references; no definition refers to itself."""

    def inlined(node: Any) -> Any:
        if isinstance(node, list):
            return [inlined(each) for each in node]
        if not isinstance(node, dict):
            return node
        own = {key: inlined(each) for key, each in node.items() if key != "$ref"}
        return {**inlined(definitions()[node["$ref"].removeprefix("#/$defs/")]), **own} if "$ref" in node else own

    found: dict[str, Any] = inlined(definitions()[definition])
    if definition == "kernel_launch":
        del found["properties"]["args"]["items"]
    return found


@cache
def _judge(definition: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(_judging(_inlined(definition)))


@cache
def _fast_judge(definition: str) -> Callable[[Any], bool] | None:
    """The judge of the extra `host-io`, or None without it."""
    if find_spec("fastjsonschema") is None:
        return None
    import fastjsonschema

    # draft 7, the newest that it knows, says the same about every keyword that the schema uses
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **_judging(_inlined(definition))}
    judge = fastjsonschema.compile(schema, use_default=False)

    def sound(value: Any) -> bool:
        try:
            judge(value)
        except fastjsonschema.JsonSchemaValueException:
            return False
        return True

    return sound


def _judging(node: Any) -> Any:
    """A schema without what refuses nothing."""
    if isinstance(node, list):
        return [_judging(each) for each in node]
    if not isinstance(node, dict):
        return node
    names = node.get("properties", {})
    kept = {key: _judging(each) for key, each in node.items() if key not in ANNOTATIONS and key != "properties"}
    return kept | ({"properties": {name: _judging(each) for name, each in names.items()}} if names else {})


ANNOTATIONS = {"title", "description", "default", "x-clauses", "x-other-members"}


def _strange(argument: Any, place: int) -> RequestFailed:
    """What is told of an argument of no kind."""
    if not isinstance(argument, dict):
        return _told("is no object", ("args", place), "HIO-D7-04")
    if "arg_kind" not in argument:
        return _told("is missing", ("args", place, "arg_kind"), "HIO-D7-49")
    known = " or ".join(ARGUMENTS)
    return _told(f"is {argument['arg_kind']!r:.100}, expected {known}", ("args", place, "arg_kind"), "HIO-D7-49")


def _failure(definition: str, error: Any, within: Path) -> RequestFailed:
    """What is told of an error of jsonschema; of a missing or unknown member, the member itself is at fault."""
    path, schema = list(error.absolute_path), _inlined(definition)
    if error.validator == "required":
        path.append(next(name for name in error.validator_value if name not in error.instance))
        return _told("is missing", [*within, *path], _clause(schema, path))
    if error.validator == "additionalProperties":
        unknown = min(set(error.instance) - set(error.schema["properties"]))
        barred = _part(schema, path)["x-other-members"]
        return _told("is no member of this", [*within, *path, unknown], barred)
    return _told(error.message, [*within, *path], _clause(schema, path))


def _told(reason: str, path: Path, clause: str) -> RequestFailed:
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part:.100}" for part in path).lstrip(".")
    return RequestFailed(ErrorCode.INVALID_MESSAGE, reason, field, clause)


def _clause(schema: Mapping[str, Any], path: Path) -> str:
    """The first clause of the innermost part along a path that has one."""
    stated = [_part(schema, path[:depth]).get("x-clauses", ()) for depth in range(len(path) + 1)]
    return next((str(clauses[0]) for clauses in reversed(stated) if clauses), "")


def _part(schema: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The definition of the value at a path; nothing is known of what lies in a free-form object."""
    for part in path:
        inner = schema.get("items", {}) if isinstance(part, int) else schema.get("properties", {}).get(part, {})
        schema = {**inner.get("then", {}), **inner}
    return schema
