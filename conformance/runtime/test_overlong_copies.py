"""Copies that are longer than the memory they are given (runtime specification, 4.4, 7, 19.A; AMB-RT-83).

With the functions of the text alone. Such a copy is an invalid argument. A runtime that trusts its caller moves all
bytes or dies of it: another reading. One that cuts the copy and reports success has reported what is not so.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.mesh_session import D2D, D2H, H2D, MeshSession, opened
from tessera_conformance.chapters.runtime.kit.readings import outside
from tessera_conformance.marks import clause

SIZE = 8
"""The bytes of memory that is too small; what is copied beside it is twice as long."""
DATA = bytes(range(1, 2 * SIZE + 1))
FILL = b"\x5a" * 2 * SIZE
LENGTHS = {
    "twice as long": 2 * SIZE,
    "4 GiB longer": SIZE + (1 << 32),
    "2 to the 63": 1 << 63,
    "all addresses": (1 << 64) - 1,
}

TO_THE_DEVICE = pytest.param(H2D, marks=clause("RT-04.4-18"), id="to the device")
TO_THE_HOST = pytest.param(D2H, marks=clause("RT-04.4-19"), id="to the host")
ON_THE_DEVICE = pytest.param(D2D, marks=clause("RT-04.4-20"), id="on the device")


def filled(session: MeshSession, data: bytes) -> int:
    """Device memory with these bytes."""
    pointer = session.upload(data)
    session.synchronize()
    return pointer


def held(session: MeshSession, pointer: int, kind: int) -> bytes:
    """Return the bytes of the target of a copy and those behind it; none if they cannot be read."""
    if kind == D2H:
        return session.host_bytes(pointer, len(DATA))
    target = session.host(bytes(len(DATA)))
    whole = {"dst": target, "src": pointer, "bytes": len(DATA), "kind": D2H, "stream": session.stream}
    session.attempt("tessMemcpyAsync", **whole)
    session.attempt("tessStreamSynchronize", stream=session.stream)
    return session.host_bytes(target, len(DATA))


@clause("RT-19.A-01", "RT-07-02")
@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("kind", [TO_THE_DEVICE, ON_THE_DEVICE])
def test_a_copy_that_is_longer_than_its_target_is_refused(impl, check, kind, length):
    """By the call; the target and its neighbours are as they were."""
    session = opened(impl, check)
    source = session.host(DATA) if kind == H2D else filled(session, DATA)
    before, target, behind = (filled(session, FILL[:SIZE]) for _ in range(3))
    whole = {"dst": target, "src": source, "bytes": length, "kind": kind, "stream": session.stream}
    answer = session.attempt("tessMemcpyAsync", **whole)
    outside(session, answer, lambda: length == len(DATA) and held(session, target, kind) == DATA)
    for pointer in (before, target, behind):
        check.equal(session.download(pointer, SIZE).hex(), FILL[:SIZE].hex(), "the memory")


@clause("RT-19.A-01", "RT-07-02")
@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("kind", [TO_THE_HOST, ON_THE_DEVICE])
def test_a_copy_that_is_longer_than_its_source_is_refused(impl, check, kind, length):
    """The call refuses it; the target stays as it was."""
    session = opened(impl, check)
    source = filled(session, DATA[:SIZE])
    target = session.host(FILL) if kind == D2H else filled(session, FILL)
    whole = {"dst": target, "src": source, "bytes": length, "kind": kind, "stream": session.stream}
    answer = session.attempt("tessMemcpyAsync", **whole)
    outside(session, answer, lambda: length == len(DATA) and held(session, target, kind)[SIZE:] != FILL[SIZE:])
    check.equal(held(session, target, kind).hex(), FILL.hex(), "the target")


@clause("RT-19.A-01", "RT-07-02", "RT-04.4-18")
@pytest.mark.parametrize("place", [1, SIZE - 1])
def test_a_copy_that_begins_within_memory_and_ends_behind_it_is_refused(impl, check, place):
    """The copy has the length of the memory, but begins at a later byte."""
    session = opened(impl, check)
    target, source = filled(session, FILL[:SIZE]), session.host(DATA)
    whole = {"dst": target + place, "src": source, "bytes": SIZE, "kind": H2D, "stream": session.stream}
    answer = session.attempt("tessMemcpyAsync", **whole)
    moved = FILL[:place] + DATA[:SIZE]
    outside(session, answer, lambda: held(session, target, H2D)[: len(moved)] == moved)
    check.equal(session.download(target, SIZE).hex(), FILL[:SIZE].hex(), "the memory")
