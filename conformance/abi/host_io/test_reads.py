"""A MemoryRead returns the bytes of memory and changes nothing (D6; AMB-HIO-17, -41, -44, -46, -48)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.abi.host_io.kit.elements import filled
from tessera_conformance.chapters.abi.host_io.kit.exchange import pair_of
from tessera_conformance.chapters.abi.host_io.kit.memory import end_of, host_of, opened_host
from tessera_conformance.chapters.abi.host_io.kit.messages import ABSENT
from tessera_conformance.marks import clause, feature

KINDS = [
    pytest.param("host_sink", marks=clause("HIO-D6-13")),
    pytest.param("discard", marks=clause("HIO-D6-14")),
    pytest.param(None, marks=clause("HIO-D6-09")),
    pytest.param(ABSENT, marks=clause("HIO-D6-08", "HIO-D6-09"), id="absent"),
]


@feature("device-memory-probe")
@pytest.mark.parametrize("kind", KINDS)
def test_a_read_leaves_memory_as_it_is(impl, check, kind):
    """Two reads, with writes before and after, leave the memory unchanged."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    expected = filled("fill_u32", 0x01020304, 400)
    host.done(host.fill(place, base, 400, "fill_u32", 0x01020304))
    host.done(*(host.read_back(place, base + 3, 301, dst_kind=kind) for _ in range(2)))
    host.holds(place, base, expected, "memory after two reads")


@feature("host-buffer-ref")
@pytest.mark.parametrize("kind", KINDS)
def test_bytes_reach_the_sink_of_the_host_unless_they_are_dropped(impl, check, kind):
    """Under the ids of the read; host_sink is the default, and a read with discard brings none (AMB-HIO-41)."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    host.done(host.fill(place, base, 64, "fill_u16", 0x1234))
    read = host.read_back(place, base + 1, 31, dst_kind=kind)
    expected = {} if kind == "discard" else {pair_of(read): (b"\x34\x12" * 17)[1:32]}
    check.equal(dict(host.done(read).sinks), expected, "the bytes in the sinks of the host")


@clause("HIO-D6-03", "HIO-D6-04", "HIO-D6-05", "HIO-D6-13", "HIO-Context-06")
@feature("host-buffer-ref", "endpoint-control")
def test_the_tags_say_whose_memory_is_read(impl, check):
    """Reads of the same address on PEs that differ in one tag each return each PE's own bytes (AMB-HIO-16)."""
    host = opened_host(impl, check, 2, 2, 2)
    base = host.base
    host.done(*(host.fill(place, base, 12, value=number) for number, place in enumerate(host.machine.places)))
    reads = [host.read_back(place, base, 12) for place in host.machine.places]
    sinks = host.done(*reversed(reads)).sinks
    for number, read in enumerate(reads):
        check.equal(sinks.get(pair_of(read)), bytes([number] * 12), f"what PE {number} holds")


