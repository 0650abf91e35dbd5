"""Expressions of u64 values, and the statements of a process body, as a package has them (sections 2, 3, 4)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias, get_args

from .errors import ProgramRefused, RunError
from .forms import U64, ChannelId, KernelId, Read, Reader, SlotId, TensorId, member, objects, plain, reference, whole

DEEPEST = 64
"""The most levels of bodies and expressions inside one another."""

# ScalarExpr: u64 values over constants, symbols and slots, evaluated while a package runs (section 4.1).
#
# Arithmetic wraps modulo 2^64, comparisons are unsigned and give 0 or 1, `not` inverts bits, shifts count modulo 64,
# and of the last two operands of `select` only the chosen one is evaluated (AMB-WSP-60). Division by zero is an
# error.


Values: TypeAlias = Mapping[str, Any]
"""The values now, by kind of leaf: of `symbol` and `slot` by id, of `input`, which policies have, by name."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A constant, the value of a symbol or slot by its id, or an input of a policy: `task` or `key`."""

    kind: str
    content: Any

    def value(self, now: Values) -> int:
        """Return its value when the expression is evaluated."""
        value: int = self.content if self.kind == "constant" else now[self.kind][self.content]
        return value

    @property
    def own_form(self) -> Mapping[str, Any]:
        """Its form in a package, which names its kind."""
        return {self.kind: self.content}


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator of `ARITY` and its operands."""

    op: str
    operands: tuple[Expression, ...]

    def value(self, now: Values) -> int:
        """Return the result of the operator. Raise `RunError` for a division by zero."""
        if self.op == "select":
            condition, chosen, other = self.operands
            return (chosen if condition.value(now) else other).value(now)
        if self.op == "not":
            return self.operands[0].value(now) ^ U64
        first, second = self.operands
        a, b = first.value(now), second.value(now)
        try:
            return BINARY[self.op](a, b)
        except ZeroDivisionError:
            raise RunError("DIVISION_BY_ZERO", f"{a} is divided by zero") from None


Expression: TypeAlias = Annotated[Leaf | Operation, lambda reader, value, path: read_expression(reader, value, path)]


LEAVES: Mapping[str, Read] = {
    "constant": plain(whole, least=0, most=U64),
    "symbol": reference("symbol"),
    "slot": reference("slot"),
    "input": plain(member, allowed=("task", "key")),
}
"""The readers of the contents of leaves, by kind."""


def read_expression(reader: Reader, value: Any, path: str) -> Expression:
    """One expression. Raises `ProgramRefused`."""
    if reader.depth > 2 * DEEPEST:
        raise ProgramRefused(path, f"is nested deeper than {DEEPEST}")
    if isinstance(value, dict) and len(value) == 1 and (kind := next(iter(value))) in LEAVES:
        if kind == "input" and not reader.of_policy:
            raise ProgramRefused(path, "is an input, which the expressions of a dispatch policy have alone")
        if kind == "slot" and reader.of_policy:
            raise ProgramRefused(path, "reads a slot, which belongs to processes")
        return Leaf(kind, LEAVES[kind](reader, value[kind], f"{path}/{kind}"))
    if not isinstance(value, dict) or set(value) != {"op", "operands"}:
        raise ProgramRefused(path, "is no expression: a constant, a symbol, a slot, or an op with operands")
    op = member(value["op"], f"{path}/op", tuple(ARITY))
    operands = value["operands"]
    if not isinstance(operands, list) or len(operands) != ARITY[op]:
        raise ProgramRefused(f"{path}/operands", f"are not the {ARITY[op]} that {op} takes")
    reader.depth += 1
    read = [read_expression(reader, operand, f"{path}/operands/{place}") for place, operand in enumerate(operands)]
    reader.depth -= 1
    return Operation(op, tuple(read))


BINARY: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: (a + b) & U64,
    "sub": lambda a, b: (a - b) & U64,
    "mul": lambda a, b: (a * b) & U64,
    "div": operator.floordiv,
    "mod": operator.mod,
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


# The statements of a process body (sections 2, 3 and 4), as a package has them: what they name, they name by id.


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor given to a kernel."""

    tensor: TensorId


Argument: TypeAlias = Annotated[
    TensorArgument | Expression, lambda reader, value, path: _read_argument(reader, value, path)
]


def _read_argument(reader: Reader, value: Any, path: str) -> Argument:
    if isinstance(value, dict) and set(value) == {"tensor"}:
        return reader.record(TensorArgument, value, path)
    return read_expression(reader, value, path)


@dataclass(frozen=True, slots=True)
class RunKernel:
    """Execute a kernel in the time of the process."""

    op: ClassVar[str] = "run"
    kernel: KernelId
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """Issue a kernel to the worker that the policy chooses; `key` is what policies place by, 0 where left out."""

    op: ClassVar[str] = "task"
    kernel: KernelId
    arguments: tuple[Argument, ...]
    key: Expression | None = None
    waits: tuple[ChannelId, ...] = ()
    signals: tuple[ChannelId, ...] = ()


@dataclass(frozen=True, slots=True)
class Send:
    """Publish a token."""

    op: ClassVar[str] = "send"
    channel: ChannelId
    value: Expression


@dataclass(frozen=True, slots=True)
class Receive:
    """Take one token."""

    op: ClassVar[str] = "receive"
    channel: ChannelId
    into: SlotId


@dataclass(frozen=True, slots=True)
class Consume:
    """Run the body for each token until the channel is closed and empty."""

    op: ClassVar[str] = "consume"
    channel: ChannelId
    into: SlotId
    body: Body


@dataclass(frozen=True, slots=True)
class Close:
    """The last act of the process on a channel."""

    op: ClassVar[str] = "close"
    channel: ChannelId


@dataclass(frozen=True, slots=True)
class Scope:
    """Outputs of tasks issued in the body stay alive until its end."""

    op: ClassVar[str] = "scope"
    body: Body


@dataclass(frozen=True, slots=True)
class Cond:
    """One of two bodies."""

    op: ClassVar[str] = "cond"
    when: Expression
    then: Body
    otherwise: Body = ()


@dataclass(frozen=True, slots=True)
class Repeat:
    """The body as often as `count` says when it begins; `index` counts from 0."""

    op: ClassVar[str] = "repeat"
    count: Expression
    body: Body
    index: SlotId | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """Load an element of a tensor into a slot."""

    op: ClassVar[str] = "load"
    slot: SlotId
    tensor: TensorId
    element: Expression


@dataclass(frozen=True, slots=True)
class Wait:
    """Until all tasks that the process issued are complete."""

    op: ClassVar[str] = "wait"


Statement: TypeAlias = RunKernel | Task | Send | Receive | Consume | Close | Scope | Cond | Repeat | Load | Wait
Body: TypeAlias = Annotated[tuple[Statement, ...], lambda reader, value, path: _read_body(reader, value, path)]

STATEMENTS: Mapping[str, type[Statement]] = {kind.op: kind for kind in get_args(Statement)}
"""The statements by their `op`."""


def _read_body(reader: Reader, value: Any, path: str) -> Body:
    if reader.depth > DEEPEST:
        raise ProgramRefused(path, f"is nested deeper than {DEEPEST}")
    reader.depth += 1
    body: list[Any] = []
    for place, stated in enumerate(objects(value, path)):
        at = f"{path}/{place}"
        kind = STATEMENTS[member(stated.get("op"), f"{at}/op", tuple(STATEMENTS))]
        body.append(reader.record(kind, {field: item for field, item in stated.items() if field != "op"}, at))
    reader.depth -= 1
    return tuple(body)
