"""Memory of the caller and of a process, and the report on a wrong pointer (runtime spec 4.4, 9; AMB-RT-05)."""

from __future__ import annotations

import random
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi.status import Failure, Status
from tessera_reference.mesh.memory import ADDRESSES, AddressSpaceMemory, Finding, Findings, Intervals, Region, Wanted
from tessera_reference.mesh.topology import default


@pytest.fixture
def memory() -> AddressSpaceMemory:
    return AddressSpaceMemory(default())


def at(memory: AddressSpaceMemory, pointer: int, bytes: int = 0) -> Region:
    return memory.find(pointer, bytes, "test", "pointer")


def test_memory_against_a_plain_array(memory: AddressSpaceMemory) -> None:
    """Random reads and writes of one allocation give what a bytearray that began as 0xA5 gives."""
    drawn, size = random.Random(7), 64
    pointer, model = memory.allocate_device([0, 1], size), [bytearray(b"\xa5" * size) for _ in range(2)]
    for _ in range(2000):
        start, rank = drawn.randrange(size), drawn.randrange(2)
        length = drawn.randrange(size - start + 1) if drawn.random() < 0.5 else min(3, size - start)
        region = at(memory, pointer + start, length)
        if drawn.random() < 0.05:
            memory.free_device(pointer)
            pointer, model = memory.allocate_device([0, 1], size), [bytearray(b"\xa5" * size) for _ in range(2)]
        elif drawn.random() < 0.3:
            data = drawn.randbytes(length)
            memory.write(region, rank, data)
            model[rank][start : start + length] = data
        else:
            assert memory.read(region, rank, length) == model[rank][start : start + length]


def test_memory_of_the_caller_is_used_in_place(memory: AddressSpaceMemory) -> None:
    mine = np.arange(4, dtype=np.uint32)
    region = at(memory, memory.adopt_host(memoryview(mine)), 16)
    assert memory.read(region, 0, 4) == b"\0\0\0\0"
    mine[0] = 7
    assert memory.read(region, 0, 4) == b"\7\0\0\0"
    memory.write(Region(region.allocation, 4), 0, b"\x09\0\0\0")
    assert mine.tolist() == [7, 9, 2, 3]
    assert list(memory.findings) == []
    memory.free_host(region.allocation.address)
    assert mine.tolist() == [7, 9, 2, 3]


def test_ranks_share_device_memory_of_the_caller(memory: AddressSpaceMemory) -> None:
    mine = bytearray(b"abcd")
    region = at(memory, memory.adopt_device([0, 1], mine, owner=5), 4)
    memory.write(region, 1, b"wxyz")
    assert memory.read(region, 0, 4) == b"wxyz" == mine
    assert region.allocation.foreign
    assert memory.capacity.devices[0].in_use == 0
    memory.free_device(region.allocation.address, owner=5)
    assert mine == b"wxyz"


def test_read_only_memory_of_the_caller_is_not_written(memory: AddressSpaceMemory) -> None:
    region = at(memory, memory.adopt_host(b"abcd"), 4)
    assert memory.read(region, 0, 4) == b"abcd"
    with pytest.raises(Failure, match="which is read-only") as caught:
        memory.write(region, 0, b"x")
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_memory_in_pieces_is_not_adopted(memory: AddressSpaceMemory) -> None:
    for pieces in (memoryview(bytearray(8))[::2], memoryview(np.zeros((2, 3)).T), "text"):
        with pytest.raises(Failure, match="expected contiguous bytes"):
            memory.adopt_host(pieces)  # type: ignore[arg-type]


def test_nothing_can_be_adopted(memory: AddressSpaceMemory) -> None:
    pointer = memory.adopt_host(memoryview(np.zeros((0, 3))))
    assert at(memory, pointer).allocation.bytes == 0
    memory.free_host(pointer)


def test_memory_of_the_caller_is_let_go_of(memory: AddressSpaceMemory) -> None:
    """A bytearray cannot grow while somebody has a view of it."""
    for adopt, free in [(memory.adopt_host, memory.free_host), (partial(memory.adopt_device, [0]), memory.free_device)]:
        mine = bytearray(4)
        pointer = adopt(mine)
        with pytest.raises(BufferError):
            mine.append(1)
        free(pointer)
        mine.append(1)


def test_what_an_owner_leaves_is_released(memory: AddressSpaceMemory) -> None:
    mine = [memory.allocate_device([0], 10, owner=1) for _ in range(3)]
    other, host = memory.allocate_device([0], 10, owner=2), memory.allocate_host(10)
    memory.free_device(mine[1], owner=1)
    assert [allocation.address for allocation in memory.release(1)] == [mine[0], mine[2]]
    assert [allocation.address for allocation in memory.live()] == [other, host]
    assert memory.capacity.devices[0].in_use == 10
    assert memory.release(1) == ()


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
def program_memory(process: Process) -> AddressSpaceMemory:
    return AddressSpaceMemory(default(), process)


def test_memory_of_the_program_is_used_in_place(program_memory: AddressSpaceMemory, process: Process) -> None:
    region = program_memory.find(PROGRAM.start + 16, 4, "tessMemcpyAsync", "dst", "host")
    program_memory.write(region, 0, b"abcd")
    assert process.page[16:20] == b"abcd"
    process.page[16] = ord("z")
    assert bytes(program_memory.read(region, 0, 4)) == b"zbcd"
    assert len(program_memory.findings) == 0


