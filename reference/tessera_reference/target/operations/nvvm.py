"""NVIDIA's instructions for threads that work together: barrier, asynchronous copies, shuffle (LANG-08.2-06 to -09)."""

from __future__ import annotations

import numpy as np

from ...ir.operation import Attribute, Operand, operation, require
from ...ir.types import Pointer, Scalar
from ...numerics.array import Array
from ...tile.block import BlockState
from ...tile.copies import SIZES, GroupCommit
from ...tile.exchange import exchanged
from ...tile.synchronization import BlockBarrier
from ..addresses import Pointers, elements, require_dtype
from ..emission.types import NAMES
from ..emission.writer import Writer
from ..operation import TargetOperation
from .pointers import GLOBAL, SHARED, require_space

FULL = 0xFFFFFFFF
"""A mask of all lanes of a warp."""


@operation("nvvm.barrier0", clauses=("LANG-08.2-08", "LANG-08.3-02"))
class Barrier(BlockBarrier, TargetOperation):
    """`bar.sync 0`: synchronizes all threads of the block."""

    vendor = "nvidia"

    def emit(self, text: Writer) -> tuple[()]:
        """The intrinsic."""
        text.call("void", "llvm.nvvm.barrier.cta.sync.aligned.all", "i32 0")
        return ()


@operation("nvvm.cp.async.shared.global", clauses=("LANG-08.2-07", "LANG-07.2-04"))
class CopyAsync(TargetOperation):
    """`cp.async`: each lane copies `size` bytes from global to shared memory."""

    destination: Operand[Pointer]
    source: Operand[Pointer]
    size: Attribute[int]

    vendor = "nvidia"
    effects = frozenset({"memory"})

    def infer(self) -> tuple[()]:
        """Nothing results."""
        require_space(self.destination, (SHARED,), "destination")
        require_space(self.source, (GLOBAL,), "source")
        require(self.size in SIZES, "tile", f"it copies {self.size} bytes", "4, 8 or 16", "LANG-07.2-04")
        return ()

    def run(self, block: BlockState, destination: Pointers, source: Pointers) -> tuple[()]:
        """Begin the copy."""
        begin, end = elements(block, source, self.size), elements(block, destination, self.size)
        require_dtype(end[0], begin[0].dtype)
        block.copy(*begin, *end, self.size)
        return ()

    def emit(self, text: Writer, destination: str, source: str) -> tuple[()]:
        """The intrinsic; copies of 16 bytes may bypass the first-level cache."""
        kind = "cg" if self.size == 16 else "ca"
        name = f"llvm.nvvm.cp.async.{kind}.shared.global.{self.size}"
        text.call("void", name, f"ptr addrspace(3) {destination}", f"ptr addrspace(1) {source}")
        return ()


@operation("nvvm.cp.async.commit.group", clauses=("LANG-08.2-07",))
class CopyCommit(GroupCommit, TargetOperation):
    """`cp.async.commit_group`: closes each thread's group of the copies that it has begun since its last commit."""

    vendor = "nvidia"

    def emit(self, text: Writer) -> tuple[()]:
        """The intrinsic."""
        text.call("void", "llvm.nvvm.cp.async.commit.group")
        return ()


@operation("nvvm.cp.async.wait.group", clauses=("LANG-08.2-07",))
class CopyWait(TargetOperation):
    """`cp.async.wait_group`: waits until at most `n` of the thread's newest groups are unfinished."""

    n: Attribute[int]

    vendor = "nvidia"
    effects = frozenset({"memory"})

    def infer(self) -> tuple[()]:
        """Nothing results."""
        require(self.n >= 0, "types", f"n is {self.n}", "at least 0", "LANG-07.2-04")
        return ()

    def run(self, block: BlockState) -> tuple[()]:
        """Finish the older groups."""
        block.copies.wait(block, self.n)
        return ()

    def emit(self, text: Writer) -> tuple[()]:
        """The intrinsic."""
        text.call("void", "llvm.nvvm.cp.async.wait.group", f"i32 {self.n}")
        return ()


@operation("nvvm.shfl.sync.down", clauses=("LANG-08.2-09", "LANG-07.2-06"))
class ShuffleDown(TargetOperation):
    """`shfl.sync.down.b32`: lane i reads the value of lane i + delta, its own beyond the end of the warp."""

    value: Operand[Scalar]
    delta: Attribute[int]
    mask: Attribute[int] = FULL

    vendor = "nvidia"

    def infer(self) -> Scalar:
        """The operand's type."""
        require(0 <= self.delta < 32, "types", f"delta is {self.delta}", "from 0 to 31", "LANG-07.2-06")
        require(0 <= self.mask <= FULL, "types", f"the mask is {self.mask}", "32 bits", "LANG-07.2-06")
        return self.value

    def run(self, block: BlockState, value: Array) -> Array:
        """Exchange."""
        lane = block.every_lane % block.warp
        sources = np.where(lane + self.delta < block.warp, lane + self.delta, lane)
        return Array(value.dtype, exchanged(block, value.values, sources, self.mask))

    def emit(self, text: Writer, value: str) -> str:
        """The intrinsic, on each 32 bits of the value."""

        def exchange(word: str) -> str:
            arguments = (f"i32 {self.mask}", f"i32 {word}", f"i32 {self.delta}", "i32 31")
            return text.call("i32", "llvm.nvvm.shfl.sync.down.i32", *arguments)

        words = words_of(text, value, self.value)
        return value_of(text, tuple(map(exchange, words)), self.value)


def words_of(text: Writer, value: str, held: Scalar) -> tuple[str, ...]:
    """A value as 32-bit words, the lowest first."""
    type_, bits = NAMES[held.dtype.name], 1 if held.dtype.kind == "bool" else held.dtype.bits
    whole = value if type_ == f"i{bits}" else text.value(f"bitcast {type_} {value} to i{bits}")
    if bits == 64:
        low = text.value(f"trunc i64 {whole} to i32")
        high = text.value(f"lshr i64 {whole}, 32")
        return low, text.value(f"trunc i64 {high} to i32")
    return (whole,) if bits == 32 else (text.value(f"zext i{bits} {whole} to i32"),)


def value_of(text: Writer, words: tuple[str, ...], held: Scalar) -> str:
    """The value of which `words_of` made the words."""
    type_, bits = NAMES[held.dtype.name], 1 if held.dtype.kind == "bool" else held.dtype.bits
    whole = words[0]
    if bits == 64:
        low, high = (text.value(f"zext i32 {word} to i64") for word in words)
        shifted = text.value(f"shl i64 {high}, 32")
        whole = text.value(f"or i64 {low}, {shifted}")
    elif bits < 32:
        whole = text.value(f"trunc i32 {whole} to i{bits}")
    return whole if type_ == f"i{bits}" else text.value(f"bitcast i{bits} {whole} to {type_}")
