"""Every routed request has an explicit trace of hops (D7, Verification; AMB-HIO-28, -49, -54)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tessera_conformance.chapters.abi.host_io.kit.hops import components, routed, trace_of
from tessera_conformance.chapters.abi.host_io.kit.launches import Part, from_pattern, of_one_sip, parts, working
from tessera_conformance.chapters.abi.host_io.kit.memory import host_of, opened_host, order_of
from tessera_conformance.chapters.abi.host_io.kit.messages import ABSENT
from tessera_conformance.marks import clause, feature

TYPES = [
    pytest.param("write", marks=clause("HIO-Verification-03")),
    pytest.param("read", marks=clause("HIO-Verification-04")),
    pytest.param("launch", marks=clause("HIO-Verification-05")),
]


def answered(host, kind):
    """The routed requests of a type, with their traces."""
    sent = [(what, message) for what, message in routed(host) if what.startswith(f"a {kind}")]
    host.done(*(message for _, message in sent))
    return [(what, message, trace_of(host, message)) for what, message in sent]


@clause("HIO-D5-26")
@pytest.mark.parametrize("kind", TYPES)
def test_a_path_leads_from_the_host_and_back_without_gaps(impl, check, kind):
    """The path starts at time 0; each hop starts where the last one ended, and the path ends where it began."""
    host = host_of(impl, check)
    known = components(host)
    for what, _, trace in answered(host, kind):
        check.equal(trace.path[0].start, 0, f"the beginning of {what}")
        gaps = [(one, two) for one, two in pairwise(trace.path) if one.end != two.start]
        check.equal(gaps, [], f"hops of {what} that do not follow on each other")
        check.true(len(trace.path) > 2, f"{what} has hops on its way", trace.path)
        check.equal((trace.names[0], trace.names[-1]), (next(iter(known)),) * 2, f"the ends of the path of {what}")
        check.equal(set(trace.names) - set(known), set(), f"components of {what} that are not listed")


@pytest.mark.parametrize("kind", TYPES)
def test_a_request_visits_the_components_in_their_order(impl, check, kind):
    """There in the order of the list, back by the same ones; a binary is fetched on the way there."""
    host = host_of(impl, check)
    order = list(components(host))
    for what, message, trace in answered(host, kind):
        names = trace.names
        back = names[len(names) - 1 - names[::-1].index(order[-1]) if order[-1] in names else 0 :]
        if "kernel_ref" not in message or message["kernel_ref"]["kind"] == "builtin":
            check.equal(names, [*order, *order[-2::-1]], f"the path of {what}")
        elif message["args"]:
            check.equal(back, order[::-1], f"the way back of {what}")


@clause("HIO-D5-26", "HIO-Verification-06")
def test_every_routed_request_takes_time(impl, check):
    """The latency is above zero, and is the end of the last hop and the sum of the hops of the path."""
    host = host_of(impl, check)
    for kind in ("write", "read", "launch"):
        for what, _, trace in answered(host, kind):
            check.equal(trace.latency, trace.path[-1].end, f"the latency of {what}, and when its path ends")
            check.equal(trace.latency, sum(hop.end - hop.start for hop in trace.path), f"the sum for {what}")
            check.true(trace.latency > 0, f"{what} takes time", trace.latency)


@clause("HIO-Verification-03", "HIO-Verification-04", "HIO-Context-06")
@feature("hop-trace")
def test_hops_tell_the_pe_for_which_they_go_on(impl, check):
    """The hops of a write or read name its PE and no other, on the way there and back."""
    host = host_of(impl, check)
    for place in host.spread(5):
        for message in (host.fill(place, host.base, 16), host.read_back(place, host.base, 16)):
            host.done(message)
            trace = trace_of(host, message)
            check.equal(trace.places, {order_of(place)}, "the PEs of the hops")
            check.equal(trace.turn.place, order_of(place), "the PE of the component that ended last")
            check.equal(trace.turn.bytes, 16, "the bytes at that component")
            check.equal(trace.branches, [], "branches")


@clause("HIO-D7-34")
def test_a_launch_goes_to_the_endpoint_of_the_other_requests(impl, check):
    """Up to where the ways to PEs part, a launch passes what a write passes: io_cpu is the last of it."""
    host = host_of(impl, check)
    common = []
    for _, message in routed(host):
        host.done(message)
        path = trace_of(host, message).path
        common.append([hop.component for hop in path[: next((n for n, hop in enumerate(path) if hop.place), 0)]])
    ways = [candidate for candidate in common if candidate]
    check.true(len(ways) >= len(common) - 1, "requests have hops before those for a PE", common)
    for way in ways:
        check.equal(way, ways[0], "the components before those for a PE")
        check.equal(way[-1], "io_cpu", "the endpoint")
        check.equal(way.count("io_cpu"), 1, "how often the endpoint is passed on the way there")


@clause("HIO-D7-35", "HIO-Context-06")
@pytest.mark.parametrize("order", ["as-they-are", "reversed"])
def test_a_launch_fans_out_to_the_pes_of_its_shards(impl, check, order):
    """One way for each shard, to the PE that its tags name and to no other; all shards have the same address."""
    host = host_of(impl, check)
    places = of_one_sip(host, 4)
    for count in range(1, len(places) + 1):
        chosen = places[::-1][:count] if order == "reversed" else places[:count]
        message = working(host, 5, *(Part(place, host.base, 16, 16 * number) for number, place in enumerate(chosen)))
        deployed = {order_of(places[0])} if message["kernel_ref"]["kind"] == "deployed" else set()
        host.done(message)
        trace = trace_of(host, message)
        check.equal(trace.places - deployed, {order_of(place) for place in chosen} - deployed, "the PEs of the hops")
        ends = [branch for branch in (trace.turn, *trace.branches) if branch.component == trace.turn.component]
        check.equal(len(ends), count, "the number of ways that reach the last component")


@clause("HIO-D7-35", "HIO-Verification-05")
def test_ways_of_a_launch_part_at_one_time(impl, check):
    """Each begins where a hop of the path ended, each later hop of it where the one before ended."""
    host = host_of(impl, check)
    for what, _, trace in answered(host, "launch"):
        ends = {hop.end for hop in trace.path}
        before = None
        for branch in trace.branches:
            follows = before is not None and before.place == branch.place and before.end == branch.start
            check.true(follows or branch.start in ends, f"a hop of a branch of {what} follows on another", branch)
            check.true(branch.end <= trace.latency, f"a branch of {what} ends before the answer", branch)
            before = branch


@clause("HIO-D7-35", "HIO-Verification-05")
def test_the_answer_waits_for_the_slowest_shard(impl, check):
    """A launch on several PEs takes at least as long as one on any of them, for any place of the largest shard."""
    host = host_of(impl, check)
    places = of_one_sip(host, 3)
    for turn in range(3):
        sizes = [40, 100000, 4000][turn:] + [40, 100000, 4000][:turn]
        shards = [Part(place, host.base, size, 0) for place, size in zip(places, sizes, strict=False)]
        sent = [working(host, 5, shard) for shard in shards] + [working(host, 5, *shards)]
        host.done(*sent)
        *alone, together = (trace_of(host, message) for message in sent)
        slowest = max(trace.latency for trace in alone)
        check.true(together.latency >= slowest, "it waits for the slowest", (together.latency, slowest))
        check.equal(
            together.turn.bytes, max(trace.turn.bytes for trace in alone), "the bytes of the shard that ended last"
        )


@clause("HIO-D7-45", "HIO-Verification-05")
def test_a_binary_is_fetched_from_its_place(impl, check):
    """A launch whose binary is at another PE than its shard has hops for both, and its bytes pass there."""
    host = host_of(impl, check)
    worker = of_one_sip(host, 1)[0]
    for place in host.spread(4):
        host.done(host.fill(place, host.base + 4096, 777))
        message = from_pattern(host, place, host.base + 4096, 777, parts(Part(worker, host.base, 16)))
        host.done(message)
        trace = trace_of(host, message)
        check.equal(trace.places, {order_of(place), order_of(worker)}, "the PEs of the hops")
        fetched = [hop for hop in trace.path if hop.place == order_of(place) and hop.bytes == 777]
        check.true(bool(fetched), "the bytes of the binary pass at its place", trace.path)


@clause("HIO-D7-43", "HIO-D7-44", "HIO-D7-35")
@feature("fault-injection", "endpoint-control")
@pytest.mark.parametrize("policy", ["fail_fast", "collect_all", ABSENT], ids=["fail-fast", "collect-all", "absent"])
@pytest.mark.parametrize("failing", [(0,), (1, 3), (3,)], ids=str)
def test_shards_that_are_not_begun_have_no_hops(impl, check, policy, failing):
    """fail_fast: none above the lowest that fails; collect_all: all have some (AMB-HIO-49)."""
    host = opened_host(impl, check, 1, 1, 4)
    places = host.machine.places
    shards = [Part(place, host.base, 16) for place in reversed(places)]
    message = working(host, 7, *shards, failure_policy=policy)
    twin = working(host, 7, *shards, failure_policy="fail_fast")
    host.fail(*(places[number] for number in failing))
    host.fails(message, "a launch with PEs that fail")
    begun = places if policy == "collect_all" else places[: failing[0] + 1]
    trace, expected = trace_of(host, message), {order_of(place) for place in begun}
    if policy != "collect_all" and trace.places != expected:
        host.fails(twin, "another launch with PEs that fail")
        one_failed = any(order_of(places[number]) in trace.places for number in failing)
        possible = one_failed and trace.places <= set(map(order_of, places))
        check.reading("AMB-HIO-49", "in order of time", possible and trace_of(host, twin).places == trace.places)
    check.equal(trace.places, expected, "the PEs that the hops name")
    check.true(trace.latency > 0, "it takes time", trace.latency)
