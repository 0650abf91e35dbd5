"""The memory of the simulated machine (runtime spec 4.4, 9).

Allocations in one address space, and the reasons for refusing pointers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from ..abi.status import Failure, Status, invalid
from ..ir.diagnostics import counted
from ..numerics.formats import shown
from .topology import Topology

# A set of byte positions, kept as separate ranges in ascending order.


class Intervals:
    """Half-open ranges that neither touch nor overlap: an added range is merged with those that it touches."""

    __slots__ = ("_starts", "_stops")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, self._stops, strict=True)

    def add(self, start: int, stop: int) -> None:
        """Add the positions from start to before stop."""
        if start >= stop:
            return
        first = bisect_left(self._stops, start)
        last = bisect_right(self._starts, stop)
        if first < last:
            start = min(start, self._starts[first])
            stop = max(stop, self._stops[last - 1])
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]

    @property
    def total(self) -> int:
        """The number of positions."""
        return sum(self._stops) - sum(self._starts)

    def covers(self, start: int, stop: int) -> bool:
        """True if every position from start to before stop is in the set."""
        if start >= stop:
            return True
        at = bisect_right(self._starts, start) - 1
        return at >= 0 and stop <= self._stops[at]

    def gaps(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges from start to before stop that are not in the set, ascending."""
        at = bisect_right(self._stops, start)
        while start < stop:
            until = self._starts[at] if at < len(self._starts) else stop
            if start < until:
                yield start, min(until, stop)
            if at == len(self._starts):
                return
            start = self._stops[at]
            at += 1


# One allocation: its address, its storage by rank, and which of its bytes were ever written (AMB-RT-05).
#
# Storage is allocated at the first write. A byte that was never written reads as 0xA5, so that a program that reads one
# computes something conspicuous, and the same on every run.


Space = Literal["device", "host"]

NEVER_WRITTEN = 0xA5


