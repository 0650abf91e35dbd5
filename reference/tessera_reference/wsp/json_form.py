"""Statements and expressions between their classes and JSON; packages are read by id, programs by name.

A reader is given a `Resolve`, which turns what stands in the JSON into an id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeAlias

from ..numerics.formats import shown
from .errors import ProgramRefused
from .statements import (
    ARITY,
    INPUTS,
    STATEMENTS,
    U64,
    Argument,
    Body,
    Constant,
    Expression,
    Input,
    Operation,
    SlotValue,
    Statement,
    SymbolValue,
    TensorArgument,
    expression_json,
)

Resolve: TypeAlias = Callable[[str, Any, str], int]
"""The id for what stands for a kernel, channel, slot, symbol or tensor (the first argument) at a path (the last)."""

Read: TypeAlias = Callable[[Any, str], Any]
"""The reader of a member: from its JSON and its path."""

DEEPEST = 64
"""The most levels of bodies and expressions inside one another."""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
FIELDS = {
    kind: tuple((field.name, str(field.type), field.default is MISSING) for field in fields(kind))
    for kind in STATEMENTS.values()
}
"""The members of each statement: name, type, whether it must be there."""
OPS = {kind: op for op, kind in STATEMENTS.items()}


class BodyReader:
    """Reads bodies and expressions. Every method raises `ProgramRefused`."""

    def __init__(self, resolve: Resolve) -> None:
        self.resolve = resolve
        slot = self._id("slot")
        self._readers: Mapping[str, Callable[[Any, str, int], Any]] = {
            "ArgumentList": self._arguments,
            "Body": self.body,
            "ChannelId": self._id("channel"),
            "ChannelIds": self._channels,
            "Expression": self.expression,
            "Expression | None": self.expression,
            "KernelId": self._id("kernel"),
            "SlotId": slot,
            "SlotId | None": slot,
            "TensorId": self._id("tensor"),
        }

    def _id(self, kind: str) -> Callable[[Any, str, int], int]:
        return lambda value, path, depth: self.resolve(kind, value, path)

    def body(self, value: Any, path: str, depth: int = 0) -> Body:
        """The statements of a list."""
        if depth > DEEPEST:
            raise ProgramRefused(path, f"is nested deeper than {DEEPEST}")
        listed = objects(value, path)
        return tuple(self._statement(each, f"{path}/{place}", depth) for place, each in enumerate(listed))

    def _statement(self, value: Mapping[str, Any], path: str, depth: int) -> Statement:
        op = value.get("op")
        kind = STATEMENTS.get(op) if isinstance(op, str) else None
        if kind is None:
            raise ProgramRefused(f"{path}/op", f"is {shown(op)}, expected one of {', '.join(STATEMENTS)}")
        given, count = {}, 1
        for field, type_name, required in FIELDS[kind]:
            if field in value:
                given[field] = self._readers[type_name](value[field], f"{path}/{field}", depth + 1)
                count += 1
            elif required:
                raise ProgramRefused(f"{path}/{field}", "is missing")
        if count != len(value):
            unknown = min(set(value) - {each for each, _, _ in FIELDS[kind]} - {"op"})
            raise ProgramRefused(f"{path}/{unknown}"[:200], f"is no member of {op}")
        return kind(**given)

    def expression(self, value: Any, path: str, depth: int = 0) -> Expression:
        """One expression."""
        if depth > 2 * DEEPEST:
            raise ProgramRefused(path, f"is nested deeper than {DEEPEST}")
        if isinstance(value, dict) and len(value) == 1:
            ((kind, stated),) = value.items()
            if kind == "constant":
                return Constant(whole(stated, f"{path}/constant", 0, U64))
            if kind == "symbol":
                return SymbolValue(self.resolve("symbol", stated, f"{path}/symbol"))
            if kind == "slot":
                return SlotValue(self.resolve("slot", stated, f"{path}/slot"))
            if kind == "input" and stated in INPUTS:
                return Input(stated)
        if not isinstance(value, dict) or set(value) != {"op", "operands"}:
            raise ProgramRefused(path, "is no expression: a constant, a symbol, a slot, or an op with operands")
        arity = ARITY.get(value["op"]) if isinstance(value["op"], str) else None
        if arity is None:
            raise ProgramRefused(f"{path}/op", f"is {shown(value['op'])}, expected one of {', '.join(ARITY)}")
        operands = value["operands"]
        if not isinstance(operands, list) or len(operands) != arity:
            raise ProgramRefused(f"{path}/operands", f"are not the {arity} that {value['op']} takes")
        read = [self.expression(each, f"{path}/operands/{place}", depth + 1) for place, each in enumerate(operands)]
        return Operation(value["op"], tuple(read))

    def _arguments(self, value: Any, path: str, depth: int) -> tuple[Argument, ...]:
        return tuple(
            TensorArgument(self.resolve("tensor", each["tensor"], f"{path}/{place}/tensor"))
            if set(each) == {"tensor"}
            else self.expression(each, f"{path}/{place}", depth)
            for place, each in enumerate(objects(value, path))
        )

    def _channels(self, value: Any, path: str, depth: int) -> tuple[int, ...]:
        if not isinstance(value, list):
            raise ProgramRefused(path, "is no list of channels")
        return tuple(self.resolve("channel", each, f"{path}/{place}") for place, each in enumerate(value))


def objects(value: Any, path: str) -> Sequence[Mapping[str, Any]]:
    """A list of objects. Raises `ProgramRefused`."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ProgramRefused(path, "is no list of objects")
    return value


