"""Launches whose PEs fail, and endpoints with too much to do (D4, D7; AMB-HIO-11, -47, -49, -50, -52)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.abi.host_io.kit.elements import filled
from tessera_conformance.chapters.abi.host_io.kit.exchange import pair_of
from tessera_conformance.chapters.abi.host_io.kit.launches import Part, fills, from_pattern, parts, working
from tessera_conformance.chapters.abi.host_io.kit.memory import BACKGROUND, opened_host
from tessera_conformance.chapters.abi.host_io.kit.messages import ABSENT
from tessera_conformance.marks import clause, feature

LEFT = bytes([BACKGROUND] * 16)
LEFT_WORD = int.from_bytes(LEFT[:4], "little", signed=True)
"""The i32 with which `fill` leaves the background as it is."""
WRITTEN = filled("fill_u32", 7, 16)
POLICIES = [
    pytest.param("fail_fast", marks=clause("HIO-D7-43"), id="fail-fast"),
    pytest.param(None, marks=clause("HIO-D7-31"), id="null"),
    pytest.param(ABSENT, marks=clause("HIO-D7-30", "HIO-D7-31"), id="absent"),
    pytest.param("collect_all", marks=clause("HIO-D7-44"), id="collect-all"),
]
FAILING = [(0,), (2,), (5,), (1, 3), (2, 4, 5), (0, 1, 2, 3, 4, 5)]
ORDERS = {"in-order": (0, 1, 2, 3, 4, 5), "reversed": (5, 4, 3, 2, 1, 0), "mixed": (3, 0, 5, 1, 4, 2)}


def six_pes(impl, check):
    """A host of a machine with six PEs, whose memory has the background."""
    host = opened_host(impl, check, 1, 2, 3)
    host.done(*(host.fill(place, host.base, 16) for place in host.machine.places))
    return host


def on_six(host, value, order, **members):
    """A launch that fills 16 bytes on each PE."""
    shards = [Part(host.machine.places[place], host.base, 16, 16 * place) for place in order]
    return working(host, value, *shards, **members)


@feature("device-memory-probe", "fault-injection", "hop-trace", "endpoint-control")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("failing", FAILING, ids=str)
def test_a_policy_says_which_shards_run(impl, check, policy, order, failing):
    """fail_fast: those below the lowest that fails, none above; collect_all: all but those that fail (AMB-HIO-49)."""
    host = six_pes(impl, check)
    check.given(fills(host), "the endpoint has the built-in kernel fill, whose work is seen", host.machine.builtins)
    places = host.machine.places
    host.done(on_six(host, LEFT_WORD, ORDERS[order], failure_policy=policy))
    message = on_six(host, 7, ORDERS[order], failure_policy=policy)
    host.fail(*(places[place] for place in failing))
    host.fails(message, "a launch with PEs that fail")
    runs = [number not in failing if policy == "collect_all" else number < min(failing) for number in range(6)]
    actual = [host.bytes_of(place, host.base, 16) for place in places]
    expected = [WRITTEN if run else LEFT for run in runs]
    if policy != "collect_all" and actual != expected:
        recognize_order_of_time(host, ORDERS[order], failing, actual)
    for number, data in enumerate(actual):
        check.equal(data.hex(" "), expected[number].hex(" "), f"the bytes of PE {number}, where {failing} fail")


@feature("fault-injection", "endpoint-control")
@clause("HIO-D4-06")
@pytest.mark.parametrize("policy", POLICIES)
def test_what_a_pattern_deployed_fails_on_a_pe_that_fails(impl, check, policy):
    """A kernel that computes nothing, on a PE that fails and on one that does not (AMB-HIO-49, AMB-HIO-56)."""
    host = opened_host(impl, check, 1, 1, 2)
    place, failing = host.machine.places
    host.deploy()
    host.done(host.fill(place, host.base + 1024, 64))
    host.fail(failing)
    for pe in (failing, place):
        shards = parts(Part(pe, host.base, 16))
        completion = host.send(from_pattern(host, place, host.base + 1024, 64, shards, failure_policy=policy))
        check.equal(completion.completions[0]["ok"], pe == place, f"success on {pe}")


def recognize_order_of_time(host, order, failing, actual):
    """End the case where shards run until one fails in time, the same ones in another launch (AMB-HIO-49)."""
    host.fail()
    host.done(*(host.fill(place, host.base, 16) for place in host.machine.places))
    message = on_six(host, 7, order, failure_policy="fail_fast")
    host.fail(*(host.machine.places[place] for place in failing))
    host.fails(message, "another launch with PEs that fail")
    again = [host.bytes_of(place, host.base, 16) for place in host.machine.places]
    possible = set(actual) <= {LEFT, WRITTEN} and all(actual[place] == LEFT for place in failing)
    host.check.reading("AMB-HIO-49", "in order of time", possible and again == actual)


@clause("HIO-D7-43", "HIO-D7-44", "HIO-D4-07", "HIO-Context-04")
@feature("fault-injection", "endpoint-control")
@pytest.mark.parametrize("policy", ["fail_fast", "collect_all"])
def test_a_failure_has_the_same_code_each_time(impl, check, policy):
    """The code does not depend on which PEs fail, the order of the shards, or the endpoint (AMB-HIO-52)."""
    codes = []
    for order in ORDERS.values():
        host = six_pes(impl, check)
        for failing in FAILING:
            host.fail()
            message = on_six(host, 7, order, failure_policy=policy)
            host.fail(*(host.machine.places[place] for place in failing))
            codes.append(host.fails(message, "a launch with PEs that fail"))
    check.equal(sorted(set(codes)), codes[:1], "the codes")


@clause("HIO-D4-07", "HIO-D7-43", "HIO-D7-44")
@feature("device-memory-probe", "fault-injection", "endpoint-control")
@pytest.mark.parametrize("policy", ["fail_fast", "collect_all"])
def test_a_shard_that_is_refused_is_told_before_one_that_fails(impl, check, policy):
    """A PE that fails is lower than the shard whose address is refused: nothing ran, so nothing failed (AMB-HIO-44)."""
    host = six_pes(impl, check)
    places = host.machine.places
    outside = Part(places[4], host.machine.end, 16, 64)
    refused = host.fails(working(host, 7, outside, failure_policy=policy), "a launch with an address that is refused")
    shards = [Part(places[0], host.base, 16), Part(places[1], host.base, 16, 16), outside]
    both = working(host, 7, *shards, failure_policy=policy)
    alone = working(host, 7, shards[0], failure_policy=policy)
    host.fail(places[0])
    fault = host.fails(alone, "a launch on the PE that fails")
    code = host.fails(both, "the launch with both")
    seen = policy == "collect_all" and fills(host)
    ran = not seen or host.bytes_of(places[1], host.base, 16) == filled("fill_u32", 7, 16)
    check.reading("AMB-HIO-44", "the shards that exist run", ran and code == fault != refused)
    check.equal(code, refused, "the code of the launch")
    host.holds(places[1], host.base, LEFT, "a PE that works")


@clause("HIO-D7-31", "HIO-D7-43", "HIO-D7-44")
@feature("device-memory-probe", "fault-injection", "endpoint-control")
@pytest.mark.parametrize("policy", ["fail_fast", "collect_all"])
def test_a_failure_is_over_with_its_cause(impl, check, policy):
    """PEs that no shard names may fail; once the PE works, the same launch succeeds and writes every shard."""
    host = six_pes(impl, check)
    places = host.machine.places
    host.fail(places[5])
    host.done(on_six(host, 1, ORDERS["mixed"][:2], failure_policy=policy))
    host.fails(on_six(host, 2, ORDERS["mixed"], failure_policy=policy), "a launch with a PE that fails")
    host.fail()
    host.done(on_six(host, 3, ORDERS["mixed"], failure_policy=policy))
    for place in places:
        expected = filled("fill_u32", 3, 16) if fills(host) else LEFT
        host.holds(place, host.base, expected, f"PE {dict(place)} in the end")


@clause("HIO-D4-06", "HIO-D3-12")
@feature("device-memory-probe", "delivery-order", "endpoint-control")
@pytest.mark.parametrize("depth", [1, 3])
def test_requests_beyond_the_depth_of_the_queue_are_refused_at_once(impl, check, depth):
    """With a seed, completions wait until all frames are sent: the first few are done, the others wrote nothing.

    Their answers come before those of the requests that wait; afterwards there is room again, and the depth is that of
    all correlations together (AMB-HIO-50).
    """
    host = opened_host(impl, check, 1, 1, 2, queue_depth=depth)
    check.equal(host.machine.queue_depth, depth, "the depth that the endpoint tells")
    place = host.machine.places[1]
    host.done(host.fill(place, host.base, 80))
    for correlations in (1, 5):
        writes = [
            host.fill(
                place,
                host.base + 16 * number,
                16,
                value=number + 1,
                correlation_id=f"correlation {number % correlations}",
            )
            for number in range(5)
        ]
        answered = host.together(*writes, seed=1)
        taken = [completion["ok"] for completion in answered.completions]
        if correlations == 1 and all(taken):
            memory = host.bytes_of(place, host.base, 80)
            written = b"".join(bytes([number + 1] * 16) for number in range(5))
            check.reading("AMB-HIO-50", "the host waits", memory == written)
        check.equal(taken, [number < depth for number in range(5)], "which of five requests are taken")
        check.equal({*answered.order[: 5 - depth]}, {pair_of(write) for write in writes[depth:]}, "the first answers")
        codes = {completion["error_code"] for completion in answered.completions[depth:]}
        check.equal(len(codes), 1, "the number of codes of those that are refused")
        for number in range(5):
            expected = bytes([number + 1] * 16) if number < depth else LEFT
            host.holds(place, host.base + 16 * number, expected, f"the memory of write {number}")


@clause("HIO-D3-12", "HIO-D4-07")
@feature("delivery-order", "endpoint-control")
def test_a_queue_takes_as_many_requests_as_it_tells(impl, check):
    """The queue takes as many reads and writes as its depth at once, and answers each, also those that fail."""
    host = opened_host(impl, check, 1, 1, 2, queue_depth=12)
    place = host.machine.places[0]
    requests = [host.fill(place, host.base, 8) for _ in range(5)] + [
        host.read_back(place, host.base, 8) for _ in range(4)
    ]
    wrong = [host.read_back(place, host.machine.end, 8) for _ in range(3)]
    for seed in range(3):
        sent = [host.another(request) for request in (*requests, *wrong)]
        taken = [completion["ok"] for completion in host.together(*sent, seed=seed).completions]
        check.equal(taken, [True] * 9 + [False] * 3, "which requests succeed")
