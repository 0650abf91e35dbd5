"""Fault plans: how they are read, and what they count (AMB-RT-81)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from tessera_reference.abi.status import Failure, Status
from tessera_reference.runtime.contexts import Fault, read_faults


def test_a_plan_is_read() -> None:
    told = [
        {"kind": "kernel_trap", "kernel": "f", "nth": 2, "rank": 1},
        {"kind": "kernel_slow", "nanoseconds": 5},
        {"kind": "link_down", "mesh": 7, "ranks": [0, 3]},
    ]
    assert read_faults(told).faults == (
        Fault("kernel_trap", kernel="f", nth=2, rank=1),
        Fault("kernel_slow", nanoseconds=5),
        Fault("link_down", mesh=7, ranks=(0, 3)),
    )


@pytest.mark.parametrize(
    "told",
    [
        None,
        5,
        "kernel_trap",
        ["kernel_trap"],
        [{}],
        [{"kind": "flood"}],
        [{"kind": []}],
        [{"kind": "kernel_trap", "nth": -1}],
        [{"kind": "kernel_trap", "kernel": 5}],
        [{"kind": "kernel_trap", "nanoseconds": 5}],
        [{"kind": "kernel_hang", "rank": "0"}],
        [{"kind": "out_of_memory", "kernel": "f"}],
        [{"kind": "link_down"}],
        [{"kind": "link_down", "ranks": [0, 1, 2]}],
        [{"kind": "link_down", "ranks": [0, -1]}],
    ],
)
def test_what_is_no_plan_is_refused(told: Any) -> None:
    with pytest.raises(Failure) as caught:
        read_faults(told)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_launches_are_counted_by_kernel_and_allocations_by_themselves() -> None:
    plan = read_faults([{"kind": "kernel_trap", "kernel": "a", "nth": 2}, {"kind": "out_of_memory", "nth": 2}])
    assert [len(plan.of_launch(name)) for name in "abaab"] == [0, 0, 1, 0, 0]
    assert [plan.of_allocation() for _ in range(3)] == [False, True, False]


def test_a_fault_without_a_kernel_meets_the_nth_launch_of_each() -> None:
    plan = read_faults([{"kind": "kernel_hang", "nth": 2}])
    assert [len(plan.of_launch(name)) for name in "abba"] == [0, 0, 1, 1]


def test_a_launch_that_is_refused_does_not_count(used: Callable[..., Any]) -> None:
    at = used(1)
    fill = at.kernel("fill")
    at.ask("tessxSetFaults", at.context, [{"kind": "kernel_trap", "nth": 1}])
    at.ask("tessxSetStreamLimit", at.stream, 8)
    arguments = struct.pack("<i4xQ", 1, at.memory)
    with pytest.raises(AssertionError, match="at most its limit, 8"):
        at.launch(fill, arguments)
    assert at.ask("tessxDescriptors", at.stream) == ()
    at.ask("tessxSetStreamLimit", at.stream, 0)
    at.launch(fill, arguments)
    assert at.refused("tessStreamSynchronize", at.stream) is Status.TESS_ERR_LAUNCH_FAILED


def test_a_cut_link_matters_only_to_groups_that_need_it(used: Callable[..., Any]) -> None:
    at = used(2)
    at.ask("tessxSetFaults", at.context, [{"kind": "link_down", "mesh": at.mesh, "ranks": [0, 1]}])
    for axis, status in (("tp", Status.TESS_OK), ("dp", Status.TESS_ERR_LAUNCH_FAILED)):
        at.ask("tessAllReduce", at.mesh, at.memory, 2, 9, 0, axis, at.stream)
        assert at.runtime.tessStreamSynchronize(at.stream) is status


def test_a_cut_link_fails_a_kernel_whose_ranks_meet_across_it(used: Callable[..., Any]) -> None:
    at = used(2)
    arguments = struct.pack("<Q", at.memory)
    at.ask("tessxSetFaults", at.context, [{"kind": "link_down", "mesh": at.mesh, "ranks": [0, 1]}])
    at.launch(at.kernel("met"), arguments)
    assert at.refused("tessStreamSynchronize", at.stream) is Status.TESS_ERR_LAUNCH_FAILED
    assert "nothing passes between ranks 0 and 1" in at.runtime.last_error
    at.ask("tessxSetFaults", at.context, [])
    at.launch(at.kernel("met"), arguments)
    at.ask("tessStreamSynchronize", at.stream)


def test_a_replay_that_is_refused_counts_as_no_launch(used: Callable[..., Any]) -> None:
    """The trap meant for the next launch befalls the next that happens."""
    at = used(1)
    at.launch(at.kernel("digit"), struct.pack("<i4xQ", 7, at.memory), flags=2)
    graph = at.ask("tessxGraphInstantiate", at.stream)
    at.ask("tessxSetFaults", at.context, [{"kind": "kernel_trap", "kernel": "digit", "nth": 1}])
    at.ask("tessxSetStreamLimit", at.stream, 8)
    assert at.refused("tessxGraphLaunch", graph, at.stream) is Status.TESS_ERR_OUT_OF_MEMORY
    at.ask("tessxSetStreamLimit", at.stream, 0)
    at.ask("tessxGraphLaunch", graph, at.stream)
    assert at.refused("tessStreamSynchronize", at.stream) is Status.TESS_ERR_LAUNCH_FAILED
    assert "it trapped" in at.runtime.last_error


def test_descriptors_are_those_of_what_runs(used: Callable[..., Any]) -> None:
    """A captured launch is none yet; each replay is one."""
    at = used(1)
    at.launch(at.kernel("digit"), struct.pack("<i4xQ", 7, at.memory), flags=2)
    graph = at.ask("tessxGraphInstantiate", at.stream)
    assert at.ask("tessxDescriptors", at.stream) == ()
    for count in (1, 2):
        at.ask("tessxGraphLaunch", graph, at.stream)
        assert [each.name for each in at.ask("tessxDescriptors", at.stream)] == ["digit"] * count


def test_a_tensor_of_no_bytes_may_lie_nowhere(used: Callable[..., Any]) -> None:
    at = used(2)
    at.launch(at.kernel("any"), struct.pack("<i4xQ", 0, 0))
    at.ask("tessStreamSynchronize", at.stream)
    with pytest.raises(AssertionError, match="argument x is NULL"):
        at.launch(at.kernel("any"), struct.pack("<i4xQ", 1, 0))
