"""Waits that nothing can end: in which order they are given up, and timeouts (AMB-RT-14, AMB-RT-67)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from tessera_reference.abi.status import Failure, Status
from tessera_reference.mesh.axes import MeshAxes
from tessera_reference.mesh.engine import Deadlock, Seeded, Signal
from tessera_reference.mesh.topology import named
from tessera_reference.runtime.machine import HOST_CALL, Machine, Pending

HANG = [{"kind": "kernel_hang", "kernel": "fill"}]
Maker = Callable[..., Any]


def waiting(machine: Machine, name: str, turn: int, log: list[str], failing: bool = True) -> None:
    """A process that waits for a signal nobody sets."""
    signal = Signal(machine.engine, name)
    failure = Failure(Status.TESS_ERR_TIMEOUT, "tessTest", name, "an end")
    machine.pending[Pending(signal, turn, (lambda: failure) if failing else None)] = None

    async def wait() -> None:
        try:
            await signal
            log.append(f"{name} set")
        except Failure as caught:
            log.append(f"{caught.given} failed")

    machine.engine.spawn(name, wait())


def test_the_lowest_turn_is_given_up_first_and_what_has_no_failure_just_ends() -> None:
    machine, log = Machine(named("single")), list[str]()
    for name, turn, failing in (("rendezvous", 2, True), ("hang", 1, True), ("resident", 0, False), ("other", 1, True)):
        waiting(machine, name, turn, log, failing)
    machine.settle(lambda: len(log) == 1)
    assert log == ["resident set"]
    machine.settle(lambda: len(log) == 4)
    assert log == ["resident set", "hang failed", "other failed", "rendezvous failed"]


def test_a_wait_that_nothing_may_end_is_a_deadlock() -> None:
    machine = Machine(named("single"))

    async def wait() -> None:
        await Signal(machine.engine, "for ever")

    machine.engine.spawn("process", wait())
    with pytest.raises(Deadlock, match="for ever"):
        machine.settle(lambda: False)


def test_the_host_knows_what_time_it_is_when_it_has_waited(used: Maker) -> None:
    at = used(1)
    before = at.runtime.machine.host_time
    at.ask("tessMemcpyAsync", at.memory, at.memory + 128, 128, 2, at.stream)
    at.ask("tessStreamSynchronize", at.stream)
    assert at.runtime.machine.host_time >= at.runtime.machine.engine.now > before
    late = at.runtime.machine.host_time
    at.ask("tessGetVersion")
    assert at.runtime.machine.host_time == late + HOST_CALL


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize(("timeout", "status"), [(0, Status.TESS_ERR_LAUNCH_FAILED), (10**6, Status.TESS_ERR_TIMEOUT)])
def test_a_kernel_that_hangs_fails_or_times_out(used: Maker, timed: bool, timeout: int, status: Status) -> None:
    at = used(2, timed=timed)
    fill = at.kernel("fill")
    at.ask("tessxSetFaults", at.context, HANG)
    at.ask("tessxSetTimeout", at.context, timeout)
    for value in (1, 2):  # the second one is none that hangs
        at.launch(fill, struct.pack("<i4xQ", value, at.memory))
    assert at.refused("tessStreamSynchronize", at.stream) is status
    at.ask("tessStreamSynchronize", at.stream)
    assert at.ask("tessxPeek", at.mesh, 1, at.memory, 4) == bytes([2, 0, 0, 0])


@pytest.mark.parametrize("timed", [True, False])
def test_a_rank_that_never_comes_is_a_mismatch_or_a_timeout(used: Maker, timed: bool) -> None:
    at = used(2, timed=timed)
    at.issue(0, at.stream)
    assert at.refused("tessStreamSynchronize", at.stream) is Status.TESS_ERR_COLLECTIVE_MISMATCH
    assert "rank 1 never came" in at.runtime.last_error
    at.issue(1, at.stream)  # too late for that rendezvous
    assert at.refused("tessStreamSynchronize", at.stream) is Status.TESS_ERR_COLLECTIVE_MISMATCH
    at.ask("tessxSetTimeout", at.context, 1000)
    at.issue(1, at.stream)
    assert at.refused("tessStreamSynchronize", at.stream) is Status.TESS_ERR_TIMEOUT


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize(("nanoseconds", "status"), [(1, Status.TESS_ERR_TIMEOUT), (10**9, Status.TESS_OK)])
def test_work_that_takes_longer_than_it_may_times_out_and_does_nothing(
    used: Maker, timed: bool, nanoseconds: int, status: Status
) -> None:
    at = used(1, timed=timed)
    at.ask("tessxPoke", at.mesh, 0, at.memory, bytes(range(8)))
    at.ask("tessxSetTimeout", at.context, nanoseconds)
    at.ask("tessMemcpyAsync", at.memory + 8, at.memory, 8, 2, at.stream)
    assert at.runtime.tessStreamSynchronize(at.stream) is status
    copied = bytes(range(8)) if status is Status.TESS_OK else bytes([0xA5] * 8)
    assert at.ask("tessxPeek", at.mesh, 0, at.memory + 8, 8) == copied


def test_other_streams_go_on_while_one_waits_in_vain(used: Maker) -> None:
    at = used(2)
    other = at.ask("tessStreamCreate", at.mesh, 0)
    at.issue(0, at.stream)
    at.ask("tessMemcpyAsync", at.memory + 64, at.memory + 128, 8, 2, other)
    at.ask("tessStreamSynchronize", other)
    at.issue(1, at.stream)  # which was not given up: nobody had to wait for it
    at.ask("tessStreamSynchronize", at.stream)


@pytest.mark.parametrize("seed", range(12))
def test_kernels_whose_ranks_meet_never_keep_one_another_waiting(used: Maker, seed: int) -> None:
    """Ten of them at once, of which a device runs four: in whatever order the ranks take them, all meet."""
    at = used(2, choices=Seeded(seed), timed=False)
    met = at.kernel("met")
    streams = [at.ask("tessStreamCreate", at.mesh, 0) for _ in range(10)]
    buffers = [at.ask("tessMalloc", at.mesh, 32) for _ in streams]
    for number, (stream, buffer) in enumerate(zip(streams, buffers, strict=True)):
        for rank in range(2):
            at.ask("tessxPoke", at.mesh, rank, buffer, bytes([number + 1, 0, 0, 0] * 8))
        at.launch(met, struct.pack("<Q", buffer), stream)
    for number, (stream, buffer) in enumerate(zip(streams, buffers, strict=True)):
        at.ask("tessStreamSynchronize", stream)
        assert at.ask("tessxPeek", at.mesh, 1, buffer, 4) == bytes([2 * number + 2, 0, 0, 0])


def test_a_persistent_kernel_ends_with_its_stream_and_not_before(used: Maker) -> None:
    at = used(2)
    other = at.ask("tessStreamCreate", at.mesh, 0)
    at.launch(at.kernel("fill"), struct.pack("<i4xQ", 1, at.memory), flags=4)
    at.ask("tessMemcpyAsync", at.memory + 64, at.memory + 128, 128, 2, other)
    at.ask("tessStreamSynchronize", other)
    assert at.ask("tessxResident", at.mesh) == ("fill",)
    at.ask("tessStreamSynchronize", at.stream)
    assert at.ask("tessxResident", at.mesh) == ()


def test_a_synchronization_ends_persistent_kernels_that_have_yet_to_begin(used: Maker) -> None:
    """Else a rank whose kernel has ended waits for one whose kernel came later, until its timeout."""
    at = used(2)
    other = at.ask("tessStreamCreate", at.mesh, 0)
    at.ask("tessxSetFaults", at.context, [{"kind": "kernel_slow", "rank": 1, "nanoseconds": 10**6}])
    at.ask("tessxSetTimeout", at.context, 10**9)
    at.launch(at.kernel("fill"), struct.pack("<i4xQ", 1, at.memory), flags=4)
    at.ask("tessAllReduce", at.mesh, at.memory, 8, 9, 0, "dp", at.stream)
    for _ in range(20):
        at.ask("tessMemcpyAsync", at.memory + 64, at.memory + 128, 128, 2, other)
    at.ask("tessStreamSynchronize", other)
    assert len(at.runtime.stream(at.stream, "test").residents) == 1
    at.ask("tessStreamSynchronize", at.stream)
    assert at.ask("tessxPeek", at.mesh, 1, at.memory, 4) == bytes([2, 0, 0, 0])


def test_a_device_runs_four_kernels_at_once_and_the_fifth_afterwards(used: Maker) -> None:
    def lasted(count: int) -> int:
        at = used(1)
        fill = at.kernel("fill")
        at.ask(
            "tessxSetFaults",
            at.context,
            [{"kind": "kernel_slow", "nth": n + 1, "nanoseconds": 10**6} for n in range(5)],
        )
        streams = [at.ask("tessStreamCreate", at.mesh, 0) for _ in range(count)]
        for number, stream in enumerate(streams):
            at.launch(fill, struct.pack("<i4xQ", 1, at.memory + 32 * number), stream)
        for stream in streams:
            at.ask("tessStreamSynchronize", stream)
        return int(at.runtime.machine.engine.now) // 10**9  # milliseconds

    assert [lasted(count) for count in (1, 4, 5)] == [1, 1, 2]


def test_three_streams_at_most_keep_persistent_kernels_on_a_device(used: Maker) -> None:
    """A place is left for others (AMB-RT-65)."""
    at = used(1)
    fill, arguments = at.kernel("fill"), struct.pack("<i4xQ", 1, at.memory)
    streams = [at.ask("tessStreamCreate", at.mesh, 0) for _ in range(4)]
    for stream in streams[:3]:
        at.launch(fill, arguments, stream, flags=4)
    config = at.configuration(flags=4)
    refused = at.refused("tessLaunch", fill, at.mesh, config, arguments, len(arguments), streams[3])
    assert refused is Status.TESS_ERR_UNSUPPORTED
    at.launch(fill, arguments, streams[3])
    at.ask("tessStreamSynchronize", streams[3])
    at.ask("tessStreamSynchronize", streams[0])
    at.launch(fill, arguments, streams[3], flags=4)


def test_work_of_a_smaller_mesh_uses_the_copy_on_its_own_device(used: Maker) -> None:
    at = used(2)
    mesh = at.ask("tessMeshCreate", at.context, [1], 1, MeshAxes(dp=1))
    stream = at.ask("tessStreamCreate", mesh, 0)
    for rank in range(2):
        at.ask("tessxPoke", at.mesh, rank, at.memory, bytes([rank + 1] * 8 + [0] * 8))
    at.ask("tessMemcpyAsync", at.memory + 8, at.memory, 8, 2, stream)
    at.ask("tessStreamSynchronize", stream)
    held = [at.ask("tessxPeek", at.mesh, rank, at.memory + 8, 8) for rank in range(2)]
    assert held == [bytes(8), bytes([2] * 8)]
