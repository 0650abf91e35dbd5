"""Messages on links: the times of the engine, links that fail, queues of devices, and routes over transports."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives import recurrence
from tessera_reference.collectives import travel as durations
from tessera_reference.collectives.delivery import Sent
from tessera_reference.collectives.links import FIXED, PATHS, route, topology_of, way_between
from tessera_reference.collectives.operations import messages
from tessera_reference.collectives.queues import (
    MOST_MESSAGES,
    MOST_UNITS,
    Collective,
    Compute,
    Run,
    Unit,
    idle,
    simulate,
)
from tessera_reference.collectives.schedules import ALGORITHMS
from tessera_reference.collectives.travel import Cut, MessageTimes, Progress, Transfer, message_times, travel
from tessera_reference.mesh.engine import Engine
from tessera_reference.mesh.topology import NAMES, End, Topology, named, uniform

KINDS = {"nvlink": {"nvlink"}, "pcie": {"pcie"}, "rdma": {"pcie", "rdma"}, "network": {"pcie", "network"}}
ENDS = st.integers(0, 7)
LINKS = {name: [link.name for link in named(name).links] for name in NAMES}
CUTS = {name: st.lists(st.sampled_from(links), max_size=12, unique=True) for name, links in LINKS.items()}


def walked(name: str, source: int, links: tuple[str, ...]) -> End:
    """Return the end to which the links lead."""
    at: End = source
    by_name = {link.name: link for link in named(name).links}
    for each in links:
        assert at in (by_name[each].a, by_name[each].b)
        at = by_name[each].other(at)
    return at


@pytest.mark.parametrize("name", ["two-nodes", "mixed", "eight-sm90"])
@given(data=st.data(), source=ENDS, target=ENDS)
def test_a_route_leads_to_its_target_over_links_of_its_kinds_that_are_up(
    name: str, data: st.DataObject, source: int, target: int
) -> None:
    topology, down = named(name), data.draw(CUTS[name])
    if topology.route(source, target, frozenset(down)) is None:
        with pytest.raises(Failure, match="no way between") as caught:
            route(topology, source, target, down=down)
        assert caught.value.status is Status.TESS_ERR_LAUNCH_FAILED
        return
    found = route(topology, source, target, down=down)
    assert walked(name, source, found.links) == target
    assert not set(found.links) & set(down)
    kinds = {link.kind for link in topology.links if link.name in found.links}
    assert kinds <= KINDS.get(found.path, set(PATHS))
    assert found.path in KINDS or found.path == ("local" if source == target else "mixed")


def test_links_of_several_transports_are_the_last_way() -> None:
    """Device 0 has neither its NIC nor its host: another device of its node passes its data on."""
    found = route(named("two-nodes"), 0, 4, down=["bus0", "pcie0"])
    assert (found.path, found.links[0], found.fallback) == ("mixed", "nvlink0", True)


TOPOLOGY = named("two-nodes")
TWO_NODE_LINKS = [link.name for link in TOPOLOGY.links]
ALL_EIGHT = range(8)


def test_a_retry_by_hand() -> None:
    """4.5 MB to the next device: 10 us on NVLink at 450 GB/s, lost after 4 us, then the whole way again by PCIe."""
    sent = [Sent(0, 0, 1, 0, 4_500_000, False)]
    (whole,) = travel(TOPOLOGY, ALL_EIGHT, sent, 1)
    nvlink = way_between(TOPOLOGY, 0, 1, frozenset())
    assert (whole.links, whole.start, whole.end) == (("nvlink0", "nvlink1"), 0, 10_000_000 + nvlink.latency + FIXED)
    lost, again = travel(TOPOLOGY, ALL_EIGHT, sent, 1, cuts=[Cut(4_000_000, "nvlink1")])
    assert (lost.links, lost.start, lost.end, lost.lost) == (("nvlink0", "nvlink1"), 0, 4_000_000, True)
    pcie = way_between(TOPOLOGY, 0, 1, frozenset(["nvlink1"]))
    assert (again.links, again.start, again.lost) == (("pcie0", "pcie1"), 4_000_000, False)
    assert again.end == 4_000_000 + pcie.time(4_500_000) + pcie.latency + FIXED


@given(
    name=st.sampled_from(sorted(ALGORITHMS)),
    operation=st.sampled_from(["all_reduce", "all_gather", "broadcast"]),
    cuts=st.lists(st.builds(Cut, st.integers(0, 60_000_000), st.sampled_from(TWO_NODE_LINKS)), max_size=5),
    path=st.sampled_from(["auto", "nvlink", "pcie", "rdma", "network"]),
)
def test_every_message_arrives_once_and_every_credit_is_back(
    name: str, operation: str, cuts: list[Cut], path: str
) -> None:
    """Or there is no way left, which the failure says."""
    sent = messages(operation, name, 8, 100_003, per_node=4, chunk=20_000)
    found, lost = travelled(sent, path, cuts)
    if isinstance(found, Failure):
        assert found.status is Status.TESS_ERR_LAUNCH_FAILED
        assert any(cut.link in str(found) for cut in cuts)
        return
    assert sorted(found, key=str) == sorted(sent, key=str)
    assert all(any(cut.link in each.links and cut.at == each.end for cut in cuts) for each in lost)


def travelled(sent: list[Sent], path: str, cuts: list[Cut]) -> tuple[list[Sent] | Failure, list[Transfer]]:
    """Return the messages that arrive in six chunks, or the failure, and those lost; credits are always counted."""
    engine, arrived = Engine(), list[Sent]()
    progress = Progress(engine, TOPOLOGY, lambda part, transfer: arrived.append(transfer.sent), path=path, cuts=cuts)
    try:
        for chunk in range(6):
            progress.add(chunk, ALL_EIGHT, [each for each in sent if each.first // 20_000 == chunk], 4)
        progress.start()
        engine.run()
    except Failure as failure:
        return failure, progress.lost
    return arrived, progress.lost


def test_a_credit_that_is_kept_is_found_at_once() -> None:
    progress = Progress(Engine(), TOPOLOGY, lambda part, transfer: None)
    progress.add(0, ALL_EIGHT, [Sent(0, 0, 1, 0, 8, False)], 4)
    progress.start()
    progress.check()
    progress._lanes["nvlink0", 0].credits -= 1
    with pytest.raises(AssertionError, match="nvlink0 from 0: 14 credits left, 1 taken"):
        progress.check()


def test_a_link_that_fails_twice_fails_once() -> None:
    sent = messages("all_reduce", "ring", 8, 80_000)
    once = travel(TOPOLOGY, ALL_EIGHT, sent, 4, cuts=[Cut(9_000_000, "nvlink3")])
    assert travel(TOPOLOGY, ALL_EIGHT, sent, 4, cuts=[Cut(9_000_000, "nvlink3"), Cut(12_000_000, "nvlink3")]) == once
    assert travel(TOPOLOGY, ALL_EIGHT, sent, 4, cuts=[Cut(9_000_000, "nvlink3")] * 2) == once


Row = tuple[int, ...]
CASES = {
    "ring, uneven shares": ("ring", uniform(1, 7), 101, None, "recurrence"),
    "halving, even shares": ("halving_doubling", uniform(1, 8), 320, None, "recurrence"),
    "direct, uneven shares": ("direct", uniform(1, 8), 100_003, None, "engine"),
    "hierarchical, fewer elements than ranks": ("hierarchical", uniform(2, 4), 5, None, "engine"),
    "tree of a prime number of ranks": ("tree", uniform(1, 5), 200, None, "engine"),
    "halving, chunks across shares": ("halving_doubling", uniform(1, 16), 99, 13, "engine"),
    "direct, a shared uplink": ("direct", uniform(4, 2, shared=True), 320, None, "engine"),
}


def times_of(topology: Topology, name: str, count: int, chunk: int | None = None) -> MessageTimes:
    devices = [each.id for each in topology.devices]
    per_node = len(devices) // len(topology.nodes)
    return message_times(topology, devices, "all_reduce", name, count, 4, per_node=per_node, chunk=chunk)


@pytest.mark.parametrize("case", CASES)
def test_times_are_those_of_the_engine_and_say_whose_they_are(case: str) -> None:
    name, topology, count, chunk, by = CASES[case]
    times = times_of(topology, name, count, chunk)
    assert (times.by, bool(times.why)) == (by, by == "engine")
    devices = [each.id for each in topology.devices]
    per_node = len(devices) // len(topology.nodes)
    sent = messages("all_reduce", name, len(devices), count, per_node=per_node, chunk=chunk)
    engine = sorted((*each.sent[:5], each.start, each.end) for each in travel(topology, devices, sent, 4, chunk=chunk))
    rows: list[Row] = []
    for step in times.steps:
        rows += [(step.step, *one) for one in np.stack(step[1:], axis=1).tolist()]
    assert sorted(rows) == engine
    assert times.last == max(row[-1] for row in engine)


def test_more_than_a_month_is_left_to_the_engine() -> None:
    times = message_times(uniform(1, 2), (0, 1), "all_reduce", "tree", 1 << 61, 1)
    assert times.by == "engine"
    assert "more than" in times.why
    assert times.last > 1 << 61


def test_devices_that_are_cut_off_are_refused() -> None:
    with pytest.raises(Failure) as raised:
        message_times(uniform(1, 3), (0, 1, 2), "all_reduce", "ring", 9, 1, down=frozenset(["nv1"]))
    assert raised.value.status is Status.TESS_ERR_LAUNCH_FAILED


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("count", [19 * 5, 19 * 5 + 3])
def test_durations_of_many_devices_are_those_of_the_engine(
    name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 19, as if 18 were few: the recurrence first, then the engine alone."""
    topology, devices = uniform(1, 19), tuple(range(19))
    monkeypatch.setattr(durations, "FEW", 18)
    one = durations.collective_duration(topology, devices, "all_reduce", count, name)
    durations._duration.cache_clear()
    monkeypatch.setattr(durations, "FEW", 1000)
    assert durations.collective_duration(topology, devices, "all_reduce", count, name) == one
    durations._duration.cache_clear()


