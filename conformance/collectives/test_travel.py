"""The times of a collective's messages: links, credits, chunks, trace (collectives specification, 4.2, 4.3, 6)."""

from __future__ import annotations

import json
from collections import defaultdict
from fractions import Fraction

import pytest

from tessera_conformance.chapters.collectives.kit.exchanges import ALGORITHMS
from tessera_conformance.chapters.collectives.kit.machines import devices_of
from tessera_conformance.chapters.collectives.kit.timelines import distinct
from tessera_conformance.chapters.collectives.kit.transfers import (
    asked,
    counted,
    levels_of,
    most_in_flight,
    pieces,
    ways,
    with_credits,
)
from tessera_conformance.chapters.runtime.kit.traces import number, overlapping, slices
from tessera_conformance.marks import clause, feature

SECOND = 10**12
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")


@feature("link-credits")
@pytest.mark.parametrize(
    "kind",
    [pytest.param("nvlink", marks=clause("COLL-04.2-01")), pytest.param("rdma", marks=clause("COLL-04.2-02"))],
)
@pytest.mark.parametrize("credits", [1, 2, 5])
@pytest.mark.parametrize("algorithm", ["ring", "direct", "tree"])
def test_a_link_carries_as_many_chunks_as_it_has_credits(impl, check, kind, credits, algorithm):
    """Each link and each NIC queue has its own, each way; no more are in flight, and as many where enough wait."""
    nodes, per_node = (1, 4) if kind == "nvlink" else (4, 1)
    topology, devices = with_credits({kind: credits}, nodes=nodes, per_node=per_node), devices_of(nodes, per_node)
    transfers = asked(impl, check, topology=topology, algorithm=algorithm)["transfers"]
    kinds = {link["name"]: link["kind"] for link in json.loads(topology)["links"]}
    most = {way: n for way, n in most_in_flight(topology, devices, transfers).items() if kinds[way[0]] == kind}
    check.true(len(most) > 1, f"chunks travel over links of kind {kind}", sorted(map(str, most)))
    for way, actual in most.items():
        check.true(actual <= credits, f"at most {credits} in flight on {way}", actual)
    check.equal(max(most.values()), credits, "credits are used where chunks wait")


@feature("link-credits")
@clause("COLL-04.2-03")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_credit_is_exceeded_or_lost(impl, check, operation, algorithm):
    """At any time, on any link, under every algorithm; and all that is to travel arrives, so that none was kept."""
    for nodes, per_node, credits in ((1, 5, 1), (2, 2, 1), (2, 3, 2)):
        topology, devices = with_credits(credits, nodes=nodes, per_node=per_node), devices_of(nodes, per_node)
        given = {"operation": operation, "algorithm": algorithm, "topology": topology}
        if algorithm == "hierarchical" and nodes == 1:
            given["devices"] = devices
        actual = asked(impl, check, **given)
        for way, most in most_in_flight(topology, devices, actual["transfers"]).items():
            check.true(most <= credits, f"at most {credits} in flight on {way}", most)
        free = asked(impl, check, **{**given, "topology": with_credits(1000, nodes=nodes, per_node=per_node)})
        check.equal(pieces(actual["transfers"]), pieces(free["transfers"]), "the same messages, whatever the credits")
        check.true(actual["duration"] >= free["duration"], "credits make nothing faster", actual["duration"])


@feature("link-credits")
@clause("COLL-04.2-04")
def test_what_waits_for_a_credit_holds_up_nothing_else(impl, check):
    """A root sends to its own node while its chunks to the other node wait for the only credit of its NIC."""
    topology = with_credits({"rdma": 1}, nodes=2, per_node=2)
    given = {"operation": "broadcast", "algorithm": "direct", "root": 2, "topology": topology}
    actual = asked(impl, check, **given, count=16_000, chunk=1000)["transfers"]
    kinds = {link["name"]: link["kind"] for link in json.loads(topology)["links"]}
    from_root = [message for message in actual if message["source"] == 2]
    inside = [message for message in from_root if all(kinds[name] == "nvlink" for name in message["links"])]
    across = [message for message in from_root if any(kinds[name] == "rdma" for name in message["links"])]
    check.true(len(across) > 1 and len(inside) > 1, "the root sends to both nodes", len(from_root))
    last_inside, last_across = max(message["start"] for message in inside), max(message["start"] for message in across)
    check.true(last_inside < last_across, "the last chunk inside leaves first", [last_inside, last_across])
    first_arrival = min(message["end"] for message in across)
    early = [message for message in inside if message["start"] < first_arrival]
    check.true(len(early) > 1, "chunks inside leave while the credit is out", len(early))


