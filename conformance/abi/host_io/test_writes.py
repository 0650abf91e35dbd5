"""The bytes that a MemoryWrite writes, and the requests for which it writes none (D5; AMB-HIO-41, -44 to -48)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.abi.host_io.kit.elements import filled
from tessera_conformance.chapters.abi.host_io.kit.exchange import pair_of
from tessera_conformance.chapters.abi.host_io.kit.memory import BACKGROUND, end_of, host_of, opened_host
from tessera_conformance.marks import clause, feature

OTHER = {"HBM": "TCM", "TCM": "HBM"}


@clause("HIO-Context-06", "HIO-D5-01", "HIO-D5-03", "HIO-D5-04", "HIO-D5-05", "HIO-D5-06")
@feature("device-memory-probe")
def test_each_pe_has_an_address_space_of_its_own(impl, check):
    """The same address of every PE, which only the tags distinguish, gets a different value on each (AMB-HIO-16)."""
    host = host_of(impl, check)
    base = host.base + 4099
    host.done(*(host.fill(place, base, 12, "zero", None) for place in host.machine.places))
    writes = [host.fill(place, base, 8, "fill_u16", 1000 + number) for number, place in enumerate(host.machine.places)]
    host.done(*reversed(writes))
    for number, pe in enumerate(host.machine.places):
        expected = filled("fill_u16", 1000 + number, 8) + bytes(4)
        host.holds(pe, base, expected, f"the memory of PE {dict(pe)}")


@clause("HIO-Context-06", "HIO-D5-03", "HIO-D5-04", "HIO-D5-05")
@feature("device-memory-probe", "endpoint-control")
@pytest.mark.parametrize("member", ["sip", "cube", "pe"])
def test_each_tag_has_its_own_meaning(impl, check, member):
    """Two PEs that differ in one tag: a write to one is not seen at the other, at the same address."""
    host = opened_host(impl, check, 3, 3, 3)
    one = {"sip": 1, "cube": 1, "pe": 1}
    other = {**one, member: 2}
    host.done(host.fill(one, host.base, 16, value=1), host.fill(other, host.base, 16, value=2))
    host.holds(one, host.base, bytes([1] * 16), "the PE that was written first")
    host.holds(other, host.base, bytes([2] * 16), f"the PE with another {member}")
    for place in host.machine.places:
        if place not in (one, other):
            host.holds(place, host.base, bytes(16), f"PE {dict(place)}, to which nothing was written")


@clause("HIO-D5-06", "HIO-D5-22", "HIO-D5-23", "HIO-D5-27", "HIO-D5-28", "HIO-D5-29")
@feature("device-memory-probe")
@pytest.mark.parametrize("stated", ["kind", "AUTO", "null", "absent"])
def test_the_address_says_which_memory_is_written(impl, check, stated):
    """The first and the last bytes of each memory: named by its kind, by AUTO or null, or not at all (AMB-HIO-46)."""
    host = host_of(impl, check)
    place = host.spread(1)[0]
    for number, memory in enumerate(host.machine.memories):
        members = {"kind": {"dst_mem_kind": memory.kind}, "AUTO": {"dst_mem_kind": "AUTO"}}
        member = members.get(stated, {"dst_mem_kind": None} if stated == "null" else {})
        first, last = memory.base, end_of(memory) - 10
        host.done(
            host.fill(place, first, 10, value=number + 1, **member),
            host.fill(place, last, 10, "fill_u16", 0x0B0A + number, **member),
        )
    for number, memory in enumerate(host.machine.memories):
        host.holds(place, memory.base, bytes([number + 1] * 10), f"the first bytes of {memory.kind}")
        host.holds(
            place, end_of(memory) - 10, filled("fill_u16", 0x0B0A + number, 10), f"the last bytes of {memory.kind}"
        )


@clause("HIO-D5-22", "HIO-D5-23", "HIO-D5-29", "HIO-D5-27", "HIO-D5-28")
@feature("device-memory-probe")
def test_a_kind_that_is_not_that_of_the_address_is_refused(impl, check):
    """And nothing is written, neither there nor at the same offset of the other memory (AMB-HIO-46, -47)."""
    host = host_of(impl, check)
    place = host.spread(1)[0]
    for memory in host.machine.memories:
        for region in host.machine.memories:
            host.painted(place, region.base + 64, 32)
        wrong = host.fill(place, memory.base + 64, 32, value=7, dst_mem_kind=OTHER[memory.kind])
        host.fails(wrong, f"an address of {memory.kind} with dst_mem_kind {OTHER[memory.kind]}")
        for region in host.machine.memories:
            host.holds(place, region.base + 64, bytes([BACKGROUND] * 32), f"{region.kind} after a refused write")


@clause("HIO-D5-06", "HIO-D5-07")
@feature("device-memory-probe")
def test_bytes_past_the_end_of_a_memory_are_refused(impl, check):
    """The last byte that fits is written; a write that ends one byte behind, or is behind, writes nothing."""
    host = host_of(impl, check)
    place = host.spread(1)[0]
    for memory in host.machine.memories:
        host.painted(place, end_of(memory) - 16, 16)
        outside = [
            (end_of(memory) - 15, 16),
            (end_of(memory) - 1, 2),
            (end_of(memory), 1),
            (memory.base, memory.bytes + 1),
        ]
        for pa, nbytes in outside:
            if not any(region.base <= pa and pa + nbytes <= end_of(region) for region in host.machine.memories):
                host.fails(host.fill(place, pa, nbytes, value=1), f"{nbytes} bytes from {pa:#x}")
        host.holds(place, end_of(memory) - 16, bytes([BACKGROUND] * 16), f"the end of {memory.kind}")
        host.done(host.fill(place, end_of(memory) - 1, 1, value=9))
        host.holds(place, end_of(memory) - 2, bytes([BACKGROUND, 9]), f"the last byte of {memory.kind}")


def absent_place(host, member):
    """A place that no PE has, by one of its tags."""
    return {**host.machine.places[-1], member: 1 + max(place[member] for place in host.machine.places)}


HALVES = {"fill_u16": 31, "fill_u32": 30, "fill_fp16": 31, "fill_fp32": 30}
OUTSIDE = [
    ("HIO-D5-14", "fill_u8", 256),
    ("HIO-D5-14", "fill_u8", -1),
    ("HIO-D5-15", "fill_u16", 65536),
    ("HIO-D5-16", "fill_u32", 2**32),
    ("HIO-D5-16", "fill_u32", 0.5),
    ("HIO-D5-20", "fill_u8", None),
    ("HIO-D5-12", "fill_u64", 7),
]
ZERO = {"pattern_kind": "zero"}
REFUSED = [
    *(
        pytest.param(
            {"nbytes": nbytes, "pattern": {"pattern_kind": kind, "value": 7}},
            id=f"half-of-{kind}",
            marks=clause("HIO-D5-07"),
        )
        for kind, nbytes in HALVES.items()
    ),
    *(
        pytest.param(
            {"pattern": {"pattern_kind": kind, "value": value}}, id=f"{kind}-of-{value}", marks=clause(identifier)
        )
        for identifier, kind, value in OUTSIDE
    ),
    pytest.param({"pattern": None}, id="no-pattern", marks=clause("HIO-D5-11")),
    pytest.param({"pattern": ZERO, "src_kind": "file"}, id="no-such-source", marks=clause("HIO-D5-08")),
    pytest.param({"pattern": ZERO, "dst_mem_kind": "SRAM"}, id="no-such-memory", marks=clause("HIO-D5-31")),
    pytest.param({"pattern": ZERO, "target_device": "none"}, id="no-such-device", marks=clause("HIO-D5-02")),
]


SIZES = {"fill_u8": 1, "fill_u16": 2, "fill_u32": 4, "fill_fp16": 2, "fill_fp32": 4}


def truncated(write):
    """The write whose last element, which is not whole, is left out; None where all are whole."""
    size = SIZES.get((write["pattern"] or {}).get("pattern_kind"), 1)
    return {**write, "nbytes": write["nbytes"] // size * size} if write["nbytes"] % size else None


def wrapped(write):
    """The write of the value modulo its range; None where there is no whole number out of it."""
    pattern = write["pattern"] or {}
    size = SIZES.get(pattern.get("pattern_kind"))
    if size is None or not isinstance(pattern.get("value"), int):
        return None
    return {**write, "pattern": {**pattern, "value": pattern["value"] % 256**size}}


def left_by(write, nbytes=None):
    """The 64 bytes behind such a write, which begins 8 bytes in and is cut to `nbytes`; None for none."""
    if write is None:
        return None
    kind, value = write["pattern"]["pattern_kind"], write["pattern"]["value"]
    size = SIZES.get(kind, 1)
    data = filled(kind, value, write["nbytes"] + size)[: write["nbytes"] if nbytes is None else nbytes]
    return bytes([BACKGROUND] * 8) + data + bytes([BACKGROUND] * (56 - len(data)))


@feature("device-memory-probe")
@pytest.mark.parametrize("members", REFUSED)
def test_a_write_that_is_refused_writes_nothing(impl, check, members):
    """A refused write does not write its sound part either; its twin with whole elements is accepted (AMB-HIO-47)."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    host.painted(place, base, 64)
    write = host.fill(place, base + 8, **{"nbytes": 32, **members})
    completion = host.send(write).completions[0]
    if completion["ok"]:
        actual = host.bytes_of(place, base, 64)
        whole = truncated(write)
        cut = (left_by(whole), left_by(whole, write["nbytes"]))
        check.reading("AMB-HIO-05", "truncate the last element", whole is not None and actual in cut)
        check.reading("AMB-HIO-06", "wrap", actual == left_by(wrapped(write)))
    check.equal(completion["ok"], False, "success of a write that is not sound")
    host.holds(place, base, bytes([BACKGROUND] * 64), "memory after the refused write")
    host.done(host.fill(place, base + 8, 32, value=1))
    host.holds(place, base + 7, bytes([BACKGROUND, *[1] * 32, BACKGROUND]), "memory after its twin")


