"""Device and host memory: allocated, filled, read and released (runtime specification, 4.4)."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest

from tessera_conformance.chapters.runtime.kit.mesh_session import (
    D2D,
    D2H,
    H2D,
    PINNED_HOST,
    MeshSession,
    devices,
    meshed,
    opened,
    refused,
)
from tessera_conformance.chapters.runtime.kit.readings import ended_while_busy, has_arrived
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Returned

SIZES = (1, 2, 3, 7, 8, 15, 16, 63, 64, 255, 256, 257, 4095, 4096, 4097, 65537, 1 << 20)


@cache
def pattern(count: int, seed: int = 0) -> bytes:
    """Bytes that differ from their neighbours and between seeds."""
    period = 251 * 256
    once = bytes((place * 37 + place // 251 + seed * 101 + 11) % 256 for place in range(min(count, period)))
    return (once * (count // period + 1))[:count]


@clause("RT-04.4-14")
@pytest.mark.parametrize("size", SIZES)
def test_device_memory_holds_as_many_bytes_as_asked_for(impl, check, size):
    """Every byte, the first and the last among them, is written and read back (AMB-RT-05)."""
    session = opened(impl, check)
    pointer = session.allocate(size)
    check.true(pointer != 0, "the pointer is not NULL", pointer)
    for seed in range(2):
        session.write(pointer, pattern(size, seed))
        check.equal(session.download(pointer, size).hex(), pattern(size, seed).hex(), f"the {size} bytes")


@clause("RT-04.4-14")
def test_allocations_do_not_overlap(impl, check):
    """Each keeps its bytes while all others are written."""
    session = opened(impl, check)
    pointers = [session.allocate(size) for size in SIZES]
    spans = sorted((pointer, pointer + size) for pointer, size in zip(pointers, SIZES, strict=True))
    for (_, stop), (start, _) in pairwise(spans):
        check.true(stop <= start, "an allocation ends before the next begins", [stop, start])
    for seed, (pointer, size) in enumerate(zip(pointers, SIZES, strict=True)):
        session.write(pointer, pattern(size, seed))
    for seed, (pointer, size) in enumerate(zip(pointers, SIZES, strict=True)):
        check.equal(session.download(pointer, size).hex(), pattern(size, seed).hex(), f"the {size} bytes")


@clause("RT-04.4-14")
def test_many_allocations_do_not_overlap(impl, check):
    """Of 600 allocations of 12 bytes, six keep what was written to them before the others were written."""
    session = opened(impl, check)
    pointers = [session.allocate(12) for _ in range(600)]
    check.true(min(stop - start for start, stop in pairwise(sorted(pointers))) >= 12, "they lie apart", pointers)
    for place in (0, 599, 255, 256, 511, 512):
        session.write(pointers[place], pattern(12, place))
    for place in (0, 599, 255, 256, 511, 512):
        check.equal(session.download(pointers[place], 12).hex(), pattern(12, place).hex(), f"allocation {place}")


@feature("rank-memory")
@clause("RT-04.4-14")
@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_device_memory_has_a_copy_on_every_rank(impl, check, ranks):
    """One pointer is for memory of every rank, and each keeps its own bytes (AMB-RT-05)."""
    session = opened(impl, check, ranks=ranks)
    pointer = session.allocate(257)
    for rank in range(ranks):
        session.poke(rank, pointer, pattern(257, rank))
    for rank in range(ranks):
        check.equal(session.peek(rank, pointer, 257).hex(), pattern(257, rank).hex(), f"the bytes of rank {rank}")


@feature("rank-memory")
@clause("RT-04.4-19")
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_a_copy_to_the_host_brings_the_bytes_of_rank_0(impl, check, ranks):
    """Those of no other rank, also where these come later (AMB-RT-05)."""
    session = opened(impl, check, ranks=ranks)
    pointer = session.allocate(4097)
    for rank in range(ranks):
        session.poke(rank, pointer, pattern(4097, rank))
    check.equal(session.download(pointer, 4097).hex(), pattern(4097, 0).hex(), "what the host has")


@feature("rank-memory")
@clause("RT-19.A-01", "RT-07-03")
@pytest.mark.parametrize(("ranks", "rank"), [(1, -1), (1, 1), (1, 1 << 31), (2, 2)])
def test_memory_of_a_rank_that_the_mesh_does_not_have_is_refused(impl, check, ranks, rank):
    """The ranks of two devices are 0 and 1, that of one is 0."""
    session = opened(impl, check, ranks)
    pointer = session.upload(pattern(64))
    session.synchronize()
    where = {"mesh": session.mesh, "rank": rank, "devPtr": pointer}
    refused(check, session.attempt("tessxPoke", **where, data=pattern(64, 1).hex()), "TESS_ERR_INVALID_VALUE")
    refused(check, session.attempt("tessxPeek", **where, bytes=64), "TESS_ERR_INVALID_VALUE")
    for own in range(ranks):
        check.equal(session.peek(own, pointer, 64).hex(), pattern(64).hex(), f"the bytes of rank {own}")


@feature("rank-memory")
@clause("RT-04.4-20")
def test_a_copy_on_the_device_stays_within_each_rank(impl, check):
    """Each rank copies its own bytes (AMB-RT-05)."""
    session = opened(impl, check, ranks=4)
    source, target = session.allocate(64), session.allocate(64)
    for rank in range(4):
        session.poke(rank, source, pattern(64, rank))
        session.poke(rank, target, bytes(64))
    session.copy(target, source, 64, D2D)
    session.synchronize()
    for rank in range(4):
        check.equal(session.peek(rank, target, 64).hex(), pattern(64, rank).hex(), f"the target of rank {rank}")


@clause("RT-04.4-15")
@pytest.mark.parametrize("size", SIZES)
def test_device_memory_can_be_released(impl, check, size):
    """Unused or written, and what is allocated before and after is not touched."""
    session = opened(impl, check)
    kept = session.upload(pattern(64, 1))
    unused, written = session.allocate(size), session.upload(pattern(size))
    later = session.upload(pattern(64, 2))
    session.synchronize()
    for pointer in (unused, written):
        check.equal(session.ask("tessFree", mesh=session.mesh, devPtr=pointer), {}, "no outputs")
    check.equal(session.download(kept, 64).hex(), pattern(64, 1).hex(), "memory from before")
    check.equal(session.download(later, 64).hex(), pattern(64, 2).hex(), "memory from after")


def fifths(session, ranks, number):
    """So many fifths of the memory of the smallest of the first devices."""
    return min(device["memory_bytes"] for device in session.ask("tessxDevices")["devices"][:ranks]) // 5 * number


@clause("RT-04.4-15")
@pytest.mark.parametrize("ranks", [1, 2])
def test_released_memory_can_be_had_again(impl, check, ranks):
    """Two fifths of each device, four times over: never released, they would be more than there is."""
    session = opened(impl, check, ranks)
    size = fifths(session, ranks, 2)
    for _ in range(4):
        pointer = session.allocate(size)
        session.ask("tessFree", mesh=session.mesh, devPtr=pointer)


@clause("RT-19.A-02", "RT-07-04", "RT-04.4-14")
@pytest.mark.parametrize("full", [0, 1])
def test_memory_of_a_mesh_has_to_be_on_every_device(impl, check, full):
    """Three fifths of one of two devices are in use: both have not as much, the other has (AMB-RT-126)."""
    session = opened(impl, check, 2)
    alone = [meshed(impl, check, session.context, [device]) for device in devices(impl, check, 2)]
    size = fifths(session, 2, 3)
    pointer = alone[full].allocate(size)
    refused(check, session.attempt("tessMalloc", mesh=session.mesh, bytes=size), "TESS_ERR_OUT_OF_MEMORY")
    alone[1 - full].ask("tessFree", mesh=alone[1 - full].mesh, devPtr=alone[1 - full].allocate(size))
    alone[full].ask("tessFree", mesh=alone[full].mesh, devPtr=pointer)
    session.ask("tessFree", mesh=session.mesh, devPtr=session.allocate(size))


@clause("RT-04.4-15")
def test_releasing_memory_lets_queued_work_finish(impl, check):
    """A copy from it to the host is done when tessFree returns (AMB-RT-50)."""
    session = opened(impl, check)
    pointer, target = session.upload(pattern(4096)), session.host(bytes(4096))
    session.copy(target, pointer, 4096, D2H)
    ended_while_busy(session, "tessFree", mesh=session.mesh, devPtr=pointer)
    has_arrived(session, target, pattern(4096))


def pinned(session: MeshSession, size: int) -> int:
    """Memory of tessHostAlloc."""
    return int(session.ask("tessHostAlloc", bytes=size, kind=PINNED_HOST)["hostPtr"])


@clause("RT-04.4-16")
@pytest.mark.parametrize("size", SIZES)
def test_pinned_host_memory_is_read_and_written_by_the_host(impl, check, size):
    """Every byte of it; two allocations do not share any."""
    session = opened(impl, check)
    first, second = pinned(session, size), pinned(session, size)
    check.true(0 not in (first, second), "the pointers are not NULL")
    for seed, pointer in enumerate((first, second)):
        session.host_write(pointer, pattern(size, seed))
    for seed, pointer in enumerate((first, second)):
        check.equal(session.host_bytes(pointer, size).hex(), pattern(size, seed).hex(), f"the {size} bytes")


@clause("RT-04.4-16", "RT-04.4-18", "RT-04.4-19")
@pytest.mark.parametrize("size", [1, 257, 65537])
def test_pinned_host_memory_is_copied_from_and_to(impl, check, size):
    """To the device and back into other pinned memory."""
    session = opened(impl, check)
    source, target, device = pinned(session, size), pinned(session, size), session.allocate(size)
    session.host_write(source, pattern(size))
    session.copy(device, source, size, H2D)
    session.copy(target, device, size, D2H)
    session.synchronize()
    check.equal(session.host_bytes(target, size).hex(), pattern(size).hex(), "the bytes that came back")


@clause("RT-04.4-16")
def test_only_pinned_memory_is_of_the_host(impl, check):
    """TESS_MEM_GLOBAL is refused, and needs no device to be so (AMB-RT-06)."""
    check.returns(impl.runtime.tessInit())
    answer = impl.runtime.tessHostAlloc(bytes=64, kind=0)
    check.reading("AMB-RT-06", "GLOBAL means pageable host memory", isinstance(answer, Returned))
    refused(check, answer, "TESS_ERR_INVALID_VALUE")
    check.returns(impl.runtime.tessHostAlloc(bytes=64, kind=1), "TESS_MEM_PINNED_HOST is accepted")


@clause("RT-04.4-17")
@pytest.mark.parametrize("size", SIZES)
def test_pinned_host_memory_can_be_released(impl, check, size):
    """Pinned memory can be released, and other pinned memory keeps its bytes."""
    session = opened(impl, check)
    kept, released = pinned(session, 64), pinned(session, size)
    session.host_write(kept, pattern(64))
    check.equal(session.ask("tessHostFree", hostPtr=released), {}, "no outputs")
    check.equal(session.host_bytes(kept, 64).hex(), pattern(64).hex(), "memory that was not released")


@clause("RT-04.4-17")
def test_host_memory_can_be_released_again_and_again(impl, check):
    """A hundred times allocated, a hundred times released."""
    check.returns(impl.runtime.tessInit())
    for _ in range(100):
        pointer = check.returns(impl.runtime.tessHostAlloc(bytes=4096, kind=PINNED_HOST))["hostPtr"]
        check.returns(impl.runtime.tessHostFree(hostPtr=pointer), "tessHostFree succeeds")


@clause("RT-04.4-14", "RT-04.4-16")
def test_memory_of_no_bytes_gets_an_answer(impl, check):
    """A status or a pointer, and the runtime lives on (AMB-RT-40)."""
    session = opened(impl, check)
    session.attempt("tessMalloc", mesh=session.mesh, bytes=0)
    session.attempt("tessHostAlloc", bytes=0, kind=PINNED_HOST)
    check.equal(session.download(session.upload(pattern(64)), 64).hex(), pattern(64).hex(), "memory allocated after")
