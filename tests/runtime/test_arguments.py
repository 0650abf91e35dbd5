"""Arguments of any kind give a status and leave the machine usable: numbers, handles, fault plans (spec 4, 7)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.abi.status import Failure, Status
from tessera_reference.mesh.axes import MeshAxes
from tessera_reference.runtime.api import Runtime
from tessera_reference.runtime.arguments import INT, SIZE, UNSIGNED, Handles, integer, one_of, required
from tessera_reference.runtime.contexts import Environment, read_environment, read_faults
from tessera_reference.runtime.launches import LaunchConfig

BOUNDS = [(INT, -(2**31), 2**31 - 1), (UNSIGNED, 0, 2**32 - 1), (SIZE, 0, 2**64 - 1)]


def status_of(call: Any) -> Status:
    with pytest.raises(Failure) as caught:
        call()
    return caught.value.status


@pytest.mark.parametrize(("bounds", "least", "most"), BOUNDS)
def test_the_least_and_the_most_are_taken_and_nothing_beyond(bounds: Any, least: int, most: int) -> None:
    assert [integer("n", each, bounds) for each in (least, most)] == [least, most]
    for value in (least - 1, most + 1, float(most), True, None, "1"):
        assert status_of(lambda value=value: integer("n", value, bounds)) is Status.TESS_ERR_INVALID_VALUE


def test_an_enumeration_takes_its_numbers_only() -> None:
    assert one_of("kind", 1, [0, 1, 2], "0, 1 or 2") == 1
    for value in (3, -1, True, 1.0, "1", None):
        assert status_of(lambda value=value: one_of("kind", value, [0, 1, 2], "")) is Status.TESS_ERR_INVALID_VALUE


def test_null_is_zero_or_nothing_and_false_is_neither() -> None:
    for value in (None, 0):
        assert status_of(lambda value=value: required("p", value)) is Status.TESS_ERR_INVALID_VALUE
    assert required("p", b"") == b""
    assert required("p", False) is False


def status_of_handle(handles: Handles, kind: str, handle: Any) -> Status:
    with pytest.raises(Failure) as caught:
        handles.find(kind, object, handle, "tessTest")
    return caught.value.status


@pytest.mark.parametrize("handle", [0, None, -1, 99, 1 << 70, True, 1.0, "1", b"1", [], {}])
def test_what_is_no_handle_is_refused(handle: Any) -> None:
    handles = Handles()
    assert handles.give("mesh", object()) == 1  # which True and 1.0 are equal to
    assert status_of_handle(handles, "mesh", handle) is Status.TESS_ERR_NOT_INITIALIZED
    assert status_of_handle(handles, "stream", handle) is Status.TESS_ERR_INVALID_VALUE


def test_a_handle_of_another_kind_is_refused_alive_and_dead() -> None:
    handles = Handles()
    stream = handles.give("stream", object())
    assert status_of_handle(handles, "mesh", stream) is Status.TESS_ERR_INVALID_VALUE
    handles.end(stream)
    assert status_of_handle(handles, "mesh", stream) is Status.TESS_ERR_INVALID_VALUE
    assert status_of_handle(handles, "stream", stream) is Status.TESS_ERR_INVALID_VALUE


def test_a_dead_context_is_not_initialized_and_its_number_not_given_again() -> None:
    handles = Handles()
    context = handles.give("context", object())
    handles.end(context)
    assert status_of_handle(handles, "context", context) is Status.TESS_ERR_NOT_INITIALIZED
    assert handles.give("context", object()) != context


def test_live_ones_are_in_the_order_in_which_they_were_made() -> None:
    handles = Handles()
    given = [handles.give("event", name) for name in "abc"]
    handles.give("mesh", "d")
    handles.end(given[1])
    assert [held for _, held in handles.live("event")] == ["a", "c"]
    assert handles.live("graph") == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TESS_NUMERICS", "loose"),
        ("TESS_NUMERICS", ""),
        ("TESS_DETERMINISTIC", "yes"),
        ("TESS_AUTOTUNE", "2"),
        ("TESS_LOG_LEVEL", "INFO"),
    ],
)
def test_another_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(Failure, match=f"{name} is '{value}'") as caught:
        read_environment({name: value})
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_a_context_keeps_what_it_found_and_the_next_finds_what_is_new() -> None:
    runtime = Runtime(environment={"TESS_DETERMINISTIC": "0"})
    _, first = runtime.tessInit()
    runtime.environment = {"TESS_LOG_LEVEL": "info"}
    _, second = runtime.tessInit()
    assert runtime.tessxSettings(first)[1] == Environment(deterministic=False)
    assert runtime.tessxSettings(second)[1] == Environment(log_level="info")
    assert [each.level for each in runtime.tessxLog()] == ["info"]


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


def test_a_tensor_of_no_bytes_may_lie_nowhere(used: Callable[..., Any]) -> None:
    at = used(2)
    at.launch(at.kernel("any"), struct.pack("<i4xQ", 0, 0))
    at.ask("tessStreamSynchronize", at.stream)
    with pytest.raises(AssertionError, match="argument x is NULL"):
        at.launch(at.kernel("any"), struct.pack("<i4xQ", 1, 0))


Maker = Callable[..., Any]
ODD: Sequence[Any] = (
    *(None, True, 1.0, float("nan"), "x", "\0", b"x", -1, 0, 1 << 40, 1 << 70, 10**400),
    *([], {}, [1], [None], {"a": 1}, (1, 2), object()),
)
POLICY = {"stableReductions": 1, "deterministic": 1, "rngStateless": 1, "allowFastMath": 0}
GOOD: Mapping[str, Callable[[Any], Sequence[Any]]] = {
    "tessShutdown": lambda at: [at.context],
    "tessMeshCreate": lambda at: [at.context, [0, 1], 2, MeshAxes(dp=2)],
    "tessMeshDestroy": lambda at: [at.mesh],
    "tessStreamCreate": lambda at: [at.mesh, 0],
    "tessStreamDestroy": lambda at: [at.stream],
    "tessEventDestroy": lambda at: [at.ask("tessEventCreate")],
    "tessEventRecord": lambda at: [at.ask("tessEventCreate"), at.stream],
    "tessStreamWaitEvent": lambda at: [at.stream, at.ask("tessEventCreate")],
    "tessStreamSynchronize": lambda at: [at.stream],
    "tessMalloc": lambda at: [at.mesh, 16],
    "tessFree": lambda at: [at.mesh, at.memory],
    "tessHostAlloc": lambda at: [16, 1],
    "tessHostFree": lambda at: [at.ask("tessHostAlloc", 16, 1)],
    "tessMemcpyAsync": lambda at: [at.memory, at.ask("tessHostAlloc", 16, 1), 16, 0, at.stream],
    "tessModuleLoad": lambda at: [at.context, at.image, len(at.image)],
    "tessModuleUnload": lambda at: [at.ask("tessModuleLoad", at.context, at.image, len(at.image))],
    "tessKernelGet": lambda at: [at.ask("tessModuleLoad", at.context, at.image, len(at.image)), "fill"],
    "tessLaunch": lambda at: [
        *(at.kernel("met"), at.mesh, LaunchConfig((1, 1, 1))),
        *(at.memory.to_bytes(8, "little"), 8, at.stream),
    ],
    "tessAllReduce": lambda at: [at.mesh, at.memory, 8, 9, 0, "dp", at.stream],
    "tessReduceScatter": lambda at: [at.mesh, at.memory, 8, 9, 0, "dp", at.stream],
    "tessAllGather": lambda at: [at.mesh, at.memory, 8, 9, "dp", at.stream],
    "tessBroadcast": lambda at: [at.mesh, at.memory, 8, 9, 1, at.stream],
    "tessSetNumericsPolicy": lambda at: [at.context, POLICY],
    "tessGetNumericsPolicy": lambda at: [at.context],
    "tessProfilerStart": lambda at: [at.context],
    "tessProfilerStop": lambda at: [at.ask("tessProfilerStart", at.context), "/no/such/directory/trace.json"],
    "tessxHostMemory": lambda at: [16],
    "tessxHostRead": lambda at: [at.ask("tessHostAlloc", 16, 1), 16],
    "tessxHostWrite": lambda at: [at.ask("tessHostAlloc", 16, 1), b"abc"],
    "tessxAdoptHost": lambda at: [bytearray(8)],
    "tessxAdoptDevice": lambda at: [at.mesh, bytearray(8)],
    "tessxPeek": lambda at: [at.mesh, 0, at.memory, 8],
    "tessxPoke": lambda at: [at.mesh, 0, at.memory, b"abc"],
    "tessxSetSchedule": lambda at: ["fifo", 0, [], False],
    "tessxSetFaults": lambda at: [at.context, []],
    "tessxSetTimeout": lambda at: [at.context, 0],
    "tessxIssue": lambda at: [at.mesh, 0, "all_gather", at.memory, 8, 9, at.stream],
    "tessxSetDescriptor": lambda at: [at.context, None],
    "tessxDescriptors": lambda at: [at.stream],
    "tessxGraphInstantiate": lambda at: [at.stream],
    "tessxGraphNodes": lambda at: [0],
    "tessxGraphLaunch": lambda at: [0, at.stream],
    "tessxGraphDestroy": lambda at: [0],
    "tessxResident": lambda at: [at.mesh],
    "tessxExplain": lambda at: [at.ask("tessModuleLoad", at.context, at.image, len(at.image))],
    "tessxCollectivePlan": lambda at: [at.mesh, "all_reduce", 8, 9, "dp"],
    "tessxSetAlgorithm": lambda at: [at.context, "all_reduce", "ring", "hint"],
    "tessxSetModulePolicy": lambda at: [at.context, None],
    "tessxSetStreamLimit": lambda at: [at.stream, 0],
    "tessxSettings": lambda at: [at.context],
}
SAID_OF = {"tessxIssue": ("tessxIssue", "tessAllGather"), "tessxHostMemory": ("tessxHostMemory", "tessHostAlloc")}
"""Of whom the text of a failure may speak; else of the function that was called."""


@pytest.mark.parametrize("function", GOOD)
def test_an_argument_of_any_type_gives_a_status_and_leaves_the_machine_usable(
    used: Maker, function: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where a profiler leaves its file when it is asked to write one called "x"
    for position in range(len(GOOD[function](used(2)))):
        for odd in ODD:
            at = used(2)
            arguments = list(GOOD[function](at))
            arguments[position] = odd
            answer = getattr(at.runtime, function)(*arguments)
            status = answer[0] if isinstance(answer, tuple) else answer
            assert isinstance(status, Status), (position, odd)
            assert status is Status.TESS_OK or at.runtime.last_error.startswith(SAID_OF.get(function, function))
            at.runtime.tessStreamSynchronize(at.stream)
            at.ask("tessEventCreate")


def test_a_profiler_whose_trace_cannot_be_written_runs_on(used: Maker, tmp_path: Any) -> None:
    at = used(1)
    profiler = at.ask("tessProfilerStart", at.context)
    for path in ("/no/such/directory/trace.json", "\0", 5, None):
        assert at.refused("tessProfilerStop", profiler, path) is Status.TESS_ERR_INVALID_VALUE
    at.ask("tessProfilerStop", profiler, str(tmp_path / "trace.json"))
    assert at.refused("tessProfilerStop", profiler, str(tmp_path / "again.json")) is Status.TESS_ERR_INVALID_VALUE


LOOSE = {"stableReductions": 0, "deterministic": 0, "rngStateless": 0, "allowFastMath": 1}


@pytest.mark.parametrize("policy", [{**LOOSE, "deterministic": 2}, {"deterministic": 1}, {**LOOSE, "more": 1}, None, 5])
def test_a_policy_without_its_four_switches_leaves_the_old_one(used: Maker, policy: Any) -> None:
    at = used(1)
    at.ask("tessSetNumericsPolicy", at.context, LOOSE)
    assert at.refused("tessSetNumericsPolicy", at.context, policy) is Status.TESS_ERR_INVALID_VALUE
    assert at.ask("tessGetNumericsPolicy", at.context) == NumericsPolicy(0, 0, 0, 1)
