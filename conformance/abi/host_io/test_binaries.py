"""Kernels whose binary was brought to memory by writes (D7; AMB-HIO-04, -14, -26, -42, -44, -56)."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tessera_conformance.chapters.abi.host_io.kit.launches import Part, from_pattern, of_one_sip, parts
from tessera_conformance.chapters.abi.host_io.kit.memory import BACKGROUND, end_of, host_of
from tessera_conformance.chapters.abi.host_io.kit.messages import scalar
from tessera_conformance.marks import clause, feature

EXTREMES = [
    pytest.param("i32", [0, -1, 2**31 - 1, -(2**31)], marks=clause("HIO-D7-38")),
    pytest.param("i64", [0, 2**53 + 1, 2**63 - 1, -(2**63)], marks=clause("HIO-D7-39")),
    pytest.param(
        "fp16", [0, Decimal("-0.0"), 65504, -65504, Decimal("5.9604644775390625e-8")], marks=clause("HIO-D7-40")
    ),
    pytest.param("fp32", [0, Decimal("3.4028234663852886e38"), Decimal("-1e-45"), 0.1], marks=clause("HIO-D7-41")),
    pytest.param("bool", [True, False], marks=clause("HIO-D7-42")),
]


def launching_host(impl, check):
    """A host of an endpoint that launches a kernel whose binary a pattern wrote (AMB-HIO-56)."""
    host = host_of(impl, check)
    host.deploy()
    return host


def on_memory(host):
    """A tensor of 8 bytes on the first PE, behind the binaries: a launch may be refused that has none (AMB-HIO-42)."""
    return parts(Part(of_one_sip(host, 1)[0], host.base + 3072, 8))


@clause("HIO-D7-13", "HIO-D7-36", "HIO-D7-08", "HIO-D7-09", "HIO-D7-10", "HIO-D7-11", "HIO-D7-12")
@pytest.mark.parametrize("nbytes", [1, 255, 256, 65537])
def test_a_binary_may_lie_at_any_pe(impl, check, nbytes):
    """Each PE in turn has a binary at an address of its own; the launch names it, and works elsewhere (AMB-HIO-56)."""
    host = launching_host(impl, check)
    worker, places = of_one_sip(host, 1)[0], host.spread(4)
    room = host.machine.memories[0].bytes
    check.given(room >= 70001 * len(places) + nbytes, "the first memory has room for a binary of each PE", room)
    for number, place in enumerate(places):
        pa = host.base + 70001 * number + 1
        host.done(host.fill(place, pa, nbytes, value=number))
        host.done(from_pattern(host, place, pa, nbytes, parts(Part(worker, host.base, 8))))


@clause("HIO-D7-13", "HIO-D7-36", "HIO-D7-12")
def test_a_binary_may_be_written_in_pieces(impl, check):
    """Three writes, the middle one last; whether a launch before it is refused is not judged (AMB-HIO-26)."""
    host = launching_host(impl, check)
    place = host.spread(1)[0]
    first, last, middle = (host.fill(place, host.base + 100 * turn, 100, value=turn) for turn in (0, 2, 1))
    host.done(first, last)
    host.send(from_pattern(host, place, host.base, 300, on_memory(host)))
    host.done(middle)
    whole = [(host.base, 300), (host.base + 50, 200)]
    host.done(*(from_pattern(host, place, pa, nbytes, on_memory(host)) for pa, nbytes in whole))


@clause("HIO-D7-13", "HIO-D7-36")
def test_a_binary_may_lie_in_every_memory(impl, check):
    """The binary of a kernel may be at the first and at the last bytes of each memory."""
    host = launching_host(impl, check)
    place = host.spread(1)[0]
    for memory in host.machine.memories:
        for pa in (memory.base, end_of(memory) - 64):
            host.done(host.fill(place, pa, 64), from_pattern(host, place, pa, 64, on_memory(host)))


@clause("HIO-D7-13", "HIO-D7-36", "HIO-D7-01")
@feature("device-memory-probe")
def test_a_kernel_deployed_by_a_pattern_is_judged_by_its_size_alone(impl, check):
    """It computes nothing: neither its binary nor its tensors change, on one PE or several (AMB-HIO-04, -56)."""
    host = launching_host(impl, check)
    places = of_one_sip(host, 3)
    host.done(*(host.fill(place, host.base, 512, "fill_u16", 0x1234) for place in places))
    host.done(
        from_pattern(host, places[-1], host.base, 256, parts(*(Part(place, host.base + 100, 300) for place in places)))
    )
    for place in places:
        host.holds(place, host.base, bytes([0x34, 0x12] * 256), f"PE {dict(place)} after the launch")


@clause("HIO-D7-04", "HIO-D7-48")
@pytest.mark.parametrize(("dtype", "values"), EXTREMES)
def test_a_launch_may_have_scalars_alone(impl, check, dtype, values):
    """No PE takes part (AMB-HIO-42); each dtype with its least and largest numbers, alone and together."""
    host = launching_host(impl, check)
    place = host.spread(1)[0]
    host.done(host.fill(place, host.base, 64))
    alone = [from_pattern(host, place, host.base, 64, scalar(dtype, value)) for value in values]
    together = from_pattern(host, place, host.base, 64, *(scalar(dtype, value) for value in values))
    completions = host.send(*alone, together).completions
    check.reading("AMB-HIO-42", "refused", not any(completion["ok"] for completion in completions))
    check.equal(
        [completion["ok"] for completion in completions],
        [True] * len(completions),
        "success of launches with scalars alone",
    )


@clause("HIO-D7-04", "HIO-D7-35")
@feature("device-memory-probe", "hop-trace")
def test_a_launch_may_have_no_arguments(impl, check):
    """It ends with success, and no memory changes (AMB-HIO-42)."""
    host = launching_host(impl, check)
    place = host.spread(1)[0]
    expected = bytes([BACKGROUND] * 128)
    host.done(host.fill(place, host.base, 128))
    host.done(from_pattern(host, place, host.base, 64))
    host.holds(place, host.base, expected, "memory after a launch without arguments")


@pytest.mark.parametrize(
    "member",
    [
        pytest.param("sip", marks=clause("HIO-D7-09")),
        pytest.param("cube", marks=clause("HIO-D7-10")),
        pytest.param("pe", marks=clause("HIO-D7-11")),
    ],
)
def test_a_binary_at_a_place_that_does_not_exist_is_refused(impl, check, member):
    """One tag too large; the same launch with the binary where it was written succeeds (AMB-HIO-44)."""
    host = launching_host(impl, check)
    place = host.machine.places[-1]
    absent = 1 + max(pe[member] for pe in host.machine.places)
    host.done(host.fill(place, host.base, 64))
    message = from_pattern(host, place, host.base, 64, on_memory(host))
    wrong = {**host.another(message), "kernel_ref": {**message["kernel_ref"], f"deploy_{member}": absent}}
    host.fails(wrong, f"a launch from {member} {absent}")
    host.done(message)
