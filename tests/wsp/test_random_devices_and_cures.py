"""Random programs: the simulated device gives what cpu_sim gives, and what a deadlock report suggests is true."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.wsp.a2a3sim.device_run import DeviceRun
from tessera_reference.wsp.executor.run import Run
from tessera_reference.wsp.package import Package

from .test_mitigations import settings as knobs_of
from .test_properties import packages, sizes


@settings(max_examples=60, deadline=None)
@given(packages(shared=True), sizes, st.integers(0, 2**32))
def test_the_device_gives_what_cpu_sim_gives(package: Package, bounds: dict[str, int], seed: int) -> None:
    expected = Run(package, resources=bounds).finish().result()
    assert DeviceRun(package, resources=bounds, seed=seed).finish().result() == expected


@settings(max_examples=60, deadline=None)
@given(packages(shared=True), sizes)
def test_what_a_report_suggests_completes(package: Package, bounds: dict[str, int]) -> None:
    """And one less of a smallest value does not."""
    result = Run(package, resources=bounds).finish().result()
    for each in result["deadlock"]["mitigations"] if "deadlock" in result else ():
        knobs = knobs_of(each)
        if not each["why"].endswith("the run completes"):
            continue
        assert Run(package, resources=bounds | knobs).finish().outcome == "completed"
        for knob, value in knobs.items() if each["smallest"] else ():
            assert Run(package, resources=bounds | knobs | {knob: value - 1}).finish().outcome != "completed"
