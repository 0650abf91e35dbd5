"""What a message passes from one device to another, and how long it takes (collectives spec 3.3; AMB-COLL-60)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..abi.status import Failure, Status
from ..mesh.routes import End
from ..mesh.topology import Topology

__all__ = ["FIXED", "Direction", "Way", "way_between"]

FIXED = 1_000_000
"""The fixed part of the duration of a message, in picoseconds."""

_SECOND = 10**12

Direction = tuple[str, End]
"""A link, and the end at which it is entered: the two ways of a link do not share it."""


@dataclass(frozen=True)
class Way:
    """The directions of the links from one device to another, the picoseconds of their latencies, and the bytes a
    second of the narrowest."""

    directions: tuple[Direction, ...]
    latency: int
    bandwidth: int

    @cached_property
    def links(self) -> tuple[str, ...]:
        """The names of its links."""
        return tuple(name for name, _ in self.directions)

    def time(self, bytes: int) -> int:
        """How many picoseconds so many bytes occupy the links, rounded up."""
        return -(-bytes * _SECOND // self.bandwidth)


def way_between(topology: Topology, source: int, target: int, down: frozenset[str]) -> Way:
    """The way from one device to another. Raises `Failure` with TESS_ERR_LAUNCH_FAILED where they are cut off."""
    route = topology.route(source, target, down)
    if route is None:
        given = f"devices {source} and {target}, which are cut off from each other"
        raise Failure(Status.TESS_ERR_LAUNCH_FAILED, "collective", given, "links that are not down")
    end: End = source
    directions = []
    for link in route:
        directions.append((link.name, end))
        end = link.other(end)
    return Way(tuple(directions), sum(link.latency for link in route), min(link.bandwidth for link in route))
