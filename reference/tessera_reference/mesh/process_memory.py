"""The memory of the process that the machine runs in, for C programs, whose host pointers are addresses (spec 4.4).

Such a program may name any memory of its own in a copy or a call. It is used in place: nothing is copied on the way,
and nothing about it is known but whether it is there.
"""

from __future__ import annotations

from typing import Protocol

from .allocations import Allocation, Region

__all__ = ["ADDRESSES", "DEVICE", "ProcessMemory", "ProgramMemory"]

ADDRESSES = range(2**12, 2**48)
"""Where memory of a process can lie: not on the first page."""

DEVICE = range(2**48, 2**51)
"""The device pointers of a machine with a process, so that none is taken for an address of the process."""


class ProcessMemory(Protocol):
    """What the process has to offer."""

    @property
    def reserved(self) -> range:
        """Addresses at which nothing lies but what `open` makes there."""

    def open(self, address: int, bytes: int) -> None:
        """Let there be zeros at reserved addresses. Raises `MemoryError`."""

    def close(self, address: int, bytes: int) -> None:
        """Let there be nothing any more."""

    def holds(self, address: int, bytes: int) -> bool:
        """Whether there is memory at all of these addresses."""

    def view(self, address: int, bytes: int) -> memoryview:
        """The bytes there, in place."""


class ProgramMemory(Allocation):
    """All memory of the process that the machine did not make, as one allocation that begins at address 0.

    An offset is an address, so that uses of the same bytes are known to be of the same bytes.
    """

    __slots__ = ("_process",)

    def __init__(self, process: ProcessMemory) -> None:
        super().__init__(0, "host", 0, ADDRESSES.stop, pinned=False, foreign=memoryview(bytearray()))
        self._process = process

    def __str__(self) -> str:
        return "memory of the program"

    def find(self, address: int, bytes: int) -> Region | None:
        """Where so many bytes at an address lie, if they are there and of the program."""
        if address not in ADDRESSES or address + bytes > ADDRESSES.stop or address in self._process.reserved:
            return None
        return Region(self, address) if self._process.holds(address, bytes) else None

    def view(self, copy: int, start: int, stop: int) -> memoryview:
        """The bytes themselves."""
        return self._process.view(start, stop - start)
