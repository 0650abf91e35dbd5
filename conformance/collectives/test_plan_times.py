"""Plans that run on a machine: when their units run on each device (2.3, 4.1 and 8)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.collectives.kit import machines
from tessera_conformance.chapters.collectives.kit.plan_runs import (
    each_has,
    executed,
    fp32,
    vector,
)
from tessera_conformance.chapters.collectives.kit.programs import SUM, awaits, binary, issue, program, returns
from tessera_conformance.marks import clause, feature

pytestmark = feature("plan-execution", "graph-ir-text")


OVERLAPPED = [
    issue("%f", "%x", f"{SUM}, chunk=16KiB"),
    binary("%a", "add", "%x", "%x", vector(40000)),
    binary("%b", "multiply", "%a", "%a", vector(40000)),
    awaits("%s", "%f"),
    binary("%c", "subtract", "%b", "%s", vector(40000)),
    returns("%c", vector(40000)),
]


def timed(impl, check, mesh="dp=4", **options):
    """A program with a collective beside computations, with the times of its units."""
    text = program(*OVERLAPPED, takes=f"%x: {vector(40000)}", gives=vector(40000), mesh=mesh)
    inputs = [{"x": fp32([rank] * 40000)} for rank in range(4)]
    return executed(impl, check, text, inputs, topology=machines.text(), picoseconds=1000000, **options)


@feature("two-queue")
@clause("COLL-04.1-01", "COLL-01-02", "COLL-02.1-02")
@pytest.mark.parametrize("options", [{}, {"depth": 2}, {"max_inflight": 1}], ids=["free", "buffers", "one-in-flight"])
def test_units_run_when_what_they_wait_for_has_ended(impl, check, options):
    """On their device: computations beside chunks, one at a time; waits take no time (AMB-COLL-90)."""
    answer = timed(impl, check, **options)
    ends, starts = {}, {}
    for slot in answer["timeline"]:
        starts[slot["unit"], slot["device"]] = slot["start"]
        ends[slot["unit"], slot["device"]] = slot["end"]
    devices = sorted({device for _, device in ends})
    check.equal(len(devices), 4, "the number of devices")
    check.equal(len(ends), 4 * len(answer["units"]), "the slots")
    for unit in answer["units"]:
        for device in devices:
            ready = max((ends[other, device] for other in unit["after"]), default=0)
            check.true(starts[unit["id"], device] >= ready, f"unit {unit['id']} starts when it can", ready)
            takes = ends[unit["id"], device] - starts[unit["id"], device]
            if unit["queue"] == "compute":
                works = unit["op"] not in ("tessera.await", "tessera.graph.return")
                check.equal(takes, 1000000 if works else 0, f"the picoseconds of {unit['op']}")
            else:
                check.true(takes > 0, "a chunk takes time", takes)
    check.equal(answer["duration"], max(ends.values()), "the duration")
    first = min(start for (unit, _), start in starts.items() if answer["units"][unit]["queue"] == "comm")
    check.equal(first, 0, "when the first chunk is issued")
    computed = [unit["id"] for unit in answer["units"] if unit["results"] == ["%a"]]
    check.equal([starts[computed[0], device] for device in devices], [0] * 4, "when the computation beside it starts")


@feature("two-queue")
@clause("COLL-02.3-04", "COLL-04.1-02")
def test_one_buffer_takes_longer_than_two(impl, check):
    """Ten chunks one at a time leave links idle between them."""
    one, two = (timed(impl, check, depth=depth)["duration"] for depth in (1, 2))
    check.true(one > two, "the durations with one buffer and two", [one, two])


@feature("two-queue")
@clause("COLL-04.1-01")
def test_times_change_no_bit(impl, check):
    """Nor does a seed, nor how long computations take: data and time are separate (AMB-COLL-87)."""
    first = timed(impl, check)
    expected = [[fp32([4 * rank * rank - 6] * 40000)] for rank in range(4)]
    each_has(check, first, expected)
    for seed in (1, 2):
        answer = timed(impl, check, seed=seed, depth=3)
        each_has(check, answer, expected)
    again = timed(impl, check, seed=3)
    check.equal(again["timeline"], first["timeline"], "the times with another seed")


@feature("two-queue")
@clause("COLL-04.1-01")
def test_a_plan_of_one_rank_has_times(impl, check):
    """A mesh of one rank: the three computations follow one another (AMB-COLL-90)."""
    operations = [operation.replace(SUM, f'{SUM}, axis="dp"') for operation in OVERLAPPED]
    text = program(*operations, takes=f"%x: {vector(40000)}", gives=vector(40000), mesh="dp=1")
    inputs = [{"x": fp32([3] * 40000)}]
    answer = executed(impl, check, text, inputs, topology=machines.text(), picoseconds=1000000)
    each_has(check, answer, [[fp32([33] * 40000)]])
    check.equal(len({slot["device"] for slot in answer["timeline"]}), 1, "the number of devices")
    check.true(answer["duration"] >= 3000000, "three computations take their times", answer["duration"])
