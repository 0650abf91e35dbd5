"""The envelope of requests and responses: ids, devices, frames that cannot be read, the timestamp tag (D2, D3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tessera_conformance.chapters.abi.host_io.kit.exchange import Host, connected, pair_of
from tessera_conformance.chapters.abi.host_io.kit.members import ENVELOPE, sound
from tessera_conformance.chapters.abi.host_io.kit.messages import ABSENT, Message, changed
from tessera_conformance.chapters.abi.host_io.kit.sequences import mixed
from tessera_conformance.marks import clause, feature


def unanswered(host: Host, frames: list[Message | str], twin: Message) -> None:
    """No response comes to frames without readable ids, and sound requests around them are done (AMB-HIO-55).

    There are three of these, or as many as the endpoint keeps at a time.
    """
    for first in range(0, len(frames), 4):
        sound = [host.another(twin) for _ in range(min(3, host.machine.queue_depth or 3))]
        group = frames[first : first + 4]
        answers = host.exchange(*sound[:1], *group[:2], *sound[2:], *group[2:], *sound[1:2])
        expected = sorted(pair_of(request) for request in sound)
        host.check.equal(sorted(pair for pair, _ in answers.responses), expected, f"the responses beside {group}")
        host.check.true(all(completion["ok"] for _, completion in answers.responses), "the sound requests are done")


@pytest.mark.parametrize(
    ("part", "name"),
    [
        pytest.param(part, name, marks=clause(number, envelope, "HIO-Verification-01"), id=f"{part}-{name}")
        for part, envelope in ENVELOPE.items()
        for name, number in {"correlation_id": "HIO-D3-02", "request_id": "HIO-D3-05"}.items()
    ],
)
def test_a_request_without_one_of_its_ids_has_no_response(impl, check, part, name):
    """The id is absent, null, or no text: a response could not repeat it (AMB-HIO-19, AMB-HIO-31, AMB-HIO-55)."""
    host = connected(impl, check)
    message = sound(host, part)
    values = [ABSENT, None, 3, 0, 1.5, True, False, [], ["case"], {}, {"id": "case"}]
    unanswered(host, [changed(host.another(message), [name], value) for value in values], message)


UNREADABLE = [
    "",
    " ",
    "x",
    "null",
    "true",
    "3",
    '"text"',
    "[]",
    "{",
    "}",
    "{}",
    "[{}]",
    '{"refused":"no"}',
    "{]",
    "{,}",
]


@clause("HIO-D3-02", "HIO-D3-05", "HIO-D3-10", "HIO-D3-11", "HIO-Verification-01")
def test_a_frame_that_cannot_be_read_has_no_response(impl, check):
    """Texts that are no JSON, JSON that is no object, an object without ids, a request cut short (AMB-HIO-19, -55)."""
    host = connected(impl, check)
    whole = json.dumps(host.write())
    within = [json.dumps([host.write()]), json.dumps(json.dumps(host.write())), json.dumps({"request": host.write()})]
    unanswered(host, [*UNREADABLE, whole[:-1], whole[:40], whole[1:], *within], host.write())


IDS = [
    "a",
    "0",
    " ",
    "null",
    "x" * 256,
    "\u00e9" * 256,
    "\U0001f600" * 64,
    'quote " and \\ and \n and \t',
    "\u0001\u2028",
]
IDS += ["{}", "a b", "A", "a ", "\u00c5", "A\u030a", "\u212b", "00", "-0", "1e3", "../x", "%00", "'; --"]
"""Texts of 1 to 256 characters (AMB-HIO-39); some differ in nothing but case, spaces or normalization."""


@clause("HIO-D3-02", "HIO-D3-10")
def test_a_correlation_id_is_repeated_as_it_is(impl, check):
    """Any text of 1 to 256 characters (AMB-HIO-39), in requests that succeed and in ones that fail."""
    host = connected(impl, check)
    good = [host.write(correlation_id=id_) for id_ in IDS]
    bad = [host.write(correlation_id=id_, dst_sip=2**31 - 1) for id_ in IDS]
    check.equal(
        [completion["ok"] for completion in host.completions(*good, *bad)], [True] * len(IDS) + [False] * len(IDS)
    )


@clause("HIO-D3-05", "HIO-D3-11")
def test_a_request_id_is_repeated_as_it_is(impl, check):
    """Any text of 1 to 256 characters (AMB-HIO-39), in requests that succeed and in ones that fail."""
    host = connected(impl, check)
    good = [host.read(correlation_id="good", request_id=id_) for id_ in IDS]
    bad = [host.read(correlation_id="bad", request_id=id_, src_sip=2**31 - 1) for id_ in IDS]
    check.equal(
        [completion["ok"] for completion in host.completions(*good, *bad)], [True] * len(IDS) + [False] * len(IDS)
    )


@clause("HIO-D3-07")
@pytest.mark.parametrize("part", ENVELOPE)
def test_a_device_that_the_endpoint_has_not_is_refused(impl, check, part):
    """Names are compared as they are (AMB-HIO-32)."""
    host = connected(impl, check)
    message, known = sound(host, part), set(host.machine.devices.values())
    name = message["target_device"]
    names = ["sip:99999", "unknown", f"{name} ", f" {name}", f"{name}0", name[:-1] or "x", f"{name},{name}", "*"]
    host.refused(
        {f"{device!r}": changed(message, ["target_device"], device) for device in names if device not in known}, message
    )


@clause("HIO-D2-01", "HIO-D3-01")
def test_a_request_has_the_members_of_its_own_type(impl, check):
    """A MemoryRead called MemoryWrite is none, and so for each pair of types."""
    host = connected(impl, check)
    messages = [sound(host, part) for part in ENVELOPE]
    for message in messages:
        others = [other["msg_type"] for other in messages if other["msg_type"] != message["msg_type"]]
        host.refused({f"called {other}": changed(message, ["msg_type"], other) for other in others}, message)


@clause("HIO-D2-01")
@pytest.mark.parametrize("msg_type", ["MemoryCopy", "MemoryFill", "TensorCopy", "KernelDeploy", "Fence", "Ping"])
def test_a_request_of_a_fourth_type_is_refused_whatever_members_it_has(impl, check, msg_type):
    """With the members of each of the three, of a write and a read together, as a copy would have, and of none."""
    host = connected(impl, check)
    whole = {part: sound(host, part) for part in ENVELOPE}
    shared = sorted(set.intersection(*(set(members) for members in whole.values())))
    first = next(iter(whole.values()))
    wrong = {f"with the members of {part}": members for part, members in whole.items()}
    wrong["with the members of all"] = {name: value for members in whole.values() for name, value in members.items()}
    copied = {
        name: value
        for members in whole.values()
        for name, value in members.items()
        if name.startswith(("src_", "dst_"))
    }
    data = ("src_kind", "dst_kind", "dst_mem_kind")
    places = {name: value for name, value in copied.items() if name not in data}
    wrong["with two places"] = {name: first[name] for name in shared} | places | {"nbytes": 16}
    wrong["with those of the envelope alone"] = {name: first[name] for name in shared}
    host.refused({f"{msg_type} {name}": message | {"msg_type": msg_type} for name, message in wrong.items()}, first)


@clause("HIO-D3-10", "HIO-D3-11", "HIO-D3-12")
def test_every_request_has_one_response_with_its_ids_and_a_completion(impl, check):
    """Requests that succeed and requests that fail, many at a time, under several correlation ids."""
    host = connected(impl, check)
    requests = [message | {"correlation_id": f"flow {place % 3}"} for place, message in enumerate(mixed(host))]
    for completion in host.completions(*requests):
        check.equal(sorted(completion), ["error_code", "error_message", "ok"], "the members of a completion")


TAGS = ["", "0", "a", "z", "2026-11-23T17:00:00Z", "-1", "x" * 1000]


def tagged(requests: list[Message], tags: list[Any], correlation: str) -> list[Message]:
    """The same requests under another correlation id, with these tags in turn."""
    named = [request | {"correlation_id": correlation} for request in requests]
    return [changed(message, ["timestamp_tag"], tags[place % len(tags)]) for place, message in enumerate(named)]


@clause("HIO-D3-09")
def test_a_timestamp_tag_changes_no_completion(impl, check):
    """The same sequence without tags, with one, with different ones in either order."""
    host = connected(impl, check)
    requests = [message for message in mixed(host) if isinstance(message, dict)]
    plain = host.completions(*tagged(requests, [ABSENT], "plain"))
    for number, tags in enumerate([["a"], TAGS, TAGS[::-1]]):
        actual = host.completions(*tagged(requests, tags, f"tagged {number}"))
        for request, before, after in zip(requests, plain, actual, strict=True):
            was, now = ({name: completion[name] for name in ("ok", "error_code")} for completion in (before, after))
            check.equal(now, was, f"the completion of {request['request_id']}, with a tag")


@clause("HIO-D3-09")
@feature("delivery-order", "endpoint-control")
def test_a_timestamp_tag_changes_no_order(impl, check):
    """On a new endpoint, with the same seed, responses come in the same order, whatever the tags."""
    host = connected(impl, check)
    orders = []
    requests = [host.write(request_id=f"{number}") for number in range(12)]
    for tags in ([ABSENT], ["a"], TAGS, TAGS[::-1]):
        check.returns(impl.host_io.open(machine={"sips": 2, "cubes": 2, "pes": 2, "queue_depth": 64}))
        answers = host.exchange(*tagged(requests, tags, "case"), seed=5)
        orders.append([pair for pair, _ in answers.responses])
    for order in orders[1:]:
        check.equal(order, orders[0], "the order of the responses, with tags")


@clause("HIO-D3-09")
@feature("device-memory-probe")
def test_a_timestamp_tag_changes_no_byte(impl, check):
    """The later of two writes to one address is the one that is seen, whichever has the lower tag (AMB-HIO-48)."""
    host = connected(impl, check)
    place, base = host.machine.places[0], host.machine.memories[0].base
    for number, tags in enumerate([[ABSENT, ABSENT], ["9", "1"], ["1", "9"], [ABSENT, "1"], ["1", ABSENT]]):
        values = [10 + number, 100 + number]
        writes = [host.write(pattern={"pattern_kind": "fill_u8", "value": value}) for value in values]
        host.accepted(*tagged(writes, tags, f"tags {number}"))
        data = check.returns(impl.host_io.memory(place=place, pa=base + 192, nbytes=64))["data"]
        first = number == 0 and data == f"{values[0]:02x}" * 64
        check.reading("AMB-HIO-48", "order of completion", first)
        check.equal(data, f"{values[1]:02x}" * 64, f"what the later write left, with tags {tags!r:.40}")
