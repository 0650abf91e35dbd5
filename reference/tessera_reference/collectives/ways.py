"""What a message passes from one device to another, and how long it takes (collectives spec 3.2, 3.3;
AMB-COLL-60)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..mesh.routes import End
from ..mesh.topology import Topology
from .transports import way

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


def way_between(topology: Topology, source: int, target: int, down: frozenset[str], path: str = "auto") -> Way:
    """The way from one device to another, over the transport that a path prefers there (AMB-COLL-43, AMB-COLL-78).

    Raises `Failure` with TESS_ERR_LAUNCH_FAILED where they are cut off.
    """
    _, route, _ = way(topology, source, target, path, down)
    end: End = source
    directions = []
    for link in route:
        directions.append((link.name, end))
        end = link.other(end)
    return Way(tuple(directions), sum(link.latency for link in route), min(link.bandwidth for link in route))
