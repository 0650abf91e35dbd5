"""Mistakes with memory that a simulated machine finds (runtime specification, 4.4; AMB-RT-83)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    CAPTURE,
    COUNT,
    D2D,
    D2H,
    DTYPE_IDS,
    H2D,
    PINNED_HOST,
    MeshSession,
    opened,
    refused,
)
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Observation, Rejected, Returned

INVALID = "TESS_ERR_INVALID_VALUE"
ONES = elements("int32", *[1] * COUNT)
Mistake = Callable[[MeshSession], Observation]


def kinds(session: MeshSession) -> list[str]:
    """Return the kinds of the findings, each once."""
    actual = session.ask("tessxFindings")["findings"]
    session.check.true(all(finding["text"] for finding in actual), "every finding has a text")
    return sorted({finding["kind"] for finding in actual})


def copying(session: MeshSession, dst: int, src: int, size: int, kind: int) -> Observation:
    """Return the answer of a copy."""
    return session.attempt("tessMemcpyAsync", dst=dst, src=src, bytes=size, kind=kind, stream=session.stream)


def launching(session: MeshSession, pointer: int) -> Observation:
    """Return the answer of a launch that reads and writes a tensor."""
    return session.launching(session.kernel("digit"), packed(("int32", 1), ("ptr", pointer)))


def freed(session: MeshSession) -> int:
    """Device memory that is released."""
    pointer = session.upload(ONES)
    session.synchronize()
    session.ask("tessFree", mesh=session.mesh, devPtr=pointer)
    return pointer


def freed_host(session: MeshSession) -> int:
    """Host memory that is released."""
    pointer = int(session.ask("tessHostAlloc", bytes=BYTES, kind=PINNED_HOST)["hostPtr"])
    session.ask("tessHostFree", hostPtr=pointer)
    return pointer


@feature("memory-findings")
@clause("RT-04.4-14", "RT-04.4-18", "RT-04.4-19", "RT-04.4-20")
@pytest.mark.parametrize("ranks", [1, 4])
def test_a_program_without_mistakes_has_no_findings(impl, check, ranks):
    """Copies of every kind, launches, a collective, two streams that an event orders, released memory."""
    session = opened(impl, check, ranks=ranks)
    other = session.another_stream()
    first, second = session.upload(ONES), session.allocate(BYTES)
    session.copy(second, first, BYTES, D2D)
    check.returns(launching(session, second))
    check.returns(session.reducing(second))
    other.wait_stream(session)
    check.returns(launching(other, second))
    other.download(second, BYTES)
    other.copy(first + 16, second, BYTES - 16, D2D)
    other.synchronize()
    session.synchronize()
    session.ask("tessFree", mesh=session.mesh, devPtr=first)
    session.ask("tessHostFree", hostPtr=session.ask("tessHostAlloc", bytes=64, kind=PINNED_HOST)["hostPtr"])
    check.equal(kinds(session), [], "what was found")


def half_written(session: MeshSession) -> int:
    """Device memory whose second half was never written."""
    pointer = session.allocate(BYTES)
    session.write(pointer, bytes(BYTES // 2))
    return pointer


UNINITIALISED: dict[str, Mistake] = {
    "a copy to the host": lambda session: copying(
        session, session.host(bytes(BYTES)), session.allocate(BYTES), BYTES, D2H
    ),
    "a copy on the device": lambda session: copying(session, session.upload(ONES), session.allocate(BYTES), BYTES, D2D),
    "the last byte of a copy": lambda session: copying(
        session, session.host(bytes(BYTES)), half_written(session), BYTES // 2 + 1, D2H
    ),
    "a launch": lambda session: launching(session, session.allocate(BYTES)),
    "a collective": lambda session: session.reducing(session.allocate(BYTES)),
}


@feature("memory-findings")
@clause("RT-04.4-14", "RT-04.4-19")
@pytest.mark.parametrize(
    ("mistake", "ranks"),
    [
        pytest.param(mistake, ranks, id=f"{name}, {ranks}")
        for name, mistake in UNINITIALISED.items()
        for ranks in ((2,) if name == "a collective" else (1, 2))
    ],
)
def test_reading_what_was_never_written_is_found(impl, check, mistake, ranks):
    """It is no error: the call and the synchronization succeed."""
    session = opened(impl, check, ranks)
    check.returns(mistake(session), "the call succeeds")
    session.synchronize()
    check.equal(kinds(session), ["uninitialised_read"], "what was found")


@feature("memory-findings")
@clause("RT-04.4-14", "RT-04.4-18")
def test_reading_what_was_written_is_no_mistake(impl, check):
    """The written half of an allocation may be read."""
    session = opened(impl, check)
    pointer = half_written(session)
    session.download(pointer, BYTES // 2)
    session.write(pointer + BYTES // 2, bytes(BYTES // 2))
    session.download(pointer, BYTES)
    check.equal(kinds(session), [], "what was found")


OVERRUNS: dict[str, Mistake] = {
    "target by a byte": lambda session: copying(session, session.upload(ONES) + 1, session.host(ONES), BYTES, H2D),
    "source by a byte": lambda session: copying(session, session.host(ONES), session.upload(ONES) + 1, BYTES, D2H),
    "host target": lambda session: copying(session, session.host(ONES), session.upload(ONES + ONES), BYTES + 1, D2H),
    "host source": lambda session: copying(session, session.upload(ONES + ONES), session.host(ONES), BYTES + 1, H2D),
    "target on the device": lambda session: copying(
        session, session.upload(ONES), session.upload(ONES + ONES), 2 * BYTES, D2D
    ),
    "source on the device": lambda session: copying(
        session, session.upload(ONES + ONES), session.upload(ONES), 2 * BYTES, D2D
    ),
    "all addresses": lambda session: copying(session, session.upload(ONES), session.host(ONES), (1 << 64) - 1, H2D),
    "tensor of a launch": lambda session: launching(session, session.upload(ONES[:-4])),
    "tensor of a launch, shifted": lambda session: launching(session, session.upload(ONES) + 8),
    "buffer of a collective": lambda session: session.reducing(session.upload(ONES), COUNT + 1),
    "count of a collective": lambda session: session.reducing(session.upload(ONES), 1 << 62),
}


@feature("memory-findings")
@clause("RT-04.4-14", "RT-04.4-18", "RT-04.4-19", "RT-04.4-20", "RT-19.A-01")
@pytest.mark.parametrize("mistake", OVERRUNS.values(), ids=OVERRUNS)
def test_an_access_behind_the_end_is_found(impl, check, mistake):
    """The call that asks for it is refused, and nothing happens later."""
    session = opened(impl, check)
    refused(check, mistake(session), INVALID)
    session.synchronize()
    check.equal(kinds(session), ["overrun"], "what was found")


FREED: dict[str, Mistake] = {
    "target of a copy": lambda session: copying(session, freed(session), session.host(ONES), BYTES, H2D),
    "source of a copy": lambda session: copying(session, session.host(ONES), freed(session), BYTES, D2H),
    "middle of a copy": lambda session: copying(session, session.host(ONES), freed(session) + 8, 8, D2H),
    "host target": lambda session: copying(session, freed_host(session), session.upload(ONES), BYTES, D2H),
    "host source": lambda session: copying(session, session.upload(ONES), freed_host(session), BYTES, H2D),
    "tensor of a launch": lambda session: launching(session, freed(session)),
    "buffer of a collective": lambda session: session.reducing(freed(session)),
}


@feature("memory-findings")
@clause("RT-04.4-14", "RT-04.4-18", "RT-04.4-19", "RT-19.A-01")
@pytest.mark.parametrize("mistake", FREED.values(), ids=FREED)
def test_a_use_of_released_memory_is_found(impl, check, mistake):
    """The use is found also if other memory was allocated since."""
    session = opened(impl, check)
    refused(check, mistake(session), INVALID)
    session.synchronize()
    check.equal(kinds(session), ["use_after_free"], "what was found")


@feature("memory-findings")
@clause("RT-04.4-14")
@pytest.mark.parametrize("side", ["device", "host"])
def test_releasing_twice_is_found(impl, check, side):
    """A second release is found, whatever its status (AMB-RT-38)."""
    session = opened(impl, check)
    if side == "device":
        answer = session.attempt("tessFree", mesh=session.mesh, devPtr=freed(session))
    else:
        answer = session.attempt("tessHostFree", hostPtr=freed_host(session))
    check.true(isinstance(answer, Returned | Rejected), "there is an answer", type(answer).__name__)
    check.equal(kinds(session), ["double_free"], "what was found")


MIXED_UP: dict[str, Mistake] = {
    "H2D from the device": lambda session: copying(session, session.upload(ONES), session.upload(ONES), BYTES, H2D),
    "H2D to the host": lambda session: copying(session, session.host(ONES), session.host(ONES), BYTES, H2D),
    "D2H to the device": lambda session: copying(session, session.upload(ONES), session.upload(ONES), BYTES, D2H),
    "D2H from the host": lambda session: copying(session, session.host(ONES), session.host(ONES), BYTES, D2H),
    "D2D from the host": lambda session: copying(session, session.upload(ONES), session.host(ONES), BYTES, D2D),
    "D2D to the host": lambda session: copying(session, session.host(ONES), session.upload(ONES), BYTES, D2D),
    "tensor of a launch": lambda session: launching(session, session.host(ONES)),
    "buffer of a collective": lambda session: session.reducing(session.host(ONES)),
}


@feature("memory-findings")
@clause("RT-04.4-18", "RT-04.4-19", "RT-04.4-20", "RT-19.A-01")
@pytest.mark.parametrize("mistake", MIXED_UP.values(), ids=MIXED_UP)
def test_memory_of_the_wrong_side_is_found(impl, check, mistake):
    """Host memory where a device's is meant, and the reverse; the call is refused."""
    session = opened(impl, check)
    refused(check, mistake(session), INVALID)
    session.synchronize()
    check.equal(kinds(session), ["host_device_mixup"], "what was found")