@clause("HIO-D5-03", "HIO-D5-04", "HIO-D5-05")
@feature("device-memory-probe")
@pytest.mark.parametrize("member", ["sip", "cube", "pe"])
def test_a_write_to_a_place_that_does_not_exist_is_refused(impl, check, member):
    """A write to a missing place changes no PE (AMB-HIO-44)."""
    host = host_of(impl, check)
    base = host.base
    host.done(*(host.fill(place, base, 8) for place in host.machine.places))
    lost = host.fill(host.machine.places[0], base, 8, value=1, **{f"dst_{member}": absent_place(host, member)[member]})
    host.fails(lost, f"a {member} that does not exist")
    for place in host.machine.places:
        host.holds(place, base, bytes([BACKGROUND] * 8), f"PE {dict(place)}")


@clause("HIO-D5-01", "HIO-D3-09", "HIO-D5-24")
@feature("device-memory-probe")
def test_labels_and_tags_do_not_change_what_is_written(impl, check):
    """debug_label and timestamp_tag: absent, null, empty, or with words that an endpoint might take for orders."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    texts = [None, "", "skip", "dry-run", "zero", "t=17", "é" * 200]
    host.painted(place, base, 16 * len(texts))
    host.done(
        *(
            host.fill(place, base + 16 * number, 16, value=number, debug_label=text, timestamp_tag=text)
            for number, text in enumerate(texts)
        )
    )
    for number, text in enumerate(texts):
        host.holds(place, base + 16 * number, bytes([number] * 16), f"written with the label {text!r:.20}")


@clause("HIO-D5-01")
@feature("device-memory-probe", "delivery-order")
@pytest.mark.parametrize("seed", range(6))
def test_effects_have_the_order_of_the_requests(impl, check, seed):
    """Twelve writes over each other: whatever the order of their completion, the last one shows (AMB-HIO-48)."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    writes = [host.fill(place, base + number, 24 - number, value=number + 1) for number in range(12)]
    answers = host.done(*writes, seed=seed)
    check.equal(len(answers.order), 12, "the number of answers")
    expected = bytes(range(1, 12)) + bytes([12] * 13)
    pairs, late = [pair_of(write) for write in writes], bytearray(24)
    for number in map(pairs.index, answers.order):
        late[number:24] = bytes([number + 1] * (24 - number))
    followed = bytes(late) != expected and host.bytes_of(place, base, 24) == late
    check.reading("AMB-HIO-48", "order of completion", followed)
    host.holds(place, base, expected, "what the writes left")