def members(value: Any, path: str, required: Sequence[str], optional: Sequence[str] = ()) -> Mapping[str, Any]:
    """An object that has all required members and no unknown ones. Raises `ProgramRefused`."""
    if not isinstance(value, dict):
        raise ProgramRefused(path, "is no object")
    for field in required:
        if field not in value:
            raise ProgramRefused(f"{path}/{field}", "is missing")
    unknown = set(value).difference(required, optional)
    if unknown:
        raise ProgramRefused(f"{path}/{min(unknown)}"[:200], "is no member of this")
    return value


def record(
    value: Any, path: str, required: Mapping[str, Read], optional: Mapping[str, Read] | None = None
) -> dict[str, Any]:
    """An object whose members are read by functions; optional ones may be left out. Raises `ProgramRefused`."""
    readers = {**required, **(optional or {})}
    stated = members(value, path, tuple(required), tuple(readers))
    return {field: read(stated[field], f"{path}/{field}") for field, read in readers.items() if field in stated}


def member(value: Any, path: str, allowed: Sequence[str]) -> str:
    """One of some words. Raises `ProgramRefused`."""
    if value not in allowed:
        raise ProgramRefused(path, f"is {shown(value)}, expected one of {', '.join(allowed)}")
    return str(value)


def name(value: Any, path: str) -> str:
    """A name: letters, digits, `_`, `.` and `-`, at most 100. Raises `ProgramRefused`."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ProgramRefused(path, f"is {shown(value)}, expected a name of letters, digits, _, . and -")
    return value


def whole(value: Any, path: str, least: int, most: int) -> int:
    """A whole number in a range. Raises `ProgramRefused`."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ProgramRefused(path, f"is {shown(value)}, expected a whole number from {least} to {most}")
    return value


def statements_json(body: Body) -> list[dict[str, Any]]:
    """The form of a body in a package."""
    return [_statement_json(statement) for statement in body]


def _statement_json(statement: Statement) -> dict[str, Any]:
    kind = type(statement)
    stated: dict[str, Any] = {"op": OPS[kind]}
    for field, type_name, required in FIELDS[kind]:
        value = getattr(statement, field)
        if required or (value is not None and value != ()):
            stated[field] = WRITERS[type_name](value) if type_name in WRITERS else value
    return stated


WRITERS: Mapping[str, Callable[[Any], Any]] = {
    "ArgumentList": lambda given: [
        {"tensor": argument.tensor} if isinstance(argument, TensorArgument) else expression_json(argument)
        for argument in given
    ],
    "Body": statements_json,
    "ChannelIds": list,
    "Expression": expression_json,
    "Expression | None": expression_json,
}
"""The writers of members that are no ids, by type."""
