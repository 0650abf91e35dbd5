"""How much memory each device and the host have, and how much of it is in use (runtime spec 4.4, 9).

Foreign memory takes nothing of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..abi.status import Failure, Status
from ..ir.spelling import counted
from .allocations import Allocation
from .topology import Topology

__all__ = ["Capacity"]


class _Account:
    """What one memory holds, and how many allocations are in it."""

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
    """The accounts of every device and of the host."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._devices = {device.id: _Account(device.memory_bytes) for device in topology.devices}
        self._host = _Account(topology.host.memory_bytes)

    def of_device(self, number: int) -> int:
        """How many bytes a device has. Raises `Failure` for a device that does not exist."""
        return self._topology.device(number).memory_bytes

    def used_on_device(self, number: int) -> int:
        """How many bytes of a device are in use. Raises as `of_device`."""
        return self._devices[self._topology.device(number).id].in_use

    @property
    def of_host(self) -> int:
        """How many bytes the host has."""
        return self._host.total

    @property
    def used_on_host(self) -> int:
        """How many bytes of the host are in use."""
        return self._host.in_use

    def require_on_devices(self, numbers: Sequence[int], bytes: int) -> None:
        """Raise `Failure` with TESS_ERR_OUT_OF_MEMORY, naming the first device that has no room for so many bytes."""
        for number in numbers:
            device = self._topology.device(number, "tessMalloc")
            lacking = self._devices[number].lacks(bytes)
            if lacking:
                given = f"{bytes} bytes on device {number} ({device.target}), which has {lacking}"
                raise Failure(Status.TESS_ERR_OUT_OF_MEMORY, "tessMalloc", given, "what is free on every device")

    def require_on_host(self, bytes: int) -> None:
        """Raise `Failure` with TESS_ERR_OUT_OF_MEMORY unless the host has room for so many bytes."""
        lacking = self._host.lacks(bytes)
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

    def _accounts(self, allocation: Allocation) -> Sequence[_Account]:
        if allocation.foreign:
            return ()
        return [self._host] if allocation.space == "host" else [self._devices[each] for each in allocation.devices]
