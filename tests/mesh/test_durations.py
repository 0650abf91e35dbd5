"""Durations worked out by hand (runtime spec 13, 17; collectives spec 5.2; RT-13-02 to -05)."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.delivery import Sent
from tessera_reference.collectives.links import FIXED
from tessera_reference.collectives.operations import messages
from tessera_reference.collectives.schedules import ALGORITHMS
from tessera_reference.collectives.travel import Transfer, algorithms, collective_duration, travel
from tessera_reference.mesh.topology import (
    COPY,
    LAUNCH,
    QUICK_LAUNCH,
    WAVE,
    Topology,
    copy_duration,
    default,
    kernel_duration,
    named,
    occupancy,
    read,
)


@pytest.mark.parametrize(
    ("grid", "block", "shared", "waves", "part"),
    [
        ((1, 1, 1), (128, 1, 1), 0, 1, 128 / 4096),
        ((32, 1, 1), (128, 1, 1), 0, 1, 1.0),
        ((33, 1, 1), (128, 1, 1), 0, 2, 1.0),
        ((4, 4, 4), (8, 4, 4), 0, 2, 1.0),
        ((1000, 1, 1), (96, 1, 1), 0, 24, 21 * 96 / 2048),  # 21 blocks of 3 warps fit on a multiprocessor
        ((64, 1, 1), (32, 1, 1), 0, 1, 0.5),  # 32 blocks at most
        ((65, 1, 1), (32, 1, 1), 1000, 2, 0.5),
        ((64, 1, 1), (1, 1, 1), 0, 1, 0.5),  # a warp is taken whole
        ((64, 1, 1), (0, 0, 0), 0, 1, 0.5),
        ((8, 1, 1), (1024, 1, 1), 0, 2, 1.0),
        ((8, 1, 1), (128, 1, 1), 100_000, 2, 4 * 128 / 4096),  # two blocks share 232448 bytes
        ((8, 1, 1), (128, 1, 1), 232_448, 4, 2 * 128 / 4096),
    ],
)
def test_blocks_run_in_waves(
    small: Topology, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, waves: int, part: float
) -> None:
    """On two multiprocessors of 2048 threads each."""
    device = small.device(10)
    assert kernel_duration(device, grid, block, shared_bytes=shared) == LAUNCH + waves * WAVE
    assert kernel_duration(device, grid, block, True, shared) == QUICK_LAUNCH + waves * WAVE
    assert occupancy(device, grid, block, shared) == part


def test_a_warp_of_amd_has_64_lanes() -> None:
    device = named("mixed").device(4)
    assert occupancy(device, (304 * 32, 1, 1), (33, 1, 1)) == 1.0
    assert occupancy(device, (304, 1, 1), (1, 1, 1)) == 64 / 2048


@pytest.mark.parametrize(
    ("number", "kind", "pinned", "beside"),
    [
        (10, "TESS_COPY_H2D", True, 300 + 10_000),
        (10, "TESS_COPY_D2H", True, 300 + 10_000),
        (10, "TESS_COPY_H2D", False, 300 + 20_000),
        (12, "TESS_COPY_H2D", True, 300 + 1000 + 1000 + 10_000),
        (10, "TESS_COPY_D2D", True, 2_000),
    ],
)
def test_copies_of_a_thousand_bytes(small: Topology, number: int, kind: str, pinned: bool, beside: int) -> None:
    assert copy_duration(small, small.device(number), kind, 1000, pinned) == COPY + beside


def test_a_copy_takes_another_way_where_a_link_is_down(small: Topology) -> None:
    device = small.device(10)
    assert copy_duration(small, device, "TESS_COPY_H2D", 1000, down=frozenset(["host10"])) == COPY + 500 + 10_000
    with pytest.raises(Failure, match="no way between left and device 12") as caught:
        copy_duration(small, small.device(12), "TESS_COPY_D2H", 1, down=frozenset(["out12"]))
    assert caught.value.status is Status.TESS_ERR_LAUNCH_FAILED


def test_part_of_a_picosecond_counts_whole() -> None:
    device = default().device(0)  # 64 bytes take 1000 ps on its link to the host
    durations = [copy_duration(default(), device, "TESS_COPY_H2D", bytes) - COPY - 10**6 for bytes in (0, 1, 64, 65)]
    assert durations == [0, 16, 1000, 1016]


ALL = tuple(ALGORITHMS)
FLAT = tuple(name for name in ALL if name != "hierarchical")
EIGHT = tuple(range(8))


def test_two_devices_by_hand(small: Topology) -> None:
    """Devices 10 and 11: 200 ps of latency, and half a terabyte a second on the narrower of two links."""

    def takes(collective: str, algorithm: str) -> int:
        return collective_duration(small, (10, 11), collective, 1000, algorithm)

    shares, whole = FIXED + 200 + 1000, FIXED + 200 + 2000
    assert takes("all_reduce", "ring") == takes("all_reduce", "hierarchical") == 2 * shares
    assert takes("reduce_scatter", "ring") == takes("all_gather", "ring") == shares
    assert takes("broadcast", "ring") == 2 * shares
    assert takes("all_reduce", "tree") == 2 * whole
    assert takes("broadcast", "tree") == whole
    assert takes("reduce_scatter", "tree") == takes("all_gather", "tree") == whole + shares


def test_eight_devices_on_a_switch_by_alpha_and_beta() -> None:
    """Latency 1 us between two devices, 450 GB/s; 7.2 MB take 16 us, an eighth of them 2 us."""

    def takes(collective: str, algorithm: str) -> int:
        return collective_duration(default(), EIGHT, collective, 7_200_000, algorithm)

    alpha, whole = FIXED + 10**6, 16 * 10**6
    assert takes("all_reduce", "ring") == 14 * (alpha + whole // 8)
    assert takes("all_reduce", "tree") == 6 * (alpha + whole)
    assert takes("all_reduce", "hierarchical") == takes("all_reduce", "direct") == 2 * (alpha + 7 * whole // 8)
    assert takes("all_reduce", "halving_doubling") == 2 * (3 * alpha + 7 * whole // 8)
    assert takes("reduce_scatter", "hierarchical") == takes("all_gather", "hierarchical") == alpha + 7 * whole // 8
    assert takes("broadcast", "hierarchical") == 2 * (alpha + 7 * whole // 8)


def test_two_nodes_by_hand() -> None:
    """Within a node 1 us and 450 GB/s, between nodes 4 us and 50 GB/s; a quarter of the buffer is 900 kB.

    Between two nodes a tree sends each quarter to the first node, and back.
    """
    within = FIXED + 10**6 + 3 * 2 * 10**6
    between = FIXED + 4 * 10**6 + 18 * 10**6
    assert collective_duration(named("two-nodes"), EIGHT, "all_reduce", 3_600_000, "hierarchical") == (
        2 * within + 2 * between
    )


def sends(*messages: tuple[int, int, int]) -> list[Sent]:
    """Messages of one step: from, to, bytes."""
    return [Sent(0, source, target, 0, count, False) for source, target, count in messages]


def ends(transfers: list[Transfer]) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the departure and arrival of the message of each pair of ranks."""
    return {(transfer.sent.source, transfer.sent.target): (transfer.start, transfer.end) for transfer in transfers}


