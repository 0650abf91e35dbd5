"""The two queues of devices: whatever the work, it ends, in order, within limits, and no link is overdrawn."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.delivery import Sent
from tessera_reference.collectives.links import topology_of
from tessera_reference.collectives.operations import messages
from tessera_reference.collectives.queues import (
    MOST_MESSAGES,
    MOST_UNITS,
    PIPELINES,
    Collective,
    Compute,
    Run,
    Unit,
    chunk_bytes,
    idle,
    in_sequence,
    simulate,
)
from tessera_reference.collectives.travel import Progress, travel

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


@pytest.mark.parametrize("kind", PIPELINES)
def test_overlap_makes_no_pipeline_slower(kind: str) -> None:
    units = PIPELINES[kind](4, 16 << 20, 100_000_000, range(8))
    overlapped, barriers = (simulate(each, EIGHT, max_inflight=8) for each in (units, in_sequence(units)))
    assert overlapped.duration < barriers.duration
    assert idle(overlapped, "compute") < idle(barriers, "compute")


@given(bytes=st.integers(0, 1 << 40))
def test_chunks_of_layers_are_within_the_bounds(bytes: int) -> None:
    assert 512 << 10 <= chunk_bytes(bytes) <= 2 << 20


def test_messages_added_later_join_what_travels() -> None:
    """Three parts on one link: of two that wait for it, the one of higher priority goes first."""
    progress, sent = Progress(EIGHT), [Sent(0, 0, 1, 0, 1000, False)]
    progress.add("first", [0, 1], sent, 1)
    progress.start(0)
    progress.add("second", [0, 1], sent, 1)
    progress.add("third", [0, 1], sent, 1, priority=1)
    progress.start(5)
    assert progress.has_credits([0, 1], sent)
    arrived: list[Any] = []
    while progress.next is not None:
        arrived += [each.part for each in progress.advance()]
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
