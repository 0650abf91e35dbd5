"""Collectives as single ranks issue them, and what happens to those that fail (AMB-RT-13, AMB-RT-41)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tessera_reference.abi.policy import Descriptor, NumericsPolicy
from tessera_reference.abi.status import Status
from tessera_reference.mesh.axes import MeshAxes
from tessera_reference.numerics.attributes import tree

Maker = Callable[..., Any]
INVALID = Status.TESS_ERR_INVALID_VALUE


def issue(at: Any, rank: int, collective: str = "all_reduce", **named: Any) -> Status:
    asked = named or {"op": 0, "axis": "dp"}
    status = at.runtime.tessxIssue(at.mesh, rank, collective, at.memory, 2, 9, at.stream, **asked)
    assert isinstance(status, Status)
    return status


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"op": 1}, Status.TESS_ERR_COLLECTIVE_MISMATCH),
        ({"algorithm": "tree"}, Status.TESS_ERR_COLLECTIVE_MISMATCH),
        ({"axis": "tp"}, Status.TESS_ERR_COLLECTIVE_MISMATCH),
        ({"descriptor": Descriptor(seed=1)}, Status.TESS_ERR_DETERMINISM_VIOLATION),
        ({"policy": NumericsPolicy(rngStateless=0)}, Status.TESS_ERR_DETERMINISM_VIOLATION),
    ],
)
def test_ranks_that_differ_fail_together_and_once(used: Maker, change: dict[str, Any], status: Status) -> None:
    at = used(2)
    asked = {"op": 0, "axis": "dp", "algorithm": "ring"}
    assert issue(at, 1, **asked) is Status.TESS_OK
    assert issue(at, 0, **(asked | change)) is Status.TESS_OK
    assert at.refused("tessStreamSynchronize", at.stream) is status
    at.ask("tessStreamSynchronize", at.stream)


def test_a_refused_issue_is_none_of_those_that_are_counted(used: Maker) -> None:
    at = used(2)
    at.ask("tessxSetStreamLimit", at.stream, 16)
    assert issue(at, 0) is Status.TESS_ERR_OUT_OF_MEMORY
    assert at.runtime.last_error.startswith("tessAllReduce: ")
    assert at.ask("tessxDescriptors", at.stream) == ()
    at.ask("tessxSetStreamLimit", at.stream, 0)
    for rank in range(2):
        assert issue(at, rank) is Status.TESS_OK
    at.ask("tessStreamSynchronize", at.stream)


@pytest.mark.parametrize("named", [{"root": 1, "axis": "dp"}, {"root": 2}, {"root": None}, {"root": True}])
def test_a_broadcast_has_a_root_and_no_axis(used: Maker, named: dict[str, Any]) -> None:
    at = used(2)
    assert issue(at, 0, "broadcast", **named) is INVALID
    at.ask("tessStreamSynchronize", at.stream)


def test_a_tree_over_another_number_of_ranks_is_refused_at_once(used: Maker) -> None:
    at = used(2)
    at.ask("tessxSetDescriptor", at.context, Descriptor(tree("test", "order", [[0, 1], 2])))
    assert at.refused("tessAllReduce", at.mesh, at.memory, 2, 9, 0, "dp", at.stream) is INVALID
    assert issue(at, 0) is INVALID
    at.ask("tessAllGather", at.mesh, at.memory, 2, 9, "dp", at.stream)  # which reduces nothing
    at.ask("tessStreamSynchronize", at.stream)


def test_a_collective_into_memory_that_is_read_only_is_refused_under_its_own_name(used: Maker) -> None:
    at = used(2)
    held = at.ask("tessxAdoptDevice", at.mesh, bytes(16))
    assert at.refused("tessReduceScatter", at.mesh, held, 4, 9, 0, "dp", at.stream) is INVALID
    assert at.runtime.last_error.startswith("tessReduceScatter: inout is in ")
    at.ask("tessStreamSynchronize", at.stream)
    at.ask("tessAllReduce", at.mesh, at.memory, 2, 9, 0, "dp", at.stream)
    at.ask("tessStreamSynchronize", at.stream)


def test_a_limit_lets_events_pass_that_refer_to_nothing(used: Maker) -> None:
    at = used(2)
    event = at.ask("tessEventCreate")
    at.ask("tessMemcpyAsync", at.memory, at.memory + 8, 8, 2, at.stream)
    at.ask("tessxSetStreamLimit", at.stream, 16)
    at.ask("tessEventRecord", event, at.stream)
    at.ask("tessStreamWaitEvent", at.stream, event)
    refused = at.refused("tessMemcpyAsync", at.memory, at.memory + 8, 8, 2, at.stream)
    assert refused is Status.TESS_ERR_OUT_OF_MEMORY
    at.ask("tessStreamSynchronize", at.stream)


def test_work_for_which_the_simulator_has_no_memory_fails_and_the_stream_goes_on(
    used: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = used(2)
    read = at.runtime.machine.memory.read

    def exhausted(*given: Any) -> Any:
        monkeypatch.setattr(at.runtime.machine.memory, "read", read)
        raise MemoryError

    monkeypatch.setattr(at.runtime.machine.memory, "read", exhausted)
    for _ in range(2):
        at.ask("tessMemcpyAsync", at.memory, at.memory + 8, 8, 2, at.stream)
    assert at.refused("tessStreamSynchronize", at.stream) is Status.TESS_ERR_OUT_OF_MEMORY
    at.ask("tessStreamSynchronize", at.stream)


def test_every_group_along_an_axis_has_its_own_sum(used: Maker) -> None:
    """Ranks 0 and 1 are one group along dp, 2 and 3 the other; along tp 0 and 2, 1 and 3."""
    at = used(1)
    mesh = at.ask("tessMeshCreate", at.context, [0, 1, 2, 3], 4, MeshAxes(tp=2, dp=2))
    stream, memory = at.ask("tessStreamCreate", mesh, 0), at.ask("tessMalloc", mesh, 4)
    for axis, sums in (("dp", [11, 11, 1100, 1100]), ("tp", [101, 1010, 101, 1010]), ("ep", [1, 10, 100, 1000])):
        for rank in range(4):
            at.ask("tessxPoke", mesh, rank, memory, (10**rank).to_bytes(4, "little"))
        at.ask("tessAllReduce", mesh, memory, 1, 9, 0, axis, stream)
        at.ask("tessStreamSynchronize", stream)
        held = [at.ask("tessxPeek", mesh, rank, memory, 4) for rank in range(4)]
        assert [int.from_bytes(each, "little") for each in held] == sums