@clause("HIO-D6-06", "HIO-D6-07", "HIO-D6-13")
@feature("host-buffer-ref")
@pytest.mark.parametrize("offset", [0, 1, 4095])
@pytest.mark.parametrize("nbytes", [1, 3, 4096, 65537])
def test_a_read_brings_as_many_bytes_as_it_says_from_its_address(impl, check, nbytes, offset):
    """Bytes that differ all along, from odd addresses, across pages (AMB-HIO-38)."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base + 64
    data = bytes((7 * index + index // 251) % 256 for index in range(offset + nbytes + 5))
    write = host.copy_in(place, base, len(data))
    host.done(write, buffers={pair_of(write): data})
    read = host.read_back(place, base + offset, nbytes)
    sink = host.done(read).sinks.get(pair_of(read), b"")
    check.equal(len(sink), nbytes, "the number of bytes")
    check.true(sink == data[offset : offset + nbytes], "the bytes are those from the address on", sink[:16].hex())


@clause("HIO-D6-01", "HIO-D6-07", "HIO-D6-13")
@feature("host-buffer-ref")
def test_a_read_of_more_than_a_mebibyte_brings_its_last_byte(impl, check):
    """Two mebibytes and five bytes, in three parts of different values. Presumes that a memory has as many."""
    host = host_of(impl, check)
    place, base, mebibyte = host.spread(1)[0], host.base + 3, 1 << 20
    check.given(host.machine.memories[0].bytes > 3 * mebibyte, "there is memory of 3 MiB", host.machine.memories[0])
    sizes = {1: mebibyte, 2: mebibyte, 3: 5}
    firsts = {value: base + (value - 1) * mebibyte for value in sizes}
    host.done(*(host.fill(place, firsts[value], size, value=value) for value, size in sizes.items()))
    read = host.read_back(place, base, sum(sizes.values()))
    sink = host.done(read).sinks.get(pair_of(read), b"")
    check.equal(len(sink), sum(sizes.values()), "the number of bytes")
    ends = [sink[: 2 + mebibyte][at] for at in (0, mebibyte - 1, mebibyte)] + [*sink[-6:]]
    check.equal(ends, [1, 1, 2, 2, 3, 3, 3, 3, 3], "the bytes at the ends of the parts")


@clause("HIO-D6-06", "HIO-D6-07", "HIO-D6-13")
@feature("host-buffer-ref")
def test_every_memory_can_be_read_to_its_ends(impl, check):
    """The address alone says which memory: as AUTO (AMB-HIO-17)."""
    host = host_of(impl, check)
    place = host.spread(1)[0]
    for number, memory in enumerate(host.machine.memories):
        for pa in (memory.base, end_of(memory) - 4):
            host.done(host.fill(place, pa, 4, "fill_u32", 0x0A0B0C00 + number))
            read = host.read_back(place, pa, 4)
            expected = filled("fill_u32", 0x0A0B0C00 + number, 4)
            check.equal(host.done(read).sinks.get(pair_of(read)), expected, f"4 bytes of {memory.kind} at {pa:#x}")


@clause("HIO-D6-06", "HIO-D6-07")
def test_bytes_past_the_end_of_a_memory_cannot_be_read(impl, check):
    """Bytes at and past the end are refused; the last byte can be read (AMB-HIO-46)."""
    host = host_of(impl, check)
    place = host.spread(1)[0]
    for memory in host.machine.memories:
        host.done(
            host.read_back(place, end_of(memory) - 1, 1),
            host.read_back(place, memory.base, memory.bytes, dst_kind="discard"),
        )
        end = end_of(memory)
        for pa, nbytes in [(end - 1, 2), (end - 15, 16), (end, 1), (memory.base, memory.bytes + 1)]:
            if not any(region.base <= pa and pa + nbytes <= end_of(region) for region in host.machine.memories):
                host.fails(host.read_back(place, pa, nbytes), f"a read of {nbytes} bytes from {pa:#x}")


@pytest.mark.parametrize(
    "member",
    [
        pytest.param("sip", marks=clause("HIO-D6-03")),
        pytest.param("cube", marks=clause("HIO-D6-04")),
        pytest.param("pe", marks=clause("HIO-D6-05")),
    ],
)
def test_a_place_that_does_not_exist_cannot_be_read(impl, check, member):
    """One tag too large; the same read of the last PE succeeds (AMB-HIO-44)."""
    host = host_of(impl, check)
    absent = 1 + max(pe[member] for pe in host.machine.places)
    place = host.machine.places[-1]
    host.fails(host.read_back(place, host.base, 8, **{f"src_{member}": absent}), f"a read of {member} {absent}")
    host.done(host.read_back(place, host.base, 8))


@clause("HIO-D6-13", "HIO-D4-07")
@feature("host-buffer-ref", "delivery-order")
@pytest.mark.parametrize("seed", range(4))
def test_a_read_sees_the_writes_before_it_and_none_behind(impl, check, seed):
    """Six writes to one address, each followed by a read, sent together: whatever is completed first (AMB-HIO-48)."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    writes = [host.fill(place, base, 16, value=number + 1) for number in range(6)]
    reads = [host.read_back(place, base, 16) for _ in range(6)]
    sent = [message for both in zip(writes, reads, strict=True) for message in both]
    sinks = host.done(*sent, seed=seed).sinks
    for number, read in enumerate(reads):
        check.equal(sinks.get(pair_of(read)), bytes([number + 1] * 16), f"what read {number} brought")


@clause("HIO-D6-10", "HIO-D3-09")
@feature("host-buffer-ref")
@pytest.mark.parametrize("text", [None, "", "discard", "é" * 200], ids=["null", "empty", "discard", "long"])
def test_labels_and_tags_do_not_change_what_is_read(impl, check, text):
    """A read with debug_label and timestamp_tag returns its bytes."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    host.done(host.fill(place, base, 16, value=0x77))
    read = host.read_back(place, base, 16, debug_label=text, timestamp_tag=text)
    check.equal(host.done(read).sinks.get(pair_of(read)), bytes([0x77] * 16), "what the read brought")


@clause("HIO-D6-13")
@feature("host-buffer-ref", "fault-injection")
def test_a_read_of_a_pe_that_fails_brings_nothing(impl, check):
    """The answer has an error code, and the sink stays empty."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    host.done(host.fill(place, base, 16, value=0x77))
    host.fail(place)
    answered = host.send(host.read_back(place, base, 16))
    check.equal(answered.completions[0]["ok"], False, "success where the PE fails")
    check.equal(dict(answered.sinks), {}, "the sinks of the host")
