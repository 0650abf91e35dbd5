"""Responses belong to requests by the pair of ids, in whatever order they come (D3, Verification)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest

from tessera_conformance.chapters.abi.host_io.kit.exchange import Host, connected, pair_of
from tessera_conformance.chapters.abi.host_io.kit.messages import Message
from tessera_conformance.check import Check
from tessera_conformance.marks import clause, feature

PAIRS = [
    *product(("a", "A", "b"), ("1", "01", "2")),
    *product(("1", "2"), ("a", "b", "1", "2")),
    *(("ab", "c"), ("a", "bc"), ("abc", " "), ("a ", "1"), ("a", " 1"), ("a/1", "1"), ("a", "1/1")),
    *(
        ("a,1", "1"),
        ("a", "1,1"),
        ('a","1', "x"),
        ("\u00e9", "1"),
        ("e\u0301", "1"),
        ("x" * 256, "1"),
        ("1", "x" * 256),
        ("1", "x" * 255 + "y"),
        ("x" * 255 + "y", "1"),
    ),
]
"""Ids of which parts are the same, which are those of another request the other way round, or look alike. Of those
that are easily taken for one another, one stands at an even place and one at an odd one."""


def requests_for(host: Host, pairs: Sequence[tuple[str, str]]) -> tuple[list[Message], list[bool]]:
    """A request for each pair, and whether it succeeds: every other one does, whose neighbours name no place."""
    succeeds = [bool(place % 2) for place in range(len(pairs))]
    ids = [{"correlation_id": correlation, "request_id": request} for correlation, request in pairs]
    requests = [
        host.write(**id_) if good else host.read(**id_, src_sip=2**31 - 1)
        for id_, good in zip(ids, succeeds, strict=True)
    ]
    return requests, succeeds


@clause("HIO-D3-04", "HIO-D3-06", "HIO-D3-10", "HIO-D3-11", "HIO-Verification-02")
def test_a_response_has_the_ids_of_its_request(impl, check):
    """One request id is legal under many correlation ids, and the pair decides (AMB-HIO-12)."""
    host = connected(impl, check)
    requests, succeeds = requests_for(host, PAIRS)
    check.equal([completion["ok"] for completion in host.completions(*requests)], succeeds, "success of each request")


@clause("HIO-D3-04", "HIO-D3-10", "HIO-D3-11", "HIO-Verification-02")
@feature("delivery-order")
@pytest.mark.parametrize("seed", range(1, 11))
def test_responses_in_any_order_have_the_ids_of_their_requests(impl, check, seed):
    """Completed in a seeded order (AMB-HIO-12, AMB-HIO-22)."""
    host = connected(impl, check)
    requests, succeeds = requests_for(host, PAIRS)
    check.equal(
        [completion["ok"] for completion in host.completions(*requests, seed=seed)], succeeds, "success of each request"
    )


@clause("HIO-D3-04", "HIO-Verification-02")
@feature("delivery-order", "endpoint-control")
def test_a_seed_says_the_order_of_completion(impl, check):
    """The same seed the same order, on a new endpoint; among twenty seeds there are several orders (AMB-HIO-22)."""
    orders = []
    for seed in (*range(1, 21), *range(1, 21)):
        check.returns(impl.host_io.open(machine={"sips": 1, "cubes": 2, "pes": 2, "queue_depth": 64}))
        host = connected(impl, check)
        answers = host.exchange(*(host.write(request_id=f"{number}") for number in range(8)), seed=seed)
        orders.append([pair for pair, _ in answers.responses])
    check.equal(orders[20:], orders[:20], "the orders, once more")
    check.true(len({tuple(order) for order in orders}) > 1, "seeds change the order", orders[0])


def require_room(host: Host, requests: int) -> None:
    """A case that sends so many requests at once presumes that the endpoint keeps them."""
    depth = host.machine.queue_depth
    host.check.given(depth is None or depth >= requests, f"the queue has room for {requests} requests", depth)


def judge_outcomes(check: Check, outcomes: Sequence[bool], times: int) -> None:
    """Judge requests with one pair: the first succeeds, the others arrive while it is unanswered (AMB-HIO-61)."""
    check.equal(len(outcomes), times, "the number of responses with the pair")
    what = "the first of several requests with one pair is unanswered when the others come"
    check.given(sum(outcomes) <= 1, what, outcomes)
    check.reading("AMB-HIO-51", "both fail", not any(outcomes))
    check.equal(sorted(outcomes), [*[False] * (times - 1), True], "success of the requests with the pair")


@clause("HIO-D3-06")
@pytest.mark.parametrize(
    "labels", [{}, {"timestamp_tag": "later"}, {"debug_label": "another"}], ids=["", "tag", "label"]
)
def test_a_pair_that_is_in_use_is_refused(impl, check, labels):
    """While the first request is unanswered the second fails, and the first succeeds (AMB-HIO-30, AMB-HIO-51).

    Other pairs, with the same correlation id or the same request id, are not concerned.
    """
    host = connected(impl, check)
    require_room(host, 4)
    first = host.write()
    others = [host.write(), host.write(request_id=first["request_id"], correlation_id="another")]
    answers = host.exchange(others[0], first, first | labels, others[1])
    check.equal(
        [completion["ok"] for other in others for completion in answers.of(other)],
        [True, True],
        "success of the others",
    )
    check.equal(len(answers.responses), 4, "the number of responses")
    judge_outcomes(check, [completion["ok"] for completion in answers.of(first)], 2)


@clause("HIO-D3-06", "HIO-D3-10", "HIO-D3-11")
@pytest.mark.parametrize("times", [3, 7])
def test_a_pair_in_use_is_refused_each_time(impl, check, times):
    """One of many requests with a pair succeeds, whatever their type; every one is answered (AMB-HIO-51)."""
    host = connected(impl, check)
    first = host.write()
    same = {"correlation_id": first["correlation_id"], "request_id": first["request_id"]}
    builders = [host.write, host.read]
    requests = [first, *(builders[number % 2](**same) for number in range(1, times))]
    judge_outcomes(check, [completion["ok"] for completion in host.exchange(*requests).of(first)], times)


@clause("HIO-D3-06")
@feature("device-memory-probe")
def test_nothing_of_a_request_with_a_pair_in_use_happens(impl, check):
    """The first write is seen in memory and the second is not (AMB-HIO-51)."""
    host = connected(impl, check)
    base = host.machine.memories[0].base
    patterns = [{"pattern_kind": "fill_u8", "value": value} for value in (17, 34)]
    host.accepted(host.write(dst_pa=base, nbytes=128, pattern={"pattern_kind": "zero"}))
    first = host.write(dst_pa=base, pattern=patterns[0])
    second = host.write(dst_pa=base + 64, pattern=patterns[1], request_id=first["request_id"])
    host.exchange(first, second)
    data = check.returns(impl.host_io.memory(place=host.machine.places[0], pa=base, nbytes=128))["data"]
    check.reading("AMB-HIO-30", "last wins", data == "00" * 64 + "22" * 64)
    check.reading("AMB-HIO-51", "both fail", data == "00" * 128)
    check.equal(data, "11" * 64 + "00" * 64, "what the first and the second write left")


@clause("HIO-D3-06")
@feature("delivery-order")
@pytest.mark.parametrize("seed", range(1, 6))
def test_a_pair_in_use_is_refused_in_any_order_of_completion(impl, check, seed):
    """Twice, with another tag or label, as another type: each while the first is unanswered (AMB-HIO-22, -51)."""
    host = connected(impl, check)
    require_room(host, 11)
    requests = [host.write() for _ in range(6)]
    ids = {name: requests[4][name] for name in ("correlation_id", "request_id")}
    again = [
        requests[1],
        requests[1],
        requests[2] | {"timestamp_tag": "later"},
        requests[3] | {"debug_label": "another"},
    ]
    answers = host.exchange(*requests, *again, host.read(**ids), seed=seed)
    outcomes = [sorted(completion["ok"] for completion in answers.of(request)) for request in requests]
    twice = [False, True]
    check.equal(outcomes, [[True], [False, False, True], twice, twice, twice, [True]], "success by pair")
    check.equal(len({pair_of(request) for request in requests}), 6, "the number of pairs")
