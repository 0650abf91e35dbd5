"""Latency is made of hops and modelled components, and of nothing else (D3, D5, D7; AMB-HIO-28, -40, -54)."""

from __future__ import annotations

import json

import pytest

from tessera_conformance.chapters.abi.host_io.kit.exchange import pair_of
from tessera_conformance.chapters.abi.host_io.kit.hops import components, routed, trace_of
from tessera_conformance.chapters.abi.host_io.kit.launches import (
    Part,
    from_pattern,
    of_one_sip,
    parts,
    working,
)
from tessera_conformance.chapters.abi.host_io.kit.memory import host_of, opened_host
from tessera_conformance.chapters.runtime.kit.traces import overlapping, slices
from tessera_conformance.marks import clause, feature
from tessera_conformance.schemas import first_problem

SIZES = (4, 4096, 400000)


@clause("HIO-D5-26", "HIO-Verification-06")
def test_a_hop_takes_the_time_of_its_component(impl, check):
    """The fixed time, and that of the bytes at the bandwidth, rounded up to a picosecond; hops of branches too."""
    host = host_of(impl, check)
    known = components(host)
    for what, message in list(routed(host)):
        host.done(message)
        trace = trace_of(host, message)
        for branch in (*trace.path, *trace.branches):
            check.true(branch.component in known, f"the component of a hop of {what} is listed", branch)
            expected = known[branch.component].takes(branch.bytes)
            check.equal(branch.end - branch.start, expected, f"the duration of {branch} of {what}")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("write", marks=clause("HIO-D5-26", "HIO-D5-07")),
        pytest.param("read", marks=clause("HIO-D5-26", "HIO-D6-07")),
        pytest.param("discard", marks=clause("HIO-D5-26", "HIO-D6-14")),
        pytest.param("launch", marks=clause("HIO-D5-26", "HIO-D7-23")),
    ],
)
@feature("hop-trace")
def test_more_bytes_take_longer(impl, check, kind):
    """Bytes written, read, read and dropped, or worked on: of three sizes, each takes longer than the one before."""
    host = host_of(impl, check)
    place = of_one_sip(host, 1)[0]
    made = {
        "write": lambda size: host.fill(place, host.base, size),
        "read": lambda size: host.read_back(place, host.base, size),
        "discard": lambda size: host.read_back(place, host.base, size, dst_kind="discard"),
        "launch": lambda size: working(host, 1, Part(place, host.base, size)),
    }
    sent = [made[kind](size) for size in SIZES]
    host.done(*sent)
    actual = [trace_of(host, message).latency for message in sent]
    check.true(actual[0] < actual[1] < actual[2], f"{kind} of more bytes takes longer", actual)


@clause("HIO-D7-45", "HIO-D7-12")
def test_the_bytes_of_a_binary_take_time(impl, check):
    """Three sizes at one address: each launch takes longer than the one before, with shards and without."""
    host = host_of(impl, check)
    place = of_one_sip(host, 1)[0]
    host.done(host.fill(place, host.base, SIZES[-1]))
    for args in ([], [parts(Part(place, host.base, 16))]):
        sent = [from_pattern(host, place, host.base, size, *args) for size in SIZES]
        host.done(*sent)
        actual = [trace_of(host, message).latency for message in sent]
        check.true(actual[0] < actual[1] < actual[2], "a larger binary takes longer", actual)


@clause("HIO-D7-45", "HIO-D7-37")
def test_a_built_in_kernel_has_no_binary_to_fetch(impl, check):
    """The hops are the same for any stated size and place of the binary (AMB-HIO-40)."""
    host = host_of(impl, check)
    place = of_one_sip(host, 1)[0]
    kernels_with_arguments = {name: builtin for name, builtin in sorted(host.machine.builtins.items()) if builtin}
    check.given(bool(kernels_with_arguments), "a built-in kernel takes arguments", host.machine.builtins)
    for name, parameters in kernels_with_arguments.items():
        arguments = host.arguments(parameters, place)
        kernels = [host.builtin(name, nbytes_code=size) for size in (0, 1, 2**40)]
        sent = [host.launch(kernel, arguments) for kernel in kernels]
        host.done(*sent)
        first, *others = (trace_of(host, message) for message in sent)
        for other in others:
            check.equal(other.path, first.path, f"the path of {name} with another nbytes_code")


