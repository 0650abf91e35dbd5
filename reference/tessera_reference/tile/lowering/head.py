"""The head of a kernel under construction: instructions that appear once, visible to every region."""

from __future__ import annotations

from typing import Any

from ...graph.constant import Constant
from ...ir.builder import BlockBuilder
from ...ir.diagnostics import Location
from ...ir.module import Instruction, Value
from ...ir.operation import Operation
from ..operation import INT32


class Head:
    """The instructions at the beginning of a kernel, and the builder of those that follow."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self.build = BlockBuilder(location)
        self.head: list[Instruction] = []
        self._first: dict[object, Value] = {}

    def integer(self, number: int) -> Value:
        """An int32 constant."""
        return self.once(number, Constant, value=number, dtype=INT32.dtype)

    def once(self, key: object, operation: type[Operation], **fields: Any) -> Value:
        """The result of an instruction at the beginning, the same one for the same key."""
        if key not in self._first:
            here, self.build.instructions = self.build.instructions, self.head
            self._first[key] = self.build(operation, **fields)
            self.build.instructions = here
        return self._first[key]
