"""Machines that cases describe, as JSON texts of `schemas/topology.schema.json` (AMB-COLL-42)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any

MEMORY = 1_000_003
"""Bytes of a device: a prime, so that no size divides it."""

TRANSPORTS = ("nvlink", "pcie", "rdma", "network")


def devices_of(nodes: int = 2, per_node: int = 2) -> list[int]:
    """Return the ids of `machine`'s devices, in its order: 10, 11, ... on the first node, 20, 21, ... on the second."""
    return [10 * node + at for node in range(1, nodes + 1) for at in range(per_node)]


def machine(nodes: int = 2, per_node: int = 2, transports: Collection[str] = TRANSPORTS) -> dict[str, Any]:
    """Return nodes of equally many devices, joined by some transports; two-digit names give the owner of a link or NIC.

    Device 10 has nv10 to its node's NVSwitch s1, pcie10 to its host h1, and bus10 to its NIC n10, from which rdma10
    leads to the switch fabric; net1 leads from host h1 to the switch ethernet.
    """
    ids = devices_of(nodes, per_node)
    links: list[dict[str, Any]] = []
    for number in ids:
        node = number // 10
        if "nvlink" in transports:
            links.append(link(f"nv{number}", number, f"s{node}", 400_000_000_000, 500_000, "nvlink", 16))
        if "pcie" in transports:
            links.append(link(f"pcie{number}", f"h{node}", number, 60_000_000_000, 1_000_000, "pcie", 7))
        if "rdma" in transports:
            links.append(link(f"bus{number}", number, f"n{number}", 60_000_000_000, 400_000, "pcie", 8))
            links.append(link(f"rdma{number}", f"n{number}", "fabric", 50_000_000_000, 1_500_000, "rdma", 5))
    if "network" in transports:
        links += [
            link(f"net{node}", f"h{node}", "ethernet", 10_000_000_000, 9_000_000, "network", 3)
            for node in range(1, nodes + 1)
        ]
    return {
        "format": 1,
        "name": "of-a-case",
        "nodes": [{"name": f"h{node}", "memory_bytes": 1 << 40} for node in range(1, nodes + 1)],
        "switches": [
            *({"name": f"s{node}", "node": f"h{node}"} for node in range(1, nodes + 1)),
            {"name": "fabric"},
            {"name": "ethernet"},
        ],
        "nics": [{"name": f"n{number}", "node": f"h{number // 10}"} for number in ids],
        "devices": [device(number) for number in ids],
        "links": links,
    }


def device(number: int, memory_bytes: int = MEMORY) -> dict[str, Any]:
    """Return a device of the node with which its id begins."""
    return {
        "id": number,
        "target": "sm_90",
        "node": f"h{number // 10}",
        "memory_bytes": memory_bytes,
        "memory_bandwidth": 10**12,
        "multiprocessors": 8,
    }


def link(
    name: str, a: int | str, b: int | str, bandwidth: int, latency: int, kind: str, credits: int
) -> dict[str, Any]:
    """Return a link, with all of its members."""
    return {
        "name": name, "a": a, "b": b, "bandwidth": bandwidth, "latency": latency, "kind": kind, "credits": credits
    }  # fmt: skip


def text(*, change: Callable[[dict[str, Any]], Any] | None = None, **arguments: Any) -> str:
    """Return the JSON text of a `machine`, after a change."""
    document = machine(**arguments)
    if change is not None:
        change(document)
    return json.dumps(document)


def named(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the link with a name."""
    found: Sequence[dict[str, Any]] = document["links"]
    return next(device for device in found if device["name"] == name)


def setting(name: str, **members: Any) -> Callable[[dict[str, Any]], None]:
    """Return a change that sets members of a link."""

    def change(document: dict[str, Any]) -> None:
        named(document, name).update(members)

    return change


def without(*names: str) -> Callable[[dict[str, Any]], None]:
    """Return a change that removes links."""

    def change(document: dict[str, Any]) -> None:
        document["links"] = [link for link in document["links"] if link["name"] not in names]

    return change