@clause("HIO-D3-09", "HIO-D5-26", "HIO-D5-24", "HIO-D6-10", "HIO-D7-32", "HIO-D7-28", "HIO-D7-29")
@feature("hop-trace")
@pytest.mark.parametrize("members", [("timestamp_tag", "debug_label"), ("grid", "meta")], ids="-".join)
def test_members_for_people_take_no_time(impl, check, members):
    """Tags, labels, grids and metas of any length, or none: the same hops, of writes, reads and launches."""
    host = host_of(impl, check)
    values = ["", "x" * 1000, "fast"] if "debug_label" in members else [{}, {"x": 64, "note": "y" * 900}]
    for what, message in list(routed(host)):
        if "grid" in members and "kernel_ref" not in message:
            continue
        sent = [{**host.another(message), name: value} for name in members for value in (None, *values)]
        host.done(message, *sent)
        first = trace_of(host, message)
        for variant in sent:
            check.equal(
                trace_of(host, variant), first, f"the hops of {what} with {sorted(set(members) & variant.keys())}"
            )


@clause("HIO-D5-26", "HIO-Verification-06", "HIO-D4-07")
@feature("delivery-order")
@pytest.mark.parametrize("seed", range(3))
def test_other_requests_do_not_change_a_latency(impl, check, seed):
    """Alone, or among dozens that wait, in any order of completion: each request has the same hops (AMB-HIO-54)."""
    host = host_of(impl, check)
    sent = list(routed(host))
    alone = []
    for _, message in sent:
        host.done(message)
        alone.append(trace_of(host, message))
    crowd = [host.another(message) for _ in range(3) for _, message in sent]
    host.send(*crowd, seed=seed)
    for number, request in enumerate(crowd):
        what, _ = sent[number % len(sent)]
        check.equal(trace_of(host, request), alone[number % len(sent)], f"the hops of {what} among others")


@clause("HIO-D5-26", "HIO-D4-07")
@feature("hop-trace", "endpoint-control")
def test_another_endpoint_takes_the_same_time(impl, check):
    """The same requests of two endpoints of one size, new each time."""
    actual = []
    for _ in range(2):
        host = opened_host(impl, check, 1, 2, 2)
        sent = [message for _, message in routed(host)]
        host.done(*sent)
        actual.append([trace_of(host, message) for message in sent])
    check.equal(actual[0], actual[1], "the hops on both endpoints")


@clause("HIO-D5-30", "HIO-D5-26")
@feature("hop-trace", "host-buffer-ref")
def test_the_bytes_of_a_buffer_travel(impl, check):
    """A buffer of the host's takes longer than a pattern of as many bytes, which is not sent, and more so if larger."""
    host = host_of(impl, check)
    place = of_one_sip(host, 1)[0]
    margins = []
    for size in SIZES:
        pattern, buffer = host.fill(place, host.base, size), host.copy_in(place, host.base, size)
        host.done(pattern, buffer, buffers={pair_of(buffer): bytes(size)})
        margins.append(trace_of(host, buffer).latency - trace_of(host, pattern).latency)
    check.true(0 < margins[0] < margins[1] < margins[2], "what the bytes take on their way", margins)


@clause("HIO-Verification-03", "HIO-Verification-04", "HIO-Verification-05")
def test_the_timeline_shows_every_hop(impl, check):
    """A trace in the Chrome format: slices of one track do not overlap, and each hop is one, of its duration."""
    host = host_of(impl, check)
    place = of_one_sip(host, 1)[0]
    two_of_one = working(host, 1, Part(place, host.base, 16), Part(place, host.base + 64, 4096, 16))
    sent = [*(message for _, message in routed(host)), two_of_one]
    host.done(*sent)
    text = check.returns(impl.host_io.timeline(), "there is a timeline")["trace"]
    timeline = json.loads(text)
    check.equal(first_problem("tessera:trace", "", timeline), None, "what is wrong with the trace")
    traces = [trace_of(host, message) for message in sent]
    hops = [branch for trace in traces for branch in (*trace.path, *trace.branches)]
    expected = sorted(hop.end - hop.start for hop in hops)
    drawn = [round(part["dur"] * 10**6) for part in slices(timeline["traceEvents"])]
    missing = list(expected)
    for event in drawn:
        if event in missing:
            missing.remove(event)
    check.equal(missing, [], "durations of hops, in picoseconds, that no slice has")
    check.equal(overlapping(check, timeline["traceEvents"]), [], "the slices that overlap")
