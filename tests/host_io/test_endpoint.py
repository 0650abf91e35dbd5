"""The endpoint in this process: limits of the machine, images of kernels, the timeline; cases judge the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from tessera_reference.compilation.images import compile_module
from tessera_reference.host_io.endpoint import Endpoint, timeline
from tessera_reference.host_io.machine import Place, Trace, components, traced
from tessera_reference.mesh.engine import Seeded

Message: TypeAlias = dict[str, Any]
Build: TypeAlias = Callable[..., Message]
Ask: TypeAlias = Callable[..., list[Message]]
PLACE = Place(0, 1, 2)


def codes(answers: list[Message]) -> list[str | None]:
    return [answer["completion"]["error_code"] for answer in answers]


def sent(endpoint: Endpoint, *requests: Message, seed: int | None = None) -> list[Message]:
    """The answers to requests that are sent without waiting."""
    found = endpoint.exchange(map(json.dumps, requests), None if seed is None else Seeded(seed))
    return [json.loads(each) for each in found]


def test_a_fill_of_a_whole_memory_takes_no_room(endpoint: Endpoint, ask: Ask, memory_write: Build) -> None:
    assert codes(ask(memory_write(dst_pa=0, nbytes=1 << 30))) == [None]
    assert codes(ask(memory_write(dst_pa=1 << 29, nbytes=4, value=7))) == [None]
    space = endpoint.machine.space(PLACE)
    assert space.read((1 << 29) - 4, 12) == bytes.fromhex("040302010700000004030201")
    assert space.read(0, 8) == bytes.fromhex("0403020104030201")


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


def test_reads_bring_no_more_than_the_host_has_room_for(endpoint: Endpoint, memory_read: Build) -> None:
    """The second does not fit beside the first, the third does; all three are answered."""
    sizes = {"1": 9 << 20, "2": 8 << 20, "3": 7 << 20}
    sinks = endpoint.share({})
    answers = sent(endpoint, *(memory_read(request_id=name, nbytes=size) for name, size in sizes.items()))
    assert codes(answers) == [None] * 3
    assert {request: len(data) for (_, request), data in sinks.items()} == {"1": 9 << 20, "3": 7 << 20}


PLACES = [(1, 1, 3), (0, 0, 1), (0, 1, 0), (0, 0, 0)]
SEVEN = {"arg_kind": "scalar", "dtype": "i32", "value": 7}
HALF = {"arg_kind": "scalar", "dtype": "fp32", "value": 0.5}


def test_the_floats_of_the_kernels(endpoint: Endpoint, ask: Ask, kernel_launch: Build, tensor: Build) -> None:
    """A sum that rounds, one that is infinite, a NaN, subnormals; then halved; then copied."""
    a = np.array([1, 3e38, np.nan, 1e-45] * 4, "<f4")
    b = np.array([2**-24, 3e38, 1, -1e-45] * 4, "<f4")
    space = endpoint.machine.space(Place(0, 0, 1))
    space.write(0, a.tobytes())
    space.write(64, b.tobytes())
    here = [(0, 0, 1)]
    three = [tensor(here, 0), tensor(here, 64), tensor(here, 128)]
    assert codes(ask(kernel_launch("add_fp32", three))) == [None]
    assert codes(ask(kernel_launch("scale_fp32", [tensor(here, 0), HALF]))) == [None]
    assert codes(ask(kernel_launch("copy", [tensor(here, 128), tensor(here, 256)]))) == [None]
    expected = np.array([1, np.inf, np.nan, 0] * 4, "<f4")
    np.testing.assert_array_equal(np.frombuffer(space.read(128, 64), "<f4"), expected)
    assert space.read(256, 64) == space.read(128, 64)
    np.testing.assert_array_equal(
        np.frombuffer(space.read(0, 64), "<f4"), np.array([0.5, 1.5e38, np.nan, 0] * 4, "<f4")
    )


def test_a_kernel_reads_no_more_than_the_machine_bears(ask: Ask, kernel_launch: Build, tensor: Build) -> None:
    """A fill reads nothing."""
    whole = tensor(PLACES[:1], nbytes=1 << 30)
    assert codes(ask(kernel_launch("copy", [whole, whole]), kernel_launch("fill", [whole, SEVEN]))) == [
        "UNSUPPORTED",
        None,
    ]


def test_the_lowest_faulty_shard_is_told_of_all_tensors(ask: Ask, kernel_launch: Build, tensor: Build) -> None:
    """The second tensor's is lower than the first's."""
    (answer,) = ask(kernel_launch(args=[tensor([(9, 0, 0)]), tensor([(2, 9, 0)]), tensor([(2, 9, 0)])]))
    assert answer["completion"]["error_message"].startswith("args[1].")


CODE = {"kind": "deployed", "deploy_pa": 8192, "deploy_sip": 1, "nbytes_code": 64}
SOURCE = """module m {
  kernel twice(X: tensor<3x5xfp32>, Y: tensor<3x5xfp32>) { Y = X + X; }
  kernel scaled(X: tensor<Nxfp32>, N: int32, Y: tensor<Nxfp32>) { Y = X + X; }
}
"""


@pytest.fixture(scope="module")
def image() -> bytes:
    return compile_module(SOURCE, ["sm_90"])


def test_an_image_runs_its_kernel_on_every_shard(
    endpoint: Endpoint, ask: Ask, memory_write: Build, kernel_launch: Build, tensor: Build, image: bytes
) -> None:
    code = {**CODE, "nbytes_code": len(image)}
    deploy = memory_write(
        src_kind="host_buffer_ref", pattern=None, dst_sip=1, dst_cube=0, dst_pe=0, dst_pa=8192, nbytes=len(image)
    )
    endpoint.share({("c", "r"): image})
    for number, place in enumerate(PLACES):
        endpoint.machine.space(Place(*place)).write(0, np.full(15, number + 0.25, "<f4").tobytes())
    pair = [tensor(PLACES, 0, 60), tensor(PLACES, 4096, 60)]
    extent = {"arg_kind": "scalar", "dtype": "i32", "value": 15}
    answers = ask(
        deploy,
        kernel_launch("twice", pair, kernel=code),
        kernel_launch("thrice", pair, kernel=code),
        kernel_launch("twice", pair[:1], kernel=code),
        kernel_launch("twice", [tensor(PLACES, 0, 64), tensor(PLACES, 4096, 64)], kernel=code),
        kernel_launch("scaled", [pair[0], extent, tensor(PLACES, 65536, 60)], kernel=code),
    )
    assert codes(answers) == [None, None, "UNKNOWN_KERNEL", "ARGUMENT_MISMATCH", "ARGUMENT_MISMATCH", None]
    for number, place in enumerate(PLACES):
        for pa in (4096, 65536):
            data = endpoint.machine.space(Place(*place)).read(pa, 60)
            np.testing.assert_array_equal(np.frombuffer(data, "<f4"), np.full(15, 2 * number + 0.5, "<f4"))


WAY = ["host", "pcie_ep", "io_cpu", "noc", "m_cpu", "pe_cpu", "memory"]


def time_of(name: str, count: int) -> int:
    """The fixed picoseconds and, rounded up, those of the bytes."""
    each = components()[name]
    return each.fixed + (0 if each.bandwidth is None else -(-count * 10**12 // each.bandwidth))


def trace_of(endpoint: Endpoint, request: str = "r") -> Trace:
    found = endpoint.journal.get(("c", request))
    assert found is not None
    return traced(found.journey)


def test_the_binary_is_fetched_before_the_branches(
    endpoint: Endpoint, ask: Ask, memory_write: Build, kernel_launch: Build, tensor: Build
) -> None:
    ask(memory_write(dst_sip=1, dst_cube=0, dst_pe=0, dst_pa=0, nbytes=1 << 20))
    found = []
    for size in (64, 6400):
        code = {"kind": "deployed", "deploy_pa": 0, "deploy_sip": 1, "nbytes_code": size}
        ask(kernel_launch(args=[tensor([(0, 0, 1)], pa=64)], kernel=code))
        trace = trace_of(endpoint)
        assert [each.component for each in trace.path] == [*WAY[:3], "noc", "memory", *WAY[3:], *WAY[-2::-1]]
        assert [each.bytes for each in trace.path[3:6]] == [64, size, 64 + size]
        assert [each.place for each in trace.path[3:6]] == [Place(1, 0, 0), Place(1, 0, 0), Place(0, 0, 1)]
        found.append(trace.latency)
    assert found[1] - found[0] == time_of("memory", 6400) - time_of("memory", 64) + time_of("noc", 6464) - time_of(
        "noc", 128
    )


def test_the_timeline_follows_the_schema_of_traces(
    endpoint: Endpoint, ask: Ask, memory_write: Build, kernel_launch: Build, tensor: Build
) -> None:
    ask(memory_write(), kernel_launch(args=[tensor([(0, 0, 1), (0, 0, 1), (1, 1, 3)])], request_id="k"))
    text = timeline(endpoint.machine, endpoint.journal)
    schema = json.loads((Path(__file__).parents[2] / "schemas" / "trace.schema.json").read_text(encoding="utf-8"))
    found = json.loads(text)
    Draft202012Validator(schema).validate(found)
    slices = [event for event in found["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == 13 + 13 + 8
    assert timeline(endpoint.machine, endpoint.journal) == text