@pytest.fixture
def roomy(document: dict[str, Any]) -> Topology:
    """The small machine with four credits on every link."""
    for link in document["links"]:
        link["credits"] = 4
    return read(document)


def test_what_goes_the_same_way_takes_turns(roomy: Topology) -> None:
    """Ranks 0, 1 and 2 on devices 10, 11 and 12: both messages leave 10 by out10, where there is no other way."""
    down = frozenset(["in10", "host10"])
    found = ends(travel(roomy, (10, 11, 12), sends((0, 1, 500), (0, 2, 1500)), 1, down=down))
    assert found == {(0, 1): (0, FIXED + 2000 + 5000), (0, 2): (5000, 5000 + FIXED + 2000 + 15_000)}


def test_a_message_whose_links_are_taken_does_not_hold_up_the_next(roomy: Topology) -> None:
    """The second message of rank 0 waits for out10, the third goes by the hub at once (COLL-04.2-04)."""
    found = ends(travel(roomy, (10, 11, 12), sends((1, 2, 1000), (0, 2, 1000), (0, 1, 1000)), 1))
    assert found[1, 2][0] == found[0, 1][0] == 0
    assert found[0, 2][0] == 10_000, "as soon as out12 is free again"


def test_a_link_takes_no_more_messages_than_it_has_credits(small: Topology) -> None:
    """One credit, which comes back on arrival: the second message leaves when the first has arrived (AMB-COLL-17)."""
    found = travel(small, (10, 11), [Sent(0, 0, 1, place, 1, False) for place in range(3)], 100, chunk=1)
    alone = FIXED + 200 + 200
    assert [(each.start, each.end) for each in found] == [(at * alone, (at + 1) * alone) for at in range(3)]


