"""Copies between host and device memory, and their place among the work of a stream (runtime specification, 4.4)."""

from __future__ import annotations

import struct

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    COUNT,
    D2D,
    D2H,
    H2D,
    MeshSession,
    compiled,
    opened,
)
from tessera_conformance.chapters.runtime.kit.readings import rejected
from tessera_conformance.chapters.runtime.kit.schedules import explored, seeds_of
from tessera_conformance.marks import clause, feature

MANY = 12
"""Streams that copy at once: more than a device has engines for."""

DIGIT = "module m { kernel digit(v: int32, x: tensor<64xint32>) { x = x * 10 + v; } }"
"""A kernel of `KERNELS` by itself."""

ROOM = 4096
BEHIND = 77
"""A byte that nothing copies."""

PARTS = [(0, 1), (0, 4096), (1, 3), (7, 8), (16, 16), (255, 257), (4095, 1), (1, 4095), (1000, 2001)]
"""The start of a copy, and its number of bytes."""


def numbered(count: int) -> bytes:
    """Bytes that differ from place to place, none of them `BEHIND`."""
    return bytes(place % 64 + (128 if place // 64 % 2 else 0) for place in range(count))


def surrounded(data: bytes, offset: int) -> str:
    """Return the memory of `BEHIND` after a copy into it, as digits."""
    return (bytes([BEHIND]) * offset + data + bytes([BEHIND]) * (ROOM - offset - len(data))).hex()


@clause("RT-04.4-18")
@pytest.mark.parametrize(("offset", "size"), PARTS)
def test_a_copy_to_the_device_moves_the_given_bytes(impl, check, offset, size):
    """A host-to-device copy writes exactly the requested bytes, from any place to any place (AMB-RT-53)."""
    session = opened(impl, check)
    target, source = session.upload(bytes([BEHIND]) * ROOM), session.host(numbered(ROOM + 5))
    session.copy(target + offset, source + 5, size, H2D)
    actual = session.download(target, ROOM)
    check.equal(actual.hex(), surrounded(numbered(ROOM + 5)[5 : 5 + size], offset), "the memory of the device")


@clause("RT-04.4-19")
@pytest.mark.parametrize(("offset", "size"), PARTS)
def test_a_copy_to_the_host_moves_the_given_bytes(impl, check, offset, size):
    """A device-to-host copy writes exactly the requested bytes, into any kind of host memory (AMB-RT-53)."""
    session = opened(impl, check)
    source, target = session.upload(numbered(ROOM + 5)), session.host(bytes([BEHIND]) * ROOM)
    session.copy(target + offset, source + 5, size, D2H)
    session.synchronize()
    actual = session.host_bytes(target, ROOM)
    check.equal(actual.hex(), surrounded(numbered(ROOM + 5)[5 : 5 + size], offset), "the memory of the host")


@clause("RT-04.4-20")
@pytest.mark.parametrize(("offset", "size"), PARTS)
def test_a_copy_on_the_device_moves_the_given_bytes(impl, check, offset, size):
    """A device-to-device copy writes exactly the requested bytes and leaves its source alone."""
    session = opened(impl, check)
    source, target = session.upload(numbered(ROOM + 5)), session.upload(bytes([BEHIND]) * ROOM)
    session.copy(target + offset, source + 5, size, D2D)
    actual = session.download(target, ROOM)
    check.equal(actual.hex(), surrounded(numbered(ROOM + 5)[5 : 5 + size], offset), "the target")
    check.equal(session.download(source, ROOM + 5).hex(), numbered(ROOM + 5).hex(), "the source")


@clause("RT-04.4-20")
def test_a_copy_within_one_allocation_moves_the_given_bytes(impl, check):
    """From its beginning to its end, the two not overlapping."""
    session = opened(impl, check)
    pointer = session.upload(numbered(ROOM))
    session.copy(pointer + 3000, pointer + 1, 1000, D2D)
    expected = bytearray(numbered(ROOM))
    expected[3000:4000] = numbered(ROOM)[1:1001]
    check.equal(session.download(pointer, ROOM).hex(), expected.hex(), "the memory")


@clause("RT-04.4-20")
@pytest.mark.parametrize("shift", [0, 1, 16, -1, -16])
def test_a_copy_onto_itself_leaves_the_rest_alone(impl, check, shift):
    """Any status and any bytes are accepted where source and target overlap, but only there (AMB-RT-124)."""
    session = opened(impl, check)
    pointer = session.upload(numbered(ROOM))
    copied = {"dst": pointer + 1000 + shift, "src": pointer + 1000, "bytes": 500, "kind": D2D}
    session.attempt("tessMemcpyAsync", stream=session.stream, **copied)
    actual = session.download(pointer, ROOM)
    first, last = 1000 + shift, 1500 + shift
    check.equal(actual[:first].hex(), numbered(ROOM)[:first].hex(), "what stands before the target")
    check.equal(actual[last:].hex(), numbered(ROOM)[last:].hex(), "what stands behind the target")


@clause("RT-04.4-18", "RT-04.4-19", "RT-04.4-20")
@pytest.mark.parametrize("kind", [H2D, D2H, D2D], ids=["H2D", "D2H", "D2D"])
def test_a_copy_of_nothing_changes_nothing(impl, check, kind):
    """A copy of zero bytes succeeds and changes nothing (AMB-RT-40)."""
    session = opened(impl, check)
    device, other = session.upload(numbered(64)), session.upload(numbered(64)[::-1])
    host = session.host(bytes([BEHIND]) * 64)
    dst, src = {H2D: (device, host), D2H: (host, device), D2D: (device, other)}[kind]
    whole = {"dst": dst, "src": src, "bytes": 0, "kind": kind, "stream": session.stream}
    answer = session.attempt("tessMemcpyAsync", **whole)
    check.reading("AMB-RT-40", "INVALID_VALUE everywhere", rejected(answer, "TESS_ERR_INVALID_VALUE"))
    check.returns(answer, "a copy of nothing succeeds")
    check.equal(session.download(device, 64).hex(), numbered(64).hex(), "the memory of the device")
    check.equal(session.host_bytes(host, 64).hex(), (bytes([BEHIND]) * 64).hex(), "the memory of the host")


# The place of copies among other work


def digits(session: MeshSession, image: str) -> int:
    """The kernel `digit` of an image."""
    module = session.ask("tessModuleLoad", context=session.context, image=image)["module"]
    return session.kernel_of(module, "digit")


def of_every_kind(session: MeshSession, image: str) -> tuple[list[str], list[str]]:
    """Work in which each step needs the one before: what it left on the host, and what it has to leave there.

    A kernel appends a digit to 12; the host's copies in between see 121, then 1212, and last the sum over one rank.
    """
    kernel, pointer, spare = digits(session, image), session.allocate(BYTES), session.allocate(BYTES)
    targets = [session.host(bytes(BYTES)) for _ in range(4)]
    session.write(pointer, elements("int32", *[12] * COUNT))
    session.launch(kernel, packed(("int32", 1), ("ptr", pointer)))
    session.copy(targets[0], pointer, BYTES, D2H)
    session.copy(spare, pointer, BYTES, D2D)
    session.launch(kernel, packed(("int32", 2), ("ptr", pointer)))
    session.copy(targets[1], pointer, BYTES, D2H)
    session.all_reduce(spare)
    session.copy(pointer, spare, BYTES, D2D)
    session.launch(kernel, packed(("int32", 3), ("ptr", pointer)))
    session.copy(targets[2], pointer, BYTES, D2H)
    session.write(pointer, elements("int32", *[5] * COUNT))
    session.copy(targets[3], pointer, BYTES, D2H)
    session.synchronize()
    expected = [elements("int32", *[value] * COUNT).hex() for value in (121, 1212, 1213, 5)]
    return [session.host_bytes(target, BYTES).hex() for target in targets], expected


@clause("RT-04.4-11")
def test_copies_keep_their_place_in_their_stream(impl, check):
    """Each copy sees what was queued before it and nothing of what was queued after."""
    actual, expected = of_every_kind(opened(impl, check), compiled(impl, check))
    check.equal(actual, expected, "what each copy to the host saw")


@feature("schedule-control")
@clause("RT-04.4-11")
@pytest.mark.parametrize("block", range(8))
def test_copies_keep_their_place_under_many_orders(impl, check, block):
    """Two hundred seeds, twenty-five a case; another stream has work too, and all else may happen in any order."""
    image = compiled(impl, check, DIGIT)
    for seed in seeds_of(impl, check, block):
        session = opened(impl, check)
        other = session.another_stream()
        other.launch(digits(other, image), packed(("int32", 1), ("ptr", other.upload(bytes(BYTES)))))
        actual, expected = of_every_kind(session, image)
        check.equal(actual, expected, f"what each copy to the host saw under seed {seed}")
        session.close()


@feature("schedule-control")
@clause("RT-04.4-11")
def test_copies_keep_their_place_under_every_order(impl, check):
    """Two streams, each of which copies to a place of its own and back: all their schedules."""

    def run() -> list[list[float]]:
        session = opened(impl, check)
        streams = [session, session.another_stream()]
        targets = [owner.host(bytes(4)) for owner in streams]
        for value, (stream, target) in enumerate(zip(streams, targets, strict=True)):
            place = stream.allocate(4)
            stream.write(place, elements("int32", 10 + value))
            stream.copy(target, place, 4, D2H)
        for stream in streams:
            stream.synchronize()
        actual = [values_of("int32", session.host_bytes(target, 4)) for target in targets]
        session.close()
        return actual

    schedules = list(explored(impl, check, run, most=2000))
    for choices, actual in schedules:
        check.equal(actual, [[10], [11]], f"what came back under the schedule {choices}")
    check.true(1 < len(schedules) < 2000, "there is more than one schedule, and all of them were run", len(schedules))


@clause("RT-04.4-11")
@pytest.mark.parametrize("count", [1, 100])
def test_many_small_copies_arrive_in_order(impl, check, count):
    """The last of the copies to one place is the one that stays."""
    session = opened(impl, check)
    target = session.upload(bytes(4))
    sources = [session.host(elements("int32", value)) for value in range(count)]
    for source in sources:
        session.copy(target, source, 4, H2D)
    check.equal(values_of("int32", session.download(target, 4)), [count - 1], "what was copied last")


LARGE = [(1 << 16) + 1, (1 << 20) + 7]
"""Bytes past 64 KiB and 1 MiB, with a remainder of every unit of a copy."""


@clause("RT-04.4-18", "RT-04.4-19", "RT-04.4-20")
@pytest.mark.parametrize("kind", [H2D, D2H, D2D], ids=["to the device", "to the host", "on the device"])
@pytest.mark.parametrize("size", LARGE)
def test_a_large_copy_moves_each_byte_to_its_place(impl, check, kind, size):
    """No two stretches of 256 bytes are alike, and the bytes before and behind stay as they were."""
    session = opened(impl, check)
    data = b"".join(struct.pack("<I", (place * 2654435761) % 2**32) for place in range(size // 4 + 1))[:size]
    around = bytes([BEHIND]) * 64
    blank = around + bytes([BEHIND]) * size + around
    source = session.host(data) if kind == H2D else session.upload(data)
    target = session.host(blank) if kind == D2H else session.upload(blank)
    session.copy(target + 64, source, size, kind)
    session.synchronize()
    actual = session.host_bytes(target, len(blank)) if kind == D2H else session.download(target, len(blank))
    expected = around + data + around
    wrong = next((place for place, pair in enumerate(zip(actual, expected, strict=True)) if pair[0] != pair[1]), None)
    check.equal(wrong, None, f"the first wrong byte, the copy beginning at 64 and ending at {64 + size}")


ODD_OFFSETS = [(0, 1), (1, 0), (3, 61), (2, 4)]
"""Offsets of a copy in its source and in its target."""


@clause("RT-04.4-18", "RT-04.4-19", "RT-04.4-20")
@pytest.mark.parametrize("kind", [H2D, D2H, D2D], ids=["to the device", "to the host", "on the device"])
@pytest.mark.parametrize("size", [(1 << 13) + 5, (1 << 16) + 3])
def test_a_large_copy_from_and_to_an_odd_place_moves_each_byte(impl, check, kind, size):
    """The source, the target or both are not aligned; the bytes around the target stay as they were."""
    session = opened(impl, check)
    data = b"".join(struct.pack("<I", (place * 2654435761) % 2**32) for place in range(size // 4 + 2))
    blank = bytes([BEHIND]) * (size + 128)
    source = session.host(data) if kind == H2D else session.upload(data)
    for begin, end in ODD_OFFSETS:
        target = session.host(blank) if kind == D2H else session.upload(blank)
        session.copy(target + end, source + begin, size, kind)
        session.synchronize()
        actual = session.host_bytes(target, len(blank)) if kind == D2H else session.download(target, len(blank))
        expected = blank[:end] + data[begin : begin + size] + blank[end + size :]
        wrong = [place for place, pair in enumerate(zip(actual, expected, strict=True)) if pair[0] != pair[1]]
        check.equal(wrong[:4], [], f"the first wrong bytes of a copy from offset {begin} to offset {end}")


@clause("RT-04.4-18", "RT-04.4-19", "RT-04.4-20")
@pytest.mark.parametrize("kind", [H2D, D2H, D2D], ids=["to the device", "to the host", "on the device"])
def test_copies_of_many_streams_at_once_all_arrive(impl, check, kind):
    """Each stream its own bytes, to memory of its own, whatever engines the copies have to share."""
    session = opened(impl, check)
    size = 1 << 18
    data = [bytes([number]) * size for number in range(1, MANY + 1)]
    make = {H2D: (session.allocate, session.host), D2H: (lambda count: session.host(bytes(count)), session.upload),
            D2D: (session.allocate, session.upload)}[kind]  # fmt: skip
    targets, sources = [make[0](size) for _ in data], [make[1](block) for block in data]
    session.synchronize()
    streams = [session.another_stream() for _ in data]
    for stream, target, source in zip(streams, targets, sources, strict=True):
        stream.copy(target, source, size, kind)
    for stream in streams:
        stream.synchronize()
    actual = [
        session.host_bytes(pointer, size) if kind == D2H else session.download(pointer, size) for pointer in targets
    ]
    check.equal([block == wanted for block, wanted in zip(actual, data, strict=True)], [True] * MANY, "what arrived")
