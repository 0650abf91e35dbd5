"""Devices, and ways from one part of a machine to another (runtime spec 13; collectives spec 3.3)."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_reference.abi import Failure, Status
from tessera_reference.mesh.topology import End, Topology, default, named, read


def way(topology: Topology, a: End, b: End, *down: str) -> list[str] | None:
    links = topology.route(a, b, frozenset(down))
    return None if links is None else [link.name for link in links]


def test_the_default_is_what_the_sample_of_section_18_runs_on() -> None:
    topology = default()
    assert [device.id for device in topology.devices] == list(range(8))
    assert {device.target for device in topology.devices} == {"sm_90"}
    assert {device.node for device in topology.devices} == {topology.host.name}
    assert way(topology, 0, 7) == ["nvlink0", "nvlink7"]


@pytest.mark.parametrize(
    ("name", "targets", "by_node"),
    [
        ("single", ["sm_90"], ((0,),)),
        ("two-nodes", ["sm_90"] * 8, ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("mixed", ["sm_90"] * 4 + ["gfx942"] * 4, ((0, 1, 2, 3), (4, 5, 6, 7))),
    ],
)
def test_the_other_topologies(name: str, targets: list[str], by_node: tuple[tuple[int, ...], ...]) -> None:
    topology = named(name)
    assert [device.target for device in topology.devices] == targets
    assert topology.by_node([device.id for device in topology.devices]) == by_node


@pytest.mark.parametrize("name", ["single", "eight-sm90", "two-nodes", "mixed"])
def test_everything_reaches_everything(name: str) -> None:
    topology = named(name)
    ends = [topology.host.name, *(device.id for device in topology.devices)]
    assert all(topology.route(a, b) is not None for a in ends for b in ends)


def test_a_device_takes_its_limits_from_its_target() -> None:
    four, five = named("mixed").device(3), named("mixed").device(4)
    assert (four.hardware.warp, four.hardware.shared_bytes) == (32, 232448)
    assert (five.hardware.warp, five.hardware.threads_per_block) == (64, 1024)
    assert five.memory_bytes == 192 * 2**30


def test_an_unknown_device_is_refused(small: Topology) -> None:
    with pytest.raises(Failure, match="tessMeshCreate: device 0; expected one of 10, 11, 12") as caught:
        small.device(0)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_devices_stay_together_by_node_in_the_order_in_which_nodes_come_up(small: Topology) -> None:
    assert small.by_node([12, 11, 10]) == ((12,), (11, 10))


def test_the_way_of_least_latency(small: Topology) -> None:
    assert way(small, 10, 11) == ["in10", "in11"]
    assert way(small, "left", 11) == ["host11"]
    assert way(small, "left", 12) == ["host10", "out10", "out12"]
    assert way(small, 12, "hub") == ["out12", "out10", "in10"]
    assert way(small, 10, 10) == []


def test_links_that_are_down_are_avoided(small: Topology) -> None:
    assert way(small, 10, 11, "in11") == ["host10", "host11"]
    assert way(small, 10, 11, "in10", "host11") == ["out10", "out11"]
    assert way(small, 10, 12, "out12") is None
    assert way(small, 10, 11) == ["in10", "in11"], "what is down for one question is not for the next"


def test_nothing_leads_to_what_has_no_links(small: Topology) -> None:
    assert way(small, 10, "right") is None
    assert way(small, "right", "right") == []


def test_of_ways_of_one_latency_the_one_of_fewest_links_is_taken(document: dict[str, Any]) -> None:
    document["links"].append({"name": "zz", "a": 10, "b": 11, "bandwidth": 1, "latency": 200})
    assert way(read(document, "small.json"), 10, 11) == ["zz"]


@pytest.mark.parametrize("backwards", [False, True])
def test_of_ways_as_long_the_first_by_name_is_taken(document: dict[str, Any], backwards: bool) -> None:
    document["links"] += [
        {"name": "in10b", "a": 10, "b": "hub", "bandwidth": 1, "latency": 100},
        {"name": "in11a", "a": "hub", "b": 11, "bandwidth": 1, "latency": 100},
    ]
    if backwards:
        document["links"].reverse()
    assert way(read(document, "small.json"), 10, 11) == ["in10", "in11"]
