"""Copies between host and device memory, and within devices (runtime spec 4.4; AMB-RT-05, AMB-RT-53)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from ..abi.enumerations import CopyKind
from ..mesh.allocations import Region
from ..mesh.costs import copy_duration
from ..mesh.engine import Signal
from ..mesh.topology import Device
from .work import Access, Work

__all__ = ["CopyWork"]


@dataclass(eq=False, kw_only=True)
class CopyWork(Work):
    """H2D writes the copy of every rank, D2H reads that of rank 0, D2D copies on each rank (AMB-RT-05)."""

    kind = "copy"
    function = "tessMemcpyAsync"

    direction: CopyKind
    destination: Region
    source: Region
    bytes: int
    arrived: int = field(default=0, init=False)
    """Ranks that have reached a copy to the host."""
    signals: tuple[Signal, Signal] | None = field(default=None, init=False)
    """Of a copy to the host: that all ranks have arrived, and that it is done."""

    def accesses(self) -> Sequence[Access]:
        """It reads the source and writes the destination."""
        return [(self.source, self.bytes, False), (self.destination, self.bytes, True)]

    async def run(self, rank: int) -> None:
        """Copy on one rank. Raises `Failure`."""
        if self.direction is CopyKind.TESS_COPY_D2H and len(self.ranks()) > 1:
            await self._to_the_host(rank)
        else:
            await self._copied(rank)

    async def _to_the_host(self, rank: int) -> None:
        """Rank 0 copies when all ranks have arrived, and they go on when it has: the copies of other ranks come before
        or after it as their work in the stream does (RT-06-01)."""
        engine = self.stream.mesh.machine.engine
        if self.signals is None:
            names = f"the ranks of {self.name}", f"the end of {self.name}"
            self.signals = Signal(engine, names[0], self.stream.workers), Signal(engine, names[1], self.stream.workers)
        arrived, done = self.signals
        self.arrived += 1
        if self.arrived == len(self.ranks()):
            arrived.set()
        if rank != 0:
            await done
            return
        await arrived
        try:
            await self._copied(rank)
        finally:
            done.set()

    async def _copied(self, rank: int) -> None:
        """Read, let the time of the copy pass, write."""
        mesh = self.stream.mesh
        device = mesh.device(rank)
        start = mesh.machine.engine.now
        await device.copies.acquire(self.stream.priority)
        try:
            data = bytes(mesh.read(self.source, rank, self.bytes, self.function))
            await self.spend(self._duration(device.description))
            mesh.write(self.destination, rank, data)
        finally:
            device.copies.release()
        self.profile(rank, start, over=lambda: self._link(device.description), bytes=self.bytes)

    def _link(self, device: Device) -> str | None:
        """The narrowest link between host and device; none within a device."""
        topology = self.stream.mesh.machine.topology
        if self.direction is CopyKind.TESS_COPY_D2D:
            return None
        way = topology.route(topology.host.name, device.id)
        return min(way, key=attrgetter("bandwidth")).name if way else None

    def _duration(self, device: Device) -> int:
        """Memory of the host that is not pinned takes longer."""
        pinned = self.source.allocation.pinned and self.destination.allocation.pinned
        return copy_duration(self.stream.mesh.machine.topology, device, self.direction.name, self.bytes, pinned)
