"""Runtimes whose messages have forbidden members, or a wrong order or destination (D2, D3, D5, D7)."""

import json
from dataclasses import replace

from tessera_reference.host_io import bridge
from tessera_reference.host_io.bridge import Exchange
from tessera_reference.host_io.frames import ErrorCode, RequestFailed
from tessera_reference.host_io.launches import launch
from tessera_reference.host_io.messages import KernelLaunch, MemoryWrite

from ....ir.violators.changes import breaks, wrapped

VALUE_OF = bridge.value_of
SEND = "host_io.bridge.Bridge._send"


def sending(clause, name, description, change):
    def send(usual, host, requests, buffers=None):
        return usual(host, [change(request) for request in requests], buffers)

    return wrapped(clause, name, description, SEND, send)


def telling(clause, name, description, change):
    """Return a violation that reports other frames than it sends: an endpoint accepts what it should refuse."""

    def send(usual, host, requests, buffers=None):
        before = len(host.exchanges)
        try:
            return usual(host, requests, buffers)
        finally:
            host.exchanges[before:] = [told(exchange) for exchange in host.exchanges[before:]]

    def told(exchange):
        value = json.loads(exchange.frame)
        change(value)
        return exchange._replace(frame=json.dumps(value))

    return wrapped(clause, name, description, SEND, send)


# Forbidden members

KERNEL = "kernel attention(Q: tensor<13x64xfp32>) { let S = op.matmul(Q, op.transpose(K)) * 0.125; op.softmax(S); }"
IR = '%0 = "tessera.graph.matmul"(%Q, %K) : (tensor<13x64xfp32>, tensor<64x13xfp32>) -> tensor<13x13xfp32>'
DATA = bytes(range(96)).hex()


def members_of(kind, **members):
    return lambda request: replace(request, **members) if isinstance(request, kind) else request


def with_member(msg_type, **members):
    """Return a change that sets members of messages of a type, also outside the schema."""
    return lambda value: value["msg_type"] == msg_type and value.update(members)


FORM = [
    telling("HIO-D7-14", "source_as_name", "calls a kernel by its source",
        lambda value: "kernel_ref" in value and value["kernel_ref"].update(name=KERNEL)),
    telling("HIO-D7-14", "source_member", "adds a member of source", with_member("KernelLaunch", source="k()")),
    sending("HIO-D7-15", "ir_as_a_name", "tells IR in a name of meta", members_of(KernelLaunch, meta={IR: 1})),
    telling("HIO-D7-15", "ir_member", "adds a member of IR", with_member("KernelLaunch", ir="%0 = add")),
    sending("HIO-D7-33", "bytes_as_a_number", "tells a tensor as a number",
        members_of(KernelLaunch, meta={"q": int(DATA, 16)})),
    sending("HIO-D5-25", "bytes_in_a_label", "labels a write with its bytes",
        members_of(MemoryWrite, debug_label=DATA)),
    telling("HIO-D5-25", "data_member", "adds a member of data", with_member("MemoryWrite", data="00ff")),
    wrapped("HIO-D3-06", "one_request_id", "repeats the request id", "host_io.bridge.Bridge._envelope",
        lambda usual, self, place: usual(self, place) | {"request_id": "1"}),
]  # fmt: skip

# Types, ids and order


@breaks("HIO-D2-01", "sends MemoryCopy for a copy on a device", "host_io.bridge.value_of")
def copy_message(usual, request):
    value = usual(request)
    return value | {"msg_type": "MemoryCopy"} if value["msg_type"] == "MemoryRead" else value


def one_request_id(usual, self, place):
    return usual(self, place) | {"request_id": "1"}


@breaks("HIO-D7-13", "launches from another PE", "host_io.bridge.Bridge.load")
def deployed_elsewhere(usual, self, image):
    code = usual(self, image)
    return code._replace(place=code.place._replace(pe=code.place.pe + 1))


# Memory and PEs


@breaks("HIO-D2-06", "does not write zeros", "host_io.bridge.Bridge._write")
def zeros_assumed(usual, host, places, pa, data):
    if any(data):
        usual(host, places, pa, data)


@breaks("HIO-D2-08", "launches on every SIP by one message", "host_io.bridge.Bridge.launch")
def one_launch_for_all(usual, self, code, kernel, places, given):
    self._begin("launch")
    self._send([self._launch(code, kernel, list(enumerate(places)), given)])


@breaks("HIO-D3-12", "sends more requests than the queue takes", SEND)
def all_at_once(usual, host, requests, buffers=None):
    shared = host.endpoint.share(buffers or {})
    frames = [bridge.write_frame(VALUE_OF(request)) for request in requests]
    answers = host.endpoint.exchange(frames)
    host.exchanges += map(Exchange, frames, answers)
    for answer in map(json.loads, answers):
        if not answer["completion"]["ok"]:
            raise RequestFailed(ErrorCode(answer["completion"]["error_code"]), "a request was refused")
    return shared


@breaks("HIO-D7-34", "brings launches to the PEs itself", "host_io.bridge.Bridge.launch")
def launched_past_io_cpu(usual, self, code, kernel, places, given):
    self._begin("launch")
    message = self._launch(code, kernel, list(enumerate(places)), given)
    launch(self.endpoint.machine, message)
    ids = {"correlation_id": message.correlation_id, "request_id": message.request_id}
    answer = json.dumps(ids | {"completion": {"ok": True, "error_code": None, "error_message": None}})
    self.exchanges.append(Exchange(bridge.write_frame(VALUE_OF(message)), answer))
