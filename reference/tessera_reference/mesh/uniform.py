"""Machines of many like nodes, made by a function where a file would repeat itself (collectives spec 3.3)."""

from __future__ import annotations

from .routes import Link
from .topology import Device, Node, Switch, Topology

__all__ = ["uniform"]

_WITHIN, _BETWEEN = (450 * 10**9, 500_000), (50 * 10**9, 2_000_000)
"""Bytes a second and picoseconds of a link within a node, and of one between nodes."""


def uniform(nodes: int, each: int, *, credits: int = 4, uplink_credits: int = 2, shared: bool = False) -> Topology:
    """`nodes` nodes of `each` devices, which a switch joins; ids count up from 0.

    Each device has a link of its own to the switch between nodes, or the node has one that all of its devices share.
    """
    devices = [Device(at, "sm_90", f"node{at // each}", 1 << 36, 10**12, 132) for at in range(nodes * each)]
    links = [Link(f"nv{d.id}", d.id, f"switch-{d.node}", *_WITHIN, "nvlink", credits) for d in devices]
    if nodes > 1 and shared:
        names = [f"node{number}" for number in range(nodes)]
        links += [Link(f"up-{n}", f"switch-{n}", "spine", *_BETWEEN, "rdma", uplink_credits) for n in names]
    elif nodes > 1:
        links += [Link(f"up{d.id}", d.id, "spine", *_BETWEEN, "rdma", uplink_credits) for d in devices]
    switches = [Switch(f"switch-node{number}", f"node{number}") for number in range(nodes)]
    return Topology(
        f"{nodes}x{each}",
        tuple(Node(f"node{number}", 1 << 40) for number in range(nodes)),
        (*switches, Switch("spine")),
        tuple(devices),
        tuple(links),
    )
