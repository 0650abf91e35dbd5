"""Composites of a block expanded in place into the operations that define them (AMB-LANG-59).

A composite with effects, such as a random draw, is not expanded; nor is one with unknown extents, since its expansion
depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..graph.identity import Identity
from ..ir.builder import BlockBuilder
from ..ir.module import Block, Function, Instruction, Value
from ..ir.naming import Names
from ..ir.stepwise import Composite
from .kinds import is_known


def names_of(function: Function) -> Names:
    """The names that a function already uses."""
    names = Names()
    for value in (*function.parameters, *_defined(function.body.walk())):
        names.unique(value.name)
    return names


def _defined(instructions: Iterable[Instruction]) -> Iterable[Value]:
    for instruction in instructions:
        yield from instruction.results
        for region in instruction.regions:
            yield from region.arguments


def is_expandable(instruction: Instruction) -> bool:
    """Whether an instruction is a composite that can be expanded."""
    operation = instruction.operation
    return (
        isinstance(operation, Composite)
        and not operation.effects
        and all(is_known(value.type) for value in instruction.operands)
    )


def expanded(block: Block, names: Names) -> tuple[Instruction, ...]:
    """The instructions of a block without composites; regions are left as they are."""
    found: list[Instruction] = []
    for instruction in block.instructions:
        found += expansion(instruction, names) if is_expandable(instruction) else [instruction]
    return tuple(found)


def expansion(instruction: Instruction, names: Names) -> list[Instruction]:
    """The expansion of a composite, which has the composite's results."""
    composite = instruction.operation
    assert isinstance(composite, Composite)
    build = BlockBuilder(instruction.location)
    built = composite.decompose(build, *instruction.operands)
    known: dict[Value, Value] = {}
    for inner, outer in zip(built if isinstance(built, tuple) else (built,), instruction.results, strict=True):
        is_own = inner not in instruction.operands and inner not in known
        known[inner if is_own else build(Identity, inner)] = outer
    made: list[Instruction] = []
    for each in build.instructions:
        for value in each.results:
            known.setdefault(value, Value(names.unique(f"{instruction.results[0].name}_{value.name}"), value.type))
        operands = tuple(known.get(value, value) for value in each.operands)
        renamed = replace(each, operands=operands, results=tuple(known[value] for value in each.results))
        made += expansion(renamed, names) if is_expandable(renamed) else [renamed]
    return made