# Accesses that nothing orders

ACCESSES = {
    "write, write": (True, True, True),
    "write, read": (True, False, True),
    "read, write": (False, True, True),
    "read, read": (False, False, False),
}
"""True if each of two streams writes, and whether that is a mistake."""


def access(session: MeshSession, pointer: int, writes: bool) -> None:
    """Queue a copy that writes or reads memory."""
    if writes:
        session.write(pointer, ONES)
    else:
        session.copy(session.host(bytes(BYTES)), pointer, BYTES, D2H)


@feature("memory-findings")
@clause("RT-04.4-18", "RT-04.4-19")
@pytest.mark.parametrize(("first", "second", "mistaken"), ACCESSES.values(), ids=ACCESSES)
@pytest.mark.parametrize("ordered", ["not at all", "event", "synchronization"])
def test_accesses_that_nothing_orders_are_found(impl, check, first, second, mistaken, ordered):
    """Two streams, one of which writes, need an event or a synchronization between them, in either order."""
    session = opened(impl, check)
    other, pointer = session.another_stream(), session.upload(ONES)
    session.synchronize()
    access(session, pointer, first)
    if ordered == "event":
        other.wait_stream(session)
    if ordered == "synchronization":
        session.synchronize()
    access(other, pointer, second)
    session.synchronize()
    other.synchronize()
    expected = ["unordered_access"] if mistaken and ordered == "not at all" else []
    check.equal(kinds(session), expected, "what was found")


