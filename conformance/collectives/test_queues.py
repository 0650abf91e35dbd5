"""Two queues for each device: computations beside the chunks of collectives (collectives specification, 2.1, 4.1)."""

from __future__ import annotations

import json

import pytest

from tessera_conformance.chapters.collectives.kit.machines import devices_of, machine
from tessera_conformance.chapters.collectives.kit.timelines import (
    MIB,
    MICROSECOND,
    comm,
    compute,
    covered,
    in_flight,
    most_at_once,
    of,
    shared,
    span,
)
from tessera_conformance.chapters.runtime.kit.refusals import refused
from tessera_conformance.marks import clause, feature

LONG = 400 * MICROSECOND
"""A computation that outlasts the collectives of these cases."""


def topology(nodes=1, per_node=2, credits=64):
    """The JSON text of a machine whose links all have so many credits."""
    document = machine(nodes=nodes, per_node=per_node)
    for link in document["links"]:
        link["credits"] = credits
    return json.dumps(document)


def simulated(impl, check, units, **arguments):
    """Return the simulation of units, on two devices of a node unless others are given."""
    return check.returns(impl.collectives.simulate(units=units, **{"topology": topology(), **arguments}))


@feature("two-queue")
@clause("COLL-04.1-01")
def test_a_compute_queue_runs_one_unit_at_a_time(impl, check):
    """Each device has its own: units of one run one after another, none waits without need; those of two run beside."""
    ranks = {"a": [0], "b": [1], "c": [0], "d": [0, 1]}
    units = [compute(name, 7 * MICROSECOND, ranks=used) for name, used in ranks.items()]
    actual = simulated(impl, check, units)
    first, second = devices_of(1, 2)
    for device, names in ((first, ["a", "c", "d"]), (second, ["b", "d"])):
        slots = of(actual["timeline"], queue="compute", device=device)
        check.equal(sorted(slot["id"] for slot in slots), names, f"units of device {device}")
        check.equal(most_at_once(slots), 1, f"units at one time on device {device}")
        check.equal(span(slots), (0, 7 * MICROSECOND * len(names)), f"device {device} is never idle between units")
    check.equal(actual["duration"], 21 * MICROSECOND)


@feature("two-queue")
@clause("COLL-04.1-02")
@pytest.mark.parametrize("algorithm", ["ring", "tree", "direct"])
def test_a_collective_is_in_the_comm_queue_of_each_of_its_devices_chunk_by_chunk(impl, check, algorithm):
    """Its bytes make the number of chunks, the last one short, on the devices of its ranks and no others."""
    units = [comm("r", 10 * MIB + 5, MIB, algorithm=algorithm, ranks=[2, 0])]
    actual = simulated(impl, check, units, topology=topology(per_node=3))
    ids = devices_of(1, 3)
    for device in (ids[0], ids[2]):
        chunks = [slot.get("chunk") for slot in of(actual["timeline"], "r", "comm", device)]
        check.equal(sorted(chunks), list(range(11)), f"chunks in the queue of device {device}")
    check.equal(of(actual["timeline"], device=ids[1]), [], "what the device of no rank does")
    check.true(all(slot["start"] < slot["end"] for slot in actual["timeline"]), "a chunk takes time")


@feature("two-queue")
@clause("COLL-04.1-03")
@pytest.mark.parametrize("most", [1, 3, 8])
def test_as_many_chunks_as_allowed_are_in_flight_while_there_is_work(impl, check, most):
    """While a long computation runs and credits are plenty: `max_inflight`, or all that remain (AMB-COLL-18)."""
    chunks = 20
    units = [compute("long", LONG), comm("r", chunks * MIB, MIB)]
    timeline = simulated(impl, check, units, max_inflight=most)["timeline"]
    for device in devices_of(1, 2):
        slots = of(timeline, "r", "comm", device)
        check.equal(len(slots), chunks)
        running = of(timeline, "long", "compute", device)
        for time in sorted({slot[edge] for slot in slots for edge in ("start", "end")})[:-1]:
            check.true(running[0]["start"] <= time < running[0]["end"], f"tiles run at {time}")
            left = sum(slot["end"] > time for slot in slots)
            check.equal(in_flight(slots, time), min(most, left), f"in flight on device {device} at {time}, {left} left")


@feature("two-queue")
@clause("COLL-04.1-03")
def test_chunks_of_several_collectives_are_in_flight_together(impl, check):
    """Chunks of the next collective fill the rest of the queue."""
    units = [comm(name, 3 * MIB, MIB) for name in "abc"]
    slots = of(simulated(impl, check, units, max_inflight=5)["timeline"], device=devices_of(1, 2)[0])
    for time in sorted({slot["end"] for slot in slots})[:-1]:
        left = sum(slot["end"] > time for slot in slots)
        check.equal(in_flight(slots, time), min(5, left), f"in flight at {time}, {left} left")


