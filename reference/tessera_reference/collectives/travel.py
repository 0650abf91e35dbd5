"""The times of a collective's messages, over links with credits, and the duration of a collective.

Collectives spec 4.2, 4.3."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import merge
from itertools import groupby, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..mesh.engine import Engine
from ..mesh.topology import Topology, carrying
from ..numerics.collectives import share_of
from .delivery import Sent
from .links import FIXED, Route, like_links, preferred_route
from .operations import messages
from .schedules import ALGORITHMS, Maker, maker

# When the messages of a collective travel: over links with credits (collectives spec 4.2, 4.3; AMB-COLL-60).
#
# A message leaves as soon as its sender has got all that it needs, every link on its way is free, and each has a
# credit left for it (COLL-04.2-03, AMB-COLL-17). It takes a credit of each when it leaves and returns them when it
# arrives. It occupies its links for as long as its bytes take on the narrowest of them; a fixed part and the
# latencies of the links pass until it has arrived. While it waits, messages behind it that can leave do so
# (COLL-04.2-04). Of messages that can leave at one time those of higher priority come first, then those that were
# added first. Times are whole picoseconds.
#
# A link may fail for good at a time (AMB-COLL-79). What arrives then has arrived; what is in flight on the link is
# lost, returns its credits and is sent again as soon as it can leave, by the way that the path prefers of those that
# are left. What had not left takes that way too. Where there is none, the collective fails.


Part = Hashable
"""Messages that wait for one another: a chunk of a collective."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A message that has travelled: what it was, its way, and when it left and arrived, or was lost on a link."""

    sent: Sent
    way: Route
    start: int
    end: int
    lost: bool = False


@dataclass(frozen=True, order=True)
class Cut:
    """A link that fails at a time in picoseconds, for good."""

    at: int
    link: str


@dataclass(eq=False, slots=True)
class _Lane:
    """One direction of a link, and the messages that wait for it, in order of their turns."""

    credits: int
    free: bool = True
    waiting: list[_Unit] = field(default_factory=list)

    def while_open(self) -> Iterator[_Unit]:
        """Yield the messages that wait, until one of them has left, which closes the lane."""
        for unit in tuple(self.waiting):
            if not (self.free and self.credits):
                return
            yield unit


@dataclass(eq=False, slots=True)
class _Unit:
    """A message that is to travel, by a way that it occupies for a time."""

    turn: tuple[int, int]
    """Its priority, negated, and its number: higher priorities go first, then those added first."""
    sent: Sent
    part: Part
    devices: tuple[int, int]
    bytes: int
    way: Route
    lanes: tuple[_Lane, ...]
    lasts: int
    receiver: _Needs
    waits: bool = False
    in_flight: bool = False

    def __lt__(self, other: _Unit) -> bool:
        """True if it goes before another."""
        return self.turn < other.turn

    def stop_waiting(self) -> None:
        """Take the message from the lanes at which it waits."""
        for lane in self.lanes if self.waits else ():
            del lane.waiting[bisect_left(lane.waiting, self)]
        self.waits = False

    def travelled(self, arrival: int, end: int, lost: bool = False) -> Transfer:
        """Return the record of a message that arrives, or would have arrived, at a time, and ends at one."""
        return Transfer(self.sent, self.way, arrival - self.lasts - self.way.delay, end, lost)


class _Due(NamedTuple):
    """The events of one time: messages that leave their links free, and messages that arrive."""

    sent: list[_Unit]
    arrived: list[_Unit]


