"""Hops of answered requests, and the times of their components (Verification; AMB-HIO-28, -54)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .launches import Part, from_pattern, of_one_sip, parts, working
from .memory import MemoryHost, order_of
from .messages import Message, Place

__all__ = ["Component", "Hop", "Trace", "components", "routed", "trace_of"]

PICOSECONDS = 10**12


class Component(NamedTuple):
    """Picoseconds for each message, and bytes a second of its content, or None where bytes take no time."""

    fixed: int
    bandwidth: int | None

    def takes(self, count: int) -> int:
        """Return the picoseconds of a message of so many bytes, rounded up."""
        return self.fixed + (0 if self.bandwidth is None else -(-count * PICOSECONDS // self.bandwidth))


class Hop(NamedTuple):
    """A message at a component; `place` is the PE that it is for, by SIP, cube and PE."""

    component: str
    place: tuple[int, int, int] | None
    bytes: int
    start: int
    end: int


class Trace(NamedTuple):
    """The answer of `host_io.trace` for one request."""

    path: Sequence[Hop]
    branches: Sequence[Hop]
    latency: int

    @property
    def names(self) -> list[str]:
        """The components of the path."""
        return [hop.component for hop in self.path]

    @property
    def places(self) -> set[tuple[int, int, int]]:
        """The PEs of all hops."""
        return {branch.place for branch in (*self.path, *self.branches) if branch.place is not None}

    @property
    def turn(self) -> Hop:
        """The component that ended last; the way back is as long as the way there."""
        return self.path[len(self.path) // 2]


def trace_of(host: MemoryHost, message: Message) -> Trace:
    """Return the trace of an answered request."""
    ids = {name: message[name] for name in ("correlation_id", "request_id")}
    answer = host.check.returns(host.impl.host_io.trace(**ids), "an answered request has a trace")
    return Trace(
        [_hop(hop) for hop in answer["path"]], [_hop(branch) for branch in answer["branches"]], answer["latency"]
    )


def components(host: MemoryHost) -> dict[str, Component]:
    """Return the components by name, in the order of the answer."""
    answer = host.check.returns(host.impl.host_io.components(), "the endpoint lists its components")["components"]
    found = {component["name"]: Component(component["fixed"], component["bandwidth"]) for component in answer}
    host.check.equal(len(found), len(answer), "the number of names of components")
    return found


def routed(host: MemoryHost) -> Iterator[tuple[str, Message]]:
    """Yield requests of every type that succeed and reach a PE, with descriptions."""
    places = of_one_sip(host, 3)
    place, base = places[-1], host.base
    host.done(host.fill(place, base + 8192, 4096))
    yield "a write of 1 byte", host.fill(place, base, 1)
    yield "a write of 65,544 bytes", host.fill(place, base, 65544, "fill_fp32", 1)
    yield "a read of 1 byte", host.read_back(place, base, 1)
    yield "a read of 65,537 bytes", host.read_back(place, base, 65537)
    yield "a read that is dropped", host.read_back(place, base, 4096, dst_kind="discard")
    shards = [Part(owner, base + 8 * number, 400 * (number + 1), 4 * number) for number, owner in enumerate(places)]
    yield "a launch on one PE", working(host, 1, shards[-1])
    yield "a launch on several PEs", working(host, 1, *reversed(shards))
    yield "a launch of a binary", from_pattern(host, place, base + 8192, 4096, parts(*shards))
    yield "a launch without arguments", from_pattern(host, place, base + 8192, 100)


def _hop(message: Mapping[str, Any]) -> Hop:
    place: Place | None = message.get("place")
    place_of = None if place is None else order_of(place)
    return Hop(message["component"], place_of, message["bytes"], message["start"], message["end"])
