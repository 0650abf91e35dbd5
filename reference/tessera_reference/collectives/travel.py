"""When the messages of a collective travel: over links with credits (collectives spec 4.2, 4.3; AMB-COLL-60).

A message leaves as soon as its sender has got all that it needs, every link on its way is free, and each has a credit
left for it (COLL-04.2-03, AMB-COLL-17). It takes a credit of each when it leaves and returns them when it arrives. It
occupies its links for as long as its bytes take on the narrowest of them; a fixed part and the latencies of the links
pass until it has arrived. While it waits, messages behind it that can leave do so (COLL-04.2-04). Of messages that can
leave at one time those of higher priority come first, then those that were added first. Times are whole picoseconds.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from ..mesh.topology import Topology
from .operations import Sent
from .ways import FIXED, Way, way_between

__all__ = ["Arrival", "Progress", "Transfer", "travel"]

_MOST_MESSAGES = 1 << 40
_number = attrgetter("number")

Part = Hashable
"""Messages that wait for one another: a chunk of a collective."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A message that has travelled: what it was, its links, and when it left and arrived."""

    sent: Sent
    links: tuple[str, ...]
    start: int
    end: int


@dataclass(eq=False, slots=True)
class _Lane:
    """One direction of a link."""

    credits: int
    free: bool = True
    waiting: dict[int, _Unit] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class _Unit:
    """A message that is to travel; `number` is its place in the order of messages, higher priorities first."""

    number: int
    sent: Sent
    part: Part
    way: Way
    lanes: tuple[_Lane, ...]
    lasts: int
    """How long it occupies its links."""
    receiver: _Needs


class _Due(NamedTuple):
    """What happens at one time: messages that leave their links free, and messages that arrive."""

    sent: list[_Unit]
    arrived: list[_Unit]


class _Needs:
    """What one rank still lacks of one part, step by step, and what it sends once it lacks no more."""

    __slots__ = ("_at", "_missing", "_steps", "to_send")

    def __init__(self) -> None:
        self._missing: dict[int, int] = {}
        self._steps: list[int] = []
        self._at = 0
        self.to_send: deque[_Unit] = deque()

    def expect(self, step: int) -> None:
        """One message more of a step, none of which is before those of earlier calls."""
        if step not in self._missing:
            self._missing[step] = 0
            self._steps.append(step)
        self._missing[step] += 1

    def arrived(self, step: int) -> Sequence[_Unit]:
        """Which messages wait no longer after this one has come."""
        self._missing[step] -= 1
        return () if self._missing[step] else self.ready()

    def ready(self) -> Sequence[_Unit]:
        """The messages that wait no longer: nothing of an earlier step is missing."""
        steps, missing = self._steps, self._missing
        while self._at < len(steps) and not missing[steps[self._at]]:
            self._at += 1
        found = []
        while self.to_send and (self._at == len(steps) or self.to_send[0].sent.step <= steps[self._at]):
            found.append(self.to_send.popleft())
        return found


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

    `sent` is in order of steps. Raises `Failure` with TESS_ERR_LAUNCH_FAILED where devices are cut off.
    """
    progress = Progress(topology, down)
    for part, together in groupby(sent, lambda each: each.first // chunk if chunk else 0):
        progress.add(part, devices, together, element_bytes)
    progress.start(0)
    done: list[Transfer] = []
    while progress.next is not None:
        done += [each.transfer for each in progress.advance()]
    return done


class Arrival(NamedTuple):
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
        self._ways: dict[tuple[int, int], tuple[Way, tuple[_Lane, ...]]] = {}
        self._needs: dict[Part, dict[int, _Needs]] = {}
        self._added: dict[Part, dict[int, _Needs]] = {}
        self._count = 0
        self._times: list[int] = []
        self._due: dict[int, _Due] = {}

    @property
    def next(self) -> int | None:
        """When something happens next; None where nothing travels."""
        return self._times[0] if self._times else None

    def add(
        self, part: Part, devices: Sequence[int], sent: Iterable[Sent], element_bytes: int, priority: int = 0
    ) -> None:
        """Messages of ranks on these devices, in order of their steps, which wait for those of the same part.

        Raises `Failure` with TESS_ERR_LAUNCH_FAILED where devices are cut off.
        """
        needs = self._added[part] = self._needs.setdefault(part, {})
        for each in sent:
            way, lanes = self._way(devices[each.source], devices[each.target])
            sender = needs.get(each.source) or needs.setdefault(each.source, _Needs())
            receiver = needs.get(each.target) or needs.setdefault(each.target, _Needs())
            lasts = way.time(each.count * element_bytes)
            number = self._count - priority * _MOST_MESSAGES
            receiver.expect(each.step)
            sender.to_send.append(_Unit(number, each, part, way, lanes, lasts, receiver))
            self._count += 1

    def has_credits(self, devices: Sequence[int], sent: Iterable[Sent]) -> bool:
        """Whether every link of these messages has a credit that no message waits for."""
        lanes = [lane for each in sent for lane in self._way(devices[each.source], devices[each.target])[1]]
        return all(lane.credits > len(lane.waiting) for lane in lanes)

    def start(self, now: int) -> None:
        """Let go of what was added all that waits for nothing."""
        ready = [unit for part in self._added.values() for needs in part.values() for unit in needs.ready()]
        self._added.clear()
        self._let_go(sorted(ready, key=_number), now)

    def advance(self) -> list[Arrival]:
        """Go to the next time at which something happens: what arrives then."""
        now = heapq.heappop(self._times)
        due = self._due.pop(now)
        candidates: dict[int, _Unit] = {}
        changed: list[_Lane] = []
        for unit in due.sent:
            for lane in unit.lanes:
                lane.free = True
                if lane.waiting:
                    changed.append(lane)
        due.arrived.sort(key=_number)
        arrivals = []
        for unit in due.arrived:
            for lane in unit.lanes:
                lane.credits += 1
                if lane.waiting:
                    changed.append(lane)
            for ready in unit.receiver.arrived(unit.sent.step):
                candidates[ready.number] = ready
            way = unit.way
            start = now - unit.lasts - way.latency - FIXED
            arrivals.append(Arrival(unit.part, Transfer(unit.sent, way.links, start, now)))
        for lane in changed:
            if lane.free and lane.credits:
                candidates.update(lane.waiting)
        self._let_go([candidates[number] for number in sorted(candidates)], now)
        return arrivals

    def _let_go(self, units: Iterable[_Unit], now: int) -> None:
        """Start each message whose links are free and have credits; the others wait at their links."""
        for unit in units:
            lanes = unit.lanes
            for lane in lanes:
                if not (lane.free and lane.credits):
                    if unit.number not in lane.waiting:
                        for each in lanes:
                            each.waiting[unit.number] = unit
                    break
            else:
                for lane in lanes:
                    lane.free = False
                    lane.credits -= 1
                    lane.waiting.pop(unit.number, None)
                self._at(now + unit.lasts).sent.append(unit)
                self._at(now + unit.lasts + unit.way.latency + FIXED).arrived.append(unit)

    def _at(self, time: int) -> _Due:
        """What happens at a time."""
        due = self._due.get(time)
        if due is None:
            due = self._due[time] = _Due([], [])
            heapq.heappush(self._times, time)
        return due

    def _way(self, source: int, target: int) -> tuple[Way, tuple[_Lane, ...]]:
        """The way between two devices, with its lanes. Raises `Failure`."""
        found = self._ways.get((source, target))
        if found is None:
            way = way_between(self._topology, source, target, self._down)
            found = self._ways[source, target] = way, tuple(self._lanes[each] for each in way.directions)
        return found
