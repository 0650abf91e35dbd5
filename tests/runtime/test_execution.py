"""The order of work on the simulated machine, its caches and choices, and its end (runtime spec 8.2, 12, 13)."""

from __future__ import annotations

import gc
import struct
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tessera_reference.abi.fatbin import read, write
from tessera_reference.abi.status import Failure, Status
from tessera_reference.adapter import make
from tessera_reference.c_library.serving import Session
from tessera_reference.collectives.travel import collective_duration
from tessera_reference.compilation.images import compile_module
from tessera_reference.mesh.axes import MeshAxes
from tessera_reference.mesh.engine import Deadlock, Seeded, Signal
from tessera_reference.mesh.topology import named
from tessera_reference.runtime.collectives import Plan
from tessera_reference.runtime.machine import HOST_CALL, Machine, Pending

Maker = Callable[..., Any]


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


def interleaved(at: Any) -> int:
    """Return the digits of two streams that append two each to one tensor, with nothing between them."""
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


CAPTURE = 2


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


INVALID = Status.TESS_ERR_INVALID_VALUE


def issue_by(at: Any, rank: int, collective: str = "all_reduce", **named: Any) -> Status:
    asked = named or {"op": 0, "axis": "dp"}
    status = at.runtime.tessxIssue(at.mesh, rank, collective, at.memory, 2, 9, at.stream, **asked)
    assert isinstance(status, Status)
    return status


def test_a_refused_issue_is_none_of_those_that_are_counted(used: Maker) -> None:
    at = used(2)
    at.ask("tessxSetStreamLimit", at.stream, 16)
    assert issue_by(at, 0) is Status.TESS_ERR_OUT_OF_MEMORY
    assert at.runtime.last_error.startswith("tessAllReduce: ")
    assert at.ask("tessxDescriptors", at.stream) == ()
    at.ask("tessxSetStreamLimit", at.stream, 0)
    for rank in range(2):
        assert issue_by(at, rank) is Status.TESS_OK
    at.ask("tessStreamSynchronize", at.stream)


@pytest.mark.parametrize("named", [{"root": 1, "axis": "dp"}, {"root": 2}, {"root": None}, {"root": True}])
def test_a_broadcast_has_a_root_and_no_axis(used: Maker, named: dict[str, Any]) -> None:
    at = used(2)
    assert issue_by(at, 0, "broadcast", **named) is INVALID
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


DEFAULT = Plan("direct", "default")
"""The row of the table for eight elements (AMB-RT-180)."""


def planned(at: Any, collective: str = "all_reduce", axis: str = "dp", dtype: int = 5) -> Plan:
    plan = at.ask("tessxCollectivePlan", at.mesh, collective, 8, dtype, axis)
    assert isinstance(plan, Plan)
    return plan


def test_a_hint_that_one_group_cannot_follow_is_passed_over(used: Maker) -> None:
    """Of the pairs along dp, one joins two nodes, as hierarchical takes it, and the other has no switch."""
    at = used(1, topology=named("mixed"))
    at.mesh = at.ask("tessMeshCreate", at.context, [0, 4, 5, 6], 4, MeshAxes(tp=2, dp=2))
    at.stream = at.ask("tessStreamCreate", at.mesh, 0)
    memory = at.ask("tessMalloc", at.mesh, 64)
    at.ask("tessxSetAlgorithm", at.context, "all_reduce", "hierarchical", "hint")
    assert planned(at) == DEFAULT
    at.ask("tessAllReduce", at.mesh, memory, 8, 9, 0, "dp", at.stream)
    at.ask("tessStreamSynchronize", at.stream)


def test_an_override_that_one_group_cannot_follow_is_passed_over(used: Maker) -> None:
    """As hints are; an algorithm that a rank names itself is refused."""
    at = used(1, topology=named("mixed"), environment={"TESSERA_COLL_ALGO": "hierarchical"})
    at.mesh = at.ask("tessMeshCreate", at.context, [0, 4, 5, 6], 4, MeshAxes(tp=2, dp=2))
    at.stream = at.ask("tessStreamCreate", at.mesh, 0)
    memory = at.ask("tessMalloc", at.mesh, 64)
    assert planned(at) == DEFAULT
    issue = (at.mesh, 0, "all_reduce", memory, 8, 9, at.stream)
    status = at.runtime.tessxIssue(*issue, op=0, axis="dp", algorithm="hierarchical")
    assert status is Status.TESS_ERR_UNSUPPORTED
    assert "hierarchical" in at.runtime.tessxLastError()