class Allocation:
    """Memory of the machine from `address` to before `stop`: of a host, or one copy on each of `devices`.

    `foreign` memory belongs to the caller and counts as written; its ranks share it. Memory whose address a program has
    is its `storage` from the start, and counts as written too.
    """

    def __init__(
        self,
        number: int,
        space: Space,
        address: int,
        size: int,
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
        self.stop = address + size
        self.bytes = size
        self.devices = tuple(devices)
        self.owner = owner
        self.pinned = pinned
        self.freed = False
        self._foreign = foreign
        copies = len(self.devices) if space == "device" and foreign is None else 1
        buffer = foreign if foreign is not None else storage
        self._storage: list[memoryview | None] = [buffer] * copies
        self._written: list[Intervals | None] = [None if buffer is not None else Intervals() for _ in range(copies)]

    @property
    def foreign(self) -> bool:
        """True if the memory belongs to the caller."""
        return self._foreign is not None

    @property
    def read_only(self) -> bool:
        """True if it is foreign memory that must not be written."""
        return self._foreign is not None and self._foreign.readonly

    def __str__(self) -> str:
        where = counted(len(self.devices), "device") if self.space == "device" else "the host"
        return f"allocation {self.number} ({self.bytes} bytes at {self.address:#x} on {where})"

    def includes(self, address: int) -> bool:
        """True if an address is one of its bytes, or its start."""
        return self.address <= address < self.stop or address == self.address

    def copy_of(self, rank: int) -> int:
        """Return the number of the storage that a rank uses."""
        return rank if len(self._storage) > 1 else 0

    def unwritten(self, copy: int, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the ranges of a storage from start to before stop that were never written."""
        written = self._written[copy]
        if written is None or written.covers(start, stop):
            return []
        return list(written.gaps(start, stop))

    def view(self, copy: int, start: int, stop: int) -> memoryview:
        """Return the bytes in place, to be read, or to be written if the caller then writes all of them.

        Raises `MemoryError` where the simulator's machine does not have as much memory.
        """
        storage = self._storage[copy]
        if storage is None:  # zeros take memory only where they are written
            storage = self._storage[copy] = np.zeros(self.bytes, np.uint8).data
        return storage[start:stop]

    def bytes_with_gaps(self, copy: int, start: int, stop: int, gaps: Sequence[tuple[int, int]]) -> bytes:
        """Return a copy of the bytes in which those of the gaps are `NEVER_WRITTEN`."""
        if self._storage[copy] is None:
            return bytes([NEVER_WRITTEN]) * (stop - start)
        if not gaps:
            return bytes(self.view(copy, start, stop))
        content = bytearray(self.view(copy, start, stop))
        for gap, until in gaps:
            content[gap - start : until - start] = bytes([NEVER_WRITTEN]) * (until - gap)
        return bytes(content)

    def note_written(self, copy: int, start: int, stop: int) -> None:
        """Record that the bytes from start to before stop were written."""
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
        """Release its memory; only its address is still known."""
        self.freed = True
        self._storage = [None] * len(self._storage)
        self._written = [None] * len(self._written)
        self._foreign = None


class Region(NamedTuple):
    """Part of an allocation, from `offset` on; a named tuple, because every queued operation creates one."""

    allocation: Allocation
    offset: int


# Findings: wrong uses of memory that a real machine lets pass (runtime spec 9; AMB-RT-38, AMB-RT-53).


FindingKind = Literal[
    "uninitialised_read", "overrun", "use_after_free", "double_free", "host_device_mixup", "unordered_access"
]


@dataclass(frozen=True)
class Finding:
    """One wrong use: its kind, and a description."""

    kind: FindingKind
    text: str


class Findings:
    """The findings in order of detection, without repetitions; the first `most` are kept."""

    def __init__(self, most: int = 1000) -> None:
        self.most = most
        self._found: dict[Finding, None] = {}

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def add(self, kind: FindingKind, text: str) -> None:
        """Add a finding, unless the same was added before."""
        if len(self._found) < self.most:
            self._found[Finding(kind, text)] = None


# An object of the caller as plain bytes, without a copy (runtime spec 5: zero-copy where possible).


BytesLike = bytes | bytearray | memoryview


def byte_view(memory: BytesLike, what: str) -> memoryview:
    """Return an object's bytes in place. Raises `Failure` with TESS_ERR_INVALID_VALUE if they are not contiguous."""
    try:
        view = memoryview(memory)
        if view.nbytes == 0:
            return memoryview(b"")
        return view.cast("B")
    except (TypeError, ValueError) as error:
        subject = f"{what} of type {type(memory).__name__} ({shown(str(error))})"
        raise invalid("memory", subject, "contiguous bytes") from None


# The allocations in the machine's one address space, and the lookup of an address (runtime spec 9).
#
# Addresses are issued in ascending order and never twice, with a guard zone around each allocation. So an address past
# an end, or in freed memory, is recognised. Every address is below 2**53, and thus exact as a number in JSON.


ALIGNMENT = 256
GUARD = 65536
"""The bytes between allocations, at least."""

MOST_FREED = 8192
"""The number of freed allocations whose addresses are remembered, at least."""

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

    def place(self, size: int, function: str) -> int:
        """Return the address of a new allocation. Raises `Failure` with TESS_ERR_OUT_OF_MEMORY where none is left."""
        if self._next + size + GUARD > self.addresses.stop:
            subject = (
                f"{size} bytes, with {max(0, self.addresses.stop - self._next - GUARD)} {self.space} addresses left"
            )
            raise Failure(Status.TESS_ERR_OUT_OF_MEMORY, function, subject, "fewer bytes")
        return self._next

    def add(self, allocation: Allocation) -> None:
        """Add an allocation at the address that `place` returned."""
        self._starts.append(allocation.address)
        self._allocations.append(allocation)
        self._next = -(-(allocation.stop + GUARD) // ALIGNMENT) * ALIGNMENT

    def free(self, allocation: Allocation) -> None:
        """Release an allocation's storage; its place is remembered for a while."""
        allocation.drop_storage()
        self._freed.append(allocation)
        if len(self._freed) >= 2 * MOST_FREED:
            self._forget_oldest(MOST_FREED)

    def _forget_oldest(self, count: int) -> None:
        gone = {self._freed.popleft().number for _ in range(count)}
        self._allocations = [allocation for allocation in self._allocations if allocation.number not in gone]
        self._starts = [allocation.address for allocation in self._allocations]

    def at(self, address: int) -> Allocation | None:
        """Return the last allocation, live or freed, that starts at or before an address."""
        position = bisect_right(self._starts, address)
        return self._allocations[position - 1] if position else None

    def after(self, address: int) -> Allocation | None:
        """Return the first allocation, live or freed, that starts after an address."""
        position = bisect_right(self._starts, address)
        return self._allocations[position] if position < len(self._allocations) else None

    def live(self) -> tuple[Allocation, ...]:
        """Return the allocations that were not freed."""
        return tuple(allocation for allocation in self._allocations if not allocation.freed)


# The reasons for refusing a pointer, in words (AMB-RT-38; the kinds are those of `findings`).


Wanted = Literal["device", "host", "any"]

_LARGEST = 2**64 - 1


@dataclass(frozen=True)
class Diagnosis:
    """The fault of a pointer, and its kind of finding, if it is one."""

    text: str
    kind: FindingKind | None = None


def diagnose(address: object, size: object, access: Wanted, ranges: tuple[AddressRange, ...]) -> Diagnosis:
    """Return why `bytes` bytes at an address cannot be used."""
    if type(address) is not int or not 0 <= address <= _LARGEST:
        return Diagnosis(f"{shown(address)}, which is no address")
    if type(size) is not int or size < 0:
        return Diagnosis(f"{address:#x} for {shown(size)} bytes, which is no size")
    if address == 0:
        return Diagnosis("NULL")
    for area in ranges:
        problem = _in_range(address, size, access, area)
        if problem:
            return problem
    return Diagnosis(f"{address:#x}, where nothing is allocated")


def _in_range(address: int, size: int, access: Wanted, area: AddressRange) -> Diagnosis | None:
    at = area.at(address)
    if at is not None and at.includes(address):
        return _inside(address, size, access, at)
    return _beside(address, at, area.after(address))


def _inside(address: int, size: int, access: Wanted, at: Allocation) -> Diagnosis:
    place = f"{address:#x}, offset {address - at.address} of {at}"
    if at.freed:
        return Diagnosis(f"{place}, which was freed", "use_after_free")
    if access not in ("any", at.space):
        return Diagnosis(f"{place}, a {at.space} pointer where a {access} pointer is wanted", "host_device_mixup")
    past = address + size - at.stop
    return Diagnosis(f"{place}, from where {counted(size, 'byte')} go {past} past its end", "overrun")


def _beside(address: int, at: Allocation | None, after: Allocation | None) -> Diagnosis | None:
    """Return the diagnosis of an address in the zone around an allocation, naming the nearer one."""
    past = address - at.stop if at is not None else GUARD
    before = after.address - address if after is not None else GUARD
    if at is not None and past < GUARD and past <= before:
        return Diagnosis(f"{address:#x}, {counted(past, 'byte')} past the end of {_named(at)}", "overrun")
    if after is not None and before < GUARD:
        return Diagnosis(f"{address:#x}, {counted(before, 'byte')} before {_named(after)}", "overrun")
    return None


def _named(allocation: Allocation) -> str:
    return f"{allocation}, which was freed" if allocation.freed else str(allocation)


def diagnose_free(address: object, access: Wanted, ranges: tuple[AddressRange, ...]) -> Diagnosis:
    """Return why an address cannot be freed."""
    at = _holding(address, ranges)
    if at is None:
        return Diagnosis(diagnose(address, 0, access, ranges).text)
    if at.freed:
        return Diagnosis(f"{at}, which was freed before", "double_free")
    if at.space != access:
        return Diagnosis(f"{at}, a {at.space} pointer where a {access} pointer is wanted", "host_device_mixup")
    if address != at.address:
        return Diagnosis(f"{address:#x}, inside {at} and not its start")
    return Diagnosis(f"{at}, which belongs to another mesh")


def _holding(address: object, ranges: tuple[AddressRange, ...]) -> Allocation | None:
    """Return the allocation, live or freed, that an address is in, or is the start of."""
    if type(address) is not int:
        return None
    allocations = (area.at(address) for area in ranges)
    return next((candidate for candidate in allocations if candidate and candidate.includes(address)), None)


# The memory of each device and the host, and the part in use (runtime spec 4.4, 9).
#
# Memory of the caller does not count.


class Account:
    """The bytes of one memory, those in use, and the number of allocations that use them."""

    __slots__ = ("in_use", "owners", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.in_use = 0
        self.owners = 0

    def require(self, size: int, place: str, function: str, allowed: str) -> None:
        """Raise `Failure` with TESS_ERR_OUT_OF_MEMORY, naming the memory, unless so many bytes fit."""
        if self.in_use + size > self.total:
            used = f"of which {self.in_use} are in use by {counted(self.owners, 'allocation')}"
            subject = f"{size} bytes {place}, which has {self.total} bytes, {used}"
            raise Failure(Status.TESS_ERR_OUT_OF_MEMORY, function, subject, allowed)


class Capacity:
    """The accounts of the devices, by id, and of the host."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.devices = {device.id: Account(device.memory_bytes) for device in topology.devices}
        self.host = Account(topology.host.memory_bytes)

    def require_on_devices(self, numbers: Sequence[int], size: int) -> None:
        """Raise `Failure` with TESS_ERR_OUT_OF_MEMORY, naming the first device without space for so many bytes."""
        for number in numbers:
            place = f"on device {number} ({self._topology.device(number, 'tessMalloc').target})"
            self.devices[number].require(size, place, "tessMalloc", "what is free on every device")

    def require_on_host(self, size: int) -> None:
        """Raise `Failure` with TESS_ERR_OUT_OF_MEMORY unless the host has space for so many bytes."""
        self.host.require(size, f"of {self._topology.host.name}", "tessHostAlloc", "what is free on the host")

    def take(self, allocation: Allocation) -> None:
        """Count an allocation as in use."""
        for account in self._accounts(allocation):
            account.in_use += allocation.bytes
            account.owners += 1

    def give_back(self, allocation: Allocation) -> None:
        """Count an allocation as no longer in use, before it is freed."""
        for account in self._accounts(allocation):
            account.in_use -= allocation.bytes
            account.owners -= 1

    def _accounts(self, allocation: Allocation) -> Sequence[Account]:
        if allocation.foreign:
            return ()
        return [self.host] if allocation.space == "host" else [self.devices[device] for device in allocation.devices]


# The memory of the process that contains the machine, for C programs, whose host pointers are addresses (spec 4.4).
#
# Such a program may name any memory of its own in a copy or a call. It is used in place, without copies, and nothing is
# known about it but its existence.


ADDRESSES = range(2**12, 2**48)
"""The addresses of a process's memory, without the first page."""

DEVICE_BESIDE_A_PROCESS = range(2**48, 2**51)
"""The device pointers of a machine with a process, so that none is taken for an address of the process."""


class ProcessMemory(Protocol):
    """The memory of the process."""

    @property
    def reserved(self) -> range:
        """Addresses that only `open` allocates at."""

    def open(self, address: int, size: int) -> None:
        """Map zeros at reserved addresses. Raises `MemoryError`."""

    def close(self, address: int, size: int) -> None:
        """Unmap memory."""

    def holds(self, address: int, size: int) -> bool:
        """True if there is memory at all of these addresses."""

    def view(self, address: int, size: int) -> memoryview:
        """Return the bytes there, in place."""


class ProgramMemory(Allocation):
    """All memory of the process outside the machine's allocations, as one allocation that begins at address 0.

    An offset is an address, so that uses of the same bytes are recognised.
    """

    def __init__(self, process: ProcessMemory) -> None:
        super().__init__(0, "host", 0, ADDRESSES.stop, pinned=False, foreign=memoryview(bytearray()))
        self._process = process

    def __str__(self) -> str:
        return "memory of the program"

    def find(self, address: int, size: int) -> Region | None:
        """Return the region of so many bytes at an address, if they exist and belong to the program."""
        if address not in ADDRESSES or address + size > ADDRESSES.stop or address in self._process.reserved:
            return None
        return Region(self, address) if self._process.holds(address, size) else None

    def view(self, copy: int, start: int, stop: int) -> memoryview:
        return self._process.view(start, stop - start)


# The memory of the simulated machine: one address space of device and host allocations (runtime spec 4.4, 9).
#
# A device pointer denotes one copy on every rank of its mesh (AMB-RT-05). Every pointer is checked against the
# allocations; a wrong one is refused with an explanation and added to the findings. The engine keeps the time.


class AddressSpaceMemory:
    """All memory of one machine, device and host, in one address space.

    With a `process`, the memory of the host is that of the process.
    """

    def __init__(self, topology: Topology, process: ProcessMemory | None = None) -> None:
        self.findings = Findings()
        self.capacity = Capacity(topology)
        self._device = AddressRange("device", DEVICE if process is None else DEVICE_BESIDE_A_PROCESS)
        self._host = AddressRange("host", HOST if process is None else process.reserved)
        self._process = process
        self._program = None if process is None else ProgramMemory(process)
        self._made = 0

    def allocate_device(self, devices: Sequence[int], size: int, owner: int = 0) -> int:
        """Allocate memory on each device, the n-th being that of rank n (RT-04.4-03, AMB-RT-05).

        Raises `Failure`: TESS_ERR_OUT_OF_MEMORY naming the device that lacks it, TESS_ERR_INVALID_VALUE for a negative
        size.
        """
        self._require_size(size, "tessMalloc")
        self.capacity.require_on_devices(devices, size)
        return self._add(self._device, size, "tessMalloc", devices=devices, owner=owner)

    def allocate_host(self, size: int, pinned: bool = True) -> int:
        """Allocate memory of the host. Raises `Failure` as `allocate_device` does, and `MemoryError`."""
        self._require_size(size, "tessHostAlloc")
        self.capacity.require_on_host(size)
        storage = None
        if self._process is not None:
            start = self._host.place(size, "tessHostAlloc")
            self._process.open(start, size)
            storage = self._process.view(start, size)
        return self._add(self._host, size, "tessHostAlloc", pinned=pinned, storage=storage)

    def adopt_host(self, memory: BytesLike) -> int:
        """Return an address for memory of the caller, used in place and counted as written. Raises `Failure`."""
        view = byte_view(memory, "adopted host memory")
        return self._add(self._host, len(view), "tessHostAlloc", foreign=view, pinned=False)

    def adopt_device(self, devices: Sequence[int], memory: BytesLike, owner: int = 0) -> int:
        """Return a device pointer for memory of the caller, which all ranks share in place. Raises `Failure`."""
        view = byte_view(memory, "adopted device memory")
        return self._add(self._device, len(view), "tessMalloc", devices=devices, owner=owner, foreign=view)

    def free_device(self, pointer: int, owner: int = 0) -> Allocation:
        """Free device memory of an owner (its mesh), and return the allocation.

        Raises `Failure` with TESS_ERR_INVALID_VALUE and the reason.
        """
        return self._free(self._device, pointer, owner, "tessFree")

    def free_host(self, pointer: int) -> None:
        """Free memory of the host, or release adopted memory. Raises as `free_device` does."""
        self._free(self._host, pointer, 0, "tessHostFree")

    def release(self, owner: int) -> tuple[Allocation, ...]:
        """Free all device memory that an owner still has (AMB-RT-50), and return the allocations."""
        allocations = tuple(owned for owned in self._device.live() if owned.owner == owner)
        for allocation in allocations:
            self._forget(self._device, allocation)
        return allocations

    def live(self) -> tuple[Allocation, ...]:
        """Return the live allocations: first of devices, then of the host, each by address."""
        return self._device.live() + self._host.live()

    def find(self, address: int, size: int, function: str, argument: str, space: Wanted = "any") -> Region:
        """Return the region of `bytes` bytes at an address, all within one live allocation.

        Raises `Failure` with TESS_ERR_INVALID_VALUE, and records a finding, for a pointer that is NULL, was never
        allocated, was freed, runs past an end, or is of the host where one of a device is expected, or the reverse.
        """
        if type(address) is int and type(size) is int and size >= 0:
            area = self._device if address in self._device.addresses else self._host
            at = area.at(address)
            if at and not at.freed and address + size <= at.stop and (space == "any" or at.space == space):
                return Region(at, address - at.address)
            programs = self._program and self._program.find(address, size)
            if programs and space != "device":
                return programs
        raise self._refusal(address, size, function, argument, space)

    def read(self, region: Region, rank: int, size: int, reader: str = "read") -> memoryview | bytes:
        """Return the bytes of a rank's copy, in place and read-only if all were written: copy bytes to be kept.

        A byte never written reads as 0xA5 and is a finding of kind `uninitialised_read`.
        """
        allocation, start, stop, copy = self._placed(region, rank, size)
        gaps = allocation.unwritten(copy, start, stop)
        if not gaps:
            return allocation.view(copy, start, stop).toreadonly()
        missing = sum(until - gap for gap, until in gaps)
        text = f"{reader}: {missing} of {size} bytes were never written, the first at offset {gaps[0][0]} of "
        self.findings.add("uninitialised_read", f"{text}{allocation}, rank {rank}")
        return allocation.bytes_with_gaps(copy, start, stop, gaps)

    def peek(self, region: Region, rank: int, size: int) -> bytes:
        """Return a copy of the bytes of a rank's copy, without recording a finding."""
        allocation, start, stop, copy = self._placed(region, rank, size)
        return allocation.bytes_with_gaps(copy, start, stop, allocation.unwritten(copy, start, stop))

    def write(self, region: Region, rank: int, data: BytesLike) -> None:
        """Write bytes to a rank's copy. Raises `Failure` for read-only memory, or where the simulator lacks space."""
        view = data if type(data) is bytes else byte_view(data, "data to be written")
        allocation, start, stop, copy = self._placed(region, rank, len(view))
        if allocation.read_only:
            raise invalid("write", f"a write to {allocation}, which is read-only", "memory that may be written")
        if start == stop:
            return
        try:
            allocation.view(copy, start, stop)[:] = view
        except MemoryError:
            subject = f"a write to {allocation}, for which the simulating machine has no memory"
            raise Failure(Status.TESS_ERR_OUT_OF_MEMORY, "write", subject, "smaller allocations") from None
        allocation.note_written(copy, start, stop)

    def _placed(self, region: Region, rank: int, size: int) -> tuple[Allocation, int, int, int]:
        """Return the place of `bytes` bytes of a region in a rank's copy, which may have been freed since."""
        allocation, start = region
        stop = start + size
        if allocation.freed or stop > allocation.bytes or size < 0:
            raise self._refusal(allocation.address + start, size, "access", "memory", "any")
        if allocation.space == "device" and not 0 <= rank < len(allocation.devices):
            raise invalid("access", f"rank {rank}", f"0 to {len(allocation.devices) - 1}, the ranks of {allocation}")
        return allocation, start, stop, allocation.copy_of(rank)

    def _add(self, area: AddressRange, size: int, function: str, **options: Any) -> int:
        """Allocate memory at the next address of a range; the options are those of `Allocation`."""
        start = area.place(size, function)
        self._made += 1
        allocation = Allocation(self._made, area.space, start, size, **options)
        area.add(allocation)
        self.capacity.take(allocation)
        return start

    def _free(self, area: AddressRange, pointer: int, owner: int, function: str) -> Allocation:
        at = area.at(pointer) if type(pointer) is int else None
        if at and at.address == pointer and not at.freed and at.owner == owner:
            self._forget(area, at)
            return at
        problem = diagnose_free(pointer, area.space, (self._device, self._host))
        if problem.kind:
            self.findings.add(problem.kind, f"{function}: pointer is {problem.text}")
        allowed = f"a {area.space} pointer that was allocated and not yet freed"
        raise invalid(function, f"pointer is {problem.text}", allowed)

    def _forget(self, area: AddressRange, allocation: Allocation) -> None:
        self.capacity.give_back(allocation)
        of_process = self._process if area is self._host and not allocation.foreign else None
        area.free(allocation)
        if of_process is not None:
            of_process.close(allocation.address, allocation.bytes)

    def _refusal(self, address: int, size: int, function: str, argument: str, space: Wanted) -> Failure:
        """Return the failure for a wrong pointer, and add it to the findings."""
        problem = diagnose(address, size, space, (self._device, self._host))
        if self._program is not None and type(address) is int and self._program.find(address, 0):
            problem = _of_the_program(address, size, space)
        if problem.kind:
            self.findings.add(problem.kind, f"{function}: {argument} is {problem.text}")
        owner = "" if space == "any" else f" of the {space}"
        allowed = f"a pointer to {shown(size)} allocated bytes{owner}"
        return invalid(function, f"{argument} is {problem.text}", allowed)

    def _require_size(self, size: int, function: str) -> None:
        if type(size) is not int or size < 0:
            raise invalid(function, f"{shown(size)} bytes", "0 or more bytes")


def _of_the_program(address: int, size: int, access: Wanted) -> Diagnosis:
    """Return why memory of the program cannot be used."""
    if access == "device":
        text = f"{address:#x}, memory of the program where a device pointer is wanted"
        return Diagnosis(text, "host_device_mixup")
    return Diagnosis(f"{address:#x}, from where the program has less than {shown(size)} bytes", "overrun")
