"""Pointers of lanes, and what is read and written there (section 8.3; LANG-08.1-02, AMB-LANG-35).

A pointer is a memory and an offset in bytes for each lane; that of a parameter is the memory itself. Memory is typed:
an access is of the dtype that the memory holds, of one element or of several side by side, which then begin at a
multiple of their bytes, at most 16. Complex numbers are accessed whole, as themselves or as the parts of each, two
floats side by side (AMB-LANG-221).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..numerics.array import Array
from ..numerics.formats import DType
from ..tile.block import BlockState
from ..tile.faults import KernelFault, Misaligned
from ..tile.storage import Offsets, Storage


@dataclass(frozen=True, eq=False)
class Address:
    """Where each lane points to: all into one memory, each at an offset in bytes."""

    memory: Storage
    bytes: Offsets

    def merged(self, condition: npt.NDArray[np.bool_], other: Pointers) -> Address:
        """For each lane this one where the condition holds, else the other. Raises `OtherMemory`."""
        there = pointing(other, self.bytes.size)
        if there.memory is not self.memory:
            raise OtherMemory(self.memory.name, there.memory.name)
        return Address(self.memory, np.where(condition, self.bytes, there.bytes))


Pointers: TypeAlias = Storage | Address
"""A pointer in each lane."""


def pointing(pointers: Pointers, lanes: int) -> Address:
    """The address of each lane; a memory is its own beginning."""
    return Address(pointers, np.zeros(lanes, np.int64)) if isinstance(pointers, Storage) else pointers


def moved(block: BlockState, pointers: Pointers, by: Offsets) -> Address:
    """The pointers moved by some bytes."""
    if isinstance(pointers, Storage):
        return Address(pointers, by)
    return Address(pointers.memory, pointers.bytes + by)


class OtherMemory(KernelFault):
    """One pointer is to be into two memories."""

    requirement = "pointers into one memory"
    clause = "LANG-08.3-01"

    def __init__(self, memory: str, other: str) -> None:
        super().__init__(memory, other)
        self.memory, self.other = memory, other

    def __str__(self) -> str:
        return f"a pointer into {self.memory} in some lanes and into {self.other} in others"


class OtherDType(KernelFault):
    """An access of `accessed` to `memory`, which holds another dtype."""

    requirement = "accesses of the dtype that the memory holds"
    clause = "LANG-11-01"

    def __init__(self, memory: str, held: DType, accessed: DType) -> None:
        super().__init__(memory, held, accessed)
        self.memory, self.held, self.accessed = memory, held, accessed

    def __str__(self) -> str:
        return f"{self.memory} holds {self.held} and is accessed as {self.accessed}"


def elements(block: BlockState, pointers: Pointers, alignment: int) -> tuple[Storage, Offsets]:
    """The memory, and the offset in elements to which each lane points. Raises `Misaligned`, `alignment` in bytes."""
    address = pointing(pointers, block.lanes)
    memory, size = address.memory, address.memory.dtype.storage_bytes
    offsets = np.asarray(address.bytes // size)
    odd = (block.of_active(address.bytes) % max(size, alignment)).nonzero()[0]
    if odd.size:
        lane = int(block.active[odd[0]])
        where = memory.address(int(offsets[lane]))
        raise Misaligned(block.thread(lane), where, int(address.bytes[lane]), max(size, alignment))
    return memory, offsets


def load(block: BlockState, pointers: Pointers, dtype: DType, count: int) -> npt.NDArray[Any]:
    """What each active lane reads: [lanes, count]. Raises `KernelFault`."""
    return np.ascontiguousarray(block.load(*_places(block, pointers, dtype, count))).view(dtype.carrier)


def store(block: BlockState, pointers: Pointers, values: Array) -> None:
    """What each active lane writes: `values` is [lanes] or [lanes, count]. Raises `KernelFault`."""
    rows = np.ascontiguousarray(values.values.reshape(block.lanes, -1))
    memory, places = _places(block, pointers, values.dtype, rows.shape[1])
    block.store(memory, places, rows.view(memory.dtype.carrier))


def require_dtype(memory: Storage, dtype: DType) -> None:
    """Raise `OtherDType` unless the memory holds this dtype; tf32 is fp32 there."""
    if dtype.storage != memory.dtype.storage:
        raise OtherDType(memory.name, memory.dtype, dtype)


def _places(block: BlockState, pointers: Pointers, dtype: DType, count: int) -> tuple[Storage, Offsets]:
    """The elements that each lane accesses, [lanes, count]."""
    size = count * dtype.storage_bytes
    memory, begin = elements(block, pointers, min(16, size & -size))
    if memory.dtype.kind == "complex" and dtype.storage == memory.dtype.component and count % 2 == 0:
        count //= 2
    else:
        require_dtype(memory, dtype)
    block.require_within(memory, begin, count)
    return memory, np.asarray(begin[:, None] + np.arange(count))
