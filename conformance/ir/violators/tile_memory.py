"""Machines with wrong memory: indexing, bounds, lifetime or race detection (language spec, 7.1, 7.2, 8.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import make
from tessera_reference.kernel_machine.block import BlockState
from tessera_reference.kernel_machine.storage import SharedStorage, Storage, Uninitialised
from tessera_reference.numerics.array import Array
from tessera_reference.tile.operations import Load

MEMREF, SHARED, SPACES = "LANG-07.1-02", "LANG-07.2-01", "LANG-08.3-01"
OFFSETS, ALLOCATE = BlockState.offsets, BlockState.allocate
REFUSE_READ = Storage._refuse_read


def column_major(self: BlockState, memory: Storage, indices: Any) -> Any:
    OFFSETS(self, memory, indices)
    total, step = np.zeros(self.lanes, np.int64), 1
    for index, extent in zip(indices, memory.shape, strict=False):
        total += index.values.astype(np.int64) * step
        step *= extent
    return total


def clamped(self: BlockState, memory: Storage, indices: Any) -> Any:
    inside = [
        Array(index.dtype, np.clip(index.values, 0, extent - 1).astype(np.int32))
        for index, extent in zip(indices, memory.shape, strict=False)
    ]
    return OFFSETS(self, memory, tuple(inside))


def off_by_one(self: BlockState, memory: Storage, indices: Any) -> Any:
    """Read the last element for an index equal to the extent."""
    inside = [
        Array(index.dtype, np.where(index.values == extent, extent - 1, index.values).astype(np.int32))
        for index, extent in zip(indices, memory.shape, strict=False)
    ]
    return OFFSETS(self, memory, tuple(inside))


def off_by_one_in_shared_memory(self: BlockState, memory: Storage, indices: Any) -> Any:
    return (off_by_one if isinstance(memory, SharedStorage) else OFFSETS)(self, memory, indices)


def by_the_whole(self: BlockState, memory: Storage, indices: Any) -> Any:
    total = np.zeros(self.lanes, np.int64)
    for index, stride in zip(indices, memory.strides, strict=False):
        total += index.values.astype(np.int64) * stride
    self.require_within(memory, total)
    return np.clip(total, 0, memory.size - 1)


def from_the_end(self: BlockState, memory: Storage, indices: Any) -> Any:
    inside = [
        Array(index.dtype, np.where(index.values < 0, index.values + extent, index.values).astype(np.int32))
        for index, extent in zip(indices, memory.shape, strict=False)
    ]
    return OFFSETS(self, memory, tuple(inside))


def in_every_lane(self: BlockState, memory: Storage, indices: Any) -> Any:
    before, self.active = self.active, self.every_lane
    try:
        return OFFSETS(self, memory, indices)
    finally:
        self.active = before


def reads_anything(self: Storage, at: Any, mine: Any, wrote: Any) -> None:
    try:
        REFUSE_READ(self, at, mine, wrote)
    except Uninitialised:
        return


def one_memory(self: BlockState, memref: Any) -> SharedStorage:
    made = ALLOCATE(self, memref)
    first = next(buffer for buffer in self.shared.values() if (buffer.dtype, buffer.size) == (made.dtype, made.size))
    made.values = first.values
    return made


def kept(self: SharedStorage) -> None:
    """Keep the contents of shared memory for the next block."""


def of_lane_0(self: Load, block: BlockState, memory: Storage, *indices: Array) -> Array:
    found = LOAD(self, block, memory, *indices)
    return Array(found.dtype, np.broadcast_to(found.values[block.active[0]], found.values.shape))


LOAD = Load.run


def indexed(name: str, clause: str, description: str, offsets: Any) -> Violation:
    """Return a violation that finds elements differently."""
    return replaced(clause, description, make, ("kernel_machine.block.BlockState.offsets", offsets), name=name)


PLACES = [
    indexed("column_major", MEMREF, "indexes memory in column-major order", column_major),
    indexed("off_by_one_shared", SHARED, "is off by one at the end of shared memory", off_by_one_in_shared_memory),
    indexed("by_the_whole", SPACES, "checks an access against the whole memory only", by_the_whole),
    indexed("from_the_end", SPACES, "counts a negative index from the end", from_the_end),
    indexed("inactive_too", SPACES, "checks accesses of lanes that are not active", in_every_lane),
    replaced(SPACES, "loads one element for all lanes", make, ("tile.operations.Load.run", of_lane_0),
        name="one_for_all"),
]  # fmt: skip

CONTENTS = [
    replaced(SPACES, "reads what nothing has written", make,
        ("kernel_machine.storage.Storage._refuse_read", reads_anything), name="unwritten_reads"),
    replaced(SPACES, "hands back buffers that it never filled", make,
        ("kernel_machine.storage.GlobalStorage.require_written", kept), name="unwritten_results"),
    replaced(SHARED, "gives equal allocations one memory", make,
        ("kernel_machine.block.BlockState.allocate", one_memory), name="one_memory"),
    replaced(SHARED, "keeps shared memory from block to block", make,
        ("kernel_machine.storage.SharedStorage.clear", kept), name="kept_for_the_next"),
]  # fmt: skip
