"""The position of a thread: its block in the grid, its place in the block, and its lane (section 8.1; AMB-LANG-63).

Threads are numbered with x fastest; consecutive threads, as many as the target's warp has lanes, form a warp.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..ir.operation import Attribute, operation, require
from ..ir.types import Scalar
from ..numerics.array import Array
from .block import BlockState
from .operation import INT32, KernelOperation

AXES = ("x", "y", "z")

_CLAUSES = ("LANG-08.1-07", "LANG-08.1-08", "LANG-08.2-03")


@dataclass(frozen=True)
class AlongAxis(KernelOperation):
    """A number for one of the axes x, y and z."""

    axis: Attribute[str]

    def infer(self) -> Scalar:
        """An int32."""
        require(self.axis in AXES, "types", f"there is no axis {self.axis!r}", "x, y or z", "LANG-11-01")
        return INT32

    @property
    def position(self) -> int:
        """The axis as a number."""
        return AXES.index(self.axis)


@operation("tessera.tile.block_id", clauses=_CLAUSES)
class BlockId(AlongAxis):
    """The place of the block in the grid."""

    def run(self, block: BlockState) -> Array:
        """The same in every lane."""
        return block.uniform(block.position[self.position])


@operation("tessera.tile.thread_id", clauses=_CLAUSES)
class ThreadId(AlongAxis):
    """The place of the thread in its block."""

    def run(self, block: BlockState) -> Array:
        """One for each lane."""
        return block.threads[self.position]


@operation("tessera.tile.block_dim", clauses=_CLAUSES)
class BlockDim(AlongAxis):
    """The extent of the block."""

    def run(self, block: BlockState) -> Array:
        """The same in every lane."""
        return block.uniform(block.extents[self.position])


@operation("tessera.tile.grid_dim", clauses=_CLAUSES)
class GridDim(AlongAxis):
    """The extent of the grid."""

    def run(self, block: BlockState) -> Array:
        """The same in every lane."""
        return block.uniform(block.grid[self.position])


@operation("tessera.tile.lane_id", clauses=("LANG-07.2-06", "LANG-08.2-03"))
class LaneId(KernelOperation):
    """The place of the thread in its warp."""

    def infer(self) -> Scalar:
        """An int32."""
        return INT32

    def run(self, block: BlockState) -> Array:
        """From 0 in every warp."""
        return Array(INT32.dtype, (block.every_lane % block.warp).astype(np.int32))


@operation("tessera.tile.warp_id", clauses=("LANG-08.2-03",))
class WarpId(KernelOperation):
    """The number of the warp in its block."""

    def infer(self) -> Scalar:
        """An int32."""
        return INT32

    def run(self, block: BlockState) -> Array:
        """The same in all lanes of a warp."""
        return Array(INT32.dtype, (block.every_lane // block.warp).astype(np.int32))
