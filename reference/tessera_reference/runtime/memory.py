"""Pointer arguments, and copies between host and device memory (runtime spec 4.4, 9; AMB-RT-05, AMB-RT-53)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..abi.status import CopyKind
from ..mesh.engine import Signal
from ..mesh.memory import AddressSpaceMemory, Region, Wanted, byte_view
from ..mesh.topology import Device, copy_duration
from ..numerics.formats import DType
from .arguments import SIZE, integer, invalid
from .machine import Access
from .streams import Stream, Work

# What a pointer argument points to: device or host memory that work uses, and bytes that a call reads (spec 4.4).


def region_of(
    function: str, argument: str, pointer: Any, size: int, space: Wanted, stream: Stream, written: bool = False
) -> Region:
    """The memory of a pointer, for work of a stream: on every device of its mesh (AMB-RT-05). Raises `Failure`."""
    region = stream.mesh.machine.memory.find(pointer, size, function, argument, space)
    devices = set(region.allocation.devices)
    missing = [device for device in stream.mesh.devices if device not in devices]
    if missing and region.allocation.space == "device":
        subject = f"{argument} is memory of devices {list(region.allocation.devices)}, none of device {missing[0]}"
        raise invalid(subject, "memory of every device of the stream's mesh")
    if written and region.allocation.read_only:
        raise invalid(f"{argument} is in {region.allocation}, which is read-only", "memory to write")
    return region


def require_aligned(argument: str, pointer: int, dtype: DType) -> None:
    """A pointer to elements of a dtype is a multiple of their size, of 8 at most. Raises `Failure`."""
    step = min(dtype.storage_bytes, 8)
    if pointer % step:
        raise invalid(f"{argument} is {pointer:#x}", f"a multiple of {step}, as {dtype} needs")


def host_bytes(
    memory: AddressSpaceMemory, function: str, argument: str, source: bytes | int, size: int, size_name: str
) -> bytes:
    """The first `size` bytes of host memory, given as they are or by their address. Raises `Failure`."""
    count = integer(size_name, size, SIZE)
    if isinstance(source, int):
        region = memory.find(source, count, function, argument, "host")
        return bytes(memory.read(region, 0, count, function))
    data = byte_view(source, argument)
    if count > len(data):
        raise invalid(f"size {count} of {argument}, which has {len(data)} bytes", f"at most {len(data)}")
    return bytes(data[:count])


# Copies between host and device memory, and within devices (runtime spec 4.4; AMB-RT-05, AMB-RT-53).


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
    """The signals of a copy to the host: all ranks have arrived, and the copy is done."""

    def accesses(self) -> Sequence[Access]:
        return [(self.source, self.bytes, False), (self.destination, self.bytes, True)]

    async def run(self, rank: int) -> None:
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
        return min(way, key=lambda link: link.bandwidth).name if way else None

    def _duration(self, device: Device) -> int:
        """Memory of the host that is not pinned takes longer."""
        pinned = self.source.allocation.pinned and self.destination.allocation.pinned
        return copy_duration(self.stream.mesh.machine.topology, device, self.direction.name, self.bytes, pinned)
