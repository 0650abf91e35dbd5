"""Captures: which work they take in, what follows what, and who may join (AMB-RT-64, AMB-RT-86)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from tessera_reference.abi.status import Status
from tessera_reference.mesh.axes import MeshAxes

CAPTURE = 2
Maker = Callable[..., Any]


@pytest.fixture(name="at")
def fixture_at(used: Maker) -> Any:
    """A runtime whose stream is captured, with one launch of digit(1) in the graph."""
    at = used(2)
    for rank in range(2):
        at.ask("tessxPoke", at.mesh, rank, at.memory, bytes(256))
    at.digit = at.kernel("digit")
    captured(at, 1)
    return at


def captured(at: Any, value: int, stream: int | None = None, flags: int = CAPTURE) -> None:
    at.launch(at.digit, struct.pack("<i4xQ", value, at.memory), stream, flags)


def number(at: Any, rank: int = 1) -> int:
    """The first element of what digit works on."""
    return int.from_bytes(at.ask("tessxPeek", at.mesh, rank, at.memory, 4), "little")


def edges(at: Any, graph: int) -> list[tuple[str, tuple[int, ...]]]:
    return [(each.work.kind, each.after) for each in at.ask("tessxGraphNodes", graph)]


def test_captured_work_runs_when_it_is_replayed_and_as_often(at: Any) -> None:
    captured(at, 2, flags=0)  # a launch without the flag runs at once
    captured(at, 3)
    at.ask("tessStreamSynchronize", at.stream)
    assert number(at) == 2
    graph = at.ask("tessxGraphInstantiate", at.stream)
    for _ in range(2):
        at.ask("tessxGraphLaunch", graph, at.stream)
    at.ask("tessStreamSynchronize", at.stream)
    assert number(at) == 21313
    assert edges(at, graph) == [("launch", ()), ("launch", (0,))]


def test_copies_and_collectives_are_taken_in_and_work_by_single_ranks_is_not(at: Any) -> None:
    at.ask("tessMemcpyAsync", at.memory + 64, at.memory, 8, 2, at.stream)
    at.ask("tessAllReduce", at.mesh, at.memory, 2, 9, 0, "dp", at.stream)
    for rank in range(2):
        at.issue(rank, at.stream, at.memory + 128)
    graph = at.ask("tessxGraphInstantiate", at.stream)
    assert edges(at, graph) == [("launch", ()), ("copy", (0,)), ("collective", (1,))]


def test_a_stream_that_waits_for_an_event_of_the_capture_joins_it(at: Any) -> None:
    other, event = at.ask("tessStreamCreate", at.mesh, 0), at.ask("tessEventCreate")
    at.ask("tessEventRecord", event, at.stream)
    captured(at, 2)
    at.ask("tessStreamWaitEvent", other, event)
    at.ask("tessMemcpyAsync", at.memory + 64, at.memory + 128, 8, 2, other)
    at.ask("tessEventRecord", event, other)
    at.ask("tessStreamWaitEvent", at.stream, event)
    captured(at, 3)
    graph = at.ask("tessxGraphInstantiate", at.stream)
    assert edges(at, graph) == [("launch", ()), ("launch", (0,)), ("copy", (0,)), ("launch", (1, 2))]
    at.ask("tessMemcpyAsync", at.memory + 64, at.memory, 8, 2, other)  # runs again: the capture is over
    at.ask("tessStreamSynchronize", other)
    assert at.ask("tessxPeek", at.mesh, 0, at.memory + 64, 8) == bytes(8)
    assert at.refused("tessStreamWaitEvent", other, event) is Status.TESS_ERR_INVALID_VALUE  # the capture is over


def test_a_stream_of_another_mesh_cannot_join(at: Any) -> None:
    mesh = at.ask("tessMeshCreate", at.context, [1, 2, 3], 3, MeshAxes(dp=3))
    other, event = at.ask("tessStreamCreate", mesh, 0), at.ask("tessEventCreate")
    at.ask("tessEventRecord", event, at.stream)
    assert at.refused("tessStreamWaitEvent", other, event) is Status.TESS_ERR_INVALID_VALUE
    graph = at.ask("tessxGraphInstantiate", at.stream)
    assert at.refused("tessxGraphLaunch", graph, other) is Status.TESS_ERR_INVALID_VALUE


def test_a_stream_is_in_one_capture_at_a_time(at: Any) -> None:
    other, event = at.ask("tessStreamCreate", at.mesh, 0), at.ask("tessEventCreate")
    captured(at, 5, other)
    at.ask("tessEventRecord", event, other)
    assert at.refused("tessStreamWaitEvent", at.stream, event) is Status.TESS_ERR_INVALID_VALUE
    first, second = (at.ask("tessxGraphInstantiate", each) for each in (at.stream, other))
    assert [len(at.ask("tessxGraphNodes", graph)) for graph in (first, second)] == [1, 1]


def test_only_a_captured_stream_is_instantiated_and_only_one_that_is_not_replays(at: Any) -> None:
    graph = at.ask("tessxGraphInstantiate", at.stream)
    assert at.refused("tessxGraphInstantiate", at.stream) is Status.TESS_ERR_INVALID_VALUE
    captured(at, 2)
    assert at.refused("tessxGraphLaunch", graph, at.stream) is Status.TESS_ERR_INVALID_VALUE


def test_a_graph_whose_memory_was_freed_is_not_replayed(at: Any) -> None:
    graph = at.ask("tessxGraphInstantiate", at.stream)
    at.ask("tessFree", at.mesh, at.memory)
    assert at.refused("tessxGraphLaunch", graph, at.stream) is Status.TESS_ERR_INVALID_VALUE
    assert "which was freed" in at.runtime.last_error


def test_a_node_that_fails_leaves_the_others_to_run(at: Any) -> None:
    captured(at, 2)
    captured(at, 3)
    at.ask("tessxSetFaults", at.context, [{"kind": "kernel_trap", "nth": 2}])
    graph = at.ask("tessxGraphInstantiate", at.stream)
    at.ask("tessxGraphLaunch", graph, at.stream)
    assert at.refused("tessStreamSynchronize", at.stream) is Status.TESS_ERR_LAUNCH_FAILED
    at.ask("tessStreamSynchronize", at.stream)
    assert number(at) == 13