@pytest.mark.parametrize(("path", "link"), [("auto", "nvlink0"), ("pcie", "pcie0"), ("rdma", "bus0")])
def test_the_path_of_the_environment_is_taken(used: Maker, tmp_path: Path, path: str, link: str) -> None:
    """The slice of a collective names the first link of its rank's way, and lasts as long as that way takes."""
    at = used(4, topology=named("two-nodes"), environment={"TESSERA_COLL_PATH": path})
    memory = at.ask("tessMalloc", at.mesh, 4 << 20)
    profiler = at.ask("tessProfilerStart", at.context)
    at.ask("tessAllReduce", at.mesh, memory, 1 << 20, 9, 0, "dp", at.stream)
    at.ask("tessStreamSynchronize", at.stream)
    (record, *_) = [each for each in at.runtime.context(at.context).profilers[profiler].records if each.rank == 0]
    assert (record.link, record.algorithm) == (link, "ring")
    sizes = (named("two-nodes"), range(4), "all_reduce", 4 << 20, "ring")
    assert record.stop - record.start == collective_duration(*sizes, path=path)


def test_what_the_autotuner_found_is_of_its_path(used: Maker, tmp_path: Path) -> None:
    for path, entries in (("auto", 1), ("pcie", 2), ("auto", 2)):
        variables = {"TESS_AUTOTUNE": "1", "TESS_CACHE_DIR": str(tmp_path), "TESSERA_COLL_PATH": path}
        at = used(4, environment=variables)
        assert planned(at).source == "autotuner"
        assert len(at.ask("tessxCacheEntries")) == entries


FORGED = "module kernels { kernel any(N: int32, x: tensor<Nxint32>) { x = x + 666; } }"


def counted(at: Any) -> tuple[int, int]:
    return at.runtime.code.hits, at.runtime.code.misses


def run_any(at: Any, kernel: int, count: int = 3) -> None:
    at.launch(kernel, struct.pack("<i4xQ", count, at.memory))
    at.ask("tessStreamSynchronize", at.stream)


def test_an_image_that_claims_the_hash_of_another_gets_code_of_its_own(
    used: Maker, image: bytes, tmp_path: Path
) -> None:
    """Code that an unsigned image left in the directory under a forged hash is not run for the module it imitates."""
    variables = {"TESS_CACHE_DIR": str(tmp_path)}
    other = read(compile_module(FORGED, ["sm_90"]))
    forged = write(replace(other, ir_hash=read(image).ir_hash))
    at = used(1, environment=variables)
    at.image = forged
    run_any(at, at.kernel("any"))
    assert counted(at) == (0, 1)
    at.image = image
    run_any(at, at.kernel("any"))
    assert counted(at) == (0, 2)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("truth", bytes([5, 0, 1, 0]), bytes([1, 1, 1, 0])),
        ("twice", struct.pack("<If", 0x7FC00001, 1.5), struct.pack("<If", 0x7FC00000, 3.0)),
    ],
)
def test_what_is_written_has_the_bytes_of_its_dtype(
    used: Callable[..., Any], name: str, before: bytes, after: bytes
) -> None:
    """Also where the memory holds others of the same value: another byte that is true, another NaN."""
    it = used(1)
    it.ask("tessxPoke", it.mesh, 0, it.memory, before)
    it.launch(it.kernel(name), struct.pack("<Q", it.memory))
    it.ask("tessStreamSynchronize", it.stream)
    assert bytes(it.ask("tessxPeek", it.mesh, 0, it.memory, len(after))) == after


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    """Nothing but its reference counts frees an object."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("state", ["idle", "queued", "held up", "stream destroyed"])
def test_a_runtime_that_is_closed_frees_its_machine(used: Maker, state: str) -> None:
    at = used()
    second = at.ask("tessStreamCreate", at.mesh, 0)
    match state:
        case "queued":
            at.launch(at.kernel("met"), at.memory.to_bytes(8, "little"))
        case "held up":  # rank 1 issues nothing, so that rank 0 waits for it while the host goes on
            at.issue(0, second)
            at.runtime.machine.engine.run(until=lambda: True)
        case "stream destroyed":
            at.ask("tessStreamDestroy", second)
    machine = weakref.ref(at.runtime.machine)
    at.runtime.close()
    del at
    assert machine() is None


def test_a_session_that_is_reset_frees_its_machine() -> None:
    adapter = make()
    context = adapter.runtime_tessInit()["context"]
    mesh = adapter.runtime_tessMeshCreate(context=context, deviceIds=[0, 1], count=2, axes={"dp": 2})["mesh"]
    adapter.runtime_tessStreamCreate(mesh=mesh, priority=0)
    machine = weakref.ref(adapter.runtime.machine)
    adapter.session_reset()
    assert machine() is None


class NoMemory:
    """A process of which nothing is asked for."""

    reserved = range(2**40, 2**41)

    def close_all(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("extended", [False, True])
def test_a_session_of_the_c_library_that_is_reset_frees_its_machine(extended: bool) -> None:
    session = Session(NoMemory(), dict)  # type: ignore[arg-type]
    if extended:
        assert session.adapter.runtime is session.runtime
    _, context = session.runtime.tessInit()
    _, mesh = session.runtime.tessMeshCreate(context, [0, 1], 2, MeshAxes(dp=2))
    session.runtime.tessStreamCreate(mesh, 0)
    machine = weakref.ref(session.runtime.machine)
    session.reset()
    assert machine() is None
