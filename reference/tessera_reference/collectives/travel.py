"""When the messages of a collective travel: over links with credits (collectives spec 4.2, 4.3; AMB-COLL-60).

A message leaves as soon as its sender has got all that it needs, every link on its way is free, and each has a credit
left for it (COLL-04.2-03, AMB-COLL-17). It takes a credit of each when it leaves and returns them when it arrives. It
occupies its links for as long as its bytes take on the narrowest of them; a fixed part and the latencies of the links
pass until it has arrived. While it waits, messages behind it that can leave do so (COLL-04.2-04). Of messages that can
leave at one time those of higher priority come first, then those that were added first. Times are whole picoseconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from ..abi.status import Failure, Status
from ..mesh.routes import End
from ..mesh.topology import Topology
from .operations import Sent

__all__ = ["FIXED", "Arrival", "Progress", "Transfer", "travel"]

FIXED = 1_000_000
"""The fixed part of the duration of a message, in picoseconds."""

_SECOND = 10**12

Part = Hashable
"""Messages that wait for one another: a chunk of a collective."""

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
    """A message that is to travel; `number` is its place in the order of messages, higher priorities first."""

    number: tuple[int, int]
    sent: Sent
    part: Part
    way: _Way
    lasts: int
    """How long it occupies its links."""


@dataclass(eq=False)
class _Lane:
    """One direction of a link."""

    credits: int
    free: bool = True
    waiting: dict[tuple[int, int], _Unit] = field(default_factory=dict)


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
    progress = Progress(topology, down)
    for each in sent:
        progress.add(each.first // chunk if chunk else 0, devices, [each], element_bytes)
    progress.start(0)
    done: list[Transfer] = []
    while progress.next is not None:
        done += [each.transfer for each in progress.advance()]
    return done


@dataclass(frozen=True)
class Arrival:
    """A message that has arrived, and the part it belongs to."""

    part: Part
    transfer: Transfer


class Progress:
    """The progress engine: advances time from event to event, and lets go what can (COLL-04.3-01, -02).

    Messages of any number of collectives are added, at any time, before `start`, which lets go those of them that wait
    for nothing.
    """

    def __init__(self, topology: Topology, down: frozenset[str] = frozenset()) -> None:
        self._topology = topology
        self._down = down
        self._lanes = {(link.name, end): _Lane(link.credits) for link in topology.links for end in (link.a, link.b)}
        self._ways: dict[tuple[int, int], _Way] = {}
        self._needs: dict[tuple[Part, int], _Needs] = {}
        self._added: dict[tuple[Part, int], _Needs] = {}
        self._count = 0
        self._due: list[tuple[int, tuple[int, int], bool, _Unit]] = []

    @property
    def next(self) -> int | None:
        """When something happens next; None where nothing travels."""
        return self._due[0][0] if self._due else None

    def add(
        self, part: Part, devices: Sequence[int], sent: Iterable[Sent], element_bytes: int, priority: int = 0
    ) -> None:
        """Messages of ranks on these devices, in order of their steps, which wait for those of the same part.

        Raises `Failure` with TESS_ERR_LAUNCH_FAILED where devices are cut off.
        """
        for each in sent:
            way = self._way(devices[each.source], devices[each.target])
            lasts = -(-each.count * element_bytes * _SECOND // way.bandwidth)
            unit = _Unit((-priority, self._count), each, part, way, lasts)
            self._count += 1
            needs = self._needs.setdefault((part, each.source), _Needs())
            needs.to_send.append(unit)
            self._added[part, each.source] = needs
            lacking = self._needs.setdefault((part, each.target), _Needs()).missing
            lacking[each.step] = lacking.get(each.step, 0) + 1

    def has_credits(self, devices: Sequence[int], sent: Iterable[Sent]) -> bool:
        """Whether every link of these messages has a credit that no message waits for."""
        lanes = [self._lanes[way] for each in sent for way in self._directions(devices, each)]
        return all(lane.credits > len(lane.waiting) for lane in lanes)

    def start(self, now: int) -> None:
        """Let go of what was added all that waits for nothing."""
        ready = [unit for needs in self._added.values() for unit in needs.ready()]
        self._added.clear()
        self._let_go(sorted(ready, key=lambda unit: unit.number), now)

    def advance(self) -> list[Arrival]:
        """Go to the next time at which something happens: what arrives then."""
        now = self._due[0][0]
        arrivals: list[Arrival] = []
        candidates: dict[tuple[int, int], _Unit] = {}
        while self._due and self._due[0][0] == now:
            _, _, arrived, unit = heapq.heappop(self._due)
            candidates |= self._ended(unit, arrived)
            if arrived:
                links = tuple(name for name, _ in unit.way.directions)
                start = now - unit.lasts - unit.way.latency - FIXED
                arrivals.append(Arrival(unit.part, Transfer(unit.sent, links, start, now)))
        self._let_go([candidates[number] for number in sorted(candidates)], now)
        return arrivals

    def _ended(self, unit: _Unit, arrived: bool) -> dict[tuple[int, int], _Unit]:
        """Free the links of a message, or return its credits where it has arrived; what may leave now."""
        candidates: dict[tuple[int, int], _Unit] = {}
        for direction in unit.way.directions:
            lane = self._lanes[direction]
            if arrived:
                lane.credits += 1
            else:
                lane.free = True
            candidates |= lane.waiting
        if arrived:
            need = self._needs[unit.part, unit.sent.target]
            need.missing[unit.sent.step] -= 1
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

    def _way(self, source: int, target: int) -> _Way:
        if (source, target) not in self._ways:
            self._ways[source, target] = _way(self._topology, source, target, self._down)
        return self._ways[source, target]

    def _directions(self, devices: Sequence[int], sent: Sent) -> tuple[Direction, ...]:
        return self._way(devices[sent.source], devices[sent.target]).directions


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
