"""The endpoint in this process: limits of the machine and the timeline; cases judge the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from jsonschema import Draft202012Validator

from tessera_reference.compilation.images import compile_module
from tessera_reference.host_io.endpoint import Endpoint, timeline
from tessera_reference.host_io.machine import Place
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
    return [json.loads(frame) for frame in found]


def test_a_fill_of_a_whole_memory_takes_no_room(endpoint: Endpoint, ask: Ask, memory_write: Build) -> None:
    assert codes(ask(memory_write(dst_pa=0, nbytes=1 << 30))) == [None]
    assert codes(ask(memory_write(dst_pa=1 << 29, nbytes=4, value=7))) == [None]
    space = endpoint.machine.space(PLACE)
    assert space.read((1 << 29) - 4, 12) == bytes.fromhex("040302010700000004030201")
    assert space.read(0, 8) == bytes.fromhex("0403020104030201")


def test_reads_bring_no_more_than_the_host_has_room_for(endpoint: Endpoint, memory_read: Build) -> None:
    """The second does not fit beside the first, the third does; all three are answered."""
    sizes = {"1": 9 << 20, "2": 8 << 20, "3": 7 << 20}
    sinks = endpoint.share({})
    answers = sent(endpoint, *(memory_read(request_id=name, nbytes=size) for name, size in sizes.items()))
    assert codes(answers) == [None] * 3
    assert {request: len(data) for (_, request), data in sinks.items()} == {"1": 9 << 20, "3": 7 << 20}


PLACES = [(1, 1, 3), (0, 0, 1), (0, 1, 0), (0, 0, 0)]
SEVEN = {"arg_kind": "scalar", "dtype": "i32", "value": 7}


def test_a_kernel_reads_no_more_than_the_machine_bears(ask: Ask, kernel_launch: Build, tensor: Build) -> None:
    """A fill reads nothing."""
    whole = tensor(PLACES[:1], nbytes=1 << 30)
    assert codes(ask(kernel_launch("copy", [whole, whole]), kernel_launch("fill", [whole, SEVEN]))) == [
        "UNSUPPORTED",
        None,
    ]


SOURCE = """module m {
  kernel twice(X: tensor<3x5xfp32>, Y: tensor<3x5xfp32>) { Y = X + X; }
  kernel scaled(X: tensor<Nxfp32>, N: int32, Y: tensor<Nxfp32>) { Y = X + X; }
}
"""


@pytest.fixture(scope="module")
def image() -> bytes:
    return compile_module(SOURCE, ["sm_90"])


def test_the_timeline_follows_the_schema_of_traces(
    endpoint: Endpoint, ask: Ask, memory_write: Build, kernel_launch: Build, tensor: Build
) -> None:
    ask(memory_write(), kernel_launch(args=[tensor([(0, 0, 1), (0, 0, 1), (1, 1, 3)])], request_id="k"))
    text = timeline(endpoint.machine, endpoint.journal)
    schema = json.loads((Path(__file__).parents[2] / "schemas" / "trace.schema.json").read_text(encoding="utf-8"))
    actual = json.loads(text)
    Draft202012Validator(schema).validate(actual)
    slices = [event for event in actual["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == 13 + 13 + 8
    assert timeline(endpoint.machine, endpoint.journal) == text