@feature("two-queue")
@clause("COLL-04.1-02", "COLL-04.1-03")
@pytest.mark.parametrize(
    "ranks",
    [([1, 2], [0, 1]), ([0, 1], [1, 2]), ([0, 2], [1, 2]), ([0, 1, 2], [1, 2])],
    ids=["second-then-first", "first-then-second", "third-then-third", "all-then-two"],
)
def test_the_queue_of_every_device_has_its_bound(impl, check, ranks):
    """Two collectives share one device, whose queue is full for both while the others' have room."""
    units = [comm(name, 8 * MIB, MIB, ranks=used) for name, used in zip("ab", ranks, strict=True)]
    timeline = simulated(impl, check, units, topology=topology(per_node=3), max_inflight=2)["timeline"]
    for device in devices_of(1, 3):
        check.true(most_at_once(of(timeline, queue="comm", device=device)) <= 2, f"in flight on device {device}")


@feature("two-queue", "link-credits")
@clause("COLL-04.1-03", "COLL-04.2-03")
@pytest.mark.parametrize("credits", [1, 2, 3])
def test_credits_limit_the_chunks_in_flight(impl, check, credits):
    """A chunk of an exchange of two ranks crosses each link once each way: as many are in flight as it has credits."""
    units = [comm("r", 20 * MIB, MIB, operation="all_to_all", algorithm="direct")]
    slots = simulated(impl, check, units, max_inflight=8, topology=topology(credits=credits))["timeline"]
    check.equal(most_at_once(of(slots, device=devices_of(1, 2)[1])), credits, "chunks in flight")


@feature("two-queue")
@clause("COLL-01-02", "COLL-02.1-03")
def test_compute_that_names_no_collective_overlaps_with_it(impl, check):
    """Tiles run from the first moment, without a gap, while chunks travel; neither is slower for the other."""
    tiles = [compute(f"tile{at}", 50 * MICROSECOND) for at in range(4)]
    alone = simulated(impl, check, [comm("r", 8 * MIB, MIB)])
    actual = simulated(impl, check, [comm("r", 8 * MIB, MIB), *tiles])
    for device in devices_of(1, 2):
        work = of(actual["timeline"], queue="compute", device=device)
        check.equal(span(work), (0, 200 * MICROSECOND), "the tiles, one after another")
        travelling = of(actual["timeline"], "r", device=device)
        check.equal(span(travelling), span(of(alone["timeline"], "r", device=device)), "the collective, as if alone")
        check.true(covered(travelling) > 0 and span(travelling)[1] < 200 * MICROSECOND, "all of it beside tiles")
    check.equal(actual["duration"], 200 * MICROSECOND)


@feature("two-queue")
@clause("COLL-02.1-02")
def test_compute_waits_for_the_collective_whose_value_it_uses_and_for_no_other(impl, check):
    """`uses_a` starts when a has ended, though b, which is longer, has not; `uses_b` when b has.

    Also where one chunk is in flight at a time, so that all that were issued may have ended before the last is.
    """
    units = [
        comm("a", 4 * MIB, MIB),
        comm("b", 40 * MIB, MIB),
        compute("uses_b", MICROSECOND, ["b"]),
        compute("uses_a", MICROSECOND, ["a"]),
        compute("uses_none", MICROSECOND),
    ]
    for given in ({}, {"max_inflight": 1}):
        timeline = simulated(impl, check, units, **given)["timeline"]
        for device in devices_of(1, 2):
            ends = {name: span(of(timeline, name, device=device))[1] for name in "ab"}
            begins = {slot["id"]: slot["start"] for slot in of(timeline, queue="compute", device=device)}
            check.equal(begins, {"uses_none": 0, "uses_a": ends["a"], "uses_b": ends["b"]}, "starts")
            check.true(ends["a"] < ends["b"], "the longer one ends later", ends)


@feature("two-queue")
@clause("COLL-02.1-03")
def test_no_device_waits_for_the_computation_of_another(impl, check):
    """Rank 1 is slow; rank 0 goes on with what follows its own part. A collective of both needs both."""
    units = [
        compute("slow", LONG, ranks=[1]),
        compute("both", MICROSECOND),
        compute("next", MICROSECOND, ["both"]),
        comm("r", MIB, MIB, ["both"]),
    ]
    timeline = simulated(impl, check, units)["timeline"]
    first, second = devices_of(1, 2)
    check.equal(of(timeline, "next", device=first)[0]["start"], MICROSECOND, "rank 0 goes on")
    check.equal(of(timeline, "next", device=second)[0]["start"], LONG + MICROSECOND, "rank 1, once it is free")
    check.equal(span(of(timeline, "r"))[0], LONG + MICROSECOND, "the collective, once both have brought their values")


