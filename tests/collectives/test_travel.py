"""Times of messages on links against those of the engine, rank by rank."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi.fatbin.metadata import COLLECTIVES
from tessera_reference.abi.status import Failure, Status
from tessera_reference.collectives import travel as durations
from tessera_reference.collectives.links import topology_of
from tessera_reference.collectives.queues import MOST_MESSAGES, MOST_UNITS, Collective, Compute, Unit, simulate
from tessera_reference.collectives.schedules import ALGORITHMS
from tessera_reference.collectives.travel import Cut
from tessera_reference.mesh.topology import Topology, uniform

MACHINES = {
    "a switch": uniform(1, 19),
    "one credit": uniform(1, 8, credits=1),
    "two nodes": uniform(2, 4),
    "two small nodes": uniform(2, 2, credits=1, uplink_credits=3),
    "three nodes": uniform(3, 3, uplink_credits=1),
    "a shared uplink": uniform(4, 2, shared=True),
    "a narrow shared uplink": uniform(2, 4, shared=True, uplink_credits=1),
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_durations_of_many_devices_are_those_of_the_engine(
    name: str, collective: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shares of one size and of two, and fewer elements than ranks; with the shortcuts and by the engine alone."""
    topology = MACHINES[machine]
    devices = tuple(device.id for device in topology.devices)
    monkeypatch.setattr(durations, "FEW", 1)
    for size in (40 * len(devices), 40 * len(devices) + len(devices) // 2, len(devices) // 2):
        answers = []
        for vectors in (True, False):
            durations._duration.cache_clear()
            monkeypatch.setattr(durations, "VECTORS", vectors)
            answers.append(durations.collective_duration(topology, devices, collective, size, name))
        assert answers[0] == answers[1], size
    durations._duration.cache_clear()


def test_rings_are_known_unless_they_share_links() -> None:
    for topology in MACHINES.values():
        devices = tuple(device.id for device in topology.devices)
        assert durations.ring_duration(topology, devices, "all_reduce", "ring", 101) is not None
    shared, alternating = uniform(2, 2, shared=True), (0, 2, 1, 3)
    assert durations.ring_duration(shared, alternating, "all_reduce", "ring", 101) is None


def test_thousands_of_ranks_by_hand() -> None:
    """4,096 ranks on a switch: 8,190 steps, each of 2 us and of 1 MiB at 450 GB/s, rounded up."""
    alone = 2_000_000 + -(-(1 << 20) * 10**12 // (450 * 10**9))
    for duration in (durations.alike_duration, durations.ring_duration):
        last = duration(uniform(1, 4096), tuple(range(4096)), "all_reduce", "ring", 1 << 32)
        assert last == 8190 * alone


def test_a_month_is_left_to_the_engine() -> None:
    """Times are 64-bit integers; what might not fit is not computed."""
    assert durations.ring_duration(uniform(1, 2), (0, 1), "all_reduce", "ring", 1 << 60) is None


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
@given(star=stars(), shares=st.integers(1, 5), more=st.sampled_from([0, 0, 0, 1]), data=st.data())
def test_one_rank_tells_how_long_like_ranks_take(
    name: str, star: tuple[Topology, tuple[int, ...]], shares: int, more: int, data: st.DataObject
) -> None:
    topology, members = star
    collective = data.draw(st.sampled_from(COLLECTIVES))
    size = shares * len(members) * data.draw(st.sampled_from([1, 1000])) + more
    cuts = data.draw(st.sampled_from([(), (), (Cut(1_000_000, "nv1"),), (Cut(0, "nv0"),)]))
    path = data.draw(st.sampled_from(["auto", "auto", "pcie"]))
    answers = []
    for few, one_for_all in ((1, True), (1000, False)):
        durations._duration.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(durations, "FEW", few)
            patch.setattr(durations, "VECTORS", one_for_all)
            try:
                answers.append(
                    durations.collective_duration(topology, members, collective, size, name, path=path, cuts=cuts)
                )
            except Failure as failure:
                answers.append(failure.status)
    assert answers[0] == answers[1]


def test_one_rank_tells_of_every_symmetric_algorithm() -> None:
    for name in ("ring", "direct", "hierarchical", "halving_doubling"):
        asked = [
            durations.alike_duration(topology, tuple(range(16)), "all_reduce", name, 320)
            for topology in (uniform(1, 16), uniform(2, 8))
        ]
        assert asked[0] is not None, name
        assert asked[1] is None, name


EIGHT = topology_of("eight-sm90")


@st.composite
def work(draw: st.DrawFn) -> list[Unit]:
    """Units on some of four ranks, each after some of those before."""
    units: list[Unit] = []
    for number in range(draw(st.integers(0, 7))):
        ranks = tuple(draw(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True)))
        names = [unit.id for unit in units]
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
