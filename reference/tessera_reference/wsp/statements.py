"""Expressions of u64 values, and the statements of a process body, as a package has them (sections 2, 3, 4)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .errors import RunError

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
            given = {} if inputs is None else inputs
            return lambda: given[name]
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
# A statement is a frozen class, and its members, by their types, say how it is read and written (`json_form.py`).
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
    """Bring an element of a tensor into a slot."""

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
