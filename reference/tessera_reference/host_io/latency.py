"""What a request passes on its way and back, and when: all latency is made of these hops (D5, D7; AMB-HIO-28, -54).

A component takes its fixed time for each message and the time of the bytes at its bandwidth, rounded up to a
picosecond, and serves every request alone: no other request changes a latency.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeAlias

from .machine import Place, described

__all__ = ["CONTROL", "Branch", "Component", "Hop", "Journey", "Trace", "components", "traced"]

CONTROL = 64
"""Bytes of a message without its data, there and back."""
INWARD = ("host", "pcie_ep", "io_cpu")
"""From the host to the endpoint."""
TO_PE = ("noc", "m_cpu", "pe_cpu")
"""From the endpoint to a PE."""
PICOSECONDS = 1_000_000_000_000


@dataclass(frozen=True)
class Component:
    """A component: picoseconds for each message, and bytes a second, or None where bytes take no time."""

    name: str
    fixed: int
    bandwidth: int | None = None

    def takes(self, count: int) -> int:
        """Picoseconds that so many bytes take."""
        return self.fixed + (0 if self.bandwidth is None else -(-count * PICOSECONDS // self.bandwidth))


class Branch(NamedTuple):
    """The part of a request that goes to one PE: the bytes that pass its memory, None where the PE failed before."""

    place: Place
    memory: int | None


@dataclass(frozen=True)
class Journey:
    """What a request passes: bytes on the way there and back, branches, and for a launch the binary that is fetched.

    Without branches, the request ended in the endpoint.
    """

    there: int = CONTROL
    back: int = CONTROL
    branches: tuple[Branch, ...] = ()
    code: Branch | None = None


@dataclass(frozen=True)
class Hop:
    """A message at a component, in picoseconds since the request left the host; `place` is the PE it goes on for."""

    component: str
    place: Place | None
    bytes: int
    start: int
    end: int


@dataclass(frozen=True)
class Trace:
    """The hops to the component that ended last and back, and those to the other PEs."""

    path: tuple[Hop, ...]
    branches: tuple[Hop, ...]

    @property
    def latency(self) -> int:
        """Picoseconds until the response has reached the host."""
        return self.path[-1].end


Step: TypeAlias = tuple[str, Place | None, int]
"""A component, the PE for which a message goes on, and its bytes."""


@cache
def components() -> Mapping[str, Component]:
    """The components by name."""
    return {each["name"]: Component(**each) for each in described()["component"]}


def traced(journey: Journey) -> Trace:
    """When each hop of a request begins and ends; of branches that end together, the first is on the path."""
    inward = list(_timed(_inward(journey), 0))
    begin = inward[-1].end
    ways = [list(_timed(_outward(journey, each), begin)) for each in journey.branches]
    last = max(ways, key=lambda each: each[-1].end, default=[])
    place = last[-1].place if last else None
    ahead = inward + last
    path = (*ahead, *_timed(_homeward(journey, place), ahead[-1].end))
    return Trace(path, tuple(hop for each in ways if each is not last for hop in each))


def _timed(steps: Iterable[Step], start: int) -> Iterator[Hop]:
    """Steps one after the other."""
    for component, place, count in steps:
        end = start + components()[component].takes(count)
        yield Hop(component, place, count, start, end)
        start = end


def _inward(journey: Journey) -> Iterator[Step]:
    """To the endpoint, which fetches the address of a binary and has it read there."""
    yield from ((name, None, journey.there) for name in INWARD)
    if journey.code is not None:
        yield "noc", journey.code.place, CONTROL
        yield "memory", journey.code.place, journey.code.memory or 0


def _outward(journey: Journey, branch: Branch) -> Iterator[Step]:
    """From the endpoint to a PE and its memory; the binary passes the network with it."""
    code = 0 if journey.code is None else journey.code.memory or 0
    for name in TO_PE:
        yield name, branch.place, journey.there + (code if name == "noc" else 0)
    if branch.memory is not None:
        yield "memory", branch.place, branch.memory


def _homeward(journey: Journey, place: Place | None) -> Iterator[Step]:
    if place is not None:
        yield from ((name, place, journey.back) for name in reversed(TO_PE))
    yield from ((name, None, journey.back) for name in reversed(INWARD))