@st.composite
def stars(draw: st.DrawFn) -> tuple[Topology, tuple[int, ...]]:
    """Draw devices around a switch, most of them alike, and those that take part."""
    count, credits = draw(st.integers(2, 17)), draw(st.integers(1, 5))
    topology = uniform(1, count, credits=credits)
    speed, latency = draw(st.sampled_from([10**9, 3 * 10**9, 450 * 10**9])), draw(st.sampled_from([0, 7, 500_000]))
    links = [replace(link, bandwidth=speed, latency=latency) for link in topology.links]
    odd = draw(st.sampled_from(["none", "none", "none", "slow", "credits", "shortcut", "second", "pcie"]))
    if odd == "slow":
        links[0] = replace(links[0], bandwidth=speed // 2)
    if odd == "credits":
        links[0] = replace(links[0], credits=credits + 1)
    if odd in ("shortcut", "second"):
        links.append(replace(links[0], name="more", b=1 if odd == "shortcut" else links[0].b))
    if odd == "pcie":
        links += [replace(link, name=f"host-{link.name}", b="node0", kind="pcie") for link in links]
    members = draw(st.permutations(range(count)))[: draw(st.integers(2, count))]
    return replace(topology, links=tuple(links)), tuple(members)


@pytest.mark.parametrize("name", ALGORITHMS)
@given(star=stars(), shares=st.integers(1, 5), more=st.sampled_from([0, 0, 0, 1]), down=st.booleans(), data=st.data())
def test_one_rank_tells_how_long_like_ranks_take(
    name: str, star: tuple[Topology, tuple[int, ...]], shares: int, more: int, down: bool, data: st.DataObject
) -> None:
    topology, members = star
    collective = data.draw(st.sampled_from(durations.COLLECTIVES))
    size = shares * len(members) * data.draw(st.sampled_from([1, 1000])) + more
    out = frozenset(["nv0"] if down else [])
    cuts = data.draw(st.sampled_from([(), (), (Cut(1_000_000, "nv1"),)]))
    path = data.draw(st.sampled_from(["auto", "auto", "pcie"]))
    answers = []
    for few, one_for_all in ((1, True), (1000, False)):
        durations._duration.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(durations, "FEW", few)
            patch.setattr(recurrence, "VECTORS", one_for_all)
            try:
                answers.append(
                    durations.collective_duration(
                        topology, members, collective, size, name, down=out, path=path, cuts=cuts
                    )
                )
            except Failure as failure:
                answers.append(failure.status)
    assert answers[0] == answers[1]


def test_one_rank_tells_of_every_symmetric_algorithm() -> None:
    for name in ("ring", "direct", "hierarchical", "halving_doubling"):
        asked = [
            recurrence.alike_duration(topology, tuple(range(16)), "all_reduce", 320, name, frozenset())
            for topology in (uniform(1, 16), uniform(2, 8))
        ]
        assert asked[0] is not None, name
        assert asked[1] is None, name


EIGHT = topology_of("eight-sm90")
TWO_NODES = topology_of("two-nodes")


@st.composite
def work(draw: st.DrawFn) -> list[Unit]:
    """Units on some of four ranks, each after some of those before."""
    units: list[Unit] = []
    for number in range(draw(st.integers(0, 7))):
        ranks = tuple(draw(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True)))
        names = [each.id for each in units]
        after = tuple(draw(st.lists(st.sampled_from(names), max_size=2, unique=True))) if names else ()
        priority = draw(st.integers(-1, 1))
        if draw(st.booleans()):
            units.append(Compute(f"u{number}", draw(st.integers(0, 10**7)), ranks, after, priority))
            continue
        operation, algorithm = draw(
            st.sampled_from([("all_reduce", "ring"), ("all_to_all", "direct"), ("broadcast", "tree")])
        )
        bytes, chunk = draw(st.integers(0, 1 << 20)), draw(st.integers(1 << 17, 1 << 20))
        units.append(
            Collective(f"u{number}", operation, algorithm, bytes, chunk, ranks, after=after, priority=priority)
        )
    return units