def test_chunks_do_not_wait_for_each_other(small: Topology) -> None:
    """A chunk goes on from rank 1 to rank 2 while the next one is still on its way to rank 1."""
    relayed = [Sent(0, 0, 1, 0, 8, False), Sent(1, 1, 2, 0, 8, False)]
    cut = [Sent(each.step, each.source, each.target, at, 1, False) for each in relayed for at in range(8)]
    size = 10**6
    whole = travel(small, (10, 11, 12), relayed, size)[-1].end
    chunked = travel(small, (10, 11, 12), cut, size, chunk=1)[-1].end
    assert chunked < whole
    together = [Sent(each.step, each.source, each.target, at, 1, False) for each in relayed for at in range(8)]
    assert travel(small, (10, 11, 12), together, size)[-1].end > chunked, "one chunk: all of it has to be there first"


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("chunk", [None, 64, 1000])
def test_every_message_travels_once_and_needs_what_came_before(name: str, chunk: int | None) -> None:
    topology = named("two-nodes")
    sent = messages("all_reduce", name, 8, 3000, per_node=4, chunk=chunk)
    found = travel(topology, tuple(range(8)), sent, 4, chunk=chunk)
    assert sorted(sent, key=str) == sorted((each.sent for each in found), key=str)
    for each in found:
        for before in found:
            same_chunk = chunk is None or before.sent.first // chunk == each.sent.first // chunk
            if before.sent.target == each.sent.source and before.sent.step < each.sent.step and same_chunk:
                assert before.end <= each.start


def test_which_algorithms_a_group_has(small: Topology) -> None:
    assert algorithms(small, (10, 11)) == ALL
    assert algorithms(small, (10, 12)) == ALL
    assert algorithms(small, (10, 11, 12)) == FLAT, "two devices on one node, one on the other"
    assert algorithms(default(), EIGHT) == algorithms(named("two-nodes"), EIGHT) == ALL
    assert algorithms(named("mixed"), (4, 5, 6, 7)) == FLAT, "no switch joins them"
    assert algorithms(small, (10, 11), frozenset(["in11"])) == FLAT
    assert algorithms(small, (10, 12), frozenset(["out12"])) == ()


def test_the_root_of_a_broadcast_counts() -> None:
    """Devices 0 and 1 of `mixed` cross the network once, to reach 4; from there both messages leave by one link."""
    mixed = named("mixed")
    by_root = [collective_duration(mixed, (0, 1, 4), "broadcast", 10**6, "tree", root) for root in range(3)]
    alpha, bytes = FIXED + 4 * 10**6, 20 * 10**6
    assert by_root == [alpha + bytes, alpha + bytes, alpha + 2 * bytes]


@pytest.mark.parametrize(
    ("collective", "algorithm", "root", "status", "message"),
    [
        ("all_reduc", "ring", 0, Status.TESS_ERR_INVALID_VALUE, r"collective 'all_reduc'.*did you mean all_reduce\?"),
        ("all_reduce", "rings", 0, Status.TESS_ERR_INVALID_VALUE, r"did you mean ring\?"),
        ("broadcast", "ring", 3, Status.TESS_ERR_INVALID_VALUE, "root 3; expected 0 to 2"),
        ("broadcast", "ring", -1, Status.TESS_ERR_INVALID_VALUE, "root -1"),
        (
            "all_reduce",
            "hierarchical",
            0,
            Status.TESS_ERR_UNSUPPORTED,
            "expected one of ring, tree, halving_doubling, direct",
        ),
    ],
)
def test_what_a_group_cannot_do_is_refused(
    small: Topology, collective: str, algorithm: str, root: int, status: Status, message: str
) -> None:
    with pytest.raises(Failure, match=message) as caught:
        collective_duration(small, (10, 11, 12), collective, 100, algorithm, root)
    assert caught.value.status is status
