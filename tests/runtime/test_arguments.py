"""Arguments of any kind give a status and leave the machine usable; fault plans (spec 4, 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.abi.status import Failure, Status
from tessera_reference.mesh.topology import MeshAxes
from tessera_reference.runtime.contexts import read_environment, read_faults
from tessera_reference.runtime.launches import LaunchConfig
from tessera_reference.runtime.machine import Handles


def status_of_handle(handles: Handles, kind: str, handle: Any) -> Status:
    with pytest.raises(Failure) as caught:
        handles.find(kind, object, handle)
    return caught.value.status


def test_a_handle_of_another_kind_is_refused_alive_and_dead() -> None:
    handles = Handles()
    stream = handles.give("stream", object())
    assert status_of_handle(handles, "mesh", stream) is Status.TESS_ERR_INVALID_VALUE
    handles.end(stream)
    assert status_of_handle(handles, "mesh", stream) is Status.TESS_ERR_INVALID_VALUE
    assert status_of_handle(handles, "stream", stream) is Status.TESS_ERR_INVALID_VALUE


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
"""Functions that the text of a failure may name beside the function that was called."""


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
