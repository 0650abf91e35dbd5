"""Random programs: seeds change nothing, reports name all that wait, the simulated device gives what cpu_sim gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.wsp.builder import Program
from tessera_reference.wsp.deadlock import report
from tessera_reference.wsp.native import prepared
from tessera_reference.wsp.package import Package, load
from tessera_reference.wsp.run import DeviceRun, Run

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
        waiting = {wait["process"] for wait in deadlock["waiting"] if "task" not in wait}
        assert waiting == {process.name for process in run.processes if not process.done}
        tasks = {wait["task"] for wait in deadlock["waiting"] if "task" in wait}
        assert tasks == set(run.tasks)
        assert deadlock["waiting"]


SIMULATOR, HOST_GRAPH = "pto_runtime_a2a3sim", "pto_runtime_a2a3sim_host_graph"


def result_of(program: Program, target: str, **arguments: Any) -> dict[str, Any]:
    return prepared(load(program.compile(target).package), **arguments).finish().result()


@pytest.mark.parametrize("name", DEADLOCKS)
def test_deadlocks_are_reported_alike(name: str) -> None:
    program = DEADLOCKS[name].program
    assert result_of(program, SIMULATOR) == result_of(program, "cpu_sim")


@pytest.mark.parametrize("target", [SIMULATOR, HOST_GRAPH])
def test_an_error_of_a_process_ends_a_run_on_the_device(target: str) -> None:
    """The host may build the whole graph of tasks at one instant, after which no other one comes."""
    program = Program("p")
    kernel, zero = program.kernel("k", cycles=3, by="scalar"), program.symbol("zero", 0)
    with program.process("p"):
        program.task(kernel, 1)
        program.task(kernel, zero // zero)
    error = result_of(program, target)["error"]
    assert (error["code"], error["statement"]) == ("DIVISION_BY_ZERO", "body/1")


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
