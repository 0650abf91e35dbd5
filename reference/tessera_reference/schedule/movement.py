"""The source of each element of the result, for operations that only move elements.

The operation itself is executed once on positions instead of elements: its result holds, for each element, the position
of its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..graph.gathering import Gather
from ..graph.movement import Concat, Iota, Pad, held_in
from ..graph.slicing import Slice, Update
from ..ir.module import Instruction
from ..ir.operation import Environment, Operation
from ..numerics.array import Array
from ..numerics.formats import dtype
from .staging import Values

FILLER = -1
"""The position that stands for the filler of a pad, which is no element of an operand."""


@dataclass(frozen=True)
class Moved:
    """The elements of all operands one after another, and for each element of the result its position among them."""

    line: Values
    places: Values
    filler: Any

    def elements(self, places: Values) -> Values:
        """The elements at these positions."""
        if self.line.size == 0:
            return np.full(places.shape, self.filler, self.line.dtype)
        framed = places == FILLER
        return np.where(framed, np.asarray(self.filler, self.line.dtype), self.line[np.where(framed, 0, places)])


def moved(instruction: Instruction, operands: Sequence[Array], env: Environment) -> Moved:
    """The source positions of an instruction's result. Raises what its operation raises."""
    operation = instruction.operation
    if isinstance(operation, Iota):
        counted: Array = operation.execute(env=env)
        line = counted.values.reshape(-1)
        return Moved(line, np.arange(line.size).reshape(counted.shape), 0)
    sources = operands[: data_operands(operation, len(operands))]
    numbered, start = [], 0
    for source in sources:
        count = source.values.size
        numbered.append(Array(dtype("int64"), np.arange(start, start + count).reshape(source.shape)))
        start += count
    filler: Any = 0
    if isinstance(operation, Pad):
        filler = held_in(operation.x.dtype, operation.value)
        operation = replace(operation, value=FILLER)
    found: Array = operation.execute(*numbered, *operands[len(sources) :], env=env)
    line = np.concatenate([source.values.reshape(-1) for source in sources])
    return Moved(line, found.values, filler)


def data_operands(operation: Operation, count: int) -> int:
    """How many of the first operands hold the elements that are moved; the others are indices."""
    if isinstance(operation, Concat):
        return count
    if isinstance(operation, Update):
        return 2
    return 1 if isinstance(operation, Gather | Slice) else count
