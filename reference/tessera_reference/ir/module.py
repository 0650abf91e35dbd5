"""Modules, functions, blocks and values: the SSA structure of Graph IR (section 5; LANG-01-03, LANG-05-01, -03)."""

from __future__ import annotations

from dataclasses import dataclass, field

from .diagnostics import Location
from .operation import AttributeValue, Operation
from .types import Type


@dataclass(frozen=True, eq=False)
class Value:
    """Something defined once: an argument or a result. Two values are the same only when they are one object."""

    name: str
    type: Type


@dataclass(frozen=True, eq=False)
class Instruction:
    """An operation applied to values, at a place in the source."""

    operation: Operation
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    location: Location


@dataclass(frozen=True, eq=False)
class Block:
    """Arguments, instructions in order, and the values it hands back."""

    arguments: tuple[Value, ...]
    instructions: tuple[Instruction, ...]
    results: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Function:
    """A symbol of its module: a block with a signature."""

    name: str
    body: Block
    results: tuple[Type, ...]
    location: Location
    attributes: dict[str, AttributeValue] = field(default_factory=dict)

    @property
    def parameters(self) -> tuple[Value, ...]:
        """The arguments of the body."""
        return self.body.arguments


@dataclass(frozen=True, eq=False)
class Module:
    """Functions by name; symbols are scoped to the module (LANG-05-03)."""

    name: str
    functions: dict[str, Function]
    location: Location
