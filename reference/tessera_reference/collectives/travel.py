"""When the messages of a collective travel: over links with credits (collectives spec 4.2, 4.3; AMB-COLL-60).

A message leaves as soon as its sender has got all that it needs, every link on its way is free, and each has a credit
left for it (COLL-04.2-03, AMB-COLL-17). It takes a credit of each when it leaves and returns them when it arrives. It
occupies its links for as long as its bytes take on the narrowest of them; a fixed part and the latencies of the links
pass until it has arrived. While it waits, messages behind it that can leave do so (COLL-04.2-04). Times are whole
picoseconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from ..abi.status import Failure, Status
from ..mesh.routes import End
from ..mesh.topology import Topology
from .operations import Sent

__all__ = ["FIXED", "Transfer", "travel"]

FIXED = 1_000_000
"""The fixed part of the duration of a message, in picoseconds."""

_SECOND = 10**12

Direction = tuple[str, End]
"""A link, and the end at which it is entered: the two ways of a link do not share it."""


@dataclass(frozen=True)
class Transfer:
    """A message that has travelled: what it was, its links, and when it left and arrived."""

    sent: Sent
    links: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True)
class _Way:
    directions: tuple[Direction, ...]
    latency: int
    bandwidth: int


@dataclass(eq=False)
class _Unit:
    """A message that is to travel; `number` is its place in the order of messages."""

    number: int
    sent: Sent
    way: _Way
    lasts: int
    """How long it occupies its links."""


@dataclass(eq=False)
class _Lane:
    """One direction of a link."""

    credits: int
    free: bool = True
    waiting: dict[int, _Unit] = field(default_factory=dict)


class _Needs:
    """What one rank still lacks of one chunk, step by step, and what it sends once it lacks no more."""

    def __init__(self) -> None:
        self.missing: dict[int, int] = {}
        self.to_send: list[_Unit] = []

    def ready(self) -> Iterable[_Unit]:
        """The messages that wait no longer: nothing of an earlier step is missing."""
        first = min((step for step, count in self.missing.items() if count), default=None)
        while self.to_send and (first is None or self.to_send[0].sent.step <= first):
            yield self.to_send.pop(0)


def travel(
    topology: Topology,
    devices: Sequence[int],
    sent: Sequence[Sent],
    element_bytes: int,
    *,
    chunk: int | None = None,
    down: frozenset[str] = frozenset(),
) -> list[Transfer]:
    """The messages of ranks on these devices, in the order in which they arrive; chunks do not wait for one another.

    Raises `Failure` with TESS_ERR_LAUNCH_FAILED where devices are cut off.
    """

    @cache
    def way(source: int, target: int) -> _Way:
        return _way(topology, devices[source], devices[target], down)

    lanes = {(link.name, end): _Lane(link.credits) for link in topology.links for end in (link.a, link.b)}
    needs: dict[tuple[int, int], _Needs] = {}
    for number, each in enumerate(sent):
        part = each.first // chunk if chunk else 0
        used = way(each.source, each.target)
        unit = _Unit(number, each, used, -(-each.count * element_bytes * _SECOND // used.bandwidth))
        needs.setdefault((each.source, part), _Needs()).to_send.append(unit)
        lacking = needs.setdefault((each.target, part), _Needs()).missing
        lacking[each.step] = lacking.get(each.step, 0) + 1
    return _Progress(lanes, needs, chunk).run()


class _Progress:
    """The progress engine: advances time from event to event, and lets go what can (COLL-04.3-01, -02)."""

    def __init__(self, lanes: dict[Direction, _Lane], needs: dict[tuple[int, int], _Needs], chunk: int | None) -> None:
        self._lanes = lanes
        self._needs = needs
        self._chunk = chunk
        self._due: list[tuple[int, int, bool, _Unit]] = []
        self._done: list[Transfer] = []

    def run(self) -> list[Transfer]:
        """All transfers, in order of arrival."""
        ready = sorted((u for need in self._needs.values() for u in need.ready()), key=lambda unit: unit.number)
        now = 0
        self._let_go(ready, now)
        while self._due:
            now = self._due[0][0]
            candidates: dict[int, _Unit] = {}
            while self._due and self._due[0][0] == now:
                _, _, arrived, unit = heapq.heappop(self._due)
                candidates |= self._ended(unit, arrived, now)
            self._let_go([candidates[number] for number in sorted(candidates)], now)
        return self._done

    def _ended(self, unit: _Unit, arrived: bool, now: int) -> dict[int, _Unit]:
        """Free the links of a message, or return its credits where it has arrived; what may leave now."""
        candidates: dict[int, _Unit] = {}
        for direction in unit.way.directions:
            lane = self._lanes[direction]
            if arrived:
                lane.credits += 1
            else:
                lane.free = True
            candidates |= lane.waiting
        if arrived:
            each = unit.sent
            links = tuple(name for name, _ in unit.way.directions)
            start = now - unit.lasts - unit.way.latency - FIXED
            self._done.append(Transfer(each, links, start, now))
            need = self._needs[each.target, each.first // self._chunk if self._chunk else 0]
            need.missing[each.step] -= 1
            candidates |= {ready.number: ready for ready in need.ready()}
        return candidates

    def _let_go(self, units: Iterable[_Unit], now: int) -> None:
        """Start each message whose links are free and have credits; the others wait at their links."""
        for unit in units:
            lanes = [self._lanes[direction] for direction in unit.way.directions]
            if all(lane.free and lane.credits for lane in lanes):
                for lane in lanes:
                    lane.free = False
                    lane.credits -= 1
                    lane.waiting.pop(unit.number, None)
                heapq.heappush(self._due, (now + unit.lasts, unit.number, False, unit))
                heapq.heappush(self._due, (now + unit.lasts + unit.way.latency + FIXED, unit.number, True, unit))
            else:
                for lane in lanes:
                    lane.waiting[unit.number] = unit


def _way(topology: Topology, source: int, target: int, down: frozenset[str]) -> _Way:
    """The directions of the links from one device to another. Raises `Failure`."""
    route = topology.route(source, target, down)
    if route is None:
        given = f"devices {source} and {target}, which are cut off from each other"
        raise Failure(Status.TESS_ERR_LAUNCH_FAILED, "collective", given, "links that are not down")
    end: End = source
    directions = []
    for link in route:
        directions.append((link.name, end))
        end = link.other(end)
    return _Way(tuple(directions), sum(link.latency for link in route), min(link.bandwidth for link in route))
