"""Modules, functions, blocks and instructions of every level, and building and walking them.

Spec section 5; LANG-01-03, -06."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

from ..numerics.array import Array
from .diagnostics import Location
from .operation import AttributeValue, Builder, Environment, Operation
from .types import Mesh, Type, Value

# Modules, functions, blocks, values: the SSA structure of every level (section 5; LANG-01-03, -06, LANG-05-01, -03).
#
# An instruction may own regions, each of one block (LANG-01-06). A block sees the values of the blocks around it, and
# leaves in one of three ways: `yield` hands values to the instruction that owns it, `return` ends the function from
# however deep, `unreachable` says that control never gets there.


Exit = Literal["return", "yield", "unreachable"]


@dataclass(frozen=True, eq=False)
class Instruction:
    """An operation applied to values, at a place in the source.

    `attributes` are those that any operation may carry (LANG-05.3-01 to -06, AMB-LANG-83); its own are in `operation`.
    """

    operation: Operation
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    location: Location
    regions: tuple[Block, ...] = ()
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Block:
    """Arguments, instructions in order, and the values with which it leaves."""

    arguments: tuple[Value, ...]
    instructions: tuple[Instruction, ...]
    results: tuple[Value, ...]
    exit: Exit = "return"

    def walk(self) -> Iterator[Instruction]:
        """Every instruction in program order, those of regions after their owner."""
        pending = [iter(self.instructions)]
        while pending:
            instruction = next(pending[-1], None)
            if instruction is None:
                pending.pop()
                continue
            yield instruction
            pending += [iter(block.instructions) for block in reversed(instruction.regions)]

    def blocks(self) -> Iterator[Block]:
        """This block and all blocks inside it."""
        yield self
        for instruction in self.walk():
            yield from instruction.regions


@dataclass(frozen=True, eq=False)
class Function:
    """A symbol of its module: a block with a signature. A kernel returns its tensor parameters as it leaves them."""

    name: str
    body: Block
    results: tuple[Type, ...]
    location: Location
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    kernel: bool = False
    defaults: Mapping[str, Array] = field(default_factory=dict)
    """The values of parameters that may be left out (AMB-LANG-74)."""
    device: str = ""
    """`tile` or `target` for a kernel that runs on a device, at that level; nothing for what the host runs."""

    @property
    def parameters(self) -> tuple[Value, ...]:
        """The arguments of the body."""
        return self.body.arguments


@dataclass(frozen=True, eq=False)
class Module:
    """Functions and meshes by name; symbols are scoped to the module (LANG-05-03)."""

    name: str
    functions: Mapping[str, Function]
    location: Location
    meshes: Mapping[str, Mesh] = field(default_factory=dict)


# Building instructions from code: for adjoints, decompositions and passes.


class BlockBuilder:
    """The `Builder` of one block: appends instructions, all at one place in the source, and names their results."""

    def __init__(self, location: Location, prefix: str = "") -> None:
        self.location = location
        self.prefix = prefix
        self.instructions: list[Instruction] = []
        self._named = 0

    def __call__(self, operation: type[Operation], *operands: Value, **attributes: Any) -> Value:
        """Append an operation with one result; that result. Attributes and hidden fields are given by name."""
        (result,) = self.all(operation, *operands, **attributes)
        return result

    def all(self, operation: type[Operation], *operands: Value, **attributes: Any) -> tuple[Value, ...]:
        """Append an operation; its results. Raises `Refusal` when it does not take these operands."""
        built = operation(**fields_of(operation, tuple([value.type for value in operands])), **attributes)
        results = tuple([self.value(type_) for type_ in built.results()])
        self.instructions.append(Instruction(built, operands, results, self.location))
        return results

    def value(self, type_: Type) -> Value:
        """A new value, which something else is to define."""
        self._named += 1
        return Value(f"{self.prefix}{self._named - 1}", type_)

    def block(self, arguments: tuple[Value, ...], results: tuple[Value, ...]) -> Block:
        """Return the instructions as a block that yields `results`."""
        return Block(arguments, tuple(self.instructions), results, "yield")


def fields_of(operation: type[Operation], types: tuple[Type, ...]) -> dict[str, Any]:
    """The operand fields of an operation from the types of its operands in order; the variadic field takes the rest."""
    count = len(operation.singles)
    named: dict[str, Any] = dict(zip(operation.singles, types, strict=False))
    if operation.rest:
        named[operation.rest] = types[count:]
    elif len(types) > count:
        raise TypeError(f"{operation.name} takes {count} operands, {len(types)} given")
    return named


# Names of values in text: unique in a function, and such as MLIR takes (LANG-01-03).


_PLAIN = re.compile(r"[0-9]+|[A-Za-z_$.-][A-Za-z0-9_$.-]*")
_STRANGE = re.compile(r"[^A-Za-z0-9_$.-]")


class Names:
    """The names that are taken in one function."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next = 0

    def unique(self, hint: str) -> str:
        """The name wished for, or one like it that is free."""
        name = hint if _PLAIN.fullmatch(hint) else f"_{_STRANGE.sub('_', hint)}"
        if name in self._taken:
            stem = "" if name.isdecimal() else f"{name}_"
            while (name := f"{stem}{self._next}") in self._taken:
                self._next += 1
        self._taken.add(name)
        return name


