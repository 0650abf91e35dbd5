"""Sizes that no machine has, and releases of what was not allocated (runtime specification, 4.4, 7 and 19.A).

With the functions of the text alone. What a release of something else does to a runtime that trusts its caller is its
own affair, as free's is (AMB-RT-184); that it succeeded is what it may not say.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tessera_conformance.chapters.runtime.kit.mesh_session import (
    PINNED_HOST,
    MeshSession,
    devices,
    meshed,
    opened,
    refused,
)
from tessera_conformance.chapters.runtime.kit.readings import died
from tessera_conformance.marks import clause
from tessera_conformance.protocol import Observation, Rejected, Returned

INVALID = "TESS_ERR_INVALID_VALUE"
OUT_OF_MEMORY = "TESS_ERR_OUT_OF_MEMORY"
DATA = bytes(range(256))

SIZES = {
    "all addresses": (1 << 64) - 1,
    "7 less": (1 << 64) - 8,
    "63 less": (1 << 64) - 64,
    "4095 less": (1 << 64) - 4096,
    "half of them and more": (1 << 63) + 64,
    "half of them": 1 << 63,
    "a byte less than half": (1 << 63) - 1,
    "a quarter": 1 << 62,
}


@clause("RT-19.A-02", "RT-07-04", "RT-04.4-14")
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_device_memory_that_no_machine_has_is_refused(impl, check, size):
    """Out of memory, or an invalid value, at once, and what there is stays as it is (AMB-RT-126)."""
    session = opened(impl, check)
    pointer = session.upload(DATA)
    refused(check, session.attempt("tessMalloc", mesh=session.mesh, bytes=size), OUT_OF_MEMORY, INVALID)
    check.equal(session.download(pointer, len(DATA)).hex(), DATA.hex(), "the memory that there is")


@clause("RT-19.A-02", "RT-07-04", "RT-04.4-16")
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_host_memory_that_no_machine_has_is_refused(impl, check, size):
    """Out of memory, or an invalid value, at once; a little memory can be had after that."""
    check.returns(impl.runtime.tessInit(), "tessInit succeeds")
    refused(check, impl.runtime.tessHostAlloc(bytes=size, kind=PINNED_HOST), OUT_OF_MEMORY, INVALID)
    check.returns(impl.runtime.tessHostAlloc(bytes=64, kind=PINNED_HOST), "tessHostAlloc succeeds")


def freeing(session: MeshSession, pointer: int) -> Observation:
    """Return the answer of tessFree."""
    return session.attempt("tessFree", mesh=session.mesh, devPtr=pointer)


def freeing_host(session: MeshSession, pointer: int) -> Observation:
    """Return the answer of tessHostFree."""
    return session.attempt("tessHostFree", hostPtr=pointer)


def pinned(session: MeshSession) -> int:
    """Host memory of tessHostAlloc."""
    return int(session.ask("tessHostAlloc", bytes=len(DATA), kind=PINNED_HOST)["hostPtr"])


Release = Callable[[MeshSession, int, int], Observation]

NOT_ALLOCATED: dict[str, Release] = {
    "the second word": lambda session, device, host: freeing(session, device + 8),
    "the last byte": lambda session, device, host: freeing(session, device + len(DATA) - 1),
    "host memory": lambda session, device, host: freeing(session, host),
}
NOT_ALLOCATED_HOST: dict[str, Release] = {
    "the second word": lambda session, device, host: freeing_host(session, host + 8),
    "the last byte": lambda session, device, host: freeing_host(session, host + len(DATA) - 1),
    "device memory": lambda session, device, host: freeing_host(session, device),
}
RELEASES = [
    *(
        pytest.param(pointer, marks=clause("RT-04.4-15"), id=f"tessFree, {name}")
        for name, pointer in NOT_ALLOCATED.items()
    ),
    *(
        pytest.param(pointer, marks=clause("RT-04.4-17"), id=f"tessHostFree, {name}")
        for name, pointer in NOT_ALLOCATED_HOST.items()
    ),
]


@clause("RT-19.A-01", "RT-07-02")
@pytest.mark.parametrize("release", RELEASES)
def test_what_is_no_allocation_is_not_released(impl, check, release):
    """An invalid value, at once (AMB-RT-184); the memory itself keeps its bytes."""
    session = opened(impl, check)
    device, host = session.upload(DATA), pinned(session)
    session.synchronize()
    answer = release(session, device, host)
    check.reading("AMB-RT-184", "undefined, as of free: the program may end", died(answer))
    check.status(answer, INVALID)
    check.equal(session.download(device, len(DATA)).hex(), DATA.hex(), "the device memory")


@clause("RT-04.4-15", "RT-19.A-01")
def test_another_mesh_does_not_release_memory(impl, check):
    """An invalid value from a mesh of the same device (AMB-RT-186); the memory keeps its bytes until its own one."""
    session = opened(impl, check)
    other = meshed(impl, check, session.context, devices(impl, check, 1))
    pointer = session.upload(DATA)
    answer = freeing(other, pointer)
    check.reading("AMB-RT-184", "undefined, as of free: the program may end", died(answer))
    ignored = "the mesh is not looked at, and the memory is released"
    check.reading("AMB-RT-186", ignored, isinstance(answer, Returned))
    check.status(answer, INVALID)
    check.equal(session.download(pointer, len(DATA)).hex(), DATA.hex(), "the memory after it")
    check.returns(freeing(session, pointer), "the mesh that it is of releases it")


@clause("RT-04.4-15", "RT-04.4-14")
def test_memory_that_is_released_twice_is_given_out_once(impl, check):
    """Whatever the second release answers (AMB-RT-38): of two allocations after it each has its own bytes."""
    session = opened(impl, check)
    pointer = session.allocate(len(DATA))
    session.ask("tessFree", mesh=session.mesh, devPtr=pointer)
    answer = freeing(session, pointer)
    check.reading("AMB-RT-184", "undefined, as of free: the program may end", died(answer))
    check.true(isinstance(answer, Returned | Rejected), "there is an answer", type(answer).__name__)
    first, second = session.upload(DATA), session.upload(DATA[::-1])
    check.equal(session.download(first, len(DATA)).hex(), DATA.hex(), "the one allocation")
    check.equal(session.download(second, len(DATA)).hex(), DATA[::-1].hex(), "the other")


@clause("RT-04.4-17", "RT-04.4-16")
def test_host_memory_that_is_released_twice_is_given_out_once(impl, check):
    """Whatever the second release answers (AMB-RT-38): of two allocations after it each has its own bytes."""
    session = opened(impl, check)
    pointer = pinned(session)
    session.ask("tessHostFree", hostPtr=pointer)
    answer = freeing_host(session, pointer)
    check.reading("AMB-RT-184", "undefined, as of free: the program may end", died(answer))
    check.true(isinstance(answer, Returned | Rejected), "there is an answer", type(answer).__name__)
    pointers = [pinned(session) for _ in range(2)]
    for address, data in zip(pointers, (DATA, DATA[::-1]), strict=True):
        session.host_write(address, data)
    for address, data in zip(pointers, (DATA, DATA[::-1]), strict=True):
        check.equal(session.host_bytes(address, len(DATA)).hex(), data.hex(), "an allocation")
