"""Meshes of devices: ranks row-major over (tp, pp, dp, ep) (runtime spec 4.2; AMB-RT-01, AMB-RT-02)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from ..abi.status import Failure
from ..mesh.allocations import Region
from ..mesh.axes import MeshAxes
from ..mesh.engine import Process, Signal
from .contexts import Context
from .machine import Machine, SimulatedDevice

__all__ = ["Mesh", "Queue"]


class Queue(Protocol):
    """A stream, as its mesh and its work know it; `Stream` says what the members are."""

    handle: int
    mesh: Mesh
    priority: int
    workers: list[Process]
    residents: list[Signal]
    ended: int

    @property
    def queued(self) -> Mapping[Any, int]:
        """Unfinished work."""

    def enqueue(self, work: Any) -> None:
        """Queue work."""

    def fail(self, failure: Failure, number: int, rank: int) -> None:
        """Keep an asynchronous error."""

    def end_residents(self) -> None:
        """Ask persistent kernels to end."""


@dataclass(eq=False)
class Mesh:
    """Devices of a context, one a rank, and the streams on them."""

    handle: int
    context: Context
    machine: Machine
    devices: tuple[int, ...]
    axes: MeshAxes
    streams: dict[int, Queue] = field(default_factory=dict)
    resident: list[str] = field(default_factory=list)

    def device(self, rank: int) -> SimulatedDevice:
        """The device of a rank."""
        return self.machine.devices[self.devices[rank]]

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The targets of its devices, each once."""
        return tuple(dict.fromkeys(self.machine.devices[each].description.target for each in self.devices))

    def groups(self, axis: str | None) -> tuple[tuple[int, ...], ...]:
        """The ranks that a collective combines: those of each group along an axis, or all of the mesh."""
        return (tuple(range(len(self.devices))),) if axis is None else self.axes.groups(axis)

    def drain(self) -> None:
        """Let all queued work finish (AMB-RT-50)."""
        for stream in self.streams.values():
            stream.end_residents()
        workers = [worker for stream in self.streams.values() for worker in stream.workers]
        self.machine.settle(lambda: not any(stream.queued for stream in self.streams.values()), workers)
        for handle in self.streams:
            self.machine.order.synchronize(handle)

    def read(self, region: Region, rank: int, bytes: int, reader: str) -> memoryview | bytes:
        """The bytes of a rank's copy of device memory, or of host memory; a view, valid until the next write."""
        return self.machine.memory.read(region, self._copy(region, rank), bytes, reader)

    def peek(self, region: Region, rank: int, bytes: int) -> bytes:
        """The same as a copy, where it does not matter whether the bytes were ever written."""
        return self.machine.memory.peek(region, self._copy(region, rank), bytes)

    def write(self, region: Region, rank: int, data: bytes | memoryview) -> None:
        """Put bytes into a rank's copy of device memory, or into host memory."""
        self.machine.memory.write(region, self._copy(region, rank), data)

    def _copy(self, region: Region, rank: int) -> int:
        """Which copy of an allocation, perhaps one of another mesh, lies on the device of a rank."""
        devices = region.allocation.devices
        return devices.index(self.devices[rank]) if devices else 0