def test_the_same_bytes_are_known_to_be_the_same(program_memory: AddressSpaceMemory) -> None:
    """So that unordered copies from and to memory of the program are found."""
    one, two = (program_memory.find(PROGRAM.start + at, 4, "tessMemcpyAsync", "dst", "host") for at in (0, 2))
    assert one.allocation is two.allocation
    assert two.offset - one.offset == 2


@pytest.mark.parametrize(
    ("address", "bytes"),
    [(PROGRAM.start - 1, 1), (PROGRAM.stop - 1, 2), (0xDEAD0000, 1), (8, 1), (2**41, 1), (ADDRESSES.stop - 1, 2)],
)
def test_where_the_process_has_no_memory(program_memory: AddressSpaceMemory, address: int, bytes: int) -> None:
    with pytest.raises(Failure, match="tessMemcpyAsync: src is 0x"):
        program_memory.find(address, bytes, "tessMemcpyAsync", "src", "host")


def test_memory_of_the_program_is_none_of_a_device(program_memory: AddressSpaceMemory) -> None:
    with pytest.raises(Failure, match="memory of the program where a device pointer is wanted"):
        program_memory.find(PROGRAM.start, 4, "tessMemcpyAsync", "dst", "device")
    assert [finding.kind for finding in program_memory.findings] == ["host_device_mixup"]
    with pytest.raises(Failure):
        program_memory.free_host(PROGRAM.start)
    with pytest.raises(Failure):
        program_memory.free_device(PROGRAM.start)


def test_no_device_pointer_is_an_address_of_a_process(program_memory: AddressSpaceMemory) -> None:
    pointer = program_memory.allocate_device([0], 1)
    assert pointer not in ADDRESSES
    assert pointer < 2**53


def test_memory_that_is_allocated_is_at_its_address(program_memory: AddressSpaceMemory, process: Process) -> None:
    pointer = program_memory.allocate_host(8)
    assert pointer in process.reserved
    process.opened[pointer][:4] = b"host"
    region = program_memory.find(pointer, 8, "tessMemcpyAsync", "src", "host")
    assert bytes(program_memory.read(region, 0, 8)) == b"host\0\0\0\0"
    assert program_memory.capacity.host.in_use == 8
    program_memory.free_host(pointer)
    assert process.opened == {}
    assert program_memory.capacity.host.in_use == 0


def test_memory_that_was_freed_is_known(program_memory: AddressSpaceMemory) -> None:
    pointer = program_memory.allocate_host(8)
    with pytest.raises(Failure, match="1 past its end"):
        program_memory.find(pointer, 9, "tessMemcpyAsync", "src", "host")
    program_memory.free_host(pointer)
    with pytest.raises(Failure, match="which was freed"):
        program_memory.find(pointer, 8, "tessMemcpyAsync", "src", "host")
    with pytest.raises(Failure, match="freed before"):
        program_memory.free_host(pointer)


def refused(memory: AddressSpaceMemory, pointer: object, bytes: object = 4, space: Wanted = "any") -> str:
    """Return the text of the refusal of a pointer."""
    with pytest.raises(Failure) as caught:
        memory.find(pointer, bytes, "tessMemcpyAsync", "dst", space)  # type: ignore[arg-type]
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE
    assert caught.value.function == "tessMemcpyAsync"
    assert caught.value.given.startswith("dst is ")
    return caught.value.given


def kinds(memory: AddressSpaceMemory) -> list[str]:
    return [finding.kind for finding in memory.findings]


@pytest.mark.parametrize("pointer", [None, "x", 1.0, True, -1, 2**64])
def test_a_value_that_is_no_address_is_refused(memory: AddressSpaceMemory, pointer: object) -> None:
    assert refused(memory, pointer).endswith("which is no address")


@pytest.mark.parametrize(
    ("offset", "bytes", "past"), [(0, 101, 1), (99, 2, 1), (50, 100, 50), (100, 1, 1), (0, 10**6, 999900)]
)
def test_an_overrun_says_how_far_past_the_end(memory: AddressSpaceMemory, offset: int, bytes: int, past: int) -> None:
    pointer = memory.allocate_device([0], 100)
    memory.allocate_device([0], 100)
    said = refused(memory, pointer + offset, bytes, "device")
    assert f"allocation 1 (100 bytes at {pointer:#x} on 1 device)" in said
    if offset < 100:
        assert f"offset {offset} of" in said and f"go {past} past its end" in said
    else:
        assert "0 bytes past the end of" in said
    assert kinds(memory) == ["overrun"]


def test_findings_are_told_once_and_bounded() -> None:
    findings = Findings(most=2)
    for text in ("a", "b", "a", "c", "d"):
        findings.add("overrun", text)
    assert list(findings) == [Finding("overrun", "a"), Finding("overrun", "b")]


RANGES = st.tuples(st.integers(0, 30), st.integers(0, 30))


@given(st.lists(RANGES, max_size=12), RANGES)
def test_intervals_are_the_set_of_their_positions(added: list[tuple[int, int]], asked: tuple[int, int]) -> None:
    held, positions = Intervals(), set[int]()
    for start, stop in added:
        held.add(start, stop)
        positions |= set(range(start, stop))
    expected = set(range(*asked))
    assert {at for start, stop in held for at in range(start, stop)} == positions
    assert held.covers(*asked) == (expected <= positions)
    gaps = list(held.gaps(*asked))
    assert sorted(at for start, stop in gaps for at in range(start, stop)) == sorted(expected - positions)
    for ranges in (list(held), gaps):
        assert all(start < stop for start, stop in ranges)
        assert all(before[1] < after[0] for before, after in pairwise(ranges)), "they never touch"