@feature("link-credits")
@clause("COLL-04.3-01", "COLL-04.3-02")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_messages_advance_until_the_last_has_arrived(impl, check, operation, algorithm):
    """Each leaves when what it needs has come, and none is left; the collective ends with the last (AMB-COLL-60)."""
    topology = with_credits(3, nodes=2, per_node=3)
    for chunk in (300, 1000, 100_000):
        actual = asked(impl, check, operation=operation, algorithm=algorithm, topology=topology, chunk=chunk)
        transfers = actual["transfers"]
        check.true(len(transfers) > 0, "messages travel", len(transfers))
        check.equal(
            actual["duration"],
            max((transfer["end"] for transfer in transfers), default=None),
            "the end of the collective",
        )
        arrived = defaultdict(list)
        for transfer in transfers:
            arrived[transfer["target"], transfer["first"] // chunk].append(transfer)
        for transfer in transfers:
            check.true(transfer["start"] < transfer["end"], "a message takes time", transfer)
            for before in arrived[transfer["source"], transfer["first"] // chunk]:
                if before["step"] < transfer["step"]:
                    check.true(before["end"] <= transfer["start"], f"{transfer} leaves after {before} has come")


@feature("link-credits")
@clause("COLL-04.3-01", "COLL-03.3-03", "COLL-03.3-06")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_link_is_faster_than_it_is(impl, check, algorithm):
    """A message takes the latencies of its links and its bytes' time at least; a link, the time of all its bytes."""
    topology, devices = with_credits(4, nodes=2, per_node=2), devices_of(2, 2)
    given = {"algorithm": algorithm, "topology": topology, "count": 4007, "element_bytes": 4096}
    transfers = asked(impl, check, **given)["transfers"]
    links = {link["name"]: link for link in json.loads(topology)["links"]}
    loads = defaultdict(list)
    for transfer in transfers:
        took = sum(links[name]["latency"] for name in transfer["links"])
        took += Fraction(4096 * transfer["count"] * SECOND, min(links[name]["bandwidth"] for name in transfer["links"]))
        check.true(transfer["end"] - transfer["start"] >= took, f"{transfer} takes {float(took):.0f} ps at least")
        for way in ways(topology, devices, transfer):
            loads[way].append(transfer)
    for (name, _), carried in loads.items():
        bytes_time = Fraction(4096 * sum(transfer["count"] for transfer in carried) * SECOND, links[name]["bandwidth"])
        span = max(transfer["end"] for transfer in carried) - min(transfer["start"] for transfer in carried)
        check.true(span >= bytes_time, f"{name} needs {float(bytes_time):.0f} ps for its bytes", span)


@feature("link-credits")
@clause("COLL-02.3-04")
def test_chunks_make_a_pipeline(impl, check):
    """Up a tree and down again, a buffer in chunks is done sooner than in one piece."""
    for ranks in (2, 4):
        given = {"algorithm": "tree", "topology": with_credits(16, nodes=1, per_node=ranks), "count": 4_000_000}
        whole = asked(impl, check, **given, chunk=4_000_000)["duration"]
        cut = asked(impl, check, **given, chunk=500_000)["duration"]
        check.true(cut < whole, f"an all-reduce of {ranks} ranks in eight chunks is done sooner", [cut, whole])


@feature("link-credits", "hierarchical")
@clause("COLL-04.4-02", "COLL-04.4-03", "COLL-03.1-03")
def test_hierarchical_goes_over_nvlink_within_nodes_and_rdma_between(impl, check):
    """On a topology with both, messages use NVLink within nodes and RDMA between them."""
    topology, each_node = with_credits(8, nodes=3, per_node=2), 2
    kinds = {link["name"]: link["kind"] for link in json.loads(topology)["links"]}
    transfers = asked(impl, check, algorithm="hierarchical", topology=topology)["transfers"]
    for transfer in transfers:
        used = {kinds[name] for name in transfer["links"]}
        inside = transfer["source"] // each_node == transfer["target"] // each_node
        if inside:
            check.equal(sorted(used), ["nvlink"], f"kinds of the links of {transfer}")
        else:
            check.true("rdma" in used and "network" not in used, f"{transfer} goes by RDMA", sorted(used))


@feature("link-credits")
@clause("COLL-04.2-03")
def test_devices_that_are_cut_off_are_named(impl, check):
    """TESS_ERR_LAUNCH_FAILED; a link that is down is gone around where there is another way."""
    topology = with_credits(2, nodes=1, per_node=3)
    around = asked(impl, check, topology=topology, down=["nv11"])["transfers"]
    check.true(all("nv11" not in transfer["links"] for transfer in around), "no message takes the link that is down")
    usual = {"operation": "all_reduce", "algorithm": "ring", "count": 8, "element_bytes": 4, "topology": topology}
    observed = impl.collectives.transfers(**usual, down=["nv11", "pcie11", "rdma11"])
    check.status(observed, "TESS_ERR_LAUNCH_FAILED")


@feature("link-credits", "chunk-trace")
@clause("COLL-06-01", "COLL-06-08", "COLL-08-19")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_chunk_leaves_a_record_in_the_trace(impl, check, algorithm):
    """A slice on the device that sends it, at its time and of its bytes; no two of a row cross."""
    topology = with_credits(2, nodes=2, per_node=2)
    actual = asked(impl, check, algorithm=algorithm, topology=topology, count=1003, chunk=100, trace=True)
    events = json.loads(actual["trace"])["traceEvents"]
    sends = slices(events, "send")
    recorded = sorted(
        [round(event["ts"] * 10**6), round(event["dur"] * 10**6), int(number(check, event["args"], "rank"))]
        for event in distinct(sends)
    )
    told = sorted(
        (transfer["start"], transfer["end"] - transfer["start"], transfer["source"]) for transfer in actual["transfers"]
    )
    check.equal(recorded, [list(row) for row in told], "the slices of what is sent")
    check.equal(overlapping(check, events), [], "slices that cross on a row")
    flows = [sorted(event["id"] for event in events if event["ph"] == phase) for phase in "sf"]
    check.equal(flows[0], flows[1], "every flow that begins ends")
    check.equal(len(flows[0]), len(told), "a flow from the sender to the receiver of each message")
    ranks = {(part["pid"], part["tid"]): int(number(check, part["args"], "rank")) for part in slices(events)}
    ends = [
        {event["id"]: ranks.get((event["pid"], event["tid"])) for event in events if event["ph"] == phase}
        for phase in "sf"
    ]
    drawn = sorted((start, ends[1].get(flow)) for flow, start in ends[0].items())
    check.equal(
        drawn,
        sorted((transfer["source"], transfer["target"]) for transfer in actual["transfers"]),
        "the ends of the flows",
    )
    volume = sum(int(number(check, event["args"], "bytes")) for event in distinct(sends))
    check.equal(volume, 4 * sum(transfer["count"] for transfer in actual["transfers"]), "bytes of all records")


@feature("link-credits", "chunk-trace")
@clause("COLL-06-01", "COLL-06-08")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("shape", [(1, 5), (2, 2)], ids=["one-node", "two-nodes"])
def test_counters_of_links_say_what_is_in_flight(impl, check, algorithm, shape):
    """The credits in use and the bytes in flight of each link each way are those of the transfers, at every time."""
    nodes, per_node = shape
    topology, devices = with_credits(3, nodes=nodes, per_node=per_node), devices_of(nodes, per_node)
    actual = asked(impl, check, algorithm=algorithm, topology=topology, count=1003, chunk=99, trace=True)
    expected = levels_of(topology, devices, actual["transfers"], 4)
    check.true(len(expected) > 0, "links are used", sorted(expected))
    check.equal(counted(json.loads(actual["trace"])["traceEvents"]), expected, "what the counters of links say")
