"""The topology as a graph that can be asked: GPUs, NICs, switches and hosts, joined by links (collectives spec 3.3).

COLL-03.3-01, -02, -03 and -06; AMB-COLL-42. Reading and routes are those of the simulated machine (`mesh.topology`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..abi.status import Failure, Status
from ..mesh.routes import Link
from ..mesh.topology import Topology, load, named

__all__ = ["Edge", "GraphNode", "edges", "graph_nodes", "topology_of"]


@dataclass(frozen=True)
class GraphNode:
    """An end of links: a gpu, named by its id in decimal digits, a nic, a switch or a host."""

    name: str
    kind: str


@dataclass(frozen=True)
class Edge:
    """A link: bytes a second each way, picoseconds, and the chunks that may be in flight on it."""

    name: str
    a: str
    b: str
    kind: str
    bandwidth: int
    latency: int
    credits: int


def topology_of(text: str) -> Topology:
    """The topology of a name, or of a JSON text (one that begins with a brace), each of whose devices can be reached.

    Raises `Failure` with TESS_ERR_INVALID_VALUE, for a link naming it and its ends.
    """
    topology = load(text) if text.lstrip().startswith("{") else named(text)
    first, *others = topology.devices
    for device in others:
        if topology.route(first.id, device.id) is None:
            links = [_told(link) for link in topology.links if device.id in (link.a, link.b)]
            given = f"no links lead from device {first.id} to device {device.id}, which has " + (
                f"links {', '.join(links)}" if links else "no link"
            )
            raise Failure(Status.TESS_ERR_INVALID_VALUE, topology.name, given, "a way between every two devices")
    return topology


def graph_nodes(topology: Topology) -> tuple[GraphNode, ...]:
    """The ends that links may have: devices, NICs, switches and hosts, in the order of the file."""
    return (
        *(GraphNode(str(each.id), "gpu") for each in topology.devices),
        *(GraphNode(each.name, "nic") for each in topology.nics),
        *(GraphNode(each.name, "switch") for each in topology.switches),
        *(GraphNode(each.name, "host") for each in topology.nodes),
    )


def edges(topology: Topology) -> tuple[Edge, ...]:
    """The links, in the order of the file."""
    return tuple(
        Edge(each.name, str(each.a), str(each.b), each.kind, each.bandwidth, each.latency, each.credits)
        for each in topology.links
    )


def _told(link: Link) -> str:
    return f"{link.name} ({link.a} to {link.b})"
