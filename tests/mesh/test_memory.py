"""Allocations, pointers, and what is in them (runtime spec 4.4, 9; AMB-RT-05)."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest

from tessera_reference.abi import Failure, Status
from tessera_reference.mesh.memory import AddressSpaceMemory, Region
from tessera_reference.mesh.topology import Topology, default


@pytest.fixture
def memory() -> AddressSpaceMemory:
    return AddressSpaceMemory(default())


def at(memory: AddressSpaceMemory, pointer: int, bytes: int = 0) -> Region:
    return memory.find(pointer, bytes, "test", "pointer")


def test_addresses_are_aligned_apart_and_of_disjoint_ranges(memory: AddressSpaceMemory) -> None:
    sizes = (0, 1, 255, 256, 257, 4096)
    device = [memory.allocate_device([0], size) for size in sizes]
    host = [memory.allocate_host(size) for size in sizes]
    for pointers in (device, host):
        assert all(pointer % 256 == 0 for pointer in pointers)
        ends = [pointer + size for pointer, size in zip(pointers, sizes, strict=True)]
        assert all(after - end >= 256 for end, after in zip(ends[:-1], pointers[1:], strict=True))
    assert max(device) < min(host) < 2**53


def test_an_address_is_never_given_twice(memory: AddressSpaceMemory) -> None:
    given = set()
    for _ in range(100):
        pointer = memory.allocate_device([0], 10)
        memory.free_device(pointer)
        given.add(pointer)
    assert len(given) == 100


def test_a_pointer_is_found_with_its_offset(memory: AddressSpaceMemory) -> None:
    pointers = [memory.allocate_device([0, 1], 100) for _ in range(50)]
    for pointer in pointers:
        for offset, bytes in [(0, 100), (0, 0), (99, 1), (100, 0)]:
            region = memory.find(pointer + offset, bytes, "test", "pointer", "device")
            assert (region.allocation.address, region.offset) == (pointer, offset)


def test_each_rank_has_its_own_copy(memory: AddressSpaceMemory) -> None:
    region = at(memory, memory.allocate_device([3, 4, 5], 4), 4)
    for rank in range(3):
        memory.write(region, rank, bytes([rank] * 4))
    assert [bytes(memory.read(region, rank, 4)) for rank in range(3)] == [b"\0" * 4, b"\1" * 4, b"\2" * 4]


def test_the_host_has_one_copy_for_all(memory: AddressSpaceMemory) -> None:
    region = at(memory, memory.allocate_host(4), 4)
    memory.write(region, 5, b"abcd")
    assert memory.read(region, 0, 4) == b"abcd"


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_that_has_no_copy_is_refused(memory: AddressSpaceMemory, rank: int) -> None:
    region = at(memory, memory.allocate_device([0, 1], 4), 4)
    with pytest.raises(Failure, match=f"rank {rank}; expected 0 to 1"):
        memory.write(region, rank, b"1234")


def test_what_is_read_cannot_be_written(memory: AddressSpaceMemory) -> None:
    region = at(memory, memory.allocate_host(4), 4)
    memory.write(region, 0, b"abcd")
    view = memory.read(region, 0, 4)
    assert isinstance(view, memoryview) and view.readonly


def test_overlapping_ranges_of_one_allocation_are_copied_as_if_by_way_of_another(memory: AddressSpaceMemory) -> None:
    pointer = memory.allocate_host(8)
    memory.write(at(memory, pointer, 8), 0, b"abcdefgh")
    memory.write(at(memory, pointer + 2, 6), 0, memory.read(at(memory, pointer, 6), 0, 6))
    assert memory.read(at(memory, pointer, 8), 0, 8) == b"ababcdef"


@pytest.mark.parametrize("data", [b"\1\0\2\0", bytearray(b"\1\0\2\0"), memoryview(np.array([1, 2], "<u2"))])
def test_whatever_lies_in_a_row_is_written(memory: AddressSpaceMemory, data: bytes) -> None:
    region = at(memory, memory.allocate_host(4), 4)
    memory.write(region, 0, data)
    assert memory.read(region, 0, 4) == b"\1\0\2\0"


def test_bytes_never_written_read_as_a5_and_are_found(memory: AddressSpaceMemory) -> None:
    pointer = memory.allocate_device([0, 1], 8)
    memory.write(at(memory, pointer + 2, 3), 1, b"xyz")
    assert memory.read(at(memory, pointer, 8), 1, 8, "kernel axpy") == b"\xa5\xa5xyz\xa5\xa5\xa5"
    assert memory.read(at(memory, pointer + 1, 2), 0, 2) == b"\xa5\xa5"
    first, second = memory.findings
    assert first.kind == second.kind == "uninitialised_read"
    assert first.text.startswith("kernel axpy: 5 of 8 bytes were never written, the first at offset 0 of allocation 1")
    assert first.text.endswith("rank 1")
    assert "2 of 2 bytes were never written, the first at offset 1 of" in second.text


def test_bytes_that_were_written_are_no_finding(memory: AddressSpaceMemory) -> None:
    pointer = memory.allocate_device([0, 1], 8)
    for offset, data in [(6, b"gh"), (0, b"abc"), (3, b"def")]:
        memory.write(at(memory, pointer + offset, len(data)), 0, data)
    assert memory.read(at(memory, pointer, 8), 0, 8) == b"abcdefgh"
    assert list(memory.findings) == []


def test_a_peek_is_no_finding(memory: AddressSpaceMemory) -> None:
    pointer = memory.allocate_host(3)
    memory.write(at(memory, pointer + 1, 1), 0, b"x")
    assert memory.peek(at(memory, pointer, 3), 0, 3) == b"\xa5x\xa5"
    assert list(memory.findings) == []


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


def test_storage_comes_with_the_first_write(memory: AddressSpaceMemory) -> None:
    """Eighty gigabytes on each of eight devices, of which eight bytes are used."""
    pointer = memory.allocate_device(range(8), 80 * 2**30)
    assert memory.peek(at(memory, pointer + 2**36, 4), 7, 4) == b"\xa5" * 4


def test_what_the_simulator_cannot_hold_is_out_of_memory(
    memory: AddressSpaceMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object) -> None:
        raise MemoryError

    region = at(memory, memory.allocate_host(4), 4)
    monkeypatch.setattr(np, "zeros", no_memory)
    with pytest.raises(Failure, match="the simulating machine has no memory") as caught:
        memory.write(region, 0, b"abcd")
    assert caught.value.status is Status.TESS_ERR_OUT_OF_MEMORY


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
    assert region.allocation.foreign and region.allocation.copies == 1
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


def test_capacity_is_counted_on_each_device_and_on_the_host(small: Topology) -> None:
    memory = AddressSpaceMemory(small)
    first = memory.allocate_device([10, 11], 600)
    memory.allocate_device([11], 400)
    host = memory.allocate_host(1000)
    assert [memory.capacity.devices[each].in_use for each in (10, 11, 12)] == [600, 1000, 0]
    assert (memory.capacity.host.in_use, memory.capacity.host.total, memory.capacity.devices[12].total) == (
        1000,
        1000,
        1000,
    )
    with pytest.raises(Failure) as caught:
        memory.allocate_device([12, 10, 11], 401)
    assert caught.value.status is Status.TESS_ERR_OUT_OF_MEMORY
    assert caught.value.given == (
        "401 bytes on device 10 (sm_90), which has 1000 bytes, of which 600 are in use by 1 allocation"
    )
    assert memory.capacity.devices[12].in_use == 0, "what fails takes nothing"
    with pytest.raises(Failure, match="1 bytes of left, which has 1000 bytes, of which 1000 are in use") as caught:
        memory.allocate_host(1)
    assert caught.value.status is Status.TESS_ERR_OUT_OF_MEMORY
    memory.free_device(first)
    memory.free_host(host)
    assert memory.capacity.devices[10].in_use == memory.capacity.host.in_use == 0
    memory.allocate_device([12, 10], 1000)
    with pytest.raises(Failure, match="1000 are in use by 1 allocation;"):
        memory.allocate_device([10], 1)


@pytest.mark.parametrize("bytes", [-1, 1.0, True, None])
def test_a_size_that_is_none_is_refused(memory: AddressSpaceMemory, bytes: int) -> None:
    for allocate in (lambda: memory.allocate_device([0], bytes), lambda: memory.allocate_host(bytes)):
        with pytest.raises(Failure, match="expected 0 or more bytes") as caught:
            allocate()
        assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_an_unknown_device_has_no_memory(memory: AddressSpaceMemory) -> None:
    with pytest.raises(Failure, match="tessMalloc: device 8"):
        memory.allocate_device([8], 1)


def test_what_an_owner_leaves_is_released(memory: AddressSpaceMemory) -> None:
    mine = [memory.allocate_device([0], 10, owner=1) for _ in range(3)]
    other, host = memory.allocate_device([0], 10, owner=2), memory.allocate_host(10)
    memory.free_device(mine[1], owner=1)
    assert [each.address for each in memory.release(1)] == [mine[0], mine[2]]
    assert [each.address for each in memory.live()] == [other, host]
    assert memory.capacity.devices[0].in_use == 10
    assert memory.release(1) == ()


def test_addresses_end(memory: AddressSpaceMemory) -> None:
    """More than all addresses is out of memory, whatever a device claims to hold."""
    with pytest.raises(Failure) as caught:
        memory._host.place(2**52, "tessHostAlloc")
    assert caught.value.status is Status.TESS_ERR_OUT_OF_MEMORY