@clause("HIO-D3-04")
@feature("delivery-order")
def test_orders_of_completion_differ(impl, check):
    """A seed chooses the order in which requests are completed: among six seeds, two orders of twelve writes."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    orders = set()
    for seed in range(6):
        writes = [host.fill(place, base, 1) for _ in range(12)]
        pairs = [pair_of(write) for write in writes]
        orders.add(tuple(pairs.index(pair) for pair in host.done(*writes, seed=seed).order))
    check.true(len(orders) > 1, "the orders differ", sorted(orders))


@clause("HIO-D5-30", "HIO-D5-10")
@feature("device-memory-probe", "host-buffer-ref")
@pytest.mark.parametrize("nbytes", [1, 13, 4096, 70001])
def test_a_buffer_of_the_host_is_copied(impl, check, nbytes):
    """Every byte at its place, across pages; each request has the buffer of its own ids (AMB-HIO-41)."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base + 3
    data = [bytes((turn * index + index // 251) % 256 for index in range(nbytes)) for turn in (7, 11)]
    expected = host.painted(place, base, 2 * nbytes + 10)
    writes = [host.copy_in(place, base + 1 + number * (nbytes + 3), nbytes) for number in range(2)]
    buffers = {pair_of(write): one for write, one in zip(reversed(writes), reversed(data), strict=True)}
    host.done(*writes, buffers=buffers)
    for number, one in enumerate(data):
        at = 1 + number * (nbytes + 3)
        expected[at : at + nbytes] = one
    host.holds(place, base, bytes(expected), "what the buffers left")


@clause("HIO-D3-04", "HIO-D5-30", "HIO-D6-13")
@feature("host-buffer-ref")
def test_buffers_and_sinks_are_found_by_both_ids(impl, check):
    """Two writes and two reads have one request id each, under two correlation ids (AMB-HIO-12, AMB-HIO-41)."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    data = {"one": bytes(range(16)), "another": bytes(range(16, 32))}
    ids = [{"correlation_id": correlation, "request_id": "write"} for correlation in data]
    writes = [host.copy_in(place, base + 32 * number, 16) | pair for number, pair in enumerate(ids)]
    host.done(*writes, buffers={pair_of(write): one for write, one in zip(writes, data.values(), strict=True)})
    ids = [pair | {"request_id": "read"} for pair in ids]
    reads = [host.read_back(place, base + 32 * number, 16) | pair for number, pair in enumerate(ids)]
    check.equal(dict(host.done(*reads).sinks), dict(zip(map(pair_of, reads), data.values(), strict=True)), "the sinks")


@clause("HIO-D5-10", "HIO-D5-30")
@feature("device-memory-probe", "host-buffer-ref")
def test_a_pattern_may_be_null_beside_a_buffer(impl, check):
    """A write of the host's buffer is carried out alike with a pattern of null (AMB-HIO-18)."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    expected = host.painted(place, base, 20)
    write = host.write(place, dst_pa=base + 1, nbytes=13, src_kind="host_buffer_ref", pattern=None)
    expected[1:14] = data = bytes(range(7, 98, 7))
    host.done(write, buffers={pair_of(write): data})
    host.holds(place, base, bytes(expected), "what the buffer left")


@clause("HIO-D5-30")
@feature("device-memory-probe", "host-buffer-ref")
@pytest.mark.parametrize("size", [None, 15, 17])
def test_a_write_without_its_buffer_is_refused(impl, check, size):
    """No buffer for its ids, or one of another size: refused, and nothing is written (AMB-HIO-41, -47)."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    host.painted(place, base, 64)
    write = host.copy_in(place, base + 16, 16)
    correlation, request = pair_of(write)
    buffers = {(correlation, "of another request"): bytes(16)}
    if size is not None:
        buffers[correlation, request] = bytes(size)
    host.fails(write, "a write without the buffer that it needs", buffers)
    host.holds(place, base, bytes([BACKGROUND] * 64), "memory after the refused write")


@clause("HIO-D5-01")
@feature("device-memory-probe", "fault-injection")
def test_a_write_whose_pe_fails_writes_nothing(impl, check):
    """Other PEs are written meanwhile; after the fault is over, the same write succeeds (AMB-HIO-47)."""
    host = host_of(impl, check)
    base, places = host.base, host.spread(2)
    host.done(*(host.fill(place, base, 32) for place in places))
    host.fail(places[0])
    answers = host.send(*(host.fill(place, base, 16, value=1) for place in places))
    check.equal(answers.completions[0]["ok"], False, "ok, where the PE fails")
    host.holds(places[0], base, bytes([BACKGROUND] * 32), "the memory of the PE that failed")
    for place in places[1:]:
        host.holds(place, base, bytes([1] * 16 + [BACKGROUND] * 16), "the memory of the PE that works")
    host.fail()
    host.done(host.fill(places[0], base, 16, value=2))
    host.holds(places[0], base, bytes([2] * 16 + [BACKGROUND] * 16), "its memory once it works")
