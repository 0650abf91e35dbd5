"""Collectives by ring, tree and hierarchical algorithms (RT-13-02 to -05): what passes, and how long it takes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tessera_reference.abi import Failure, Status
from tessera_reference.mesh.collective_costs import (
    ALGORITHMS,
    COLLECTIVES,
    STEP,
    _passing,
    algorithms,
    collective_duration,
)
from tessera_reference.mesh.collective_steps import Step, hierarchical, ring, tree
from tessera_reference.mesh.topology import Topology, default, named

EIGHT = tuple(range(8))


def steps_of(algorithm: str, count: int, collective: str, bytes: int, nodes: int) -> list[Step]:
    devices = range(count)
    if algorithm == "hierarchical":
        return list(hierarchical([devices[at::nodes] for at in range(nodes)], collective, bytes))
    return list((ring if algorithm == "ring" else tree)(devices, collective, bytes))


def heard_of(steps: Sequence[Step], count: int) -> list[set[int]]:
    """Whose data each device has a part in after the steps."""
    known = [{device} for device in range(count)]
    for step in steps:
        for _ in range(step.times):
            arriving = [(target, set(known[source])) for source, target, _ in step.transfers]
            for target, what in arriving:
                known[target] |= what
    return known


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(
    ("algorithm", "count", "nodes"),
    [
        *((algorithm, count, 1) for algorithm in ALGORITHMS for count in range(2, 18)),
        *(("hierarchical", count, nodes) for count, nodes in [(2, 2), (4, 2), (6, 3), (8, 2), (8, 4), (12, 3), (9, 9)]),
    ],
)
def test_data_reach_every_device_that_needs_them(algorithm: str, count: int, nodes: int, collective: str) -> None:
    known = heard_of(steps_of(algorithm, count, collective, 1000, nodes), count)
    if collective == "broadcast":
        assert all(0 in each for each in known)
    else:
        assert all(each == set(range(count)) for each in known)


def sent(steps: Sequence[Step], device: int) -> int:
    return sum(step.times * bytes for step in steps for source, _, bytes in step.transfers if source == device)


@pytest.mark.parametrize("algorithm", ["ring", "hierarchical"])
@pytest.mark.parametrize(("collective", "times"), [("all_reduce", 2), ("reduce_scatter", 1), ("all_gather", 1)])
def test_ring_and_hierarchy_send_no_more_than_they_must(algorithm: str, collective: str, times: int) -> None:
    """Each of n devices sends (n - 1) / n of the buffer to reduce it, and as much to gather it."""
    for count in (2, 4, 8):
        steps = steps_of(algorithm, count, collective, 800, 1)
        assert [sent(steps, device) for device in range(count)] == [times * 800 * (count - 1) // count] * count


def test_a_tree_of_five() -> None:
    assert list(tree((10, 11, 12, 13, 14), "reduce_scatter", 500)) == [
        Step(((11, 10, 500), (13, 12, 500))),
        Step(((12, 10, 500),)),
        Step(((14, 10, 500),)),
        Step(((10, 14, 100),)),
        Step(((10, 12, 200),)),
        Step(((10, 11, 100), (12, 13, 100))),
    ]
    assert list(tree((10, 11, 12, 13, 14), "all_gather", 500))[:3] == [
        Step(((11, 10, 100), (13, 12, 100))),
        Step(((12, 10, 200),)),
        Step(((14, 10, 100),)),
    ]
    assert [step.transfers for step in tree((10, 11, 12), "broadcast", 5)] == [((10, 12, 5),), ((10, 11, 5),)]


def test_two_devices_by_hand(small: Topology) -> None:
    """Devices 10 and 11: 200 ps of latency, and half a terabyte a second on the narrower of two links."""

    def takes(collective: str, algorithm: str) -> int:
        return collective_duration(small, (10, 11), collective, 1000, algorithm)

    shares, whole = STEP + 200 + 1000, STEP + 200 + 2000
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

    alpha, whole = STEP + 10**6, 16 * 10**6
    assert takes("all_reduce", "ring") == 14 * (alpha + whole // 8)
    assert takes("all_reduce", "tree") == 6 * (alpha + whole)
    assert takes("all_reduce", "hierarchical") == 2 * (alpha + 7 * whole // 8)
    assert takes("reduce_scatter", "hierarchical") == takes("all_gather", "hierarchical") == alpha + 7 * whole // 8
    assert takes("broadcast", "hierarchical") == 2 * (alpha + 7 * whole // 8)


def test_two_nodes_by_hand() -> None:
    """Within a node 1 us and 450 GB/s, between nodes 4 us and 50 GB/s; a quarter of the buffer is 900 kB."""
    within = STEP + 10**6 + 3 * 2 * 10**6
    between = STEP + 4 * 10**6 + 9 * 10**6
    assert collective_duration(named("two-nodes"), EIGHT, "all_reduce", 3_600_000, "hierarchical") == (
        2 * within + 2 * between
    )


def test_what_goes_the_same_way_shares_a_link(small: Topology) -> None:
    """Without hub and host, the parts that 10 and 11 exchange and those for their peers on the other node meet."""
    exchange = _passing(small, ((10, 11, 500), (10, 12, 1500), (12, 11, 300)), frozenset(["in10", "host10"]))
    assert exchange == 2000 + 20_000, "2000 bytes leave 10 by out10, at 100 bytes a nanosecond"


def test_what_comes_to_one_device_from_several_shares_its_link(small: Topology) -> None:
    assert _passing(small, ((10, 12, 1000), (11, 12, 500)), frozenset()) == 2000 + 15_000


def test_opposite_ways_of_a_link_do_not_share_it(small: Topology) -> None:
    one_way = collective_duration(small, (10, 12), "broadcast", 1000, "tree")
    both_ways = collective_duration(small, (10, 12), "all_gather", 2000, "ring")
    assert one_way == both_ways == STEP + 2000 + 10_000


def test_which_algorithms_a_group_has(small: Topology) -> None:
    assert algorithms(small, (10, 11)) == ALGORITHMS
    assert algorithms(small, (10, 12)) == ALGORITHMS
    assert algorithms(small, (10, 11, 12)) == ("ring", "tree"), "two devices on one node, one on the other"
    assert algorithms(default(), EIGHT) == algorithms(named("two-nodes"), EIGHT) == ALGORITHMS
    assert algorithms(named("mixed"), (4, 5, 6, 7)) == ("ring", "tree"), "no switch joins them"
    assert algorithms(small, (10, 11), frozenset(["in11"])) == ("ring", "tree")
    assert algorithms(small, (10, 12), frozenset(["out12"])) == ()


def test_the_default_is_slower_where_a_link_is_down() -> None:
    down = frozenset(["nvlink3"])
    for collective in COLLECTIVES:
        whole = collective_duration(default(), EIGHT, collective, 10**6, "ring")
        assert collective_duration(default(), EIGHT, collective, 10**6, "ring", down=down) > whole


def test_the_root_of_a_broadcast_counts() -> None:
    """Devices 0 and 1 of `mixed` cross the network once, to reach 4; from there it is crossed twice."""
    mixed = named("mixed")
    by_root = [collective_duration(mixed, (0, 1, 4), "broadcast", 10**6, "tree", root) for root in range(3)]
    network, switch = STEP + 4 * 10**6 + 20 * 10**6, STEP + 10**6 + 2_222_223
    assert by_root == [network + switch, network + switch, network + network]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_nothing_takes_no_time(collective: str, algorithm: str) -> None:
    assert collective_duration(default(), (3,), collective, 10**6, algorithm) == 0
    assert collective_duration(default(), EIGHT, collective, 0, algorithm) == 0


@pytest.mark.parametrize(
    ("collective", "algorithm", "root", "status", "message"),
    [
        ("all_reduc", "ring", 0, Status.TESS_ERR_INVALID_VALUE, r"collective 'all_reduc'.*did you mean all_reduce\?"),
        ("all_reduce", "rings", 0, Status.TESS_ERR_INVALID_VALUE, r"did you mean ring\?"),
        ("broadcast", "ring", 3, Status.TESS_ERR_INVALID_VALUE, "root 3; expected 0 to 2"),
        ("broadcast", "ring", -1, Status.TESS_ERR_INVALID_VALUE, "root -1"),
        ("all_reduce", "hierarchical", 0, Status.TESS_ERR_UNSUPPORTED, "expected one of ring, tree"),
    ],
)
def test_what_a_group_cannot_do_is_refused(
    small: Topology, collective: str, algorithm: str, root: int, status: Status, message: str
) -> None:
    with pytest.raises(Failure, match=message) as caught:
        collective_duration(small, (10, 11, 12), collective, 100, algorithm, root)
    assert caught.value.status is status


def test_devices_that_are_cut_off_cannot_meet(small: Topology) -> None:
    with pytest.raises(Failure, match="cut off") as caught:
        collective_duration(small, (10, 12), "all_reduce", 100, "ring", down=frozenset(["out12"]))
    assert caught.value.status is Status.TESS_ERR_LAUNCH_FAILED
