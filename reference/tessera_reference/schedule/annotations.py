"""The schedule operations of a function, by the values that they are about (section 6.1)."""

from __future__ import annotations

from ..graph.grad import Grad
from ..ir.module import Function, Instruction, Module, Value
from .casts import LayoutCast
from .operations import Fuse, Pipeline, Prefetch, ScheduleOperation, Tile

Fusion = tuple[Instruction, tuple[Value, ...]]
"""The instruction that requests a fusion, and the values whose producers it fuses."""


class Annotations:
    """The schedule of one function. Schedule operations return an operand; a value's *root* is before them all."""

    def __init__(self, function: Function) -> None:
        self.tiles: dict[Value, Tile] = {}
        self.pipelines: dict[Value, Pipeline] = {}
        self.fusions: list[Fusion] = []
        self.is_host = any(isinstance(each.operation, Grad) for each in function.body.walk())
        """Whether the function differentiates, and so forms no nests (AMB-LANG-215)."""
        self._roots: dict[Value, Value] = {}
        self._prefetches: dict[Value, Instruction] = {}
        for instruction in function.body.walk():
            if is_alias(instruction):
                self._note(instruction)

    def _note(self, instruction: Instruction) -> None:
        operation, (result,), operand = instruction.operation, instruction.results, instruction.operands[-1]
        root = self._roots[result] = self.root(operand)
        if operand in self._prefetches:
            self._prefetches[result] = self._prefetches[operand]
        if isinstance(operation, Tile):
            self.tiles[root] = operation
        elif isinstance(operation, Pipeline):
            self.pipelines[root] = operation
        elif isinstance(operation, Prefetch):
            self._prefetches[result] = instruction
        elif isinstance(operation, Fuse):
            self.fusions.append((instruction, tuple(self.root(value) for value in instruction.operands)))

    def root(self, value: Value) -> Value:
        """The value before all schedule operations."""
        return self._roots.get(value, value)

    def prefetch_of(self, value: Value) -> Instruction | None:
        """The last prefetch on the way from the root to a value."""
        return self._prefetches.get(value)


def is_alias(instruction: Instruction) -> bool:
    """Whether an instruction only returns its last operand: every schedule operation but a layout cast."""
    operation = instruction.operation
    return isinstance(operation, ScheduleOperation) and not isinstance(operation, LayoutCast)


def host_functions(module: Module) -> frozenset[str]:
    """Functions that form no nests: those that differentiate and all that they call (AMB-LANG-215).

    Differentiation traverses the executed operations in reverse, so each of them has to be executed by itself.
    """
    pending = [name for name, function in module.functions.items() if Annotations(function).is_host]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name in found or name not in module.functions:
            continue
        found.add(name)
        for instruction in module.functions[name].body.walk():
            calls = instruction.operation.calls
            pending += [str(instruction.operation.attributes[calls])] if calls else []
    return frozenset(found)
