"""AMD's instructions for threads that work together: barrier, LDS, permutations (LANG-08.2-11, -12)."""

from __future__ import annotations

import numpy as np

from ...ir.operation import Operand, operation, require
from ...ir.types import Scalar, Vector
from ...numerics.array import Array
from ...tile.block import BlockState
from ...tile.exchange import exchanged
from ...tile.operation import INT32
from ...tile.synchronization import BlockBarrier
from ..emission.writer import Writer
from ..operation import TargetOperation, require_type
from .nvvm import value_of, words_of
from .pointers import SHARED, Load, Store, require_space


@operation("rocdl.barrier", clauses=("LANG-08-01", "LANG-08.3-02"))
class Barrier(BlockBarrier, TargetOperation):
    """`s_barrier` between fences: synchronizes all threads of the block."""

    vendor = "amd"

    def emit(self, text: Writer) -> tuple[()]:
        """The barrier with a fence on either side, so that earlier writes are visible after it."""
        text.do('fence syncscope("workgroup") release')
        text.call("void", "llvm.amdgcn.s.barrier")
        text.do('fence syncscope("workgroup") acquire')
        return ()


@operation("rocdl.ds_read", clauses=("LANG-08.2-11",))
class DsRead(Load):
    """A load from the LDS."""

    vendor = "amd"

    def infer(self) -> Scalar | Vector:
        """What is stated."""
        require_space(self.address, (SHARED,))
        return self.returns


@operation("rocdl.ds_write", clauses=("LANG-08.2-11",))
class DsWrite(Store):
    """A store to the LDS."""

    vendor = "amd"

    def infer(self) -> tuple[()]:
        """Nothing results."""
        require_space(self.address, (SHARED,))
        return ()


@operation("rocdl.ds_bpermute", clauses=("LANG-08.2-12", "LANG-07.2-06"))
class BPermute(TargetOperation):
    """`ds_bpermute_b32`: each lane reads what the lane at byte address `index` holds, four bytes a lane."""

    index: Operand[Scalar]
    value: Operand[Scalar]

    vendor = "amd"

    def infer(self) -> Scalar:
        """The value's type."""
        require_type(self.index, INT32, "the index")
        require(isinstance(self.value, Scalar), "types", f"moves {self.value}", "a scalar", "LANG-11-01")
        return self.value

    def run(self, block: BlockState, index: Array, value: Array) -> Array:
        """Exchange; addresses wrap at the end of the warp."""
        sources = np.asarray(index.values // 4 % block.warp, np.int64)
        return Array(value.dtype, exchanged(block, value.values, sources))

    def emit(self, text: Writer, index: str, value: str) -> str:
        """The intrinsic, on each 32 bits of the value."""
        words = words_of(text, value, self.value)
        moved = [text.call("i32", "llvm.amdgcn.ds.bpermute", f"i32 {index}", f"i32 {word}") for word in words]
        return value_of(text, tuple(moved), self.value)
