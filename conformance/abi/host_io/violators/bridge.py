"""Runtimes whose messages have forbidden members, or a wrong order or destination (D2, D3, D5, D7)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.abi.fatbin import KernelEntry
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.host_io import bridge
from tessera_reference.host_io.bridge import Bridge, Code, Exchange, LaunchArguments
from tessera_reference.host_io.endpoint import Pair
from tessera_reference.host_io.frames import ErrorCode, Request, RequestFailed
from tessera_reference.host_io.launches import launch
from tessera_reference.host_io.machine import Place
from tessera_reference.host_io.messages import KernelLaunch, MemoryWrite

Message = dict[str, Any]
Brought = Mapping[Pair, bytes]

_send = Bridge._send
_load = Bridge.load
_tensor = Bridge._tensor
_write = Bridge._write
_memory_write = Bridge._memory_write
_value_of = bridge.value_of
_envelope = Bridge._envelope


def sending(clause: str, name: str, description: str, change: Callable[[Bridge, Request], Any]) -> Violation:
    """Return a violation that changes requests before they are sent."""

    def send(host: Bridge, requests: Sequence[Request], buffers: Mapping[Pair, bytes] | None = None) -> Brought:
        return _send(host, [change(host, request) for request in requests], buffers)

    return bridging(clause, name, description, "_send", send)


def bridging(clause: str, name: str, description: str, method: str, substitute: Any) -> Violation:
    """Return a violation that replaces a method of the bridge."""
    return replaced(clause, description, ReferenceAdapter, (Bridge, method, substitute), name=name)


def writing(clause: str, name: str, description: str, change: Callable[[Message], Any]) -> Violation:
    """Return a violation that changes the objects of frames before they are written and sent."""

    def value_of(request: Request) -> Message:
        value: Message = _value_of(request)
        change(value)
        return value

    return replaced(clause, description, ReferenceAdapter, ("host_io.bridge.value_of", value_of), name=name)


def telling(clause: str, name: str, description: str, change: Callable[[Message], None]) -> Violation:
    """Return a violation that reports other frames than it sends: an endpoint accepts what it should refuse."""

    def send(host: Bridge, requests: Sequence[Request], buffers: Mapping[Pair, bytes] | None = None) -> Brought:
        before = len(host.exchanges)
        try:
            return _send(host, requests, buffers)
        finally:
            host.exchanges[before:] = [told(exchange) for exchange in host.exchanges[before:]]

    def told(exchange: Exchange) -> Exchange:
        value = json.loads(exchange.frame)
        change(value)
        return exchange._replace(frame=json.dumps(value))

    return bridging(clause, name, description, "_send", send)


# Forbidden members

KERNEL = "kernel attention(Q: tensor<13x64xfp32>) { let S = op.matmul(Q, op.transpose(K)) * 0.125; op.softmax(S); }"
IR = '%0 = "tessera.graph.matmul"(%Q, %K) : (tensor<13x64xfp32>, tensor<64x13xfp32>) -> tensor<13x13xfp32>'
DATA = bytes(range(96)).hex()


def pieces(text: str) -> list[str]:
    return [text[place : place + 20] for place in range(0, len(text), 20)]


def launches_with(**members: Any) -> Callable[[Bridge, Request], Request]:
    """Return a change that adds members to launches."""
    return lambda host, request: replace(request, **members) if isinstance(request, KernelLaunch) else request


def writes_with(**members: Any) -> Callable[[Bridge, Request], Request]:
    """Return a change that adds members to writes."""
    return lambda host, request: replace(request, **members) if isinstance(request, MemoryWrite) else request


def named(name: str) -> Callable[[Message], None]:
    def change(value: Message) -> None:
        if "kernel_ref" in value:
            value["kernel_ref"]["name"] = name

    return change


def with_member(msg_type: str, name: str, member: Any) -> Callable[[Message], None]:
    """Return a change that adds a member outside the schema to messages of a type."""

    def change(value: Message) -> None:
        if value["msg_type"] == msg_type:
            value[name] = member

    return change


FORM = [
    telling("HIO-D7-14", "source_as_name", "calls a kernel by its source", named(KERNEL)),
    telling("HIO-D7-14", "source_member", "adds a member of source", with_member("KernelLaunch", "source", "k()")),
    sending("HIO-D7-15", "ir_as_a_name", "tells IR in a name of meta", launches_with(meta={IR: 1})),
    telling("HIO-D7-15", "ir_member", "adds a member of IR", with_member("KernelLaunch", "ir", "%0 = add")),
    sending("HIO-D7-33", "bytes_as_a_number", "tells a tensor as a number", launches_with(meta={"q": int(DATA, 16)})),
    sending("HIO-D5-25", "bytes_in_a_label", "labels a write with its bytes", writes_with(debug_label=DATA)),
    telling("HIO-D5-25", "data_member", "adds a member of data", with_member("MemoryWrite", "data", "00ff")),
]


# Types, ids and order


def as_type(old: str, new: str) -> Callable[[Message], None]:
    """Return a change that gives messages of a type another one."""

    def change(value: Message) -> None:
        if value["msg_type"] == old:
            value["msg_type"] = new

    return change


def beside_the_image(self: Bridge, image: bytes) -> Code:
    code = _load(self, image)
    return code._replace(place=code.place._replace(pe=code.place.pe + 1))


ORDER = [
    writing("HIO-D2-01", "copy_message", "sends MemoryCopy for a copy on a device",
        as_type("MemoryRead", "MemoryCopy")),
    bridging("HIO-D3-06", "one_request_id", "repeats the request id", "_envelope",
        lambda self, place: _envelope(self, place) | {"request_id": "1"}),
    bridging("HIO-D7-13", "deployed_elsewhere", "launches from another PE", "load", beside_the_image),
]  # fmt: skip


# Memory and PEs


def no_write(host: Bridge, places: Sequence[Place], pa: int, data: bytes) -> None:
    if any(data):
        _write(host, places, pa, data)


def one_launch_for_all(
    self: Bridge, code: Code, kernel: KernelEntry, places: Sequence[Place], given: LaunchArguments
) -> None:
    self._begin("launch")
    self._send([self._launch(code, kernel, list(enumerate(places)), given)])


def all_at_once(host: Bridge, requests: Sequence[Request], buffers: Mapping[Pair, bytes] | None = None) -> Brought:
    """Send all requests at once, however short the queue of the endpoint is."""
    shared = host.endpoint.share(buffers or {})
    frames = [bridge.write_frame(_value_of(request)) for request in requests]
    answers = host.endpoint.exchange(frames)
    host.exchanges += map(Exchange, frames, answers)
    for answer in map(json.loads, answers):
        if not answer["completion"]["ok"]:
            raise RequestFailed(ErrorCode(answer["completion"]["error_code"]), "a request was refused")
    return shared


def past_the_endpoint(
    self: Bridge, code: Code, kernel: KernelEntry, places: Sequence[Place], given: LaunchArguments
) -> None:
    self._begin("launch")
    message = self._launch(code, kernel, list(enumerate(places)), given)
    launch(self.endpoint.machine, message)
    ids = {"correlation_id": message.correlation_id, "request_id": message.request_id}
    answer = json.dumps(ids | {"completion": {"ok": True, "error_code": None, "error_message": None}})
    self.exchanges.append(Exchange(bridge.write_frame(_value_of(message)), answer))


MEMORY = [
    bridging("HIO-D2-06", "zeros_assumed", "does not write zeros", "_write", no_write),
    bridging("HIO-D2-08", "one_launch_for_all", "launches on every SIP by one message", "launch", one_launch_for_all),
    bridging("HIO-D3-12", "all_at_once", "sends more requests than the queue takes", "_send", all_at_once),
    bridging("HIO-D7-34", "launched_past_io_cpu", "brings launches to the PEs itself", "launch", past_the_endpoint),
]
