"""A small machine written out by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tessera_reference.mesh.topology import Topology, read

SMALL: dict[str, Any] = {
    "format": 1,
    "name": "small",
    "nodes": [{"name": "left", "memory_bytes": 1000}, {"name": "right", "memory_bytes": 1000}],
    "switches": [{"name": "hub", "node": "left"}, {"name": "network"}],
    "devices": [
        {
            "id": number,
            "target": "sm_90",
            "node": "left" if number < 12 else "right",
            "memory_bytes": 1000,
            "memory_bandwidth": 10**12,
            "multiprocessors": 2,
        }
        for number in (10, 11, 12)
    ],
    "links": [
        {"name": "in10", "a": 10, "b": "hub", "bandwidth": 10**12, "latency": 100},
        {"name": "in11", "a": "hub", "b": 11, "bandwidth": 5 * 10**11, "latency": 100},
        {"name": "host10", "a": "left", "b": 10, "bandwidth": 10**11, "latency": 300},
        {"name": "host11", "a": "left", "b": 11, "bandwidth": 10**11, "latency": 300},
        {"name": "out10", "a": 10, "b": "network", "bandwidth": 10**11, "latency": 1000},
        {"name": "out11", "a": 11, "b": "network", "bandwidth": 10**11, "latency": 1000},
        {"name": "out12", "a": 12, "b": "network", "bandwidth": 10**11, "latency": 1000},
    ],
}
"""Devices 10 and 11 on node left, joined by a hub; 12 on node right, which only the network reaches."""


@pytest.fixture
def document() -> dict[str, Any]:
    """The small machine as a document, to be changed."""
    return copy.deepcopy(SMALL)


@pytest.fixture
def small() -> Topology:
    """The small machine."""
    return read(SMALL, "small.json")
