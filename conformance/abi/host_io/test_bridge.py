"""The runtime's copies and launches are messages of the three types (D2, D3, D5, D7; AMB-HIO-21, -31, -63 to -67)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.abi.host_io.kit.runtime_frames import (
    DEFINITIONS,
    PROGRAMS,
    Memory,
    Range,
    Sent,
    bulk_of,
    shards_of,
    touched,
)
from tessera_conformance.marks import clause, feature
from tessera_conformance.schemas import first_problem

pytestmark = feature("host-runtime-bridge")

every_program = pytest.mark.parametrize("program", PROGRAMS)
MESSAGES = [
    pytest.param("MemoryWrite", marks=clause("HIO-D5-25"), id="write"),
    pytest.param("KernelLaunch", marks=clause("HIO-D7-14", "HIO-D7-15", "HIO-D7-33"), id="launch"),
]


@clause("HIO-D2-01")
@every_program
def test_the_runtime_sends_the_three_messages_only(impl, check, program):
    """Whatever a host program calls, nothing else reaches IO_CPU (HIO-D2-05)."""
    sent = Sent.by(impl, check, program)
    others = sorted({str(message.get("msg_type")) for message in sent.messages} - set(DEFINITIONS))
    check.equal(others, [], "message types beyond the three")


@clause("HIO-D3-01", "HIO-D3-02", "HIO-D3-05", "HIO-D3-07", "HIO-D5-25", "HIO-D7-14", "HIO-D7-15", "HIO-D7-33")
@every_program
def test_what_the_runtime_sends_keeps_the_schema(impl, check, program):
    """Every member is there and of its type, and there is none beyond them (AMB-HIO-21, AMB-HIO-31)."""
    for message in Sent.by(impl, check, program).messages:
        definition = DEFINITIONS.get(str(message.get("msg_type")), "memory_write")
        check.equal(first_problem("tessera:host_io", definition, message), None, f"what is wrong with a {definition}")


@pytest.mark.parametrize("kind", MESSAGES)
def test_messages_hold_neither_code_nor_bytes(impl, check, kind):
    """Texts are short and free-form values small: no label, name or id carries a tensor or a kernel (AMB-HIO-67)."""
    for program in PROGRAMS:
        sent = Sent.by(impl, check, program)
        bulk = [part for message in sent.of(kind) for part in bulk_of(message)]
        plain = not any(part.shows_code for part in bulk)
        check.reading("AMB-HIO-67", "a search for known code", bool(bulk) and plain)
        check.equal([part.member for part in bulk], [], f"bulk in a {kind} of {program}")


@clause("HIO-D3-06")
@every_program
def test_no_two_requests_of_the_runtime_share_their_ids(impl, check, program):
    """They have their correlation id, which the host made, before any answer; with the request id it is used once."""
    sent = Sent.by(impl, check, program)
    pairs = [(message.get("correlation_id"), message.get("request_id")) for message in sent.messages]
    check.equal([pair for pair in pairs if not all(isinstance(part, str) and part for part in pair)], [], "missing ids")
    check.equal(len(set(pairs)), len(pairs), "the number of different pairs of ids")


@clause("HIO-D7-13")
def test_a_kernel_is_deployed_before_its_launch(impl, check):
    """Writes before a launch have transferred every byte of its binary to the address that the launch names."""
    written = Memory()
    for message in Sent.by(impl, check, "attention").messages:
        if message["msg_type"] == "MemoryWrite":
            written.write(message)
        elif message["msg_type"] == "KernelLaunch" and message["kernel_ref"]["kind"] == "deployed":
            kernel = message["kernel_ref"]
            place = (kernel["deploy_sip"], kernel["deploy_cube"], kernel["deploy_pe"])
            binary = Range(place, kernel["deploy_pa"], kernel["deploy_pa"] + kernel["nbytes_code"])
            check.equal(written.unwritten(binary), 0, "bytes of a binary that no write brought before the launch")


@clause("HIO-D2-06")
def test_tensors_are_initialized_by_messages(impl, check):
    """Every byte that is read back was written before, by patterns, and has the bits of the runtime's own path."""
    sent = Sent.by(impl, check, "fill")
    check.equal(sent.outputs_equal, True, "outputs by messages have the bits of the runtime's own path")
    patterns = [write for write in sent.of("MemoryWrite") if write["src_kind"] == "pattern"]
    check.true(len(patterns) > 0, "a tensor is initialized by a pattern")
    check.true(len(sent.of("MemoryRead")) > 0, "a tensor is read back")
    written = Memory()
    for message in sent.messages:
        if message["msg_type"] == "MemoryWrite":
            written.write(message)
        elif message["msg_type"] == "MemoryRead":
            check.equal(written.unwritten(touched(message)), 0, "bytes that are read and that no message wrote")


