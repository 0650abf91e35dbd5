"""Bounded resources: who exhausts one stalls until space is freed, and nothing grows (sections 3.4 and 3.4.1)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.bounded import (
    DEPLIST_POOL,
    EXHAUSTIONS,
    HEAP_ARENA,
    READY_QUEUE,
    TASK_RING,
    TENSORMAP_POOL,
    bytes_each,
    with_workers,
)
from tessera_conformance.chapters.runtime.wsp.kit.programs import process, program, schedule, task, work
from tessera_conformance.chapters.runtime.wsp.kit.runs import compiled, read_by, stalls, statistics
from tessera_conformance.marks import clause, feature

pytestmark = feature("wsp-kernels", "wsp-packages", "wsp-statistics")

ROWS = [
    pytest.param(exhaustion, expected, id=f"{exhaustion.resource}-{expected.size}")
    for exhaustion in EXHAUSTIONS
    for expected in exhaustion.expected
]
BOUNDS = {
    "WSP-03.4-02": TASK_RING,
    "WSP-03.4-03": TENSORMAP_POOL,
    "WSP-03.4-04": DEPLIST_POOL,
    "WSP-03.4-05": HEAP_ARENA,
    "WSP-03.4-06": READY_QUEUE,
}


def steps(impl, check, package, **arguments):
    """The statistics after each instant of a run, to its end."""
    run = check.returns(impl.wsp.start(package=package, **arguments))["run"]
    while True:
        result = read_by(check, check.returns(impl.wsp.step(run=run, instants=1)))
        yield result["statistics"]
        if result["outcome"] != "running":
            check.equal(result["outcome"], "completed", "the outcome")
            return


@feature("wsp-resources", "wsp-steps")
@pytest.mark.parametrize(
    "exhaustion",
    [pytest.param(exhaustion, marks=clause(bound), id=exhaustion.resource) for bound, exhaustion in BOUNDS.items()],
)
@clause("WSP-03.4-01")
def test_no_resource_is_ever_used_beyond_its_bound(impl, check, exhaustion):
    """At every instant what is used is within the size, and the mark is the most that was used at a time."""
    package = compiled(impl, check, exhaustion.program)
    for expected in exhaustion.expected:
        most = 0
        for actual in steps(impl, check, package, resources=exhaustion.sizes(expected)):
            used, high_water = actual["used"][exhaustion.resource], actual["high_water"][exhaustion.resource]
            check.true(0 <= used <= expected.size, f"{exhaustion.resource} holds at most {expected.size}", used)
            most = max(most, used)
            check.true(most <= high_water <= expected.size, "the high-water mark lies between use and size", high_water)
        check.equal(actual["used"][exhaustion.resource], 0, "what is used at the end")
        check.equal(high_water, expected.high_water, "the high-water mark")


@feature("wsp-resources")
@clause("WSP-03.4.1-01", "WSP-03.4.1-02", "WSP-03.4.1-03")
@pytest.mark.parametrize(("exhaustion", "expected"), ROWS)
def test_exhaustion_stalls_the_issuer_until_space_is_freed(impl, check, exhaustion, expected):
    """The size determines when the last task is issued and when all are done; every task runs once."""
    actual = statistics(impl, check, exhaustion.program, resources=exhaustion.sizes(expected))
    check.equal(actual["processes"], {"issuer": expected.issued}, "the time of the process")
    check.equal(actual["total_cycles"], expected.total, "the makespan")
    unbounded = statistics(impl, check, exhaustion.program)
    for name in ("kernels", "tensors", "assignments"):
        check.equal(actual[name], unbounded[name], f"{name}, as with resources that suffice")


@feature("wsp-resources")
@clause("WSP-03.4-07")
@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_the_window_of_a_program_is_the_size_of_its_task_ring(impl, check, size):
    """A task_window of the schedule and one that is given to the run bound the ring alike (AMB-WSP-07)."""
    of_schedule = TASK_RING.program | {"schedule": schedule("round_robin", 2, size)}
    actual = statistics(impl, check, of_schedule)
    check.equal(actual["high_water"]["task_ring"], size, "the high-water mark of the ring")
    given = statistics(impl, check, TASK_RING.program, resources={"task_window": size})
    check.equal(actual, given, "the statistics with the size given to the run")


@clause("WSP-03.4-07", "WSP-03.4.1-01")
def test_processes_share_the_ring(impl, check):
    """Two issuers have one window between them: one of them waits, whichever issues first (AMB-WSP-42)."""
    left, right = (process(name, task("w7"), task("w7")) for name in ("left", "right"))
    one = program(left, right, kernels=work(7), schedule=schedule("round_robin", 2, 3))
    actual = statistics(impl, check, one)
    check.equal(sorted(actual["processes"].values()), [0, 7], "the times of the processes")
    check.equal(stalls(actual, "TASK_RING_FULL"), {"TASK_RING_FULL": (1, 7)}, "the stalls")
    check.equal(actual["total_cycles"], 14, "the makespan")


@feature("wsp-resources")
@clause("WSP-03.4-04", "WSP-03.4.2-05")
@pytest.mark.parametrize("readers", [3, 6])
def test_a_task_takes_a_node_for_each_task_that_it_depends_on(impl, check, readers):
    """A write behind so many reads of one tensor; a pool of a node fewer holds it back until one of them is done."""
    outputs = [f"y{number}" for number in range(readers)]
    reads = [task("read_1", "x", name) for name in outputs]
    one = compiled(impl, check, with_workers(1, *reads, task("five", "x", 1), tensors=bytes_each("x", *outputs)))
    for size, expected in ((readers, (0, 0)), (readers - 1, (1, 6))):
        actual = statistics(impl, check, one, resources={"deplist_pool": size})
        check.equal(stalls(actual, "DEPLIST_POOL_FULL"), {"DEPLIST_POOL_FULL": expected}, f"stalls with {size} nodes")
        check.equal(actual["high_water"]["deplist_pool"], size, f"the most of {size} nodes")


@feature("wsp-resources")
@clause("WSP-03.4-04", "WSP-03.4.2-05")
def test_a_task_depends_on_no_read_before_the_last_write(impl, check):
    """Three reads of a tensor and two writes in flight take three nodes and one (AMB-WSP-44)."""
    outputs = [f"y{number}" for number in range(3)]
    tasks = [*(task("read_1", "x", name) for name in outputs), task("five", "x", 1), task("five", "x", 2)]
    actual = statistics(impl, check, with_workers(1, *tasks, tensors=bytes_each("x", *outputs)))
    check.equal(actual["high_water"]["deplist_pool"], 4, "the nodes of all tasks")


@feature("wsp-resources")
@clause("WSP-03.4.1-04", "WSP-03.4.1-02")
@pytest.mark.parametrize("exhaustion", EXHAUSTIONS, ids=lambda exhaustion: exhaustion.resource)
def test_a_stalled_task_runs_on_its_worker_after_the_stall(impl, check, exhaustion):
    """No task is executed at once by the host in place of its worker: tasks and cycles of the workers add up."""
    for expected in exhaustion.expected:
        actual = statistics(impl, check, exhaustion.program, resources=exhaustion.sizes(expected))
        tasks = len(actual["assignments"])
        check.true(tasks > 1, "several tasks were issued", tasks)
        check.equal(sum(worker["tasks"] for worker in actual["workers"]), tasks, "the tasks of the workers")
        cycles = sum(kernel["cycles"] for kernel in actual["kernels"].values())
        own = sum(kernel["cycles"] for name, kernel in actual["kernels"].items() if name == "w1")
        check.equal(sum(worker["busy"] for worker in actual["workers"]), cycles - own, "the busy cycles of the workers")
