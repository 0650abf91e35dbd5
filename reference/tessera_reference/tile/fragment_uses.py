"""What each fragment of a kernel is used as: A, B or an accumulator, and in which dtype that adds (AMB-LANG-34, -65).

Fragments that loops and branches pass on are one fragment, so that a use anywhere determines all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..ir.module import Function, Instruction, Value
from ..ir.types import Fragment
from .control import For
from .fragments import FragmentStore, FragmentZero, LoadMatrix, MmaSync
from .program import FragmentUse


@dataclass(frozen=True)
class Clash:
    """An instruction that uses a fragment in a second role."""

    instruction: Instruction
    uses: tuple[FragmentUse, FragmentUse]


def fragment_uses(function: Function) -> tuple[Mapping[Value, FragmentUse], list[Clash]]:
    """The use of every fragment of a kernel, A where nothing determines it, and the contradictions."""
    same = _Classes()
    stated: list[tuple[Instruction, Value, FragmentUse]] = []
    every: dict[Value, None] = {}
    for instruction in function.body.walk():
        for region in instruction.regions:
            every.update(dict.fromkeys([value for value in region.arguments if isinstance(value.type, Fragment)]))
        every.update(dict.fromkeys([value for value in instruction.results if isinstance(value.type, Fragment)]))
        if instruction.regions:
            for one, other in _handed_on(instruction):
                same.join(one, other)
        stated += [(instruction, value, use) for value, use in _stated(instruction)]
    uses: dict[Value, FragmentUse] = {}
    clashes = []
    for instruction, value, use in stated:
        first = uses.setdefault(same.of(value), use)
        if first.part == use.part == "c" and None in (first.accum, use.accum):
            uses[same.of(value)] = FragmentUse("c", first.accum or use.accum)
        elif first != use:
            clashes.append(Clash(instruction, (first, use)))
    return {value: uses.get(same.of(value), FragmentUse("a")) for value in every}, clashes


def _stated(instruction: Instruction) -> list[tuple[Value, FragmentUse]]:
    """The uses that an instruction determines."""
    operation = instruction.operation
    if isinstance(operation, MmaSync):
        a, b, c = instruction.operands
        sum_ = FragmentUse("c", operation.accum)
        return [(a, FragmentUse("a")), (b, FragmentUse("b")), (c, sum_), (instruction.results[0], sum_)]
    if isinstance(operation, FragmentZero):
        return [(instruction.results[0], FragmentUse("c", operation.accum))]
    if isinstance(operation, FragmentStore):
        return [(instruction.operands[0], FragmentUse("c", operation.memory.dtype))]
    if isinstance(operation, LoadMatrix) and operation.memory.dtype != operation.returns.dtype:
        return [(instruction.results[0], FragmentUse("c", operation.memory.dtype))]
    return []


def _handed_on(instruction: Instruction) -> Iterator[tuple[Value, Value]]:
    """Pairs of values that are one fragment."""
    carried = instruction.operands[3:] if isinstance(instruction.operation, For) else ()
    for region in instruction.regions:
        inner = region.arguments[1:] if carried else ()
        yield from zip(carried, inner, strict=False)
        yield from zip(region.results, instruction.results, strict=False)
        if carried:
            yield from zip(carried, instruction.results, strict=False)


class _Classes:
    """Equivalence classes of values (union-find)."""

    def __init__(self) -> None:
        self.parents: dict[Value, Value] = {}

    def of(self, value: Value) -> Value:
        """The representative of a value's class."""
        while value in self.parents:
            value = self.parents[value]
        return value

    def join(self, one: Value, other: Value) -> None:
        """Make two classes one."""
        one, other = self.of(one), self.of(other)
        if one is not other:
            self.parents[one] = other
