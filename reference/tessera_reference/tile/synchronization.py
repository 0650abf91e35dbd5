"""Synchronization: the barrier of a block, the shuffle of a warp (sections 7.2, 8.3; AMB-LANG-31, -63, -84)."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.operation import Attribute, Operand, operation, require
from ..ir.types import Scalar
from ..numerics.array import Array
from .block import BlockState
from .operation import KernelOperation

WIDEST = (1 << 64) - 1
"""A mask of as many lanes as the widest warp has."""


@dataclass(frozen=True)
class BlockBarrier(KernelOperation):
    """Base of the barriers of Tile and Target IR."""

    effects = frozenset({"barrier"})

    def infer(self) -> tuple[()]:
        """Nothing results."""
        return ()

    def run(self, block: BlockState) -> tuple[()]:
        """Let all threads of the block arrive. Raises `PartialBarrier` where some do not."""
        block.barrier()
        return ()


@operation("tessera.tile.barrier", clauses=("LANG-07.2-05", "LANG-08.3-02", "LANG-08.3-03"))
class Barrier(BlockBarrier):
    """A barrier of the block: all accesses before it happen before all accesses after it."""

    label: Attribute[str] = ""


@operation("tessera.tile.shfl.sync", clauses=("LANG-07.2-06",))
class ShuffleSync(KernelOperation):
    """Lane i reads the value of lane i + delta of its warp, its own beyond the end; both are active and in the mask.

    Without a mask every lane of the warp is in it.
    """

    value: Operand[Scalar]
    delta: Attribute[int]
    mask: Attribute[int | None] = None

    def infer(self) -> Scalar:
        """The operand's type."""
        require(self.delta >= 0, "types", f"delta is {self.delta}", "at least 0", "LANG-07.2-06")
        require(
            self.mask is None or 0 <= self.mask <= WIDEST,
            "types",
            f"the mask is {self.mask}",
            "a bit for each lane of a warp",
            "LANG-07.2-06",
        )
        return self.value

    def run(self, block: BlockState, value: Array) -> Array:
        """Exchange."""
        return Array(value.dtype, block.shuffle(value.values, self.delta, self.mask))
