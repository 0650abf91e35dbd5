"""What a pointer that must not be used is told to be, and that it is kept among the findings."""

from __future__ import annotations

from functools import partial

import pytest

from tessera_reference.abi import Failure, Status
from tessera_reference.mesh import memory as address_ranges
from tessera_reference.mesh.memory import AddressSpaceMemory, Finding, Findings, Wanted
from tessera_reference.mesh.topology import default


@pytest.fixture
def memory() -> AddressSpaceMemory:
    return AddressSpaceMemory(default())


def refused(memory: AddressSpaceMemory, pointer: object, bytes: object = 4, space: Wanted = "any") -> str:
    """What is said of a pointer; its findings are those that its kind asks for."""
    with pytest.raises(Failure) as caught:
        memory.find(pointer, bytes, "tessMemcpyAsync", "dst", space)  # type: ignore[arg-type]
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE
    assert caught.value.function == "tessMemcpyAsync"
    assert caught.value.given.startswith("dst is ")
    return caught.value.given


def kinds(memory: AddressSpaceMemory) -> list[str]:
    return [finding.kind for finding in memory.findings]


def test_null(memory: AddressSpaceMemory) -> None:
    memory.allocate_device([0], 4)
    assert refused(memory, 0) == "dst is NULL"
    assert kinds(memory) == []


@pytest.mark.parametrize("pointer", [None, "x", 1.0, True, -1, 2**64])
def test_no_address(memory: AddressSpaceMemory, pointer: object) -> None:
    assert refused(memory, pointer).endswith("which is no address")


@pytest.mark.parametrize("bytes", [-1, None, 4.0])
def test_no_size(memory: AddressSpaceMemory, bytes: object) -> None:
    assert refused(memory, memory.allocate_host(4), bytes).endswith("bytes, which is no size")


@pytest.mark.parametrize("pointer", [1, 4096, 2**44, 2**51, 2**52, 2**63, 2**64 - 1])
def test_nothing_there(memory: AddressSpaceMemory, pointer: int) -> None:
    assert refused(memory, pointer) == f"dst is {pointer:#x}, where nothing is allocated"
    memory.allocate_device([0], 4)
    memory.allocate_host(4)
    assert "where nothing is allocated" in refused(memory, pointer + 2**43 if pointer in (2**44, 2**51) else pointer)
    assert kinds(memory) == []


@pytest.mark.parametrize(
    ("offset", "bytes", "past"), [(0, 101, 1), (99, 2, 1), (50, 100, 50), (100, 1, 1), (0, 10**6, 999900)]
)
def test_an_end_overrun(memory: AddressSpaceMemory, offset: int, bytes: int, past: int) -> None:
    pointer = memory.allocate_device([0], 100)
    memory.allocate_device([0], 100)
    said = refused(memory, pointer + offset, bytes, "device")
    assert f"allocation 1 (100 bytes at {pointer:#x} on 1 device)" in said
    if offset < 100:
        assert f"offset {offset} of" in said and f"go {past} past its end" in said
    else:
        assert "0 bytes past the end of" in said
    assert kinds(memory) == ["overrun"]


def test_the_nearer_neighbour_is_named_beside_allocations(memory: AddressSpaceMemory) -> None:
    first, second = memory.allocate_host(100), memory.allocate_host(100)
    assert "1 byte past the end of allocation 1 " in refused(memory, first + 101)
    assert "1 byte before allocation 2 " in refused(memory, second - 1)
    assert "1000 bytes before allocation 2 " in refused(memory, second - 1000)
    assert "8 bytes before allocation 1 " in refused(memory, first - 8)
    assert "200 bytes past the end of allocation 2 " in refused(memory, second + 300)
    assert kinds(memory) == ["overrun"] * 5


def test_beside_memory_that_was_freed(memory: AddressSpaceMemory) -> None:
    pointer = memory.allocate_host(100)
    memory.free_host(pointer)
    assert refused(memory, pointer + 104).endswith("on the host), which was freed")


@pytest.mark.parametrize("offset", [0, 50, 99])
def test_use_after_free(memory: AddressSpaceMemory, offset: int) -> None:
    pointer = memory.allocate_device([0], 100)
    memory.free_device(pointer)
    memory.allocate_device([0], 100)
    said = refused(memory, pointer + offset, 1, "device")
    assert said.endswith("allocation 1 (100 bytes at 0x100000010000 on 1 device), which was freed")
    assert kinds(memory) == ["use_after_free"]


