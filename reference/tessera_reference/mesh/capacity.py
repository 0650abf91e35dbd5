"""How much memory each device and the host have, and how much of it is in use (runtime spec 4.4, 9).

Memory of the caller does not count.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..abi.status import Failure, Status
from ..ir.spelling import counted
from .allocations import Allocation
from .topology import Topology

__all__ = ["Account", "Capacity"]


class Account:
    """The bytes of one memory, those in use, and the number of allocations that use them."""

    __slots__ = ("in_use", "owners", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.in_use = 0
        self.owners = 0

    def lacks(self, bytes: int) -> str:
        """Why so many bytes do not fit, or nothing."""
        if self.in_use + bytes <= self.total:
            return ""
        return f"{self.total} bytes, of which {self.in_use} are in use by {counted(self.owners, 'allocation')}"


class Capacity:
    """The accounts of the devices, by id, and of the host."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.devices = {device.id: Account(device.memory_bytes) for device in topology.devices}
        self.host = Account(topology.host.memory_bytes)

    def require_on_devices(self, numbers: Sequence[int], bytes: int) -> None:
        """Raise `Failure` with TESS_ERR_OUT_OF_MEMORY, naming the first device that has no room for so many bytes."""
        for number in numbers:
            device = self._topology.device(number, "tessMalloc")
            lacking = self.devices[number].lacks(bytes)
            if lacking:
                given = f"{bytes} bytes on device {number} ({device.target}), which has {lacking}"
                raise Failure(Status.TESS_ERR_OUT_OF_MEMORY, "tessMalloc", given, "what is free on every device")

    def require_on_host(self, bytes: int) -> None:
        """Raise `Failure` with TESS_ERR_OUT_OF_MEMORY unless the host has room for so many bytes."""
        lacking = self.host.lacks(bytes)
        if lacking:
            given = f"{bytes} bytes of {self._topology.host.name}, which has {lacking}"
            raise Failure(Status.TESS_ERR_OUT_OF_MEMORY, "tessHostAlloc", given, "what is free on the host")

    def take(self, allocation: Allocation) -> None:
        """Count an allocation in."""
        for account in self._accounts(allocation):
            account.in_use += allocation.bytes
            account.owners += 1

    def give_back(self, allocation: Allocation) -> None:
        """Count an allocation out, before it is freed."""
        for account in self._accounts(allocation):
            account.in_use -= allocation.bytes
            account.owners -= 1

    def _accounts(self, allocation: Allocation) -> Sequence[Account]:
        if allocation.foreign:
            return ()
        return [self.host] if allocation.space == "host" else [self.devices[each] for each in allocation.devices]
