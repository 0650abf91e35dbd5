"""Sound requests, to be changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import pytest

from tessera_reference.host_io.endpoint import Endpoint

Message: TypeAlias = dict[str, Any]
Build: TypeAlias = Callable[..., Message]
Ask: TypeAlias = Callable[..., list[Message]]

ENVELOPE = {"correlation_id": "c", "request_id": "r", "target_device": "sip:0"}


@pytest.fixture(scope="session")
def memory_write() -> Build:
    def build(value: Any = 0x01020304, **members: Any) -> Message:
        place = {"dst_sip": 0, "dst_cube": 1, "dst_pe": 2, "dst_pa": 4096, "nbytes": 64}
        source = {"src_kind": "pattern", "pattern": {"pattern_kind": "fill_u32", "value": value}}
        return {"msg_type": "MemoryWrite", **ENVELOPE, **place, **source, **members}

    return build


@pytest.fixture(scope="session")
def memory_read() -> Build:
    def build(**members: Any) -> Message:
        place = {"src_sip": 0, "src_cube": 1, "src_pe": 2, "src_pa": 4096, "nbytes": 64}
        return {"msg_type": "MemoryRead", **ENVELOPE, **place, **members}

    return build


@pytest.fixture(scope="session")
def tensor() -> Build:
    """A tensor argument of 64 bytes a shard, on some places."""

    def build(places: Iterable[tuple[int, int, int]], pa: int = 0, nbytes: int = 64) -> Message:
        shards = [
            {"sip": sip, "cube": cube, "pe": pe, "pa": pa, "nbytes": nbytes, "offset_bytes": number * nbytes}
            for number, (sip, cube, pe) in enumerate(places)
        ]
        return {"arg_kind": "tensor", "tensor_pa_map": {"shards": shards}}

    return build


@pytest.fixture(scope="session")
def kernel_launch() -> Build:
    def build(name: str = "nop", args: Iterable[Any] = (), kernel: Message | None = None, **members: Any) -> Message:
        reference = {"name": name, "kind": "builtin", "deploy_sip": 0, "deploy_cube": 0, "deploy_pe": 0}
        reference |= {"nbytes_code": 0, **(kernel or {})}
        return {"msg_type": "KernelLaunch", **ENVELOPE, "kernel_ref": reference, "args": list(args), **members}

    return build


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint()


@pytest.fixture
def ask(endpoint: Endpoint) -> Ask:
    """The answers to requests that are sent one after the other, each after the answer to the one before."""

    def asked(*requests: Message) -> list[Message]:
        return [json.loads(answer) for request in requests for answer in endpoint.exchange([json.dumps(request)])]

    return asked
