"""Expressions of u64 values, and the statements of a process body, as a package has them (sections 2, 3, 4)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeAlias

from ..numerics.formats import shown
from .errors import ProgramRefused, RunError

# ScalarExpr: u64 values over constants, symbols and slots, evaluated while a package runs (section 4.1).
#
# Arithmetic wraps modulo 2^64, comparisons are unsigned and give 0 or 1, `not` inverts bits, shifts count modulo 64,
# and of the last two operands of `select` only the chosen one is evaluated (AMB-WSP-60). Division by zero is an
# error.


U64 = (1 << 64) - 1

INPUTS = ("task", "key")
"""Names that the expression of a dispatch policy may use beside constants and symbols."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A number of 64 bits."""

    value: int


@dataclass(frozen=True, slots=True)
class SymbolValue:
    """The value of a symbol in this run, by its id."""

    symbol: int


@dataclass(frozen=True, slots=True)
class SlotValue:
    """The value of a slot when the expression is evaluated, by its id."""

    slot: int


@dataclass(frozen=True, slots=True)
class Input:
    """The issue number or the key of a task that a policy places."""

    name: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator of `ARITY` and its operands."""

    name: str
    operands: tuple[Expression, ...]


Expression: TypeAlias = Constant | SymbolValue | SlotValue | Input | Operation
Evaluate: TypeAlias = Callable[[], int]


def _divided(operation: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def apply(a: int, b: int) -> int:
        if b == 0:
            raise RunError("DIVISION_BY_ZERO", f"{a} is divided by zero")
        return operation(a, b)

    return apply


BINARY: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: (a + b) & U64,
    "sub": lambda a, b: (a - b) & U64,
    "mul": lambda a, b: (a * b) & U64,
    "div": _divided(operator.floordiv),
    "mod": _divided(operator.mod),
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": lambda a, b: (a << (b & 63)) & U64,
    "shr": lambda a, b: a >> (b & 63),
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b),
    "ge": lambda a, b: int(a >= b),
    "min": min,
    "max": max,
}
ARITY: Mapping[str, int] = {"not": 1, **dict.fromkeys(BINARY, 2), "select": 3}


def compiled(
    expression: Expression, symbols: Sequence[int], slots: Sequence[int], inputs: Mapping[str, int] | None = None
) -> Evaluate:
    """A function that evaluates an expression over values that may change between calls.

    `inputs` is needed where the expression has any. The function raises `RunError` with DIVISION_BY_ZERO.
    """
    match expression:
        case Constant(value):
            return lambda: value
        case SymbolValue(symbol):
            return lambda: symbols[symbol]
        case SlotValue(slot):
            return lambda: slots[slot]
        case Input(name):
            values = {} if inputs is None else inputs
            return lambda: values[name]
        case Operation(name, operands):
            return _operation(name, [compiled(operand, symbols, slots, inputs) for operand in operands])


def _operation(name: str, operands: Sequence[Evaluate]) -> Evaluate:
    if name == "not":
        (a,) = operands
        return lambda: a() ^ U64
    if name == "select":
        condition, chosen, other = operands
        return lambda: chosen() if condition() else other()
    apply = BINARY[name]
    a, b = operands
    return lambda: apply(a(), b())


def expression_json(expression: Expression) -> dict[str, Any]:
    """The form of an expression in a package."""
    match expression:
        case Constant(value):
            return {"constant": value}
        case SymbolValue(symbol):
            return {"symbol": symbol}
        case SlotValue(slot):
            return {"slot": slot}
        case Input(name):
            return {"input": name}
        case Operation(name, operands):
            return {"op": name, "operands": [expression_json(operand) for operand in operands]}


# The statements of a process body (sections 2, 3 and 4), as a package has them: what they name, they name by id.
#
# A statement is a frozen class, and its members, by their types, say how it is read and written.
# `run` executes a kernel in the process's own time; `task` issues one to a worker; `wait` lasts until all tasks that
# the process issued are complete.


ChannelId: TypeAlias = int
KernelId: TypeAlias = int
SlotId: TypeAlias = int
TensorId: TypeAlias = int
ChannelIds: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor given to a kernel."""

    tensor: TensorId


Argument: TypeAlias = TensorArgument | Expression
ArgumentList: TypeAlias = tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class RunKernel:
    """Execute a kernel in the time of the process."""

    kernel: KernelId
    arguments: ArgumentList


