"""The memory of the simulated machine: one address space of device and host allocations (runtime spec 4.4, 9).

A device pointer stands for one copy on every rank of its mesh (AMB-RT-05). Every pointer is checked against the
allocations; a wrong one is refused with an explanation and added to the findings. Time is the engine's business.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..abi.status import Failure, Status
from ..numerics.errors import shown
from .address_ranges import DEVICE, HOST, AddressRange
from .allocations import Allocation, Region
from .byte_views import BytesLike, byte_view
from .capacity import Capacity
from .findings import Findings
from .pointer_diagnosis import Diagnosis, Wanted, diagnose, diagnose_free
from .process_memory import DEVICE as DEVICE_BESIDE_PROCESS
from .process_memory import ProcessMemory, ProgramMemory
from .topology import Topology

__all__ = ["AddressSpaceMemory", "Allocation", "Region"]


class AddressSpaceMemory:
    """All memory of one machine, device and host, in one address space.

    With a `process`, the memory of the host is that of the process.
    """

    def __init__(self, topology: Topology, process: ProcessMemory | None = None) -> None:
        self.findings = Findings()
        self.capacity = Capacity(topology)
        self._device = AddressRange("device", DEVICE if process is None else DEVICE_BESIDE_PROCESS)
        self._host = AddressRange("host", HOST if process is None else process.reserved)
        self._process = process
        self._program = None if process is None else ProgramMemory(process)
        self._made = 0

    def allocate_device(self, devices: Sequence[int], bytes: int, owner: int = 0) -> int:
        """Memory on each device, the n-th being that of rank n (RT-04.4-03, AMB-RT-05).

        Raises `Failure`: TESS_ERR_OUT_OF_MEMORY naming the device that lacks it, TESS_ERR_INVALID_VALUE for a negative
        size.
        """
        self._require_size(bytes, "tessMalloc")
        self.capacity.require_on_devices(devices, bytes)
        return self._add(self._device, bytes, "tessMalloc", devices=devices, owner=owner)

    def allocate_host(self, bytes: int, pinned: bool = True) -> int:
        """Memory of the host. Raises `Failure` as `allocate_device`, and `MemoryError`."""
        self._require_size(bytes, "tessHostAlloc")
        self.capacity.require_on_host(bytes)
        storage = None
        if self._process is not None:
            start = self._host.place(bytes, "tessHostAlloc")
            self._process.open(start, bytes)
            storage = self._process.view(start, bytes)
        return self._add(self._host, bytes, "tessHostAlloc", pinned=pinned, storage=storage)

    def adopt_host(self, memory: BytesLike) -> int:
        """An address for memory of the caller, which is used in place and counts as written. Raises `Failure`."""
        held = byte_view(memory, "adopted host memory")
        return self._add(self._host, len(held), "tessHostAlloc", foreign=held, pinned=False)

    def adopt_device(self, devices: Sequence[int], memory: BytesLike, owner: int = 0) -> int:
        """A device pointer for memory of the caller, which all ranks share in place. Raises `Failure`."""
        held = byte_view(memory, "adopted device memory")
        return self._add(self._device, len(held), "tessMalloc", devices=devices, owner=owner, foreign=held)

    def free_device(self, pointer: int, owner: int = 0) -> Allocation:
        """Free device memory of an owner (its mesh); returns the allocation.

        Raises `Failure` with TESS_ERR_INVALID_VALUE saying why not.
        """
        return self._free(self._device, pointer, owner, "tessFree")

    def free_host(self, pointer: int) -> None:
        """Free memory of the host, or release adopted memory. Raises as `free_device`."""
        self._free(self._host, pointer, 0, "tessHostFree")

    def release(self, owner: int) -> tuple[Allocation, ...]:
        """Free all device memory that an owner still has (AMB-RT-50); returns the allocations."""
        held = tuple(each for each in self._device.live() if each.owner == owner)
        for allocation in held:
            self._forget(self._device, allocation)
        return held

    def live(self) -> tuple[Allocation, ...]:
        """The live allocations: first of devices, then of the host, each by address."""
        return self._device.live() + self._host.live()

    def find(self, address: int, bytes: int, function: str, argument: str, space: Wanted = "any") -> Region:
        """Where `bytes` bytes at an address lie, all within one live allocation.

        Raises `Failure` with TESS_ERR_INVALID_VALUE, and notes a finding, for a pointer that is NULL, was never
        allocated, was freed, runs past an end, or is of the host where one of a device is wanted, or the reverse.
        """
        if type(address) is int and type(bytes) is int and bytes >= 0:
            held = self._device if address in self._device.addresses else self._host
            at = held.at(address)
            if at and not at.freed and address + bytes <= at.stop and (space == "any" or at.space == space):
                return Region(at, address - at.address)
            programs = self._program and self._program.find(address, bytes)
            if programs and space != "device":
                return programs
        raise self._refusal(address, bytes, function, argument, space)

    def read(self, region: Region, rank: int, bytes: int, reader: str = "read") -> memoryview | bytes:
        """The bytes of a rank's copy: in place and read-only where all were written, so copy what is to be kept.

        A byte never written reads as 0xA5 and is a finding of kind `uninitialised_read`.
        """
        allocation, start, stop, copy = self._placed(region, rank, bytes)
        gaps = allocation.unwritten(copy, start, stop)
        if not gaps:
            return allocation.view(copy, start, stop).toreadonly()
        missing = sum(until - gap for gap, until in gaps)
        text = f"{reader}: {missing} of {bytes} bytes were never written, the first at offset {gaps[0][0]} of "
        self.findings.add("uninitialised_read", f"{text}{allocation}, rank {rank}")
        return allocation.bytes_with_gaps(copy, start, stop, gaps)

    def peek(self, region: Region, rank: int, bytes: int) -> bytes:
        """A copy of the bytes of a rank's copy; nothing is noted."""
        allocation, start, stop, copy = self._placed(region, rank, bytes)
        return allocation.bytes_with_gaps(copy, start, stop, allocation.unwritten(copy, start, stop))

    def write(self, region: Region, rank: int, data: BytesLike) -> None:
        """Put bytes into a rank's copy. Raises `Failure` for read-only memory, and where the simulator has no room."""
        held = data if type(data) is bytes else byte_view(data, "data to be written")
        allocation, start, stop, copy = self._placed(region, rank, len(held))
        if allocation.read_only:
            given = f"a write to {allocation}, which is read-only"
            raise Failure(Status.TESS_ERR_INVALID_VALUE, "write", given, "memory that may be written")
        if start == stop:
            return
        try:
            allocation.view(copy, start, stop)[:] = held
        except MemoryError:
            given = f"a write to {allocation}, for which the simulating machine has no memory"
            raise Failure(Status.TESS_ERR_OUT_OF_MEMORY, "write", given, "smaller allocations") from None
        allocation.note_written(copy, start, stop)

    def _placed(self, region: Region, rank: int, bytes: int) -> tuple[Allocation, int, int, int]:
        """A region of `bytes` bytes of a rank's copy, which may have been freed since it was found."""
        allocation, start = region
        stop = start + bytes
        if allocation.freed or stop > allocation.bytes or bytes < 0:
            raise self._refusal(allocation.address + start, bytes, "access", "memory", "any")
        if allocation.space == "device" and not 0 <= rank < len(allocation.devices):
            allowed = f"0 to {len(allocation.devices) - 1}, the ranks of {allocation}"
            raise Failure(Status.TESS_ERR_INVALID_VALUE, "access", f"rank {rank}", allowed)
        return allocation, start, stop, allocation.copy_of(rank)

    def _add(
        self,
        held: AddressRange,
        bytes: int,
        function: str,
        *,
        devices: Sequence[int] = (),
        owner: int = 0,
        pinned: bool = True,
        foreign: memoryview | None = None,
        storage: memoryview | None = None,
    ) -> int:
        start = held.place(bytes, function)
        self._made += 1
        made = Allocation(
            self._made,
            held.space,
            start,
            bytes,
            devices=devices,
            owner=owner,
            pinned=pinned,
            foreign=foreign,
            storage=storage,
        )
        held.add(made)
        self.capacity.take(made)
        return start

    def _free(self, held: AddressRange, pointer: int, owner: int, function: str) -> Allocation:
        at = held.at(pointer) if type(pointer) is int else None
        if at and at.address == pointer and not at.freed and at.owner == owner:
            self._forget(held, at)
            return at
        found = diagnose_free(pointer, held.space, (self._device, self._host))
        if found.kind:
            self.findings.add(found.kind, f"{function}: pointer is {found.text}")
        allowed = f"a {held.space} pointer that was allocated and not yet freed"
        raise Failure(Status.TESS_ERR_INVALID_VALUE, function, f"pointer is {found.text}", allowed)

    def _forget(self, held: AddressRange, allocation: Allocation) -> None:
        self.capacity.give_back(allocation)
        of_process = self._process if held is self._host and not allocation.foreign else None
        held.free(allocation)
        if of_process is not None:
            of_process.close(allocation.address, allocation.bytes)

    def _refusal(self, address: int, bytes: int, function: str, argument: str, space: Wanted) -> Failure:
        """The failure for a wrong pointer, which is added to the findings."""
        found = diagnose(address, bytes, space, (self._device, self._host))
        if self._program is not None and type(address) is int and self._program.find(address, 0):
            found = _of_the_program(address, bytes, space)
        if found.kind:
            self.findings.add(found.kind, f"{function}: {argument} is {found.text}")
        owner = "" if space == "any" else f" of the {space}"
        allowed = f"a pointer to {shown(bytes)} allocated bytes{owner}"
        return Failure(Status.TESS_ERR_INVALID_VALUE, function, f"{argument} is {found.text}", allowed)

    def _require_size(self, bytes: int, function: str) -> None:
        if type(bytes) is not int or bytes < 0:
            raise Failure(Status.TESS_ERR_INVALID_VALUE, function, f"{shown(bytes)} bytes", "0 or more bytes")


def _of_the_program(address: int, bytes: int, wanted: Wanted) -> Diagnosis:
    """Why memory of the program cannot be used."""
    if wanted == "device":
        text = f"{address:#x}, memory of the program where a device pointer is wanted"
        return Diagnosis(text, "host_device_mixup")
    return Diagnosis(f"{address:#x}, from where the program has less than {shown(bytes)} bytes", "overrun")
