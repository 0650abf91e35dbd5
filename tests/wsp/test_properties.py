"""Random programs: seeds change nothing, reports name all that wait, the simulated device gives what cpu_sim gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.wsp.a2a3sim.device_run import DeviceRun
from tessera_reference.wsp.builder import Program, TaskWindow
from tessera_reference.wsp.deadlock import report
from tessera_reference.wsp.errors import DeviceNeeded, UnsupportedDirective
from tessera_reference.wsp.executor.run import Run
from tessera_reference.wsp.package import Package
from tessera_reference.wsp.reading import load
from tessera_reference.wsp.runs import prepared

from .deadlocks import DEADLOCKS
from .native import package_of
from .programs import program
from .test_deadlock_reports import settings as knobs_of

sizes = st.fixed_dictionaries(
    {
        "task_window": st.integers(1, 4),
        "tensormap_pool": st.integers(1, 4),
        "deplist_pool": st.integers(1, 4),
        "heap_arena": st.integers(8, 40),
        "ready_queue": st.integers(1, 3),
    }
)


packages = st.integers(0, 1 << 32).map(program).map(package_of)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(packages, sizes, st.integers(0, 2**32))
def test_a_seed_changes_nothing(package: Package, bounds: dict[str, int], seed: int) -> None:
    expected = Run(package, resources=bounds).finish().result()
    assert Run(package, resources=bounds, seed=seed).finish().result() == expected


@settings(max_examples=60, deadline=None)
@given(packages)
def test_a_deadlock_names_everyone_who_waits(package: Package) -> None:
    run = Run(package).finish()
    if run.outcome == "deadlock":
        deadlock = report(package, run.state())
        waiting = {each["process"] for each in deadlock["waiting"] if "task" not in each}
        assert waiting == {process.name for process in run.machine.processes if not process.done}
        tasks = {each["task"] for each in deadlock["waiting"] if "task" in each}
        assert tasks == set(run.machine.tasks)
        assert deadlock["waiting"]


SIMULATOR, HOST_GRAPH = "pto_runtime_a2a3sim", "pto_runtime_a2a3sim_host_graph"


def result_of(program: Program, target: str, **given: Any) -> dict[str, Any]:
    return prepared(load(program.compile(target).package), **given).finish().result()


def pipeline() -> Program:
    """Two producers, two consumers, latency, tasks on three workers with kernels of 0, 7 and 13 cycles, pools that
    stall, a scope, control by data."""
    program = Program("pipeline")
    kernels = [program.kernel(f"k{each}", cycles=each, x="tensor").add("x", "x", each + 1) for each in (0, 7, 13)]
    tensors = [program.tensor(f"x{place}", "u32", 3, [place, 5, 9]) for place in range(4)]
    a, b = program.channel("a", latency=3), program.channel("b", capacity=2)
    program.dispatch("hash", workers=3)
    program.task_window(TaskWindow(4))
    program.resources(tensormap_pool=4, ready_queue=2, deplist_pool=2)
    for name in "pq":
        with program.process(name), program.repeat(5, index=f"i{name}") as i:
            program.run(kernels[1], tensors[3])
            program.send(a, i)
    for name in "rs":
        with program.process(name), program.consume(a, into=f"v{name}") as v:
            with program.cond(v.lt(3)):
                program.task(kernels[0], tensors[0], key=v, signals=[b])
                program.task(kernels[2], tensors[1], key=v + 1, signals=[b])
            with program.otherwise(), program.scope():
                program.task(kernels[1], tensors[0], key=v)
                program.task(kernels[1], tensors[2], key=v)
                program.wait()
    with program.process("t"), program.consume(b, into="w") as w:
        program.load("u", tensors[2], w % 3)
    return program


@pytest.mark.parametrize("seed", [None, 0, 1, 7])
def test_the_device_gives_what_cpu_sim_gives(seed: int | None) -> None:
    """Values, assignments, times, stalls and high-water marks, whatever the engine chooses first."""
    expected = result_of(pipeline(), "cpu_sim")
    assert expected["outcome"] == "completed"
    assert sum(stall["count"] for stall in expected["statistics"]["stalls"].values()) > 5
    assert result_of(pipeline(), SIMULATOR, seed=seed) == expected


@pytest.mark.parametrize("name", DEADLOCKS)
def test_deadlocks_are_reported_alike(name: str) -> None:
    program = DEADLOCKS[name].program
    assert result_of(program, SIMULATOR) == result_of(program, "cpu_sim")


@pytest.mark.parametrize("target", ["cpu_sim", SIMULATOR])
def test_a_step_is_an_instant(target: str) -> None:
    """Of three tasks of 10 cycles, one is complete after the second instant, which is time 10."""
    program = chain(3, window=8)
    run = prepared(load(program.compile(target).package))
    run.step()
    run.step()
    statistics = run.result()["statistics"]
    assert run.outcome == "running"
    assert statistics["kernels"]["k"] == {"runs": 1, "cycles": 10}
    assert statistics["total_cycles"] == 10


def chain(tasks: int, window: int) -> Program:
    """Tasks of 10 cycles on one worker, in a loop and a branch that are known before they run."""
    program = Program("chain")
    kernel = program.kernel("k", cycles=10, x="tensor").add("x", "x", 1)
    x = program.tensor("x", "i32", 1)
    program.task_window(TaskWindow(window))
    count = program.symbol("n", default=tasks)
    with program.process("p"), program.repeat(count, index="i") as i, program.cond(i.lt(1000)):
        program.task(kernel, x)
    return program


def test_the_host_graph_never_claims_back_pressure() -> None:
    """Window 2, five tasks: in phase 2 the process stalls until 30; in phase 1 it has issued all at 0."""
    phase_2, phase_1 = (result_of(chain(5, window=2), target)["statistics"] for target in (SIMULATOR, HOST_GRAPH))
    assert phase_2["stalls"]["TASK_RING_FULL"] == {"count": 3, "cycles": 30}
    assert phase_2["processes"] == {"p": 30}
    assert not any(stall["count"] for stall in phase_1["stalls"].values())
    assert phase_1["processes"] == {"p": 0}
    assert phase_1["high_water"]["task_ring"] == 5
    assert phase_1["total_cycles"] == phase_2["total_cycles"] == 50
    assert phase_1["tensors"] == phase_2["tensors"]


def test_the_host_graph_records_the_window() -> None:
    package = load(chain(5, window=2).compile(HOST_GRAPH).package)
    assert package.phase == 1
    assert package.schedule.task_window.size == 2
    assert package.schedule.capabilities["task_window.mode.stall"] == "recorded"


@pytest.mark.parametrize("name", ["both_receive_first", "waits_for_tasks_that_signal_it"])
def test_the_host_graph_refuses_what_waits_for_the_device(name: str) -> None:
    with pytest.raises(UnsupportedDirective, match=f"target {HOST_GRAPH} does not support sync_only_channels"):
        DEADLOCKS[name].program.compile(HOST_GRAPH)


@pytest.mark.parametrize("target", ["pto_runtime_a2a3", "aie"])
def test_what_needs_a_device_is_emitted_and_says_so(target: str) -> None:
    """The package is loaded, and a run is refused."""
    package = load(chain(5, window=2).compile(target).package)
    assert package.target == target
    with pytest.raises(DeviceNeeded, match=f"a package for {target} runs on a device or emulator"):
        prepared(package)


@settings(max_examples=60, deadline=None)
@given(packages, sizes, st.integers(0, 2**32))
def test_the_device_gives_what_cpu_sim_gives_of_random_programs(
    package: Package, bounds: dict[str, int], seed: int
) -> None:
    expected = Run(package, resources=bounds).finish().result()
    assert DeviceRun(package, resources=bounds, seed=seed).finish().result() == expected


@settings(max_examples=60, deadline=None)
@given(packages, sizes)
def test_what_a_report_suggests_completes(package: Package, bounds: dict[str, int]) -> None:
    """And one less of a smallest value does not."""
    result = Run(package, resources=bounds).finish().result()
    for mitigation in result["deadlock"]["mitigations"] if "deadlock" in result else ():
        knobs = knobs_of(mitigation)
        if not mitigation["why"].endswith("the run completes"):
            continue
        assert Run(package, resources=bounds | knobs).finish().outcome == "completed"
        for knob, value in knobs.items() if mitigation["smallest"] else ():
            assert Run(package, resources=bounds | knobs | {knob: value - 1}).finish().outcome != "completed"
