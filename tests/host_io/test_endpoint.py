"""The endpoint: effects, refusals, ids, the queue, and the order of completions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from tessera_reference.host_io.endpoint import Endpoint
from tessera_reference.host_io.machine import MachineSize, Place
from tessera_reference.mesh.engine import Seeded

Message: TypeAlias = dict[str, Any]
Build: TypeAlias = Callable[..., Message]
Ask: TypeAlias = Callable[..., list[Message]]

PLACE = Place(0, 1, 2)
TCM = 1 << 32


def codes(answers: list[Message]) -> list[str | None]:
    return [each["completion"]["error_code"] for each in answers]


def sent(endpoint: Endpoint, *requests: Message, seed: int | None = None) -> list[Message]:
    """The answers to requests that are sent without waiting."""
    found = endpoint.exchange(map(json.dumps, requests), None if seed is None else Seeded(seed))
    return [json.loads(each) for each in found]


def test_a_write_fills_its_range_and_nothing_else(endpoint: Endpoint, ask: Ask, memory_write: Build) -> None:
    """A fill that begins and ends within pages, past whole ones, at an address that is no multiple of four."""
    first, count = 4099, 3 * 65536 + 4 * 7
    (answer,) = ask(memory_write(dst_pa=first, nbytes=count))
    assert answer == {
        "correlation_id": "c",
        "request_id": "r",
        "completion": {"ok": True, "error_code": None, "error_message": None},
    }
    data = endpoint.machine.space(PLACE).read(first - 3, count + 6)
    assert data == bytes(3) + bytes.fromhex("04030201") * (count // 4) + bytes(3)
    assert endpoint.machine.space(Place(0, 1, 1)).read(first, 64) == bytes(64)


def test_a_fill_of_a_whole_memory_takes_no_room(endpoint: Endpoint, ask: Ask, memory_write: Build) -> None:
    assert codes(ask(memory_write(dst_pa=0, nbytes=1 << 30))) == [None]
    assert codes(ask(memory_write(dst_pa=1 << 29, nbytes=4, value=7))) == [None]
    space = endpoint.machine.space(PLACE)
    assert space.read((1 << 29) - 4, 12) == bytes.fromhex("040302010700000004030201")
    assert space.read(0, 8) == bytes.fromhex("0403020104030201")


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"target_device": "sip:2"}, "UNKNOWN_DEVICE"),
        ({"dst_sip": 2}, "UNKNOWN_PLACE"),
        ({"dst_cube": 2}, "UNKNOWN_PLACE"),
        ({"dst_pe": 4}, "UNKNOWN_PLACE"),
        ({"dst_pa": (1 << 30) - 63}, "ADDRESS_OUT_OF_RANGE"),
        ({"dst_pa": TCM - 64}, "ADDRESS_OUT_OF_RANGE"),
        ({"dst_pa": TCM + (1 << 20) - 60}, "ADDRESS_OUT_OF_RANGE"),
        ({"dst_pa": TCM, "dst_mem_kind": "HBM"}, "ADDRESS_OUT_OF_RANGE"),
        ({"dst_mem_kind": "TCM"}, "ADDRESS_OUT_OF_RANGE"),
        ({"dst_pa": TCM, "dst_mem_kind": "TCM"}, None),
        ({"dst_pa": TCM + (1 << 20) - 64}, None),
        ({"target_device": "sip:1"}, None),
        ({"src_kind": "host_buffer_ref", "pattern": None}, "UNSUPPORTED"),
    ],
)
def test_places_and_addresses(ask: Ask, memory_write: Build, members: Message, code: str | None) -> None:
    assert codes(ask(memory_write(**members))) == [code]


def test_a_buffer_of_the_host_is_found_by_the_ids(endpoint: Endpoint, ask: Ask, memory_write: Build) -> None:
    endpoint.share({("c", "r"): bytes(range(64)), ("c", "short"): b"1"})
    by_buffer = memory_write(src_kind="host_buffer_ref", pattern=None)
    assert codes(ask(by_buffer, {**by_buffer, "request_id": "short"})) == [None, "UNSUPPORTED"]
    assert endpoint.machine.space(PLACE).read(4096, 64) == bytes(range(64))


def test_a_read_brings_what_was_there_when_it_arrived(
    endpoint: Endpoint, memory_write: Build, memory_read: Build
) -> None:
    """Whatever the order of completion, effects have the order of arrival."""
    requests = [
        memory_write(request_id="1", value=1, nbytes=4),
        memory_read(request_id="2", nbytes=4),
        memory_write(request_id="3", value=3, nbytes=4),
        memory_read(request_id="4", nbytes=4),
        memory_read(request_id="5", nbytes=4, dst_kind="discard"),
    ]
    orders = set()
    for seed in range(6):
        sinks = endpoint.share({})
        orders.add(tuple(each["request_id"] for each in sent(endpoint, *requests, seed=seed)))
        assert sinks == {("c", "2"): b"\1\0\0\0", ("c", "4"): b"\3\0\0\0"}
    assert len(orders) > 3
    assert {tuple(sorted(each)) for each in orders} == {("1", "2", "3", "4", "5")}


def test_without_a_seed_completions_have_the_order_of_arrival(endpoint: Endpoint, memory_read: Build) -> None:
    names = ["b", "a", "c"]
    answers = sent(endpoint, *(memory_read(request_id=name) for name in names))
    assert [each["request_id"] for each in answers] == names


def test_a_seed_is_one_order(memory_read: Build) -> None:
    requests = [memory_read(request_id=str(number)) for number in range(20)]
    first, second = (sent(Endpoint(), *requests, seed=11) for _ in range(2))
    assert first == second


def test_ids_in_use_are_refused_and_the_first_request_goes_on(
    endpoint: Endpoint, ask: Ask, memory_write: Build
) -> None:
    answers = sent(endpoint, memory_write(value=1), memory_write(value=2), memory_write(value=3, correlation_id="d"))
    assert [(each["correlation_id"], each["completion"]["error_code"]) for each in answers] == [
        ("c", "DUPLICATE_REQUEST"),
        ("c", None),
        ("d", None),
    ]
    assert codes(ask(memory_write(value=2))) == [None]
    assert endpoint.machine.space(PLACE).read(4096, 4) == b"\2\0\0\0"


def test_the_queue_has_an_end(memory_write: Build) -> None:
    endpoint = Endpoint(MachineSize(1, 2, 3, queue_depth=2))
    requests = [memory_write(value=number, request_id=str(number)) for number in range(4)]
    answers = sent(endpoint, *requests)
    assert [each["request_id"] for each in answers] == ["2", "3", "0", "1"]
    assert codes(answers) == ["QUEUE_FULL", "QUEUE_FULL", None, None]
    assert endpoint.machine.space(PLACE).read(4096, 4) == b"\1\0\0\0"


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "[]",
        "{}",
        '{"correlation_id": "c"}',
        '{"correlation_id": "c", "request_id": 7}',
        '{"correlation_id": "", "request_id": "r"}',
        '{"correlation_id": "' + "x" * 257 + '", "request_id": "r"}',
        '{"correlation_id": "c", "request_id": "r", "debug_label": "' + "é" * (1 << 19) + '"}',
    ],
    ids=lambda frame: frame[:40] or "nothing",
)
def test_a_frame_without_ids_is_refused_without_a_response(endpoint: Endpoint, frame: str) -> None:
    (answer,) = endpoint.exchange([frame])
    assert list(json.loads(answer)) == ["refused"]


def test_a_malformed_request_with_ids_has_a_response(endpoint: Endpoint) -> None:
    (answer,) = endpoint.exchange([b'{"correlation_id": "c", "request_id": "\xc3\xa9"}'])
    assert json.loads(answer) == {
        "correlation_id": "c",
        "request_id": "é",
        "completion": {
            "ok": False,
            "error_code": "INVALID_MESSAGE",
            "error_message": "msg_type: is missing (HIO-D2-01)",
        },
    }


def test_a_failing_pe_writes_and_reads_nothing(
    endpoint: Endpoint, ask: Ask, memory_write: Build, memory_read: Build
) -> None:
    endpoint.machine.failing = frozenset([PLACE])
    sinks = endpoint.share({})
    assert codes(ask(memory_write(), memory_read(), memory_write(dst_pe=1))) == ["PE_FAULT", "PE_FAULT", None]
    assert endpoint.machine.space(PLACE).read(4096, 64) == bytes(64)
    assert sinks == {}


def test_reads_bring_no_more_than_the_host_has_room_for(endpoint: Endpoint, memory_read: Build) -> None:
    """The second does not fit beside the first, the third does; all three are answered."""
    sizes = {"1": 9 << 20, "2": 8 << 20, "3": 7 << 20}
    sinks = endpoint.share({})
    answers = sent(endpoint, *(memory_read(request_id=name, nbytes=size) for name, size in sizes.items()))
    assert codes(answers) == [None] * 3
    assert {request: len(data) for (_, request), data in sinks.items()} == {"1": 9 << 20, "3": 7 << 20}
