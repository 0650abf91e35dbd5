"""On which PEs a launch works: those that the tags of its shards name (D7, Context; AMB-HIO-09, -16, -44, -47)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.abi.host_io.kit.elements import filled
from tessera_conformance.chapters.abi.host_io.kit.launches import (
    Part,
    built_in,
    filling,
    fills,
    has_built_in,
    judge_pairing,
    of_one_sip,
    parts,
    run,
    working,
)
from tessera_conformance.chapters.abi.host_io.kit.memory import BACKGROUND, end_of, host_of, opened_host, order_of
from tessera_conformance.chapters.abi.host_io.kit.messages import scalar
from tessera_conformance.chapters.abi.host_io.kit.sequences import FAR
from tessera_conformance.marks import clause, feature

LEFT = bytes([BACKGROUND] * 16)


def marked(host, places):
    """Other bytes at the same address of every place, which the tags alone tell apart."""
    data = [filled("fill_u32", 0x01010101 * (number + 1), 16) for number in range(len(places))]
    host.done(*(host.fill(place, host.base, 16, value=number + 1) for number, place in enumerate(places)))
    host.done(*(host.fill(place, host.base + 4096, 16) for place in places))
    return data


def copying(host, sources, targets):
    """A copy from one address to another on every place; tensors list their shards as they are given."""
    source = parts(*(Part(place, host.base, 16, 16 * number) for number, place in enumerate(sources)))
    target = parts(*(Part(place, host.base + 4096, 16, 16 * number) for number, place in enumerate(targets)))
    return source, target


@clause("HIO-Context-06", "HIO-D7-19", "HIO-D7-20", "HIO-D7-21", "HIO-D7-35")
@feature("device-memory-probe", "endpoint-control")
@pytest.mark.parametrize("order", ["as-they-are", "reversed", "turned"])
def test_each_pe_works_on_its_own_memory(impl, check, order):
    """All PEs of a SIP have the same addresses: each copies its own bytes, and PEs of the other SIP stay."""
    host = opened_host(impl, check, 2, 2, 3)
    if order != "as-they-are":
        judge_pairing(host)
    places = of_one_sip(host, 6)
    listed = {"as-they-are": places, "reversed": places[::-1], "turned": places[4:] + places[:4]}[order]
    data = marked(host, places)
    others = [pe for pe in host.machine.places if pe not in places]
    host.done(*(host.fill(other, host.base + 4096, 16) for other in others))
    run(host, "copy", *copying(host, listed, places))
    for number, place in enumerate(places):
        host.holds(place, host.base + 4096, data[number], f"the copy on PE {dict(place)}")
        host.holds(place, host.base, data[number], f"what was copied on PE {dict(place)}")
    for place in others:
        host.holds(place, host.base + 4096, LEFT, f"PE {dict(place)}, which no shard names")


@clause("HIO-Context-06", "HIO-D7-19", "HIO-D7-20", "HIO-D7-21")
@feature("device-memory-probe", "endpoint-control")
@pytest.mark.parametrize("member", ["sip", "cube", "pe"])
def test_a_tag_of_a_shard_says_which_pe_works(impl, check, member):
    """One shard, on a PE that differs from all others in one tag at least: it alone is written."""
    host = opened_host(impl, check, 3, 3, 3)
    place = {"sip": 1, "cube": 1, "pe": 1, member: 2}
    host.done(*(host.fill(pe, host.base, 16) for pe in host.machine.places))
    run(host, "fill", parts(Part(place, host.base, 16)), scalar("i32", 3))
    for pe in host.machine.places:
        expected = filled("fill_u32", 3, 16) if order_of(pe) == order_of(place) else LEFT
        host.holds(pe, host.base, expected, f"PE {dict(pe)}")


@clause("HIO-D7-24", "HIO-D7-18")
@feature("device-memory-probe")
def test_shards_of_one_pe_belong_together_by_their_offsets(impl, check):
    """Three shards of each tensor on one PE, of different sizes, listed in different orders (AMB-HIO-57)."""
    host = host_of(impl, check)
    judge_pairing(host)
    place, base = host.machine.places[0], host.base
    sizes, offsets = (4, 12, 20), (0, 4, 16)
    sources = [Part(place, base + 300 * number, size, offsets[number]) for number, size in enumerate(sizes)]
    targets = [Part(place, base + 4000 - 100 * number, size, offsets[number]) for number, size in enumerate(sizes)]
    host.done(host.fill(place, base, 4096))
    host.done(*(host.fill(place, source.pa, source.nbytes, value=number) for number, source in enumerate(sources)))
    run(host, "copy", parts(sources[2], sources[0], sources[1]), parts(targets[1], targets[2], targets[0]))
    for number, target in enumerate(targets):
        expected = bytes([number] * target.nbytes)
        host.holds(place, target.pa, expected, f"the shard at offset {target.offset}")


@clause("HIO-D7-18", "HIO-D7-22")
@feature("device-memory-probe")
def test_each_of_many_shards_is_worked_on(impl, check):
    """Three hundred words of one PE with gaps between them, a shard each (AMB-HIO-68)."""
    host = host_of(impl, check)
    place, base = host.machine.places[0], host.base
    host.done(host.fill(place, base, 8 * 300, value=9))
    run(host, "fill", parts(*(Part(place, base + 8 * word, 4, 4 * word) for word in range(300))), scalar("i32", 7))
    host.holds(place, base, (filled("fill_u32", 7, 4) + bytes([9] * 4)) * 300, "the words and the gaps")


@clause("HIO-D7-22")
@feature("device-memory-probe")
def test_every_memory_can_hold_a_shard(impl, check):
    """The last words of each memory; the bytes before them, and the other memories at the same offset, stay."""
    host = host_of(impl, check)
    place = host.machine.places[0]
    for memory in host.machine.memories:
        host.done(host.fill(place, end_of(memory) - 32, 32))
    for number, memory in enumerate(host.machine.memories):
        run(host, "fill", parts(Part(place, end_of(memory) - 16, 16)), scalar("i32", number + 1))
        expected = LEFT + filled("fill_u32", number + 1, 16)
        host.holds(place, end_of(memory) - 32, expected, f"the end of {memory.kind}")
        for other in host.machine.memories[number + 1 :]:
            host.holds(place, end_of(other) - 32, LEFT + LEFT, f"the end of {other.kind}")


@clause("HIO-D7-19", "HIO-D7-47")
@feature("device-memory-probe", "endpoint-control")
def test_a_launch_over_two_sips_runs_whole_or_not_at_all(impl, check):
    """An endpoint may refuse it (AMB-HIO-45); where it does not, every shard is written."""
    host = opened_host(impl, check, 2, 1, 2)
    check.given(fills(host), "the endpoint has the built-in kernel fill, whose work is seen", host.machine.builtins)
    places = host.machine.places
    host.done(*(host.fill(pe, host.base, 16) for pe in places))
    completion = host.send(filling(host, 8, *(Part(pe, host.base, 16) for pe in reversed(places)))).completions[0]
    expected = filled("fill_u32", 8, 16) if completion["ok"] else LEFT
    for place in places:
        host.holds(place, host.base, expected, f"PE {dict(place)} after a launch with ok {completion['ok']}")


END = None
"""The address behind all memories of the machine."""
FAULTS = [
    pytest.param({"sip": FAR}, marks=clause("HIO-D7-19"), id="sip"),
    pytest.param({"cube": FAR}, marks=clause("HIO-D7-20"), id="cube"),
    pytest.param({"pe": FAR}, marks=clause("HIO-D7-21"), id="pe"),
    pytest.param({"pa": END}, marks=clause("HIO-D7-22"), id="address"),
    pytest.param({"nbytes": 2**50}, marks=clause("HIO-D7-23"), id="size"),
    pytest.param({"nbytes": 0}, marks=clause("HIO-D7-23"), id="no-bytes"),
    pytest.param({"pa": -1}, marks=clause("HIO-D7-22"), id="negative-address"),
]


@feature("device-memory-probe")
@pytest.mark.parametrize("policy", ["fail_fast", "collect_all"])
@pytest.mark.parametrize("members", FAULTS)
def test_a_launch_with_a_faulty_shard_does_not_begin(impl, check, members, policy):
    """The last shard has no such place or memory: no shard before it is written, whatever the policy (AMB-HIO-44)."""
    host = host_of(impl, check)
    places = of_one_sip(host, 3)
    host.done(*(host.fill(pe, host.base, 16) for pe in places))
    message = working(host, 8, *(Part(pe, host.base, 16) for pe in places), failure_policy=policy)
    faulty = {name: host.machine.end if value is END else value for name, value in members.items()}
    message["args"][0]["tensor_pa_map"]["shards"][-1].update(faulty)
    host.done(working(host, 9, *(Part(pe, host.base + 16, 16) for pe in places), failure_policy=policy))
    taken = host.send(message).completions[0]["ok"]
    check.reading("AMB-HIO-20", "zero bytes complete at once", faulty.get("nbytes") == 0 and taken)
    check.equal(taken, False, f"success of a launch with a shard of {faulty}")
    sound = [host.bytes_of(place, host.base, 16) for place in places[:-1]]
    check.reading("AMB-HIO-44", "the shards that exist run", sound == [filled("fill_u32", 8, 16)] * len(sound))
    for place in places:
        host.holds(place, host.base, LEFT, f"PE {dict(place)}")


ARGUMENTS = [("copy", 0), ("copy", 1), ("add_fp32", 0), ("add_fp32", 1), ("add_fp32", 2)]
"""Kernels of several tensors, with the number of each."""


@feature("device-memory-probe")
@pytest.mark.parametrize("members", [FAULTS[1], FAULTS[2], FAULTS[3], FAULTS[4]])
@pytest.mark.parametrize(("name", "number"), ARGUMENTS, ids=[f"{name}-{number}" for name, number in ARGUMENTS])
def test_a_fault_in_any_tensor_keeps_a_launch_from_beginning(impl, check, name, number, members):
    """The last shard of one tensor has no such place or memory: nothing is written on any PE (AMB-HIO-44, -47).

    The launch without it runs before.
    """
    host = host_of(impl, check)
    places = of_one_sip(host, 2)
    tensors = 2 if name == "copy" else 3
    args = [parts(*(Part(pe, host.base + 32 * at, 16) for pe in places)) for at in range(tensors)]

    def fill():
        """Fill each tensor with another number, and return the memory of each PE."""
        host.done(*(host.fill(pe, host.base + 32 * at, 32, value=at + 1) for pe in places for at in range(tensors)))
        return [host.bytes_of(pe, host.base, 32 * tensors) for pe in places]

    fill()
    run(host, name, *args)
    done = [host.bytes_of(pe, host.base, 32 * tensors) for pe in places]
    before = fill()
    faulty = {key: host.machine.end if value is END else value for key, value in members.items()}
    message = built_in(host, name, *args)
    message["args"][number]["tensor_pa_map"]["shards"][-1].update(faulty)
    host.fails(message, f"a launch with a shard of {faulty} in tensor {number}")
    first = host.bytes_of(places[0], host.base, 32 * tensors)
    check.reading("AMB-HIO-44", "the shards that exist run", first == done[0] != before[0])
    for place, data in zip(places, before, strict=True):
        host.holds(place, host.base, data, f"PE {dict(place)}")


UNFIT = {
    "counts": lambda at, place, far: ([Part(place, at, 8), Part(far, at, 8)], [Part(place, at + 32, 8)]),
    "sizes": lambda at, place, far: ([Part(place, at, 8)], [Part(place, at + 32, 12)]),
    "places": lambda at, place, far: ([Part(place, at, 8)], [Part(far, at + 32, 8)]),
}
"""Shards of two tensors that do not fit together, from an address and two PEs on."""


@clause("HIO-D4-01", "HIO-D7-18", "HIO-D7-47")
@feature("device-memory-probe")
@pytest.mark.parametrize("policy", ["fail_fast", "collect_all"])
@pytest.mark.parametrize("unfit", UNFIT.values(), ids=UNFIT)
def test_a_launch_of_tensors_that_do_not_fit_together_is_answered(impl, check, unfit, policy):
    """An endpoint may refuse it or run it (AMB-HIO-57); where it refuses, nothing is written, and others still run."""
    host = host_of(impl, check)
    place, far = of_one_sip(host, 2)
    host.done(*(host.fill(pe, host.base, 64) for pe in (place, far)))
    tensors = [parts(*shards) for shards in unfit(host.base, place, far)]
    answered = host.send(built_in(host, "copy", *tensors, failure_policy=policy))
    check.equal(len(answered.completions), 1, "the completions of the launch")
    if not answered.completions[0]["ok"]:
        for pe in (place, far):
            host.holds(pe, host.base, LEFT * 4, f"PE {dict(pe)} after the refusal")
    if has_built_in(host, "fill"):
        run(host, "fill", parts(Part(place, host.base, 16)), scalar("i32", 6))
        host.holds(place, host.base, filled("fill_u32", 6, 16), "what a launch behind it left")


def code_of(host, *shards, policy="fail_fast"):
    """The code of a launch on these shards, which is refused."""
    message = working(host, 1, *shards, failure_policy=policy)
    return host.fails({**message, "target_device": host.machine.device(host.machine.places[0])}, "a faulty launch")


@clause("HIO-D4-07", "HIO-D7-43", "HIO-D7-44", "HIO-Context-04")
@pytest.mark.parametrize("policy", ["fail_fast", "collect_all"])
def test_of_two_faulty_shards_the_lowest_is_told(impl, check, policy):
    """Lowest by SIP, cube and PE, in whichever order they are listed: the code is that of its fault (AMB-HIO-44)."""
    host = host_of(impl, check)
    place = of_one_sip(host, 1)[0]
    sound = Part(place, host.base, 16)
    outside = Part(place, host.machine.end, 16)
    absent = [Part({**place, "pe": FAR}, host.base, 16), Part({**place, "cube": FAR}, host.base, 16)]
    alone = [code_of(host, message, policy=policy) for message in (outside, absent[0])]
    for other in absent:
        for listed in ((outside, other), (other, outside), (sound, other, outside), (other, sound, outside)):
            actual = code_of(host, *listed, policy=policy)
            first = alone[0] if next(code for code in listed if code != sound) == outside else alone[1]
            check.reading("AMB-HIO-44", "the first faulty shard of the list is named", actual == first != alone[0])
            check.equal(actual, alone[0], "the code of the lowest faulty shard")
    far = Part({**place, "pe": FAR - 1}, host.base, 16)
    further = Part({**place, "cube": FAR}, host.machine.end, 16)
    for listed in ((far, further), (further, far), (sound, further, far)):
        check.equal(code_of(host, *listed, policy=policy), alone[1], "the code of a place that does not exist")
    for pe in [pe for pe in of_one_sip(host, 64) if pe["cube"] > place["cube"]][:1]:
        beyond = Part(pe, host.machine.end, 16)
        for listed in ((absent[0], beyond), (beyond, absent[0])):
            check.equal(code_of(host, *listed, policy=policy), alone[1], "the code of the lower cube")


@clause("HIO-D7-35", "HIO-D7-22")
@feature("device-memory-probe", "endpoint-control")
@pytest.mark.parametrize("bit", [36, 40, 48, 63])
def test_high_bits_of_an_address_name_no_pe(impl, check, bit):
    """A shard beyond every memory by one bit of its address is refused; no PE has changed where the low bits lead."""
    host = opened_host(impl, check, 1, 2, 2)
    places = host.machine.places
    end = max(end_of(memory) for memory in host.machine.memories)
    check.given(host.base < 1 << bit and end <= host.base + (1 << bit), f"no memory is 2**{bit} bytes behind", end)
    host.done(*(host.fill(pe, host.base, 16) for pe in places))
    host.done(working(host, 7, Part(places[-1], host.base + 16, 16)))
    for place in places:
        host.fails(working(host, 8, Part(place, host.base + (1 << bit), 16)), f"a launch on bit {bit} of an address")
    for place in places:
        host.holds(place, host.base, LEFT, f"PE {dict(place)}")