class _Needs:
    """The inputs that one rank still lacks for one part, step by step, and the messages it then sends."""

    __slots__ = ("missing", "steps", "to_send")

    def __init__(self) -> None:
        self.missing: dict[int, int] = {}
        self.steps: deque[int] = deque()
        """The steps of which messages may be missing, in order."""
        self.to_send: deque[_Unit] = deque()

    def expect(self, step: int) -> None:
        """One message more of a step, none of which is before those of earlier calls."""
        if step not in self.missing:
            self.missing[step] = 0
            self.steps.append(step)
        self.missing[step] += 1

    def ready(self) -> list[_Unit]:
        """Return the messages that wait no longer: nothing of an earlier step is missing."""
        while self.steps and not self.missing[self.steps[0]]:
            self.steps.popleft()
        ready = []
        while self.to_send and not (self.steps and self.steps[0] < self.to_send[0].sent.step):
            ready.append(self.to_send.popleft())
        return ready


def _remove(units: list[_Unit], failed: Set[str]) -> list[_Unit]:
    """Take those messages out of a list that have a failed link on their way."""
    affected = [unit for unit in units if not failed.isdisjoint(unit.way.names)]
    units[:] = [unit for unit in units if failed.isdisjoint(unit.way.names)]
    return affected


def travel(
    topology: Topology,
    devices: Sequence[int],
    sent: Sequence[Sent],
    element_bytes: int,
    *,
    chunk: int | None = None,
    path: str = "auto",
    cuts: Sequence[Cut] = (),
) -> list[Transfer]:
    """The messages of ranks on these devices, in the order in which they arrive; chunks do not wait for one another.

    `sent` is in order of steps. The links of `cuts` fail, at 0 before anything leaves; messages lost on them are listed
    beside those sent again. Raises `Failure` with TESS_ERR_LAUNCH_FAILED where devices are cut off.
    """
    engine, done = Engine(), list[Transfer]()
    progress = Progress(engine, topology, lambda part, transfer: done.append(transfer), path, cuts)
    for part, together in groupby(sent, lambda message: message.first // chunk if chunk else 0):
        progress.add(part, devices, together, element_bytes)
    progress.start()
    engine.run()
    return sorted((*done, *progress.lost), key=lambda transfer: transfer.end)


class Progress:
    """The progress engine (COLL-04.3-01, -02): messages that leave and arrive as events of the virtual-time engine.

    Messages of any number of collectives are added, at any time, before `start`, which sends those of them that wait
    for nothing. `arrived` takes each message that has arrived; `lost` are those that were lost on links that failed.
    """

    def __init__(
        self,
        engine: Engine,
        topology: Topology,
        arrived: Callable[[Part, Transfer], None],
        path: str = "auto",
        cuts: Sequence[Cut] = (),
    ) -> None:
        self.lost: list[Transfer] = []
        self._engine = engine
        self._topology = topology
        self._arrived = arrived
        self._path = path
        self._down = frozenset(cut.link for cut in cuts if cut.at <= 0)
        self._cuts = deque(sorted(cut for cut in cuts if cut.at > 0))
        self._lanes = {(link.name, end): _Lane(link.credits) for link in topology.links for end in (link.a, link.b)}
        self._ways: dict[tuple[int, int], tuple[Route, tuple[_Lane, ...]]] = {}
        self._needs: dict[Part, dict[int, _Needs]] = {}
        """By part and rank."""
        self._added: set[Part] = set()
        self._count = 0
        self._due: dict[int, _Due] = {}
        for cut in self._cuts:
            self._at(cut.at)

    def add(
        self, part: Part, devices: Sequence[int], sent: Iterable[Sent], element_bytes: int, priority: int = 0
    ) -> None:
        """Messages of ranks on these devices, in order of their steps, which wait for those of the same part.

        Raises `Failure` with TESS_ERR_LAUNCH_FAILED where devices are cut off.
        """
        self._added.add(part)
        needs = self._needs.setdefault(part, defaultdict(_Needs))
        for message in sent:
            ends, size = (devices[message.source], devices[message.target]), message.elements * element_bytes
            way, lanes = self._way(*ends)
            receiver = needs[message.target]
            receiver.expect(message.step)
            unit = _Unit((-priority, self._count), message, part, ends, size, way, lanes, way.time(size), receiver)
            needs[message.source].to_send.append(unit)
            self._count += 1

    def has_credits(self, devices: Sequence[int], sent: Iterable[Sent]) -> bool:
        """True if every link of these messages has a credit that no message waits for."""
        lanes = [lane for message in sent for lane in self._way(devices[message.source], devices[message.target])[1]]
        return all(lane.credits > len(lane.waiting) for lane in lanes)

    def start(self) -> None:
        """Send those of the added messages that wait for nothing."""
        ready = [unit for part in self._added for needs in self._needs[part].values() for unit in needs.ready()]
        self._added.clear()
        self._dispatch(sorted(ready), self._engine.now)

    def _process_due(self) -> None:
        """Carry out the events of now: links are left free, messages arrive, links fail, and others leave."""
        now = self._engine.now
        due = self._due.pop(now)
        ready: list[_Unit] = []
        changed: dict[_Lane, None] = {}
        for unit in due.sent:
            for lane in unit.lanes:
                lane.free = True
                changed[lane] = None
        for unit in sorted(due.arrived):
            for lane in unit.lanes:
                lane.credits += 1
                changed[lane] = None
            receiver, step = unit.receiver, unit.sent.step
            receiver.missing[step] -= 1
            if not receiver.missing[step]:
                ready += receiver.ready()
            self._arrived(unit.part, unit.travelled(now, now))
        if self._cuts and self._cuts[0].at == now:
            ready += self._cut(now, ready)
        opened = [lane.while_open() for lane in changed if lane.waiting]
        self._dispatch(merge(sorted(ready), *opened), now)

    def _cut(self, now: int, leaving: Sequence[_Unit]) -> list[_Unit]:
        """Let the links fail that fail now. Returns what may be able to leave: what was lost, and what waits.

        Messages whose way a failed link was on get another one, also those that are about to leave. Raises `Failure`.
        """
        failed: set[str] = set()
        while self._cuts and self._cuts[0].at == now:
            failed.add(self._cuts.popleft().link)
        self._down |= failed
        self._ways.clear()
        lost = self._lose(now, failed)
        waiting = dict.fromkeys(unit for lane in self._lanes.values() for unit in lane.waiting)
        later = [unit for part in self._needs.values() for needs in part.values() for unit in needs.to_send]
        for unit in (*lost, *waiting, *leaving, *later):
            if not failed.isdisjoint(unit.way.names):
                self._reroute(unit)
        return [*lost, *waiting]

    def _lose(self, now: int, failed: Set[str]) -> list[_Unit]:
        """Take back the messages in flight on links that fail: their links are free, and have their credits again."""
        lost = []
        for arrival, due in self._due.items():
            for unit in _remove(due.sent, failed):
                for lane in unit.lanes:
                    lane.free = True
            for unit in _remove(due.arrived, failed):
                for lane in unit.lanes:
                    lane.credits += 1
                unit.in_flight = False
                self.lost.append(unit.travelled(arrival, now, lost=True))
                lost.append(unit)
        return lost

    def _reroute(self, unit: _Unit) -> None:
        """Give a message that is not in flight the way there is now. Raises `Failure` where there is none."""
        unit.stop_waiting()
        unit.way, unit.lanes = self._way(*unit.devices)
        unit.lasts = unit.way.time(unit.bytes)

    def _dispatch(self, units: Iterable[_Unit], now: int) -> None:
        """Start each message whose links are free and have credits; the others wait at their links.

        A message that waits at several links may be named by each.
        """
        for unit in units:
            if unit.in_flight:
                continue
            for lane in unit.lanes:
                if not (lane.free and lane.credits):
                    self._enqueue(unit)
                    break
            else:
                unit.stop_waiting()
                unit.in_flight = True
                for lane in unit.lanes:
                    lane.free = False
                    lane.credits -= 1
                self._at(now + unit.lasts).sent.append(unit)
                self._at(now + unit.lasts + unit.way.delay).arrived.append(unit)

    def _enqueue(self, unit: _Unit) -> None:
        """Let a message wait at all of its links."""
        for lane in unit.lanes if not unit.waits else ():
            insort(lane.waiting, unit)
        unit.waits = True

    def _at(self, time: int) -> _Due:
        """Return the events of a time."""
        due = self._due.get(time)
        if due is None:
            due = self._due[time] = _Due([], [])
            self._engine.call_at(time, self._process_due)
        return due

    def _way(self, source: int, target: int) -> tuple[Route, tuple[_Lane, ...]]:
        """The way between two devices, with its lanes. Raises `Failure`."""
        entry = self._ways.get((source, target))
        if entry is None:
            way = preferred_route(self._topology, source, target, self._path, self._down)
            entry = self._ways[source, target] = way, tuple(self._lanes[direction] for direction in way.directions)
        return entry


# How long collectives take by each algorithm: until the last of their messages has arrived (runtime spec 13).
#
# The order in which values are combined is not decided here (AMB-RT-26). Among many devices, `alike_duration` and
# `ring_duration` compute the times of the engine without its events (AMB-COLL-60), where they apply.


FEW = 64
"""Devices among which the engine is always asked."""

VECTORS = True
"""False asks the engine of everything."""

_LONGEST = 1 << 61
"""Picoseconds, a month; sums of two of them are exact."""

Devices: TypeAlias = tuple[int, ...]


def algorithms(topology: Topology, devices: Sequence[int], down: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The algorithms that a group of devices can run, none where some cannot reach others.

    Hierarchical takes several nodes with as many devices of the group on each, or one node on which a switch joins all
    of the group (RT-13-05).
    """
    if any(topology.route(devices[0], device, down) is None for device in devices):
        return ()
    nodes = topology.by_node(devices)
    hierarchy = len({len(node) for node in nodes}) == 1
    if len(nodes) == 1:
        switches = [switch.name for switch in topology.switches if switch.node is not None]
        hierarchy = any(all(len(topology.route(end, to, down) or ()) == 1 for end in devices) for to in switches)
    return tuple(name for name in ALGORITHMS if hierarchy or name != "hierarchical")


def collective_duration(
    topology: Topology,
    devices: Sequence[int],
    collective: str,
    size: int,
    algorithm: str,
    root: int = 0,
    path: str = "auto",
    cuts: tuple[Cut, ...] = (),
) -> int:
    """The duration of a collective, by one of its group's `algorithms`, over a full buffer of a size.

    `root` is the group index of a broadcast's root. Messages go by the `path` where it is there. The links of `cuts`
    fail midway, after which they go by others. A group of one, or an empty buffer, takes no time. Raises `Failure` with
    TESS_ERR_LAUNCH_FAILED where devices are cut off.
    """
    if len(devices) == 1 or size == 0:
        return 0
    around = (*devices[root:], *devices[:root])
    return _duration(topology, around, collective, size, algorithm, maker(algorithm), path, cuts)


@lru_cache(maxsize=4096)
def _duration(
    topology: Topology,
    devices: tuple[int, ...],
    collective: str,
    size: int,
    algorithm: str,
    make: Maker,
    path: str,
    cuts: tuple[Cut, ...],
) -> int:
    """The ranks are taken node by node, since those of a hierarchy are adjacent; `make` is part of the key."""
    nodes = topology.by_node(devices)
    together = tuple(device for node in nodes for device in node)
    if VECTORS and len(together) > FEW and path == "auto" and not cuts:  # only the engine follows a path, and cuts
        for shortcut in (alike_duration, ring_duration):
            if (duration := shortcut(topology, together, collective, algorithm, size)) is not None:
                return duration
    sent = messages(collective, make(len(devices), len(nodes[0])), size)
    return max((transfer.end for transfer in travel(topology, together, sent, 1, path=path, cuts=cuts)), default=0)


_ROUNDS: Mapping[str, Callable[[int], list[tuple[int, int]]]] = {
    "ring": lambda ranks: [(1, 1)] * (ranks - 1),
    "direct": lambda ranks: [(ranks - 1, 1)],
    "hierarchical": lambda ranks: [(ranks - 1, 1)],  # of one node
    "halving_doubling": lambda ranks: [(1, ranks >> step) for step in range(1, ranks.bit_length())],
}
"""The messages that a rank sends in each step of combining, and the shares in each; spreading is the way back."""


def alike_duration(topology: Topology, devices: Devices, collective: str, algorithm: str, size: int) -> int | None:
    """Return the duration of a collective whose ranks are all alike, or None where they are not.

    One switch joins them by like links, and all shares are of one size, so that at each time all have sent and
    received as much.
    """
    ranks = len(devices)
    link = like_links(topology, devices) if size % ranks == 0 else None
    if link is None or collective == "broadcast" or algorithm not in _ROUNDS:
        return None
    if algorithm == "halving_doubling" and ranks & (ranks - 1):
        return None
    combining = _ROUNDS[algorithm](ranks)
    spreading = combining[::-1]
    rounds = {"all_reduce": combining + spreading, "reduce_scatter": combining, "all_gather": spreading}[collective]
    delay = FIXED + 2 * link.latency
    arrived = free = 0
    in_flight = deque([0] * link.credits, maxlen=link.credits)
    for messages_sent, shares in rounds:
        ready, lasts = arrived, carrying(size // ranks * shares, link.bandwidth)
        for _ in range(messages_sent):
            free = max(ready, free, in_flight[0]) + lasts
            arrived = free + delay
            in_flight.append(arrived)
    return arrived


def ring_duration(topology: Topology, devices: Devices, collective: str, algorithm: str, size: int) -> int | None:
    """Return the duration of a ring whose messages share no link with those of other ranks, or None of other cases.

    A rank sends on what has just come, by one way, so that its messages leave in order; `ends` are the arrivals of
    earlier steps. Shares are of two sizes at most. Raises `Failure` with TESS_ERR_LAUNCH_FAILED for devices cut off.
    """
    ranks = len(devices)
    if algorithm != "ring" or collective == "broadcast" or size < ranks:
        return None
    ways = [preferred_route(topology, *pair, "auto", frozenset()) for pair in pairwise((*devices, devices[0]))]
    directions = [direction for way in ways for direction in way.directions]
    if len(set(directions)) < len(directions):
        return None
    steps = (ranks - 1) * (2 if collective == "all_reduce" else 1)
    small = size // ranks
    times = [[way.time(share) for way in ways] for share in (small, small + 1)]
    if steps * (max(times[1]) + max(way.delay for way in ways)) >= _LONGEST:
        return None
    lasts, longer = np.array(times)
    fixed = np.array([way.delay for way in ways])
    credits = np.array([min(link.credits for link in way.links) for way in ways])
    with_credits = [(credit, credits == credit) for credit in sorted(set(credits.tolist()))]
    once = [share.stop - share.start > small for share in (share_of(size, rank, ranks) for rank in range(ranks))]
    larger = np.array(once * 2)
    ends = deque[npt.NDArray[np.int64]](maxlen=min(int(credits.max()), steps))
    ready = free = np.zeros(ranks, np.int64)
    for step in range(steps):
        start = np.maximum(ready, free)  # integers
        for credit, lanes in with_credits:
            if credit <= len(ends):
                np.maximum(start, ends[-credit], out=start, where=lanes)  # integers
        at = (-step if collective == "all_gather" else -step - 1) % ranks
        free = start + np.where(larger[at : at + ranks], longer, lasts)
        ends.append(free + fixed)
        ready = np.concatenate([ends[-1][-1:], ends[-1][:-1]])
    return int(ends[-1].max())