@feature("memory-findings")
@clause("RT-04.4-18", "RT-04.4-20")
def test_accesses_to_other_bytes_need_no_order(impl, check):
    """Two streams write the two halves of one allocation."""
    session = opened(impl, check)
    other, pointer = session.another_stream(), session.allocate(BYTES)
    session.write(pointer, ONES[: BYTES // 2])
    other.write(pointer + BYTES // 2, ONES[: BYTES // 2])
    session.synchronize()
    other.synchronize()
    check.equal(kinds(session), [], "what was found")


END = BYTES - 16


@feature("memory-findings")
@clause("RT-04.4-18", "RT-04.4-20")
@pytest.mark.parametrize("work", ["copy", "launch", "collective"])
def test_all_the_bytes_of_work_need_order(impl, check, work):
    """Another stream writes the last bytes of what work reads and writes; those behind it are free."""
    session = opened(impl, check)
    other, pointer = session.another_stream(), session.upload(ONES + ONES)
    session.synchronize()
    for place, expected in ((BYTES, []), (END, ["unordered_access"])):
        if work == "copy":
            session.copy(session.host(bytes(BYTES)), pointer, BYTES, D2H)
        else:
            check.returns(launching(session, pointer) if work == "launch" else session.reducing(pointer))
        other.write(pointer + place, ONES[:16])
        session.synchronize()
        other.synchronize()
        check.equal(kinds(session), expected, f"what was found of bytes from {place}")


@feature("memory-findings", "graph-replay")
@clause("RT-04.4-18", "RT-12-08")
@pytest.mark.parametrize("place", range(3))
def test_all_the_work_of_a_replay_needs_order(impl, check, place):
    """A graph of three launches; another stream writes what one of them reads and writes."""
    session = opened(impl, check)
    other, pointers = session.another_stream(), [session.upload(ONES) for _ in range(3)]
    kernel = session.kernel("digit")
    session.synchronize()
    for pointer in pointers:
        session.launch(kernel, packed(("int32", 1), ("ptr", pointer)), flags=CAPTURE)
    graph = session.ask("tessxGraphInstantiate", stream=session.stream)["graph"]
    session.ask("tessxGraphLaunch", graph=graph, stream=session.stream)
    other.write(pointers[place], ONES)
    session.synchronize()
    other.synchronize()
    check.equal(kinds(session), ["unordered_access"], "what was found")


@feature("memory-findings", "rank-memory")
@clause("RT-04.4-14")
@pytest.mark.parametrize("collective", ["all_gather", "broadcast"])
def test_a_collective_reads_what_each_rank_brings_alone(impl, check, collective):
    """Each rank has written its share of an all-gather, and the root the whole of a broadcast: nothing is missing.

    As AMB-RT-04 has it.
    """
    session = opened(impl, check, ranks=4)
    pointer, share = session.allocate(BYTES), BYTES // 4
    whole = {"mesh": session.mesh, "count": COUNT, "dtype": DTYPE_IDS["int32"], "stream": session.stream}
    if collective == "broadcast":
        session.poke(2, pointer, ONES)
        session.ask("tessBroadcast", **whole, buffer=pointer, root=2)
    else:
        for rank in range(4):
            session.poke(rank, pointer + rank * share, ONES[:share])
        session.ask("tessAllGather", **whole, inout=pointer, axis="dp")
    session.download(pointer, BYTES)
    check.equal(kinds(session), [], "what was found")


@feature("memory-findings")
@clause("RT-04.4-14")
def test_findings_are_kept(impl, check):
    """Every query lists them again, with later mistakes added."""
    session = opened(impl, check)
    session.download(session.allocate(64), 64)
    before = kinds(session)
    check.equal(before, ["uninitialised_read"], "what was found")
    refused(check, copying(session, freed(session), session.host(ONES), BYTES, H2D), INVALID)
    check.equal(kinds(session), ["uninitialised_read", "use_after_free"], "what was found since")
