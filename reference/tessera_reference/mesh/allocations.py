"""One allocation: where it lies, its storage by rank, and which of its bytes were ever written (AMB-RT-05).

Storage is made at the first write. A byte that was never written reads as 0xA5, so that a program that reads one
computes something conspicuous, and the same on every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from ..ir.spelling import counted
from .intervals import Intervals

__all__ = ["NEVER_WRITTEN", "Allocation", "Region", "Space"]

Space = Literal["device", "host"]

NEVER_WRITTEN = 0xA5


class Allocation:
    """Memory of the machine from `address` to before `stop`: of a host, or one copy on each of `devices`.

    `foreign` memory belongs to the caller and counts as written; its ranks share it. Memory that a program has the
    address of is its `storage` from the start, and counts as written too.
    """

    __slots__ = (
        "_foreign",
        "_storage",
        "_written",
        "address",
        "bytes",
        "devices",
        "freed",
        "number",
        "owner",
        "pinned",
        "space",
        "stop",
    )

    def __init__(
        self,
        number: int,
        space: Space,
        address: int,
        bytes: int,
        *,
        devices: Sequence[int] = (),
        owner: int = 0,
        pinned: bool = True,
        foreign: memoryview | None = None,
        storage: memoryview | None = None,
    ) -> None:
        self.number = number
        self.space = space
        self.address = address
        self.stop = address + bytes
        self.bytes = bytes
        self.devices = tuple(devices)
        self.owner = owner
        self.pinned = pinned
        self.freed = False
        self._foreign = foreign
        copies = len(self.devices) if space == "device" and foreign is None else 1
        held = foreign if foreign is not None else storage
        self._storage: list[memoryview | None] = [held] * copies
        self._written: list[Intervals | None] = [None if held is not None else Intervals() for _ in range(copies)]

    @property
    def copies(self) -> int:
        """How many storages it has: one for each rank, or one for all."""
        return len(self._storage)

    @property
    def foreign(self) -> bool:
        """Whether the memory belongs to the caller."""
        return self._foreign is not None

    @property
    def read_only(self) -> bool:
        """Whether it is foreign memory that must not be written."""
        return self._foreign is not None and self._foreign.readonly

    def __str__(self) -> str:
        where = counted(len(self.devices), "device") if self.space == "device" else "the host"
        return f"allocation {self.number} ({self.bytes} bytes at {self.address:#x} on {where})"

    def copy_of(self, rank: int) -> int:
        """Which of its storages a rank uses."""
        return rank if len(self._storage) > 1 else 0

    def unwritten(self, copy: int, start: int, stop: int) -> list[tuple[int, int]]:
        """The ranges of a storage from start to before stop that were never written."""
        written = self._written[copy]
        if written is None or written.covers(start, stop):
            return []
        return list(written.gaps(start, stop))

    def view(self, copy: int, start: int, stop: int) -> memoryview:
        """The bytes themselves, to be read or, where all that is in it is then written, to be written.

        Raises `MemoryError` where the machine that simulates has not as much memory.
        """
        storage = self._storage[copy]
        if storage is None:  # zeros take room only where they are written
            storage = self._storage[copy] = np.zeros(self.bytes, np.uint8).data
        return storage[start:stop]

    def bytes_with_gaps(self, copy: int, start: int, stop: int, gaps: Sequence[tuple[int, int]]) -> bytes:
        """A copy of the bytes in which those of the gaps are `NEVER_WRITTEN`."""
        if self._storage[copy] is None:
            return bytes([NEVER_WRITTEN]) * (stop - start)
        if not gaps:
            return bytes(self.view(copy, start, stop))
        held = bytearray(self.view(copy, start, stop))
        for gap, until in gaps:
            held[gap - start : until - start] = bytes([NEVER_WRITTEN]) * (until - gap)
        return bytes(held)

    def note_written(self, copy: int, start: int, stop: int) -> None:
        """Remember that the bytes from start to before stop were written."""
        written = self._written[copy]
        if written is None:
            return
        if start == 0 and stop == self.bytes:
            self._written[copy] = None
            return
        written.add(start, stop)
        if written.covers(0, self.bytes):
            self._written[copy] = None

    def drop_storage(self) -> None:
        """Give its memory back; only where it lay is still known."""
        self.freed = True
        self._storage = [None] * len(self._storage)
        self._written = [None] * len(self._written)
        self._foreign = None


class Region(NamedTuple):
    """Part of an allocation, from `offset` on; a named tuple, because one is made for every operation queued."""

    allocation: Allocation
    offset: int
