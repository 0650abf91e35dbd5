"""Asynchronous copies from global to shared memory (spec section 7.2; AMB-LANG-64, AMB-LANG-201).

A copy belongs to the group that its thread commits next. A wait makes finished groups visible to the thread that
copied, a barrier after it to the other threads. A barrier alone finishes copies that are in no group.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.operation import Attribute, Operand, Operands, operation, require
from ..ir.types import Memref, Scalar
from ..numerics.array import Array
from .block import BlockState
from .operation import KernelOperation, require_indices
from .storage import Storage

SIZES = (4, 8, 16)
"""Bytes that one copy may move."""


@operation("tessera.tile.cp.async", clauses=("LANG-07.2-04", "LANG-08.2-04"))
class CopyAsync(KernelOperation):
    """Each lane copies `bytes` contiguous bytes, aligned to their number, from global to shared memory.

    The indices are those of the source, then those of the destination; without any, both begin at the first element.
    Section 7.2 names a result; no operation takes it, so that it is no value (AMB-LANG-280).
    """

    source: Operand[Memref]
    destination: Operand[Memref]
    indices: Operands[Scalar]
    bytes: Attribute[int]

    effects = frozenset({"memory"})
    handle = True

    def infer(self) -> tuple[()]:
        """Nothing results."""
        source, destination = self.source, self.destination
        require(
            (source.space, destination.space) == ("global", "shared"),
            "types",
            f"it copies from {source.space} to {destination.space} memory",
            "from global to shared memory",
            "LANG-07.2-04",
        )
        require(
            source.dtype == destination.dtype,
            "types",
            f"it copies {source.dtype} to {destination.dtype}",
            "one dtype",
            "LANG-03.1-05",
        )
        require_indices(self.indices, len(source.shape) + len(destination.shape), optional=True)
        size = source.dtype.storage_bytes
        require(
            self.bytes in SIZES and self.bytes % size == 0,
            "tile",
            f"it copies {self.bytes} bytes of elements of {size}",
            "4, 8 or 16 bytes, whole elements",
            "LANG-07.2-04",
        )
        return ()

    def run(self, block: BlockState, source: Storage, destination: Storage, *indices: Array) -> tuple[()]:
        """Begin the copy."""
        rank = len(self.source.shape) if indices else 0
        begin = block.offsets(source, indices[:rank])
        end = block.offsets(destination, indices[rank:])
        block.copy(source, begin, destination, end, self.bytes)
        return ()


@dataclass(frozen=True)
class GroupCommit(KernelOperation):
    """Closes each thread's group of the copies that it has begun since its last commit, in Tile and Target IR."""

    effects = frozenset({"memory"})

    def infer(self) -> tuple[()]:
        """Nothing results."""
        return ()

    def run(self, block: BlockState) -> tuple[()]:
        """Close the group."""
        block.copies.commit(block)
        return ()


@operation("tessera.tile.cp.async.commit", clauses=("LANG-07.2-04",))
class CopyCommit(GroupCommit):
    """Closes each thread's group of the copies that it has begun since its last commit."""


@operation("tessera.tile.cp.async.wait", clauses=("LANG-07.2-04",))
class CopyWait(KernelOperation):
    """Waits until at most `pending` of the thread's newest groups are unfinished."""

    pending: Attribute[int] = 0

    effects = frozenset({"memory"})

    def infer(self) -> tuple[()]:
        """Nothing results."""
        require(self.pending >= 0, "types", f"pending is {self.pending}", "at least 0", "LANG-07.2-04")
        return ()

    def run(self, block: BlockState) -> tuple[()]:
        """Finish the older groups."""
        block.copies.wait(block, self.pending)
        return ()