@feature("two-queue")
@clause("COLL-02.1-02", "COLL-04.1-01", "COLL-04.1-02")
@pytest.mark.parametrize("slow", [0, 1])
def test_a_unit_awaits_every_rank_of_one_in_which_it_has_no_part(impl, check, slow):
    """One of two ranks is slow; what two others compute, and exchange, with the value of both begins behind it."""
    units = [
        compute("slow", LONG, ranks=[slow]),
        compute("both", MICROSECOND, ranks=[0, 1]),
        compute("use", MICROSECOND, ["both"], ranks=[2, 3]),
        comm("r", MIB, MIB, ["both"], ranks=[2, 3]),
    ]
    timeline = simulated(impl, check, units, topology=topology(per_node=4))["timeline"]
    for name in ("use", "r"):
        check.equal(span(of(timeline, name))[0], LONG + MICROSECOND, f"the start of {name}")


@feature("two-queue", "link-credits")
@clause("COLL-04.2-04")
def test_a_collective_without_credits_lets_another_go(impl, check):
    """To the other node there is one credit: a collective within a node, listed later, is not held up by that."""
    document = machine(nodes=2, per_node=2)
    for link in document["links"]:
        link["credits"] = 1 if link["kind"] == "rdma" else 64
    over = comm("over", 8 * MIB, MIB, operation="all_to_all", algorithm="direct", ranks=[0, 2])
    inside = comm("inside", 8 * MIB, MIB, operation="all_to_all", algorithm="direct", ranks=[0, 1])
    given = {"topology": json.dumps(document), "max_inflight": 8}
    alone = simulated(impl, check, [inside], **given)["timeline"]
    timeline = simulated(impl, check, [over, inside], **given)["timeline"]
    sender = devices_of(2, 2)[0]
    check.equal(most_at_once(of(timeline, "over", device=sender)), 1, "chunks in flight to the other node")
    check.equal(span(of(timeline, "inside"))[0], 0, "what stays within the node leaves at once")
    check.true(
        span(of(timeline, "inside"))[1] < span(of(timeline, "over"))[1], "and has ended before the rest has gone"
    )
    check.true(len(of(alone, "inside")) == len(of(timeline, "inside")), "all of its chunks")


@feature("two-queue")
@clause("COLL-08-06")
def test_computations_of_higher_priority_go_first(impl, check):
    """Of those that are ready together; one that is ready later passes those not yet begun (AMB-COLL-69)."""
    units = [
        compute("low", 5 * MICROSECOND, priority=-1),
        compute("usual", 5 * MICROSECOND),
        compute("first", 5 * MICROSECOND, priority=3),
        compute("late", MICROSECOND, ["usual"], priority=7),
    ]
    timeline = simulated(impl, check, units)["timeline"]
    order = [slot["id"] for slot in of(timeline, queue="compute", device=devices_of(1, 2)[0])]
    check.equal(order, ["first", "usual", "late", "low"], "in order of start")


@feature("two-queue")
@clause("COLL-08-06")
def test_chunks_of_higher_priority_go_first(impl, check):
    """Of collectives ready together the higher priority goes first; one ready later passes chunks not yet issued."""
    units = [
        comm("low", 8 * MIB, MIB, priority=-1),
        comm("high", 4 * MIB, MIB, priority=3),
        comm("usual", 4 * MIB, MIB),
        compute("wait", 30 * MICROSECOND),
        comm("late", 4 * MIB, MIB, ["wait"], priority=7),
    ]
    timeline = simulated(impl, check, units, max_inflight=2)["timeline"]
    device = devices_of(1, 2)[0]
    order = [slot["id"] for slot in of(timeline, queue="comm", device=device) if slot["id"] != "late"]
    check.equal(order, ["high"] * 4 + ["usual"] * 4 + ["low"] * 8, "in order of issue")
    begun = span(of(timeline, "late", device=device))[0]
    later = [slot for slot in of(timeline, "low", device=device) if slot["start"] >= begun]
    check.true(len(later) > 1, "some of the lower priority are issued after it", [begun, len(later)])
    check.true(
        min(slot["start"] for slot in later) >= of(timeline, "late", device=device)[-1]["start"],
        "none of them before the last of it",
    )