def test_use_after_free_of_a_region_found_before(memory: AddressSpaceMemory) -> None:
    region = memory.find(memory.allocate_host(4), 4, "test", "pointer")
    memory.free_host(region.allocation.address)
    for use in (lambda: memory.read(region, 0, 4), lambda: memory.write(region, 0, b"abcd")):
        with pytest.raises(Failure, match="which was freed"):
            use()
    assert kinds(memory) == ["use_after_free"], "the same is told once"


@pytest.mark.parametrize("bytes", [5, -1])
def test_a_region_is_not_exceeded(memory: AddressSpaceMemory, bytes: int) -> None:
    region = memory.find(memory.allocate_host(8) + 4, 4, "test", "pointer")
    with pytest.raises(Failure):
        memory.read(region, 0, bytes)


def test_memory_freed_long_ago_is_forgotten(memory: AddressSpaceMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_ranges, "MOST_FREED", 4)
    kept = memory.allocate_host(1)
    freed = [memory.allocate_host(1) for _ in range(8)]
    for pointer in freed:
        memory.free_host(pointer)
    assert ["which was freed" in refused(memory, pointer, 1) for pointer in freed] == [False] * 4 + [True] * 4
    assert "where nothing is allocated" in refused(memory, freed[1], 1)
    assert memory.find(kept, 1, "test", "pointer").allocation.address == kept


def test_host_and_device_mixed_up(memory: AddressSpaceMemory) -> None:
    device, host = memory.allocate_device([0], 100), memory.allocate_host(100)
    assert refused(memory, host + 8, 4, "device").endswith("a host pointer where a device pointer is wanted")
    assert refused(memory, device, 4, "host").endswith("a device pointer where a host pointer is wanted")
    assert kinds(memory) == ["host_device_mixup"] * 2
    for pointer in (device, host):
        memory.find(pointer, 100, "test", "pointer", "any")


def free_refused(memory: AddressSpaceMemory, function: str, pointer: object, owner: int = 0) -> str:
    free = partial(memory.free_device, owner=owner) if function == "tessFree" else memory.free_host
    with pytest.raises(Failure) as caught:
        free(pointer)  # type: ignore[arg-type]
    assert (caught.value.status, caught.value.function) == (Status.TESS_ERR_INVALID_VALUE, function)
    return caught.value.given


def test_what_cannot_be_freed(memory: AddressSpaceMemory) -> None:
    device, host = memory.allocate_device([0], 100, owner=1), memory.allocate_host(100)
    assert free_refused(memory, "tessFree", 0, 1) == "pointer is NULL"
    assert free_refused(memory, "tessHostFree", "x").endswith("no address")
    assert "inside allocation 1 " in free_refused(memory, "tessFree", device + 4, 1)
    assert free_refused(memory, "tessFree", device, 2).endswith("which belongs to another mesh")
    assert "past the end of allocation 1" in free_refused(memory, "tessFree", device + 100, 1)
    assert kinds(memory) == []
    assert free_refused(memory, "tessFree", host, 1).endswith("a host pointer where a device pointer is wanted")
    assert free_refused(memory, "tessHostFree", device).endswith("a device pointer where a host pointer is wanted")
    assert kinds(memory) == ["host_device_mixup"] * 2
    assert len(memory.live()) == 2


def test_freed_twice(memory: AddressSpaceMemory) -> None:
    device, host = memory.allocate_device([0], 100, owner=1), memory.allocate_host(100)
    memory.free_device(device, 1)
    memory.free_host(host)
    assert free_refused(memory, "tessFree", device, 1).endswith("which was freed before")
    assert free_refused(memory, "tessHostFree", host).endswith("which was freed before")
    assert kinds(memory) == ["double_free"] * 2
    assert memory.capacity.devices[0].in_use == memory.capacity.host.in_use == 0


def test_findings_are_told_once_and_bounded() -> None:
    findings = Findings(most=2)
    for text in ("a", "b", "a", "c", "d"):
        findings.add("overrun", text)
    assert list(findings) == [Finding("overrun", "a"), Finding("overrun", "b")]
    assert (len(findings), findings.left_out) == (2, 2)
    findings.clear()
    assert (list(findings), findings.left_out) == ([], 0)
