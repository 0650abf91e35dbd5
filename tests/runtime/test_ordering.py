"""Accesses that nothing orders are found, also on a run where the schedule hid them (runtime spec 12; AMB-RT-83)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from tessera_reference.abi.status import Status
from tessera_reference.mesh.axes import MeshAxes
from tessera_reference.mesh.engine import FirstCome, Seeded

Maker = Callable[..., Any]


def races(at: Any) -> list[str]:
    return [each.text for each in at.runtime.tessxFindings() if each.kind == "unordered_access"]


def handed_over(at: Any, waiting: bool) -> list[str]:
    """One stream writes, another reads, with or without a wait between them."""
    other = at.ask("tessStreamCreate", at.mesh, 0)
    event = at.ask("tessEventCreate")
    at.ask("tessMemcpyAsync", at.memory, at.memory + 128, 32, 2, at.stream)
    at.ask("tessEventRecord", event, at.stream)
    if waiting:
        at.ask("tessStreamWaitEvent", other, event)
    at.ask("tessMemcpyAsync", at.memory + 64, at.memory + 16, 32, 2, other)
    at.ask("tessStreamSynchronize", other)
    return races(at)


def test_a_missing_wait_is_found_where_first_come_first_served_hid_it(used: Maker) -> None:
    (found,) = handed_over(used(2, choices=FirstCome()), waiting=False)
    assert found.startswith("d2d on stream 4 and d2d on stream 3 writes [0, 32)")


@pytest.mark.parametrize("seed", range(5))
def test_with_the_wait_nothing_is_found_whatever_the_schedule(used: Maker, seed: int) -> None:
    assert handed_over(used(2, choices=Seeded(seed), timed=False), waiting=True) == []


def test_a_synchronization_orders_too(used: Maker) -> None:
    at = used(2)
    other = at.ask("tessStreamCreate", at.mesh, 0)
    at.ask("tessMemcpyAsync", at.memory, at.memory + 128, 32, 2, at.stream)
    at.ask("tessStreamSynchronize", at.stream)
    at.ask("tessMemcpyAsync", at.memory + 64, at.memory, 32, 2, other)
    assert races(at) == []


def test_two_reads_and_neighbouring_writes_are_no_race(used: Maker) -> None:
    at = used(2)
    other = at.ask("tessStreamCreate", at.mesh, 0)
    for stream, to in ((at.stream, 0), (other, 32)):
        at.ask("tessMemcpyAsync", at.memory + to, at.memory + 128, 32, 2, stream)
    assert races(at) == []
    at.ask("tessMemcpyAsync", at.memory + 31, at.memory + 200, 1, 2, other)
    assert len(races(at)) == 1


def test_an_event_knows_what_its_stream_learnt_from_another(used: Maker) -> None:
    at = used(2)
    second, third = (at.ask("tessStreamCreate", at.mesh, 0) for _ in range(2))
    first_event, second_event = at.ask("tessEventCreate"), at.ask("tessEventCreate")
    at.ask("tessMemcpyAsync", at.memory, at.memory + 128, 32, 2, at.stream)
    at.ask("tessEventRecord", first_event, at.stream)
    at.ask("tessStreamWaitEvent", second, first_event)
    at.ask("tessEventRecord", second_event, second)
    at.ask("tessStreamWaitEvent", third, second_event)
    at.ask("tessMemcpyAsync", at.memory, at.memory + 64, 32, 2, third)
    assert races(at) == []


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_a_copy_to_the_host_and_one_from_it_follow_each_other_on_every_rank(
    used: Maker, timed: bool, seed: int
) -> None:
    """Memory of the host is one for all ranks: within a stream no rank may read it too early, or too late."""
    at = used(4, choices=Seeded(seed), timed=timed)
    host = at.ask("tessHostAlloc", 128, 1)
    at.ask("tessxHostWrite", host, b"old." * 32)
    for rank in range(4):
        at.ask("tessxPoke", at.mesh, rank, at.memory + 128, b"new." * 32)
    at.ask("tessMemcpyAsync", at.memory, host, 64, 0, at.stream)
    at.ask("tessMemcpyAsync", host, at.memory + 128, 128, 1, at.stream)
    at.ask("tessMemcpyAsync", at.memory + 64, host, 64, 0, at.stream)
    at.ask("tessStreamSynchronize", at.stream)
    for rank in range(4):
        assert at.ask("tessxPeek", at.mesh, rank, at.memory, 128) == b"old." * 16 + b"new." * 16


def test_a_failed_copy_to_the_host_lets_the_other_ranks_go_on(used: Maker) -> None:
    at = used(4)
    held = at.ask("tessxAdoptHost", bytearray(8))
    at.ask("tessxSetTimeout", at.context, 1)
    at.ask("tessMemcpyAsync", held, at.memory, 8, 1, at.stream)
    at.ask("tessMemcpyAsync", at.memory + 8, at.memory, 8, 2, at.stream)
    assert at.refused("tessStreamSynchronize", at.stream) is Status.TESS_ERR_TIMEOUT
    assert at.runtime.last_error.startswith("tessMemcpyAsync: d2h is not done after 1 ns")
    at.ask("tessStreamSynchronize", at.stream)


def test_memory_of_a_destroyed_mesh_is_there_until_others_have_used_it(used: Maker) -> None:
    at = used(2)
    other = at.ask("tessMeshCreate", at.context, [0, 1], 2, MeshAxes(dp=2))
    stream = at.ask("tessStreamCreate", other, 0)
    at.ask("tessMemcpyAsync", at.memory, at.memory + 8, 8, 2, stream)
    at.ask("tessMeshDestroy", at.mesh)
    at.ask("tessStreamSynchronize", stream)


@pytest.mark.parametrize("seed", range(12))
def test_what_follows_a_wait_finds_what_every_rank_did_before_the_recording(used: Maker, seed: int) -> None:
    at = used(3, choices=Seeded(seed), timed=False)
    other, event = at.ask("tessStreamCreate", at.mesh, 0), at.ask("tessEventCreate")
    for rank in range(3):
        at.ask("tessxPoke", at.mesh, rank, at.memory, bytes([rank]) * 8)
    for step in range(4):  # each copy moves the bytes 8 further
        stream, next_stream = (at.stream, other) if step % 2 == 0 else (other, at.stream)
        at.ask("tessMemcpyAsync", at.memory + 8 * step + 8, at.memory + 8 * step, 8, 2, stream)
        at.ask("tessEventRecord", event, stream)
        at.ask("tessStreamWaitEvent", next_stream, event)
    at.ask("tessStreamSynchronize", at.stream)
    for rank in range(3):
        assert at.ask("tessxPeek", at.mesh, rank, at.memory + 32, 8) == bytes([rank]) * 8


@pytest.mark.parametrize("seed", range(12))
def test_a_recording_is_reached_when_the_last_rank_has_come_to_it(used: Maker, seed: int) -> None:
    """A copy to the host reads rank 0 alone, which may be ahead of a rank that a broadcast is to read."""
    at = used(2, choices=Seeded(seed), timed=False)
    other, event = at.ask("tessStreamCreate", at.mesh, 0), at.ask("tessEventCreate")
    at.ask("tessxPoke", at.mesh, 0, at.memory, bytes(16))
    at.ask("tessxPoke", at.mesh, 1, at.memory, b"new." + bytes(12))
    for step in range(3):
        at.ask("tessMemcpyAsync", at.memory + 4 * step + 4, at.memory + 4 * step, 4, 2, at.stream)
    at.ask("tessEventRecord", event, at.stream)
    at.ask("tessStreamWaitEvent", other, event)
    at.ask("tessBroadcast", at.mesh, at.memory + 12, 1, 9, 1, other)
    at.ask("tessStreamSynchronize", other)
    assert at.ask("tessxPeek", at.mesh, 0, at.memory + 12, 4) == b"new."


def test_memory_is_freed_when_all_work_has_used_it(used: Maker) -> None:
    at = used(2)
    other = at.ask("tessMalloc", at.mesh, 64)
    for rank in range(2):
        at.ask("tessxPoke", at.mesh, rank, other, b"copy" * 4)
    host = at.ask("tessHostAlloc", 16, 1)
    at.ask("tessMemcpyAsync", at.memory, other, 16, 2, at.stream)
    at.ask("tessMemcpyAsync", host, at.memory, 16, 1, at.stream)
    at.ask("tessFree", at.mesh, other)
    assert at.ask("tessxHostRead", host, 16) == b"copy" * 4
    at.ask("tessMemcpyAsync", at.memory + 32, host, 16, 0, at.stream)
    at.ask("tessHostFree", host)
    at.ask("tessStreamSynchronize", at.stream)


def interleaved(at: Any) -> int:
    """What two streams leave that append two digits each to one tensor, with nothing between them."""
    digit, other = at.kernel("digit"), at.ask("tessStreamCreate", at.mesh, 0)
    at.ask("tessxPoke", at.mesh, 0, at.memory, bytes(32))
    for stream, value in ((at.stream, 1), (at.stream, 2), (other, 3), (other, 4)):
        at.launch(digit, struct.pack("<i4xQ", value, at.memory), stream)
    for stream in (at.stream, other):
        at.ask("tessStreamSynchronize", stream)
    return int.from_bytes(at.ask("tessxPeek", at.mesh, 0, at.memory, 4), "little")


def test_on_an_untimed_machine_seeds_find_launches_between_the_steps_of_others(used: Maker) -> None:
    """One stream after the other, and launches of which one writes what it had read before the other's were done."""
    found = {interleaved(used(1, choices=Seeded(seed), timed=False)) for seed in range(60)}
    assert found >= {1234, 3412, 12, 34, 134, 312}