@feature("two-queue")
@clause("COLL-04.1-01", "COLL-04.1-02")
@pytest.mark.parametrize(
    "beside",
    [[], [comm("s", 64, 64, ["w"], operation="broadcast", algorithm="tree", ranks=[0, 1])]],
    ids=["one", "one-within-another"],
)
def test_idle_times_are_those_of_the_timeline(impl, check, beside):
    """Summed over the devices, up to the end of the last unit; a chunk that ends while another travels counts once."""
    units = [
        compute("a", 20 * MICROSECOND, ranks=[0]),
        comm("r", 4 * MIB, 4 * MIB if beside else MIB, ["a"], ranks=[0, 1]),
        compute("w", MICROSECOND, ["a"], ranks=[0]),
        *beside,
        compute("b", 9 * MICROSECOND, ["r"]),
        comm("t", MIB, MIB, ["b"], ranks=[0, 1]),
    ]
    actual = simulated(impl, check, units, topology=topology(per_node=3))
    for queue in ("compute", "comm"):
        busy = [covered(of(actual["timeline"], queue=queue, device=device)) for device in devices_of(1, 3)]
        check.equal(actual["idle"][queue], 3 * actual["duration"] - sum(busy), f"idle time of {queue} queues")
    check.equal(actual["duration"], span(actual["timeline"])[1], "the end of the last unit")
    check.equal(shared(of(actual["timeline"], "a"), of(actual["timeline"], "r")), 0, "no collective before its values")


@feature("two-queue")
@clause("COLL-04.1-01", "COLL-04.1-02")
def test_work_of_nothing_ends(impl, check):
    """No units, computations of no time, collectives of no bytes or of one rank; what awaits them runs."""
    check.equal(simulated(impl, check, [])["duration"], 0)
    units = [
        compute("none", 0),
        comm("empty", 0, MIB, ["none"]),
        comm("single", 2 * MIB, MIB, ["empty"], ranks=[1]),
        compute("last", 5, ["single", "empty"]),
    ]
    actual = simulated(impl, check, units)
    check.equal(actual["duration"], 5)
    check.equal(len(of(actual["timeline"], "last")), 2, "on both devices")


REFUSED = {
    "a cycle": ([compute("x", 1, ["y"]), compute("z", 1), comm("y", 1, 1, ["x"])], ["x", "y"]),
    "itself": ([compute("own", 1, ["own"])], ["own"]),
    "an unknown id": ([compute("x", 1, ["lost"])], ["x", "lost"]),
    "an id twice": ([compute("twice", 1), comm("twice", 1, 1)], ["twice"]),
    "a rank that is not there": ([compute("x", 1, ranks=[0, 2])], ["x", "0 to 1"]),
    "a rank twice": ([comm("x", 1, 1, ranks=[1, 1])], ["x", "each once"]),
    "no rank": ([compute("x", 1, ranks=[])], ["x"]),
    "a negative time": ([compute("x", -1)], ["x"]),
    "chunks of nothing": ([comm("x", 1, 0)], ["x", "chunk_bytes"]),
    "negative bytes": ([comm("x", -1, 1)], ["x", "bytes"]),
    "an unknown operation": ([comm("x", 1, 1, operation="all_reduces")], ["x", "all_reduce"]),
    "an unknown algorithm": ([comm("x", 1, 1, algorithm="rings")], ["x", "ring"]),
    "a root that is not there": ([comm("x", 1, 1, operation="broadcast", root=2)], ["x", "root"]),
    "a computation without its time": ([{"id": "x", "queue": "compute"}], ["picoseconds"]),
    "a collective without one": ([{"id": "x", "queue": "comm"}], ["collective"]),
}


@feature("two-queue")
@clause("COLL-04.1-01", "COLL-04.1-02")
@pytest.mark.parametrize(("units", "words"), REFUSED.values(), ids=REFUSED)
def test_work_that_can_never_be_done_is_refused_by_name(impl, check, units, words):
    """Work that can never be done is TESS_ERR_INVALID_VALUE, which names it."""
    refused(check, impl.collectives.simulate(units=units, topology=topology()), "TESS_ERR_INVALID_VALUE", *words)


@feature("two-queue")
@clause("COLL-04.1-03")
@pytest.mark.parametrize("most", [0, -1])
def test_at_least_one_chunk_has_to_be_in_flight(impl, check, most):
    """A limit of no chunks in flight is refused, since nothing could ever be sent."""
    observed = impl.collectives.simulate(units=[comm("x", 1, 1)], topology=topology(), max_inflight=most)
    refused(check, observed, "TESS_ERR_INVALID_VALUE", "max_inflight")


@feature("two-queue")
@clause("COLL-04.1-02")
def test_an_algorithm_that_the_ranks_cannot_run_is_unsupported(impl, check):
    """An all-to-all up a tree; a hierarchy of nodes with different numbers of ranks."""
    for unit in (
        comm("x", MIB, MIB, operation="all_to_all", algorithm="tree"),
        comm("x", MIB, MIB, algorithm="hierarchical", ranks=[0, 1, 2]),
    ):
        observed = impl.collectives.simulate(units=[unit], topology=topology(nodes=2))
        check.status(observed, "TESS_ERR_UNSUPPORTED")
