"""JSON Schemas as plain Python functions: the verdicts of jsonschema, many times faster.

A message is judged thousands of times in a run and is nearly always sound, so only a refused one is put to jsonschema,
which says where and why. `tests/harness/test_schema_checks.py` compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any, TypeAlias

from tessera_conformance.tensors import Tensor

__all__ = ["Check", "check_of"]

Check: TypeAlias = Callable[[Any], bool]

ANNOTATIONS = {"title", "description", "$comment", "$schema", "$id", "$defs", "then"}
"""Keywords that refuse nothing by themselves."""


def check_of(schema: Any) -> Check:
    """Whether a value is valid under a schema of draft 2020-12 that holds no references.

    Raises `NotImplementedError` for a keyword that no schema of the project uses.
    """
    if isinstance(schema, bool):
        return lambda value: schema
    named = [KEYWORDS[name](schema[name], schema) for name in schema if name not in ANNOTATIONS and _is_known(name)]
    checks = [check for check in named if check is not None]
    if len(checks) == 1:
        return checks[0]
    if len(checks) == 2:
        first, second = checks
        return lambda value: first(value) and second(value)
    return lambda value: all(check(value) for check in checks)


def _is_known(keyword: str) -> bool:
    if keyword not in KEYWORDS:
        raise NotImplementedError(f"the keyword {keyword}")
    return True


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
    raise NotImplementedError(f"the constant {expected!r}")


def _enumeration(expected: Sequence[Any], schema: Any) -> Check:
    if all(isinstance(each, str) for each in expected):
        words = frozenset(expected)
        return lambda value: isinstance(value, str) and value in words
    return _any_of([{"const": each} for each in expected], schema)


def _on(applies: Check, holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Check]:
    """A keyword that judges values of one type alone, by a comparison with its operand."""
    return lambda operand, schema: lambda value: not applies(value) or holds(value, operand)


def _pattern(pattern: str, schema: Any) -> Check:
    search = re.compile(pattern).search
    return lambda value: not isinstance(value, str) or search(value) is not None


def _items(schema: Any, whole: Any) -> Check:
    check = check_of(schema)
    return lambda value: not isinstance(value, list) or all(map(check, value))


def _unique(wanted: bool, schema: Any) -> Check:
    items = schema.get("items", {})
    if not wanted or not (items.get("type") == "string" or "enum" in items):
        raise NotImplementedError("unique items other than texts")
    return lambda value: not isinstance(value, list) or len({repr(each) for each in value}) == len(value)


def _members(schemas: Mapping[str, Any], whole: Mapping[str, Any]) -> Check:
    """`properties` together with `additionalProperties` and `patternProperties`, which depend on it."""
    known = {name: check_of(each) for name, each in schemas.items()}
    patterns = [(re.compile(text).search, check_of(each)) for text, each in whole.get("patternProperties", {}).items()]
    others = check_of(whole.get("additionalProperties", True))

    def check(value: Any) -> bool:
        if not isinstance(value, dict):
            return True
        for name, member in value.items():
            judge = known.get(name)
            if judge is not None and not judge(member):
                return False
            matching = [each for search, each in patterns if search(name)] if patterns else ()
            if not all(each(member) for each in matching):
                return False
            if judge is None and not matching and not others(member):
                return False
        return True

    return check


def _other_members(schema: Any, whole: Mapping[str, Any]) -> Check | None:
    return None if "properties" in whole else _members({}, whole)


def _required(names: Sequence[str], schema: Any) -> Check:
    return lambda value: not isinstance(value, dict) or all(name in value for name in names)


def _names(schema: Any, whole: Any) -> Check:
    check = check_of(schema)
    return lambda value: not isinstance(value, dict) or all(map(check, value))


def _all_of(schemas: Sequence[Any], whole: Any) -> Check:
    checks = [check_of(each) for each in schemas]
    return lambda value: all(check(value) for check in checks)


def _any_of(schemas: Sequence[Any], whole: Any) -> Check:
    checks = [check_of(each) for each in schemas]
    return lambda value: any(check(value) for check in checks)


def _one_of(schemas: Sequence[Any], whole: Any) -> Check:
    checks = [check_of(each) for each in schemas]
    return lambda value: sum(check(value) for check in checks) == 1


def _if(schema: Any, whole: Mapping[str, Any]) -> Check:
    if "else" in whole:
        raise NotImplementedError("the keyword else")
    condition, then = check_of(schema), check_of(whole.get("then", True))
    return lambda value: not condition(value) or then(value)


KEYWORDS: Mapping[str, Callable[[Any, Any], Check | None]] = {
    "type": _type,
    "const": _constant,
    "enum": _enumeration,
    # What is no number in order, NaN, is within every bound.
    "minimum": _on(_number, lambda value, least: not value < least),
    "maximum": _on(_number, lambda value, most: not value > most),
    "exclusiveMinimum": _on(_number, lambda value, least: not value <= least),
    "exclusiveMaximum": _on(_number, lambda value, most: not value >= most),
    "minLength": _on(TYPES["string"], lambda value, least: len(value) >= least),
    "maxLength": _on(TYPES["string"], lambda value, most: len(value) <= most),
    "pattern": _pattern,
    "items": _items,
    "minItems": _on(TYPES["array"], lambda value, least: len(value) >= least),
    "maxItems": _on(TYPES["array"], lambda value, most: len(value) <= most),
    "uniqueItems": _unique,
    "properties": _members,
    "patternProperties": _other_members,
    "additionalProperties": _other_members,
    "required": _required,
    "minProperties": _on(TYPES["object"], lambda value, least: len(value) >= least),
    "maxProperties": _on(TYPES["object"], lambda value, most: len(value) <= most),
    "propertyNames": _names,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "if": _if,
}
