"""Machines with wrong memory: indexing, bounds, lifetime or race detection (language spec, 7.1, 7.2, 8.3)."""

import numpy as np

from tessera_reference.kernel_machine.storage import SharedStorage, Uninitialised
from tessera_reference.numerics.array import Array

from .changes import breaks, finding, instead, wrapped

MEMREF, SHARED, SPACES = "LANG-07.1-02", "LANG-07.2-01", "LANG-08.3-01"
OFFSETS = "kernel_machine.block.BlockState.offsets"


@breaks(MEMREF, "indexes memory in column-major order", OFFSETS)
def column_major(usual, self, memory, indices):
    usual(self, memory, indices)
    total, step = np.zeros(self.lanes, np.int64), 1
    for index, extent in zip(indices, memory.shape, strict=False):
        total += index.values.astype(np.int64) * step
        step *= extent
    return total


@breaks(SPACES, "checks an access against the whole memory only", OFFSETS)
def by_the_whole(usual, self, memory, indices):
    total = np.zeros(self.lanes, np.int64)
    for index, stride in zip(indices, memory.strides, strict=False):
        total += index.values.astype(np.int64) * stride
    self.require_within(memory, total)
    return np.clip(total, 0, memory.size - 1)


@breaks(SPACES, "reads what nothing has written", "kernel_machine.storage.Storage._refuse_read")
def unwritten_reads(usual, self, at, mine, wrote):
    try:
        usual(self, at, mine, wrote)
    except Uninitialised:
        return


@breaks(SHARED, "gives equal allocations one memory", "kernel_machine.block.BlockState.allocate")
def one_memory(usual, self, memref):
    made = usual(self, memref)
    first = next(buffer for buffer in self.shared.values() if (buffer.dtype, buffer.size) == (made.dtype, made.size))
    made.values = first.values
    return made


def kept(self):
    """Keep the contents of shared memory for the next block."""


@breaks(SPACES, "loads one element for all lanes", "tile.operations.Load.run")
def one_for_all(usual, self, block, memory, *indices):
    found = usual(self, block, memory, *indices)
    return Array(found.dtype, np.broadcast_to(found.values[block.active[0]], found.values.shape))


def indexed(clause, name, description, change):
    """Return a violation that finds elements at other indices; `change` takes the memory, an index and its extent."""

    def offsets(usual, self, memory, indices):
        pairs = zip(indices, memory.shape, strict=False)
        at = (Array(index.dtype, change(memory, index.values, extent).astype(np.int32)) for index, extent in pairs)
        return usual(self, memory, tuple(at))

    return wrapped(clause, name, description, OFFSETS, offsets)


MEMORY = [
    indexed(SHARED, "off_by_one_shared", "is off by one at the end of shared memory", lambda memory, index, extent:
        np.where((index == extent) & isinstance(memory, SharedStorage), extent - 1, index)),
    indexed(SPACES, "from_the_end", "counts a negative index from the end",
        lambda memory, index, extent: np.where(index < 0, index + extent, index)),
    instead(SPACES, "unwritten_results", "hands back buffers that it never filled",
        "kernel_machine.storage.GlobalStorage.require_written", kept),
    instead(SHARED, "kept_for_the_next", "keeps shared memory from block to block",
        "kernel_machine.storage.SharedStorage.clear", kept),
    finding(SPACES, "inactive_too", "checks accesses of lanes that are not active", OFFSETS,
        "active", lambda self: self.every_lane),
]  # fmt: skip
