"""Vectors that one lane holds: the registers of a fragment (LANG-08.2-05)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.operation import Attribute, Hidden, Operand, Shown, operation, require
from ...ir.types import Scalar, Vector
from ...numerics.array import Array
from ...tile.block import BlockState
from ..emission.writer import Writer
from ..operation import CLAUSES, TargetOperation, held_shown, require_type


def _require_position(position: int, vector: Vector) -> None:
    require(
        0 <= position < vector.extent,
        "shapes",
        f"position {position} of {vector}",
        f"a position from 0 to {vector.extent - 1}",
        "LANG-11-03",
    )


@operation("llvm.mlir.zero", clauses=CLAUSES)
class Zero(TargetOperation):
    """Zeros: +0 in every element."""

    returns: Hidden[Vector]

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """The type is that of the result."""
        return {"returns": held_shown(cls.name, shown)}

    def infer(self) -> Vector:
        """The vector."""
        require(isinstance(self.returns, Vector), "types", f"makes {self.returns}", "a vector", "LANG-11-01")
        return self.returns

    def run(self, block: BlockState) -> Array:
        """Zeros for each lane."""
        return Array(self.returns.dtype, np.zeros((block.lanes, self.returns.extent), self.returns.dtype.carrier))

    def emit(self, text: Writer) -> str:
        """Written where it is used."""
        return "zeroinitializer"


@operation("llvm.insertelement", clauses=CLAUSES)
class InsertElement(TargetOperation):
    """The vector with another element at one position."""

    vector: Operand[Vector]
    value: Operand[Scalar]
    position: Attribute[int]

    def infer(self) -> Vector:
        """The vector's type."""
        _require_position(self.position, self.vector)
        require_type(self.value, Scalar(self.vector.dtype), "the value")
        return self.vector

    def run(self, block: BlockState, vector: Array, value: Array) -> Array:
        """A copy that differs at the position."""
        values = np.array(vector.values)
        values[:, self.position] = value.values
        return Array(vector.dtype, values)

    def emit(self, text: Writer, vector: str, value: str) -> str:
        """The instruction."""
        held, element = text.type(self.vector), text.type(self.value)
        return text.value(f"insertelement {held} {vector}, {element} {value}, i32 {self.position}")


@operation("llvm.extractelement", clauses=CLAUSES)
class ExtractElement(TargetOperation):
    """The element at one position."""

    vector: Operand[Vector]
    position: Attribute[int]

    def infer(self) -> Scalar:
        """The element."""
        _require_position(self.position, self.vector)
        return Scalar(self.vector.dtype)

    def run(self, block: BlockState, vector: Array) -> Array:
        """The element of each lane."""
        return Array(vector.dtype, vector.values[:, self.position])

    def emit(self, text: Writer, vector: str) -> str:
        """The instruction."""
        return text.value(f"extractelement {text.type(self.vector)} {vector}, i32 {self.position}")


@operation("llvm.shufflevector", clauses=CLAUSES)
class ShuffleVector(TargetOperation):
    """The elements at the positions of `mask`, in that order."""

    vector: Operand[Vector]
    mask: Attribute[tuple[int, ...]]

    def infer(self) -> Vector:
        """As many elements as the mask has positions."""
        require(bool(self.mask), "shapes", "the mask is empty", "at least one position", "LANG-11-03")
        for position in self.mask:
            _require_position(position, self.vector)
        return Vector(len(self.mask), self.vector.dtype)

    def run(self, block: BlockState, vector: Array) -> Array:
        """The elements of each lane."""
        return Array(vector.dtype, vector.values[:, list(self.mask)])

    def emit(self, text: Writer, vector: str) -> str:
        """The instruction, whose second vector is unused."""
        held = text.type(self.vector)
        mask = ", ".join(f"i32 {position}" for position in self.mask)
        return text.value(f"shufflevector {held} {vector}, {held} poison, <{len(self.mask)} x i32> <{mask}>")