@clause("HIO-D2-06")
@feature("device-memory-probe")
def test_memory_holds_what_the_patterns_say(impl, check):
    """After the fills, the bytes that were read back are those of the patterns, on every PE."""
    sent = Sent.by(impl, check, "fill")
    written = Memory()
    for message in sent.of("MemoryWrite"):
        written.write(message)
    for at in map(touched, sent.of("MemoryRead")):
        place = dict(zip(("sip", "cube", "pe"), at.place, strict=True))
        told = impl.host_io.memory(place=place, pa=at.start, nbytes=at.stop - at.start)
        held = bytes.fromhex(check.returns(told, "the endpoint shows memory")["data"])
        expected = written.known(at)
        wrong = [n for n, (one, two) in enumerate(zip(held, expected, strict=True)) if two is not None and one != two]
        check.equal(wrong[:8], [], f"bytes of PE {at.place} from {at.start:#x} that differ from the patterns")


@clause("HIO-D2-08")
def test_a_kernel_runs_by_messages(impl, check):
    """A launch has its tensors on PEs that exist, n-th shards together, and what it computes is read back and equal."""
    sent = Sent.by(impl, check, "attention")
    check.equal(sent.outputs_equal, True, "outputs by messages have the bits of the runtime's own path")
    answer = check.returns(impl.host_io.describe(), "the endpoint tells what it has")
    known = {(place["sip"], place["cube"], place["pe"]) for place in answer["places"]}
    launches = sent.of("KernelLaunch")
    check.true(len(launches) > 0, "a kernel is launched")
    for launch in launches:
        places = [[shard.place for shard in tensor] for tensor in shards_of(launch)]
        check.true(len(places) > 0, "a launch has tensors")
        check.equal(places, [places[0]] * len(places), "the PEs of the shards of each tensor")
        check.equal(set(places[0]) - known, set(), "PEs of shards that do not exist")
    shards = [shard for launch in launches for tensor in shards_of(launch) for shard in tensor]
    for at in map(touched, sent.of("MemoryRead")):
        inside = any(shard.place == at.place and shard.start <= at.start and at.stop <= shard.stop for shard in shards)
        check.true(inside, "what is read back is a tensor of a launch", at)


MACHINES = {
    "one-at-a-time": {"sips": 2, "cubes": 2, "pes": 4, "queue_depth": 1},
    "two-at-a-time": {"sips": 1, "cubes": 1, "pes": 8, "queue_depth": 2},
    "a-pe-on-each-sip": {"sips": 8, "cubes": 1, "pes": 1, "queue_depth": 64},
    "two-pes-on-each-sip": {"sips": 4, "cubes": 2, "pes": 1, "queue_depth": 3},
}
"""Endpoints with shallow queues, and with PEs spread over SIPs."""


@clause("HIO-D2-06", "HIO-D2-08", "HIO-D3-12")
@feature("endpoint-control")
@every_program
@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_a_program_runs_on_an_endpoint_of_any_size(impl, check, program, machine):
    """No more requests are sent at a time than its queue takes, and the PEs of a launch are those of its device."""
    check.returns(impl.host_io.open(machine=machine), "an endpoint of another size opens")
    sent = Sent.by(impl, check, program)
    check.equal(sent.outputs_equal, True, "outputs by messages have the bits of the runtime's own path")
    answer = check.returns(impl.host_io.describe(), "the endpoint tells what it has")
    devices = {device["name"]: device["sip"] for device in answer["devices"]}
    for message in sent.messages:
        launched = message["msg_type"] == "KernelLaunch"
        ranges = [shard for tensor in shards_of(message) for shard in tensor] if launched else [touched(message)]
        sips = {at.place[0] for at in ranges}
        check.equal(sips, {devices.get(message["target_device"])}, "the SIPs that a message names places of")


@clause("HIO-D7-34")
@feature("hop-trace")
def test_launches_of_the_runtime_go_to_the_endpoint(impl, check):
    """Each was answered by the endpoint, and its path comes to IO_CPU before it goes on to a PE (AMB-HIO-28)."""
    sent = Sent.by(impl, check, "attention")
    for message in sent.of("KernelLaunch"):
        ids = {name: message[name] for name in ("correlation_id", "request_id")}
        path = check.returns(impl.host_io.trace(**ids), "a launch of the runtime has a trace")["path"]
        before = [hop["component"] for hop in path[: next((n for n, hop in enumerate(path) if "place" in hop), 0)]]
        check.true("io_cpu" in before, "the launch passes IO_CPU before it goes on to a PE", before)
