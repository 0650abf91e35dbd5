"""The product of a nest in its kernel: extents, the tile of a block, the epilogue of a total (section 15)."""

from __future__ import annotations

from dataclasses import dataclass

from ...graph.matmul import MatMul
from ...graph.term import Term
from ...ir.module import Value
from ...numerics.formats import DType
from .elements import evaluate
from .index import Condition, Index, Position, ceiling
from .kernel import Terms
from .nest_kernel import NestKernel, dtype_of


@dataclass(frozen=True)
class Contraction:
    """The product of a nest, and the tile of it that a block computes."""

    kernel: NestKernel
    operation: MatMul
    a: Value
    b: Value
    product: Value
    extents: tuple[int, int, int]
    tile: tuple[int, int, int]
    batch: Position
    """The matrix of the batch."""
    row: Index
    column: Index
    """The corner of the tile."""

    @property
    def dtype(self) -> DType:
        """The dtype of the operands."""
        return dtype_of(self.a)

    @property
    def steps(self) -> int:
        """The tiles along k."""
        return ceiling(self.extents[2], self.tile[2])

    def inside(self, row: Index, column: Index, room: tuple[int, int]) -> Condition:
        """Whether a position in `room` rows and columns lies in the tile and in the product."""
        m, n, _ = self.extents
        conditions: list[Condition] = []
        for place, index, size, given, extent in zip(
            (row, column), (self.row + row, self.column + column), self.tile, room, (m, n), strict=False
        ):
            conditions += [given <= size or place.below(size), extent % size == 0 or index.below(extent)]
        return self.kernel.every(*conditions)

    def write(self, row: Index, column: Index, total: Term) -> Terms:
        """Round a total to the product's dtype, apply the epilogue and write the outputs."""
        nest = self.kernel.nest
        at = (*self.batch, self.row + row, self.column + column)
        known = {self.product: total.cast_to(dtype_of(self.product))}
        for output, found in zip(
            nest.outputs, evaluate(self.kernel, nest.instructions, nest.outputs, at, known), strict=True
        ):
            self.kernel.write(output, at, found)
        return ()