def spans(run: Run) -> dict[str, tuple[int, int]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for slot in run.slots:
        found[slot.id].append(slot)
    return {name: (min(s.start for s in slots), max(s.end for s in slots)) for name, slots in found.items()}


@settings(max_examples=120, deadline=None)
@given(units=work(), most=st.integers(1, 5), topology=st.sampled_from([EIGHT, TWO_NODES]))
def test_all_work_is_done_in_order_and_within_limits(units: list[Unit], most: int, topology: Any) -> None:
    devices = [each.id for each in topology.devices][:4]
    run = simulate(units, topology, devices, most)
    ranks = {device: rank for rank, device in enumerate(run.devices)}
    done = defaultdict(set)
    for slot in run.slots:
        done[slot.id].add((ranks[slot.device], slot.chunk))
    for unit in units:
        chunks = range(len(unit.chunks)) if isinstance(unit, Collective) else (None,)
        assert done[unit.id] == {(rank, chunk) for rank in unit.ranks for chunk in chunks}
    for device in run.devices:
        for queue, limit in (("compute", 1), ("comm", most)):
            slots = [each for each in run.slots if (each.device, each.queue) == (device, queue)]
            assert all(sum(o.start <= s.start < o.end for o in slots) <= limit for s in slots if s.start < s.end)
    known, when = {each.id: each for each in units}, spans(run)
    for unit in units:
        for name in unit.after:
            if isinstance(known[name], Collective) and unit.id in when and name in when:
                assert when[name][1] <= when[unit.id][0]


@given(units=work())
@settings(max_examples=20, deadline=None)
def test_idle_time_and_work_make_up_the_whole(units: list[Unit]) -> None:
    run = simulate(units, EIGHT, range(4))
    computed = sum(each.picoseconds * len(each.ranks) for each in units if isinstance(each, Compute))
    assert idle(run, "compute") + computed == 4 * run.duration


def test_a_single_collective_takes_as_long_as_its_messages() -> None:
    """One chunk on the queue travels as `travel` has it."""
    for operation, algorithm in (("all_reduce", "ring"), ("all_gather", "halving_doubling"), ("broadcast", "tree")):
        unit = Collective("r", operation, algorithm, 1 << 20, 1 << 20, tuple(range(8)))
        alone = travel(EIGHT, range(8), messages(operation, algorithm, 8, 1 << 20), 1)
        assert simulate([unit], EIGHT).duration == max(each.end for each in alone)


def test_two_collectives_of_the_same_links_share_their_time() -> None:
    unit = Collective("a", "all_reduce", "ring", 8 << 20, 1 << 20, tuple(range(8)))
    alone = simulate([unit], EIGHT, max_inflight=8).duration
    both = simulate([unit, replace(unit, id="b")], EIGHT, max_inflight=8).duration
    assert alone < both <= 2 * alone


def test_messages_added_later_join_what_travels() -> None:
    """Three parts on one link: of two that wait for it, the one of higher priority goes first."""
    engine, arrived, sent = Engine(), list[Any](), [Sent(0, 0, 1, 0, 1000, False)]
    progress = Progress(engine, EIGHT, lambda part, transfer: arrived.append(part))
    progress.add("first", [0, 1], sent, 1)
    progress.start()

    def add_more() -> None:
        progress.add("second", [0, 1], sent, 1)
        progress.add("third", [0, 1], sent, 1, priority=1)
        progress.start()
        assert progress.has_credits([0, 1], sent)

    engine.call_at(5, add_more)
    engine.run()
    assert arrived == ["first", "third", "second"]


TOO_MUCH: list[tuple[list[Unit], Status]] = [
    ([Compute(f"u{n}", 1, (0,)) for n in range(MOST_UNITS + 1)], Status.TESS_ERR_INVALID_VALUE),
    ([Collective("r", "all_reduce", "ring", MOST_MESSAGES, 1, (0, 1))], Status.TESS_ERR_UNSUPPORTED),
    ([Collective("r", "all_reduce", "ring", 10**18, 1, (0,))], Status.TESS_ERR_UNSUPPORTED),
    ([Compute("r", 10**18 + 1, (0,))], Status.TESS_ERR_INVALID_VALUE),
]


@pytest.mark.parametrize(("units", "status"), TOO_MUCH, ids=["units", "messages", "chunks", "time"])
def test_more_than_the_machine_takes_is_refused(units: list[Unit], status: Status) -> None:
    with pytest.raises(Failure) as refused:
        simulate(units, EIGHT)
    assert refused.value.status == status


@pytest.mark.parametrize("devices", [[], [0, 0]])
def test_devices_are_named_once(devices: list[int]) -> None:
    with pytest.raises(Failure, match="each once"):
        simulate([], EIGHT, devices)
