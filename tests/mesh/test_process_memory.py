"""Host memory that is that of the process: any address of the program works in place, and none is a device's."""

from __future__ import annotations

import pytest

from tessera_reference.abi.status import Failure
from tessera_reference.mesh.memory import ADDRESSES, AddressSpaceMemory
from tessera_reference.mesh.topology import default

PROGRAM = range(0x5000, 0x6000)


class Process:
    """A process with one page of the program's, and reserved addresses that are pages once they are opened."""

    reserved = range(2**40, 2**41)

    def __init__(self) -> None:
        self.page = bytearray(len(PROGRAM))
        self.opened: dict[int, bytearray] = {}

    def open(self, address: int, bytes: int) -> None:
        self.opened[address] = bytearray(bytes)

    def close(self, address: int, bytes: int) -> None:
        assert len(self.opened.pop(address)) == bytes

    def holds(self, address: int, bytes: int) -> bool:
        return address in PROGRAM and address + bytes <= PROGRAM.stop

    def view(self, address: int, bytes: int) -> memoryview:
        if address in self.reserved:
            return memoryview(self.opened[address])[:bytes]
        return memoryview(self.page)[address - PROGRAM.start :][:bytes]


@pytest.fixture
def process() -> Process:
    return Process()


@pytest.fixture
def memory(process: Process) -> AddressSpaceMemory:
    return AddressSpaceMemory(default(), process)


def test_memory_of_the_program_is_used_in_place(memory: AddressSpaceMemory, process: Process) -> None:
    region = memory.find(PROGRAM.start + 16, 4, "tessMemcpyAsync", "dst", "host")
    memory.write(region, 0, b"abcd")
    assert process.page[16:20] == b"abcd"
    process.page[16] = ord("z")
    assert bytes(memory.read(region, 0, 4)) == b"zbcd"
    assert len(memory.findings) == 0


def test_the_same_bytes_are_known_to_be_the_same(memory: AddressSpaceMemory) -> None:
    """So that unordered copies from and to memory of the program are found."""
    one, two = (memory.find(PROGRAM.start + at, 4, "tessMemcpyAsync", "dst", "host") for at in (0, 2))
    assert one.allocation is two.allocation
    assert two.offset - one.offset == 2


@pytest.mark.parametrize(
    ("address", "bytes"),
    [(PROGRAM.start - 1, 1), (PROGRAM.stop - 1, 2), (0xDEAD0000, 1), (8, 1), (2**41, 1), (ADDRESSES.stop - 1, 2)],
)
def test_where_the_process_has_no_memory(memory: AddressSpaceMemory, address: int, bytes: int) -> None:
    with pytest.raises(Failure, match="tessMemcpyAsync: src is 0x"):
        memory.find(address, bytes, "tessMemcpyAsync", "src", "host")


def test_memory_of_the_program_is_none_of_a_device(memory: AddressSpaceMemory) -> None:
    with pytest.raises(Failure, match="memory of the program where a device pointer is wanted"):
        memory.find(PROGRAM.start, 4, "tessMemcpyAsync", "dst", "device")
    assert [each.kind for each in memory.findings] == ["host_device_mixup"]
    with pytest.raises(Failure):
        memory.free_host(PROGRAM.start)
    with pytest.raises(Failure):
        memory.free_device(PROGRAM.start)


def test_no_device_pointer_is_an_address_of_a_process(memory: AddressSpaceMemory) -> None:
    pointer = memory.allocate_device([0], 1)
    assert pointer not in ADDRESSES
    assert pointer < 2**53


def test_memory_that_is_allocated_is_at_its_address(memory: AddressSpaceMemory, process: Process) -> None:
    pointer = memory.allocate_host(8)
    assert pointer in process.reserved
    process.opened[pointer][:4] = b"host"
    region = memory.find(pointer, 8, "tessMemcpyAsync", "src", "host")
    assert bytes(memory.read(region, 0, 8)) == b"host\0\0\0\0"
    assert memory.capacity.host.in_use == 8
    memory.free_host(pointer)
    assert process.opened == {}
    assert memory.capacity.host.in_use == 0


def test_memory_that_was_freed_is_known(memory: AddressSpaceMemory) -> None:
    pointer = memory.allocate_host(8)
    with pytest.raises(Failure, match="1 past its end"):
        memory.find(pointer, 9, "tessMemcpyAsync", "src", "host")
    memory.free_host(pointer)
    with pytest.raises(Failure, match="which was freed"):
        memory.find(pointer, 8, "tessMemcpyAsync", "src", "host")
    with pytest.raises(Failure, match="freed before"):
        memory.free_host(pointer)