@dataclass(frozen=True, slots=True)
class Task:
    """Issue a kernel to the worker that the policy chooses; `key` is what policies place by, 0 where left out."""

    kernel: KernelId
    arguments: ArgumentList
    key: Expression | None = None
    waits: ChannelIds = ()
    signals: ChannelIds = ()


@dataclass(frozen=True, slots=True)
class Send:
    """Publish a token."""

    channel: ChannelId
    value: Expression


@dataclass(frozen=True, slots=True)
class Receive:
    """Take one token."""

    channel: ChannelId
    into: SlotId


@dataclass(frozen=True, slots=True)
class Consume:
    """Run the body for each token until the channel is closed and empty."""

    channel: ChannelId
    into: SlotId
    body: Body


@dataclass(frozen=True, slots=True)
class Close:
    """The last act of the process on a channel."""

    channel: ChannelId


@dataclass(frozen=True, slots=True)
class Scope:
    """Outputs of tasks issued in the body stay alive until its end."""

    body: Body


@dataclass(frozen=True, slots=True)
class Cond:
    """One of two bodies."""

    when: Expression
    then: Body
    otherwise: Body = ()


@dataclass(frozen=True, slots=True)
class Repeat:
    """The body as often as `count` says when it begins; `index` counts from 0."""

    count: Expression
    body: Body
    index: SlotId | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """Load an element of a tensor into a slot."""

    slot: SlotId
    tensor: TensorId
    element: Expression


@dataclass(frozen=True, slots=True)
class Wait:
    """Until all tasks that the process issued are complete."""


Statement: TypeAlias = RunKernel | Task | Send | Receive | Consume | Close | Scope | Cond | Repeat | Load | Wait
Body: TypeAlias = tuple[Statement, ...]

STATEMENTS: dict[str, type[Statement]] = {
    "run": RunKernel,
    "task": Task,
    "send": Send,
    "receive": Receive,
    "consume": Consume,
    "close": Close,
    "scope": Scope,
    "cond": Cond,
    "repeat": Repeat,
    "load": Load,
    "wait": Wait,
}
"""The statements by their `op`."""

# Statements and expressions between their classes and JSON; packages are read by id, programs by name.
#
# A reader is given a `Resolve`, which turns what stands in the JSON into an id.


Resolve: TypeAlias = Callable[[str, Any, str], int]
"""The id of a kernel, channel, slot, symbol or tensor (the first argument) at a path (the last)."""

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
        statements = objects(value, path)
        return tuple(self._statement(statement, f"{path}/{place}", depth) for place, statement in enumerate(statements))

    def _statement(self, value: Mapping[str, Any], path: str, depth: int) -> Statement:
        op = value.get("op")
        kind = STATEMENTS.get(op) if isinstance(op, str) else None
        if kind is None:
            raise ProgramRefused(f"{path}/op", f"is {shown(op)}, expected one of {', '.join(STATEMENTS)}")
        fields, count = {}, 1
        for field, type_name, required in FIELDS[kind]:
            if field in value:
                fields[field] = self._readers[type_name](value[field], f"{path}/{field}", depth + 1)
                count += 1
            elif required:
                raise ProgramRefused(f"{path}/{field}", "is missing")
        if count != len(value):
            unknown = min(set(value) - {member for member, _, _ in FIELDS[kind]} - {"op"})
            raise ProgramRefused(f"{path}/{unknown}"[:200], f"is no member of {op}")
        return kind(**fields)

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
        read = [
            self.expression(operand, f"{path}/operands/{place}", depth + 1) for place, operand in enumerate(operands)
        ]
        return Operation(value["op"], tuple(read))

    def _arguments(self, value: Any, path: str, depth: int) -> tuple[Argument, ...]:
        return tuple(
            TensorArgument(self.resolve("tensor", argument["tensor"], f"{path}/{place}/tensor"))
            if set(argument) == {"tensor"}
            else self.expression(argument, f"{path}/{place}", depth)
            for place, argument in enumerate(objects(value, path))
        )

    def _channels(self, value: Any, path: str, depth: int) -> tuple[int, ...]:
        if not isinstance(value, list):
            raise ProgramRefused(path, "is no list of channels")
        return tuple(self.resolve("channel", channel, f"{path}/{place}") for place, channel in enumerate(value))


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
    "ArgumentList": lambda arguments: [
        {"tensor": argument.tensor} if isinstance(argument, TensorArgument) else expression_json(argument)
        for argument in arguments
    ],
    "Body": statements_json,
    "ChannelIds": list,
    "Expression": expression_json,
    "Expression | None": expression_json,
}
"""The writers of members that are no ids, by type."""
