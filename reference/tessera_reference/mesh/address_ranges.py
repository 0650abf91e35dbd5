"""Where allocations lie in the machine's one address space, and what lies at an address (runtime spec 9).

Addresses are given in ascending order and never twice, with a guard zone around each allocation: so an address past
an end, or of memory that was freed, is recognised. Every address is below 2**53, and thus exact as a number
in JSON.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

from ..abi.status import Failure, Status
from .allocations import Allocation, Space

__all__ = ["ALIGNMENT", "DEVICE", "GUARD", "HOST", "AddressRange"]

ALIGNMENT = 256
GUARD = 65536
"""Bytes between allocations, at least."""

MOST_FREED = 8192
"""Freed allocations whose addresses are remembered, at least."""

DEVICE = range(2**44, 2**51)
HOST = range(2**51, 2**52)


class AddressRange:
    """The allocations of one space, in the order of their addresses."""

    def __init__(self, space: Space, addresses: range) -> None:
        self.space = space
        self.addresses = addresses
        self._next = addresses.start + GUARD
        self._starts: list[int] = []
        self._allocations: list[Allocation] = []
        self._freed: deque[Allocation] = deque()

    def place(self, bytes: int, function: str) -> int:
        """The address of a new allocation. Raises `Failure` with TESS_ERR_OUT_OF_MEMORY where none is left."""
        if self._next + bytes + GUARD > self.addresses.stop:
            given = (
                f"{bytes} bytes, with {max(0, self.addresses.stop - self._next - GUARD)} {self.space} addresses left"
            )
            raise Failure(Status.TESS_ERR_OUT_OF_MEMORY, function, given, "fewer bytes")
        return self._next

    def add(self, allocation: Allocation) -> None:
        """Take an allocation at the address that `place` gave."""
        self._starts.append(allocation.address)
        self._allocations.append(allocation)
        self._next = -(-(allocation.stop + GUARD) // ALIGNMENT) * ALIGNMENT

    def free(self, allocation: Allocation) -> None:
        """Give an allocation's storage back; its place is remembered for a while."""
        allocation.drop_storage()
        self._freed.append(allocation)
        if len(self._freed) >= 2 * MOST_FREED:
            self._forget_oldest(MOST_FREED)

    def _forget_oldest(self, count: int) -> None:
        gone = {self._freed.popleft().number for _ in range(count)}
        self._allocations = [each for each in self._allocations if each.number not in gone]
        self._starts = [each.address for each in self._allocations]

    def at(self, address: int) -> Allocation | None:
        """The last allocation, live or freed, that starts at or before an address."""
        position = bisect_right(self._starts, address)
        return self._allocations[position - 1] if position else None

    def after(self, address: int) -> Allocation | None:
        """The first allocation, live or freed, that starts after an address."""
        position = bisect_right(self._starts, address)
        return self._allocations[position] if position < len(self._allocations) else None

    def live(self) -> tuple[Allocation, ...]:
        """The allocations that were not freed."""
        return tuple(each for each in self._allocations if not each.freed)
