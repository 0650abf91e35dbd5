"""Links that fail while messages of a collective are in flight (collectives specification, 1, 3.2, 4.2, 4.3).

AMB-COLL-78 says which way is taken, AMB-COLL-79 what becomes of messages.
"""

from __future__ import annotations

import json
from collections import defaultdict
from operator import itemgetter

import pytest

from tessera_conformance.chapters.collectives.kit.exchanges import ALGORITHMS
from tessera_conformance.chapters.collectives.kit.machines import devices_of, link, text
from tessera_conformance.chapters.collectives.kit.transfers import asked, most_in_flight, pieces, with_credits
from tessera_conformance.chapters.runtime.kit.refusals import refused
from tessera_conformance.chapters.runtime.kit.traces import number, slices
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected

pytestmark = [feature("link-credits", "link-cuts")]

SECOND = 10**12
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
PARTS = 7
"""A link fails after each of so many parts of the time that a collective takes without that."""


def times(duration):
    """Return times at which the link fails: soon, in every part of the duration, and after its end."""
    return [1, *(duration * part // PARTS for part in range(1, PARTS)), duration, duration + SECOND]


def arrived(transfers):
    """Those that were not lost."""
    return [transfer for transfer in transfers if not transfer.get("lost", False)]


def lost(transfers):
    """Those that were."""
    return [transfer for transfer in transfers if transfer.get("lost", False)]


def between(transfers, source, target):
    """Those from one rank to another."""
    return [transfer for transfer in transfers if (transfer["source"], transfer["target"]) == (source, target)]


def judge_cut(check, transfers, whole, name, at):
    """Judge that a failed link carries and loses only what it may, and that every message arrives once."""
    check.equal(pieces(arrived(transfers)), pieces(whole), f"what arrives, once each, where {name} fails after {at} ps")
    for transfer in transfers:
        if name in transfer["links"]:
            check.true(transfer["end"] <= at, f"{transfer} is over when {name} fails", at)
    again = defaultdict(list)
    for transfer in arrived(transfers):
        again[tuple(pieces([transfer])[0])].append(transfer)
    for transfer in lost(transfers):
        check.true(
            name in transfer["links"] and transfer["end"] == at, f"{transfer} is lost on {name}, when it fails", at
        )
        later = again[tuple(pieces([transfer])[0])]
        check.true(all(one["start"] >= at for one in later), f"{transfer} leaves again after {at} ps", later)


@clause("COLL-04.3-01", "COLL-04.3-02", "COLL-01-06")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_lost_on_a_link_is_sent_again(impl, check, operation, algorithm):
    """Every message arrives exactly once, whenever NVLink or RDMA fails, and the failed link is used no more."""
    topology = with_credits(2, nodes=2, per_node=2)
    given = {"operation": operation, "algorithm": algorithm, "topology": topology, "count": 1003, "chunk": 100}
    without = asked(impl, check, **given)
    losses = 0
    for name in ("nv11", "rdma20"):
        ways = [transfer for transfer in without["transfers"] if name in transfer["links"]]
        halfway = [(way["start"] + way["end"]) // 2 for way in ways[:1]]
        for at in (*times(without["duration"]), *halfway):
            actual = asked(impl, check, **given, cuts=[{"link": name, "at": at}])["transfers"]
            judge_cut(check, actual, without["transfers"], name, at)
            losses += len(lost(actual))
    check.true(losses > 0, "some messages were in flight on a link that failed", losses)


@clause("COLL-04.3-01", "COLL-04.3-02")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_was_lost_is_still_waited_for(impl, check, algorithm):
    """A rank sends on what needs a message once that has arrived, not when it was lost; the end is the last arrival."""
    topology = with_credits(3, nodes=2, per_node=3)
    given = {"algorithm": algorithm, "topology": topology, "count": 997, "chunk": 200}
    duration = asked(impl, check, **given)["duration"]
    for at in times(duration):
        actual = asked(impl, check, **given, cuts=[{"link": "nv12", "at": at}])
        transfers = arrived(actual["transfers"])
        check.equal(
            actual["duration"],
            max((message["end"] for message in transfers), default=None),
            "the end of the collective",
        )
        awaited = defaultdict(list)
        for transfer in transfers:
            awaited[transfer["target"], transfer["first"] // 200].append(transfer)
        for transfer in transfers:
            for before in awaited[transfer["source"], transfer["first"] // 200]:
                if before["step"] < transfer["step"]:
                    check.true(before["end"] <= transfer["start"], f"{transfer} leaves after {before} has come")


@clause("COLL-04.3-01")
def test_a_link_that_fails_after_the_last_message_changes_nothing(impl, check):
    """A message that arrives as the link fails has arrived, and a link that no message takes changes nothing."""
    topology = with_credits(2, nodes=1, per_node=3)
    without = asked(impl, check, topology=topology)
    last = max((transfer["end"] for transfer in without["transfers"] if "nv11" in transfer["links"]), default=0)
    for cut in ({"link": "nv11", "at": last}, {"link": "nv11", "at": last + SECOND}, {"link": "pcie10", "at": 1}):
        actual = asked(impl, check, over=True, topology=topology, cuts=[cut])
        check.equal(actual, without, f"the transfers with {cut}")


@clause("COLL-01-06")
def test_a_link_that_fails_at_once_was_never_up(impl, check):
    """At time 0 nothing has left."""
    topology = with_credits(2, nodes=2, per_node=2)
    for name in ("nv10", "rdma21"):
        actual = asked(impl, check, topology=topology, cuts=[{"link": name, "at": 0}])
        check.equal(actual, asked(impl, check, topology=topology, down=[name]), f"the transfers without {name}")


# Which way is taken


FALLBACKS = [
    pytest.param({"nodes": 1, "per_node": 2}, "nv10", (0, 1), ["pcie10", "pcie11"], id="nvlink to pcie"),
    pytest.param(
        {"nodes": 1, "per_node": 2, "transports": ("pcie", "rdma")},
        "pcie11",
        (0, 1),
        ["bus10", "rdma10", "rdma11", "bus11"],
        id="pcie to rdma",
    ),
    pytest.param(
        {"nodes": 2, "per_node": 1}, "rdma10", (0, 1), ["pcie10", "net1", "net2", "pcie20"], id="rdma to the network"
    ),
]


@feature("auto-transport")
@clause("COLL-01-06", "COLL-03.2-01", "COLL-03.2-02", "COLL-03.2-03")
@pytest.mark.parametrize(("made", "name", "ends", "links"), FALLBACKS)
def test_messages_go_by_the_next_transport(impl, check, made, name, ends, links):
    """Messages sent again or later travel as if the link had been down from the start (AMB-COLL-43)."""
    given = {"topology": with_credits(2, **made), "count": 8000, "chunk": 500}
    at = asked(impl, check, **given)["duration"] // 3
    actual = asked(impl, check, **given, cuts=[{"link": name, "at": at}])["transfers"]
    there = between(actual, *ends)
    check.true(bool(lost(there)), "messages were in flight", len(there))
    late = [transfer for transfer in arrived(there) if transfer["start"] >= at]
    check.true(len(late) > len(lost(there)), "messages leave after the link has failed", len(late))
    check.equal([transfer["links"] for transfer in late], [links] * len(late), "the links that they take")


@feature("auto-transport")
@clause("COLL-01-06", "COLL-03.2-02")
def test_links_fail_one_after_another(impl, check):
    """From NVLink to PCIe to RDMA: whatever is lost on the way is sent again, on the last way too."""
    given = {"topology": with_credits(2, nodes=1, per_node=2), "count": 64_000, "chunk": 1000}
    without = asked(impl, check, **given)
    first = without["duration"] // 4
    second = first + asked(impl, check, **given, down=["nv11"])["duration"] // 4
    cuts = [{"link": "pcie10", "at": second}, {"link": "nv11", "at": first}]
    actual = asked(impl, check, **given, cuts=cuts)["transfers"]
    check.equal(pieces(arrived(actual)), pieces(without["transfers"]), "what arrives, once each")
    ways = {"nv11": ["nv10", "nv11"], "pcie10": ["pcie10", "pcie11"]}
    for transfer in lost(actual):
        name = "nv11" if transfer["end"] == first else "pcie10"
        check.equal(sorted(transfer["links"]), ways[name], f"the links of {transfer}")
    check.equal(sorted({message["end"] for message in lost(actual)}), [first, second], "when messages were lost")
    last = [sorted(message["links"]) for message in arrived(actual) if message["start"] >= second]
    check.equal(last, [["bus10", "bus11", "rdma10", "rdma11"]] * len(last), "the links of what leaves at last")


def spare(document):
    """A second link between device 10 and its host, which is slower to begin."""
    document["links"].append(link("spare10", "h1", 10, 60_000_000_000, 2_000_000, "pcie", 2))


@feature("auto-transport")
@clause("COLL-03.2-05", "COLL-01-06")
def test_a_path_holds_after_a_link_has_failed(impl, check):
    """Asked for PCIe, of which there is another link: neither before nor after is NVLink taken (AMB-COLL-78)."""
    given = {"topology": text(nodes=1, per_node=2, change=spare), "path": "pcie", "count": 8000, "chunk": 500}
    without = asked(impl, check, **given)
    check.equal(
        {tuple(sorted(transfer["links"])) for transfer in without["transfers"]}, {("pcie10", "pcie11")}, "the links"
    )
    at = without["duration"] // 3
    actual = asked(impl, check, **given, cuts=[{"link": "pcie10", "at": at}])["transfers"]
    judge_cut(check, actual, without["transfers"], "pcie10", at)
    late = {tuple(sorted(transfer["links"])) for transfer in arrived(actual) if transfer["start"] >= at}
    check.equal(late, {("pcie11", "spare10")}, "the links of what leaves later")


@feature("auto-transport")
@clause("COLL-03.2-05")
@pytest.mark.parametrize("path", ["nvlink", "pcie", "rdma", "network"])
def test_a_path_is_taken_wherever_it_is_there(impl, check, path):
    """Inside of nodes and between them; elsewhere as auto (AMB-COLL-78)."""
    topology, devices = with_credits(4, nodes=2, per_node=2), devices_of(2, 2)
    transfers = asked(impl, check, topology=topology, algorithm="direct", path=path)["transfers"]
    for source, target in ((0, 1), (3, 2), (0, 2), (1, 3), (3, 0)):
        ends = {"source": devices[source], "target": devices[target]}
        inside = source // 2 == target // 2
        there = inside or path in ("rdma", "network")
        way = check.returns(impl.collectives.route(topology=topology, **ends, path=path if there else "auto"))["links"]
        actual = {tuple(transfer["links"]) for transfer in between(transfers, source, target)}
        check.equal(actual, {tuple(way)}, f"the links from rank {source} to rank {target}")


# Credits


@clause("COLL-04.2-03")
@pytest.mark.parametrize("credits", [1, 2, 5])
@pytest.mark.parametrize("algorithm", ["ring", "direct", "tree"])
def test_a_lost_message_returns_its_credits(impl, check, algorithm, credits):
    """On every link of its way: others use them at once, and no link carries more than it has credits for."""
    topology, devices = with_credits(credits, nodes=1, per_node=4), devices_of(1, 4)
    given = {"topology": topology, "algorithm": algorithm, "count": 1501, "chunk": 100}
    without = asked(impl, check, **given)
    for name in ("nv10", "nv12"):
        for at in times(without["duration"]):
            actual = asked(impl, check, **given, cuts=[{"link": name, "at": at}])["transfers"]
            for way, most in most_in_flight(topology, devices, actual).items():
                check.true(most <= credits, f"at most {credits} in flight on {way}", most)
            check.equal(pieces(arrived(actual)), pieces(without["transfers"]), "what arrives, once each")


@clause("COLL-04.2-03")
def test_the_credit_of_a_lost_message_is_used_by_another(impl, check):
    """Rank 0 sends its second message the moment that its first one, which held the only credit, is lost."""
    topology = with_credits(1, nodes=1, per_node=3)
    given = {"topology": topology, "operation": "broadcast", "algorithm": "direct", "count": 12_000, "chunk": 12_000}
    sent = [between(asked(impl, check, **given)["transfers"], 0, rank)[0] for rank in (1, 2)]
    first, second = sorted(sent, key=itemgetter("start"))
    one, other = first["target"], second["target"]
    check.equal((first["start"], second["start"]), (0, first["end"]), "the second message waits for the first")
    at = first["end"] // 2
    actual = asked(impl, check, **given, cuts=[{"link": f"nv1{one}", "at": at}])["transfers"]
    check.equal(between(actual, 0, other)[0]["start"], at, "when the second message leaves")
    check.equal(between(actual, 0, other)[0]["links"], ["nv10", f"nv1{other}"], "the links of the second message")
    again = arrived(between(actual, 0, one))[0]
    check.equal((again["start"], again["links"]), (at, ["pcie10", f"pcie1{one}"]), "the first message again")


# No way left


@clause("COLL-01-06", "COLL-03.2-02", "COLL-03.2-03")
@pytest.mark.parametrize("algorithm", ["ring", "direct", "tree"])
def test_a_collective_without_a_way_left_fails(impl, check, algorithm):
    """TESS_ERR_LAUNCH_FAILED, which names the link and two devices; not if all is over when the link fails."""
    given = {"topology": with_credits(2, nodes=1, per_node=3, transports=("nvlink",)), "algorithm": algorithm}
    without = asked(impl, check, **given)
    usual = {"operation": "all_reduce", "count": 4003, "element_bytes": 4, "chunk": 250}
    for at in (0, 1, without["duration"] // 2, without["duration"] - 1):
        answer = impl.collectives.transfers(**usual, **given, cuts=[{"link": "nv11", "at": at}])
        named = isinstance(answer, Rejected) and "device" in answer.message
        failed = at > 0 and isinstance(answer, Rejected) and answer.code == "TESS_ERR_LAUNCH_FAILED"
        without_way = check.judges_words and not named
        check.reading("AMB-COLL-79", "a collective during which a link fails is failed", failed and without_way)
        refused(check, answer, "TESS_ERR_LAUNCH_FAILED", "nv11", "device", "11")
    after = asked(impl, check, over=True, **given, cuts=[{"link": "nv11", "at": without["duration"]}])
    check.equal(after, without, "the transfers of what is over")


@clause("COLL-03.2-05")
@pytest.mark.parametrize(
    ("given", "word", "near"),
    [
        ({"cuts": [{"link": "nv1O", "at": 5}]}, "nv1O", "nv10"),
        ({"down": ["pice10"]}, "pice10", "pcie10"),
        ({"path": "nvlinc"}, "nvlinc", "nvlink"),
    ],
    ids=["cuts", "down", "path"],
)
def test_an_unknown_link_or_path_is_refused_with_the_nearest_one(impl, check, given, word, near):
    """A link or path that is unknown is refused by name, with the nearest name."""
    usual = {"operation": "all_reduce", "algorithm": "ring", "count": 8, "element_bytes": 4}
    answer = impl.collectives.transfers(**usual, topology=text(nodes=1, per_node=2), **given)
    refused(check, answer, "TESS_ERR_INVALID_VALUE", word, near)


# The trace


@feature("chunk-trace")
@clause("COLL-06-01", "COLL-08-19")
def test_the_trace_shows_what_was_lost_and_what_is_sent_again(impl, check):
    """A slice of what is sent for each attempt, on its link and at its time; a flow for those alone that arrive."""
    given = {"topology": with_credits(2, nodes=1, per_node=3), "count": 3000, "chunk": 100}
    at = asked(impl, check, **given)["duration"] // 2
    actual = asked(impl, check, **given, cuts=[{"link": "nv11", "at": at}], trace=True)
    check.true(bool(lost(actual["transfers"])), "messages are lost", len(actual["transfers"]))
    events = json.loads(actual["trace"])["traceEvents"]
    sends = {(part["name"], part["ts"]): part for part in slices(events, "send")}.values()
    recorded = sorted(
        [round(send["ts"] * 10**6), round(send["dur"] * 10**6), int(number(check, send["args"], "rank"))]
        for send in sends
    )
    told = sorted(
        [transfer["start"], transfer["end"] - transfer["start"], transfer["source"]] for transfer in actual["transfers"]
    )
    check.equal(recorded, told, "the slices of what is sent")
    flows = [event for event in events if event["ph"] == "s"]
    check.equal(len(flows), len(arrived(actual["transfers"])), "a flow for each message that arrives")
