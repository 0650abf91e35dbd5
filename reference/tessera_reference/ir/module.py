"""Modules, functions, blocks, values: the SSA structure of every level (section 5; LANG-01-03, -06, LANG-05-01, -03).

An instruction may own regions, each of one block (LANG-01-06). A block sees the values of the blocks around it, and
leaves in one of three ways: `yield` hands values to the instruction that owns it, `return` ends the function from
however deep, `unreachable` says that control never gets there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..numerics.array import Array
from .diagnostics import Location
from .operation import AttributeValue, Operation
from .types import Mesh, Type
from .values import Value

__all__ = ["Block", "Exit", "Function", "Instruction", "Module", "Value"]

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