# A trampoline: nested regions are visited without nesting Python calls.
#
# A walk is a generator that yields the walk of each part and is sent its result. However deep the nesting, Python's
# stack does not grow: a thousand nested loops are read, printed and verified like any others.


T = TypeVar("T")

Walk: TypeAlias = Generator["Walk[Any]", Any, T]
"""A function that writes `part = yield walk(...)` where it would write `part = walk(...)`."""


def trampoline(walk: Walk[T]) -> T:
    """Run a walk with all the walks that it yields; what it returns."""
    pending: list[Walk[Any]] = [walk]
    sent: Any = None
    while True:
        try:
            inner = pending[-1].send(sent)
        except StopIteration as done:
            pending.pop()
            sent = done.value
            if not pending:
                result: T = sent
                return result
        else:
            pending.append(inner)
            sent = None


# Operations that run other code, or wait for other ranks, while they execute.
#
# Such an operation is `Stepwise`; one that is defined by simpler ones is `Composite`.


@dataclass(frozen=True)
class Arrival:
    """A rank's arrival at a collective, where it waits until its group is complete."""

    operation: Operation
    operands: tuple[Array, ...]
    location: Location


Steps = Generator[Arrival, tuple[Array, ...], tuple[Array, ...]]
"""Running code: a generator that yields at each collective, is sent its results, and returns its own."""


class StepEnvironment(Environment, Protocol):
    """The environment of an operation that runs in steps."""

    @property
    def location(self) -> Location:
        """The place of the instruction that is being executed."""

    def region(self, index: int, arguments: tuple[Array, ...]) -> Steps:
        """Run a region of the instruction; what it yields."""

    def call(self, function: str, arguments: tuple[Array, ...]) -> Steps:
        """Run another function of the module."""

    def number_of(self, function: str) -> Array:
        """Return the value that represents a function of the module."""

    def function_of(self, number: Array) -> str:
        """The function that such a value represents."""

    def expand(self, operation: Composite, operands: tuple[Array, ...]) -> Steps:
        """Run the operations of a composite."""

    def differentiate(self, y: Array, wrt: tuple[Array, ...]) -> Steps:
        """The gradients of the sum of y's elements, computed back along what was executed so far."""


class Stepwise(Operation):
    """An operation that runs other code, or waits for other ranks, while it executes."""

    transparent: ClassVar[bool] = True
    """True if differentiation sees what it runs, rather than itself."""

    @abstractmethod
    def steps(self, *operands: Any, **context: Any) -> Steps:
        """Its execution; called with the operand arrays and `env`, a `StepEnvironment`."""

    def execute(self, *operands: Any, **context: Any) -> Any:
        """Never called: it runs by `steps`."""
        raise TypeError(f"{self.name} runs in steps")

    @classmethod
    def is_differentiable(cls) -> bool:
        """True: the functions that it runs are checked on their own."""
        return cls.transparent or super().is_differentiable()


class Composite(Stepwise):
    """An operation defined by simpler ones; its derivative is theirs (AMB-LANG-59)."""

    @abstractmethod
    def decompose(self, build: Builder, *operands: Value) -> Value | tuple[Value, ...]:
        """Build the operations of its formula; its result or results."""

    def steps(self, *operands: Array, env: StepEnvironment) -> Steps:
        return env.expand(self, operands)
