"""Random programs: bounds hold at every instant, and smaller ones change no result or end in a deadlock report."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.deadlocks import enlarged
from tessera_conformance.chapters.runtime.wsp.kit.programs import elements
from tessera_conformance.chapters.runtime.wsp.kit.random_programs import bounded
from tessera_conformance.chapters.runtime.wsp.kit.runs import compiled, instants, ran, reason
from tessera_conformance.fuzz.drawn import judge_each
from tessera_conformance.marks import clause, feature

pytestmark = feature("wsp-kernels", "wsp-packages", "wsp-resources", "wsp-scopes", "wsp-slots", "wsp-statistics")

BATCHES, PROGRAMS = 8, 20


def results(check, generated, statistics, what):
    """Check that a run's results are those of the sequential model."""
    actual = {name: elements("u64", statistics["tensors"][name])[0] for name in generated.tensors}
    check.equal(actual, dict(generated.tensors), f"the tensors {what}")
    slots = {name: statistics["slots"].get(name, "0") for name in generated.slots}
    check.equal(slots, dict(generated.slots), f"the slots {what}")
    left = {name: channel["left"] for name, channel in statistics["channels"].items()}
    check.equal(left, dict.fromkeys(generated.links, 0), f"the tokens that are left {what}")


@clause("WSP-03.4-01", "WSP-03.4.1-01", "WSP-03.4.1-02", "WSP-03.4.1-03", "WSP-03.3-01")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_smaller_bounds_change_no_result(impl, check, batch):
    """With room for all the results are those of a sequential model; with less they are too, or there is a report."""
    smaller_bounds(impl, check, PROGRAMS, batch)


@clause("WSP-03.4-01", "WSP-03.4.1-01", "WSP-03.4.1-02", "WSP-03.4.1-03", "WSP-03.3-01")
def test_smaller_bounds_change_no_result_of_programs_that_the_seed_of_the_run_draws(impl, check):
    """Ten more, which are others under another seed."""
    smaller_bounds(impl, check, 10, 10_000 + impl.seed)


def smaller_bounds(impl, check, programs, number):
    """Judge so many random programs, with room for all and with less."""
    outcomes = []

    def judge(drawn):
        generated, bounds = drawn
        result = ran(impl, check, generated.program)
        check.equal(result["outcome"], "completed", f"the outcome with room for all, with {reason(result)}")
        results(check, generated, result["statistics"], "with room for all")
        for sizes, capacities in bounds:
            smaller, _ = enlarged(generated.program, capacities)
            actual = ran(impl, check, smaller, resources=sizes)
            what = f"with {sizes} and {capacities}"
            check.true(actual["outcome"] in ("completed", "deadlock"), f"the outcome {what}", reason(actual))
            outcomes.append(actual["outcome"])
            if actual["outcome"] == "completed":
                results(check, generated, actual["statistics"], what)
            else:
                check.true(len(actual["deadlock"]["waiting"]) > 0, f"the report {what} says who waits")
                check.true(len(actual["deadlock"]["mitigations"]) > 0, f"the report {what} has suggestions")

    judge_each(check, lambda choose: bounded(choose, 3), judge, examples=programs, number=number)
    check.true("completed" in outcomes, "not every bounded run is a deadlock", len(outcomes))


@feature("wsp-seeds", "wsp-steps")
@clause("WSP-03.4-01", "WSP-03.4.2-05", "WSP-03.4.1-03")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_bound_is_exceeded_at_any_instant(impl, check, batch):
    """The use is at most the size, the mark is the highest use, and the sums of stalls never shrink."""

    def judge(drawn):
        generated, ((sizes, capacities),) = drawn
        smaller, _ = enlarged(generated.program, capacities)
        bounds = {"task_ring" if name == "task_window" else name: size for name, size in sizes.items()}
        stalled, most = {}, dict.fromkeys(bounds, 0)
        for actual in instants(impl, check, compiled(impl, check, smaller), resources=sizes, seed=batch):
            most = {name: max(most[name], actual["used"][name]) for name in bounds}
            over = {name: used for name, used in most.items() if used > bounds[name]}
            check.equal(over, {}, f"what exceeds {bounds}")
            low = [name for name in bounds if actual["high_water"][name] < most[name]]
            check.equal(low, [], "the marks below what was used")
            less = [name for name, stall in actual["stalls"].items() if stall["cycles"] < stalled.get(name, 0)]
            check.equal(less, [], "the stalls that lost time")
            stalled = {name: stall["cycles"] for name, stall in actual["stalls"].items()}
            high = {name: actual["high_water"][name] for name in bounds if actual["high_water"][name] > bounds[name]}
            check.equal(high, {}, f"the marks above {bounds}")

    judge_each(check, lambda choose: bounded(choose, 1), judge, examples=PROGRAMS // 4, number=batch)
