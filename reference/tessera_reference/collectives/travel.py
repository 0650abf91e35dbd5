"""The times of a collective's messages, over links with credits, and the duration of a collective.

Collectives spec 4.2, 4.3."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..abi.status import Failure, Status, invalid, unsupported
from ..mesh.engine import Engine
from ..mesh.topology import Topology
from ..numerics.collectives import share_of
from ..numerics.formats import shown
from .delivery import Sent
from .links import FIXED, Way, like_links, way_between
from .operations import messages
from .schedules import ALGORITHMS, Maker, maker, require_known

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


Number: TypeAlias = tuple[int, int]
"""The place of a message in the order of messages: higher priorities first, then those added first."""

Part = Hashable
"""Messages that wait for one another: a chunk of a collective."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A message that has travelled: what it was, its links, and when it left and arrived, or was lost on a link."""

    sent: Sent
    links: tuple[str, ...]
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
    """One direction of a link."""

    credits: int
    free: bool = True
    waiting: dict[Number, _Unit] = field(default_factory=dict)

    ordered: bool = True
    """True if those that wait are in order of their numbers."""

    def hold(self, unit: _Unit) -> None:
        """Let a message wait."""
        self.ordered = self.ordered and (not self.waiting or next(reversed(self.waiting)) <= unit.number)
        self.waiting[unit.number] = unit

    def in_order(self) -> Iterable[_Unit]:
        """Return the messages that wait, in order of their numbers."""
        if not self.ordered:
            self.waiting = dict(sorted(self.waiting.items()))
            self.ordered = True
        return self.waiting.values()


@dataclass(eq=False, slots=True)
class _Unit:
    """A message that is to travel."""

    number: Number
    sent: Sent
    part: Part
    way: Way
    lanes: tuple[_Lane, ...]
    lasts: int
    """The time for which it occupies its links."""
    receiver: _Needs


def _in_turn(ready: Sequence[_Unit], lanes: Iterable[_Lane]) -> Iterator[_Unit]:
    """Yield, in order of their numbers, the messages that are ready and those that wait at open lanes.

    Once a message has left by a lane, which closes it, those behind it are not asked.
    """
    opened = [lane for lane in lanes if lane.waiting and lane.free and lane.credits]
    rows = [(None, iter(ready)), *((lane, iter(lane.in_order())) for lane in opened)]
    first = [(next(units, None), place) for place, (_, units) in enumerate(rows)]
    following = [(unit.number, place, unit) for unit, place in first if unit is not None]
    heapq.heapify(following)
    while following:
        _, place, unit = following[0]
        lane, units = rows[place]
        if lane is None or (lane.free and lane.credits):
            yield unit
        after = next(units, None) if lane is None or (lane.free and lane.credits) else None
        if after is None:
            heapq.heappop(following)
        else:
            heapq.heapreplace(following, (after.number, place, after))


class _Due(NamedTuple):
    """The events of one time: messages that leave their links free, and messages that arrive."""

    sent: list[_Unit]
    arrived: list[_Unit]


class _Needs:
    """The inputs that one rank still lacks for one part, step by step, and the messages it then sends."""

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
        """Record an arrival; return the messages that wait no longer."""
        self._missing[step] -= 1
        return () if self._missing[step] else self.ready()

    def ready(self) -> Sequence[_Unit]:
        """The messages that wait no longer: nothing of an earlier step is missing."""
        steps, missing = self._steps, self._missing
        while self._at < len(steps) and not missing[steps[self._at]]:
            self._at += 1
        ready = []
        while self.to_send and (self._at == len(steps) or self.to_send[0].sent.step <= steps[self._at]):
            ready.append(self.to_send.popleft())
        return ready


def _taken_out(units: list[_Unit], failed: Set[str]) -> list[_Unit]:
    """Take those messages out of a list that have a failed link on their way."""
    affected = [unit for unit in units if not failed.isdisjoint(unit.way.links)]
    units[:] = [unit for unit in units if failed.isdisjoint(unit.way.links)]
    return affected


def travel(
    topology: Topology,
    devices: Sequence[int],
    sent: Sequence[Sent],
    element_bytes: int,
    *,
    chunk: int | None = None,
    down: frozenset[str] = frozenset(),
    path: str = "auto",
    cuts: Sequence[Cut] = (),
) -> list[Transfer]:
    """The messages of ranks on these devices, in the order in which they arrive; chunks do not wait for one another.

    `sent` is in order of steps. Links that are `down` were never up, those of `cuts` fail midway; messages lost on them
    are listed beside those sent again. Raises `Failure` with TESS_ERR_LAUNCH_FAILED where devices are cut off.
    """
    engine, done = Engine(), list[Transfer]()
    progress = Progress(engine, topology, lambda part, transfer: done.append(transfer), down, path, cuts)
    for part, together in groupby(sent, lambda message: message.first // chunk if chunk else 0):
        progress.add(part, devices, together, element_bytes)
    progress.start()
    engine.run()
    return sorted((*done, *progress.lost), key=lambda transfer: transfer.end) if progress.lost else done


class Progress:
    """The progress engine (COLL-04.3-01, -02): messages that leave and arrive as events of the virtual-time engine.

    Messages of any number of collectives are added, at any time, before `start`, which lets go those of them that wait
    for nothing. `arrived` takes each message that has arrived; `lost` are those that were lost on links that failed.
    """

    def __init__(
        self,
        engine: Engine,
        topology: Topology,
        arrived: Callable[[Part, Transfer], None],
        down: frozenset[str] = frozenset(),
        path: str = "auto",
        cuts: Sequence[Cut] = (),
    ) -> None:
        self.lost: list[Transfer] = []
        self._engine = engine
        self._topology = topology
        self._arrived = arrived
        self._path = path
        self._down = down.union(cut.link for cut in cuts if cut.at <= 0)
        self._cuts = deque(sorted(cut for cut in cuts if cut.at > 0))
        self._checked = bool(cuts)
        self._lanes = {(link.name, end): _Lane(link.credits) for link in topology.links for end in (link.a, link.b)}
        self._ways: dict[tuple[int, int], tuple[Way, tuple[_Lane, ...]]] = {}
        self._needs: dict[Part, dict[int, _Needs]] = {}
        self._added: dict[Part, dict[int, _Needs]] = {}
        self._of: dict[Part, tuple[Sequence[int], int]] = {}
        self._count = 0
        self._due: dict[int, _Due] = {}
        for cut in self._cuts:
            self._at(cut.at)

    def add(
        self, part: Part, devices: Sequence[int], sent: Iterable[Sent], element_bytes: int, priority: int = 0
    ) -> None:
        """Messages of ranks on these devices, in order of their steps, which wait for those of the same part.

        All messages of a part are of the same devices and have elements of the same size.

        Raises `Failure` with TESS_ERR_LAUNCH_FAILED where devices are cut off.
        """
        needs = self._added[part] = self._needs.setdefault(part, {})
        self._of[part] = devices, element_bytes
        for message in sent:
            way, lanes = self._way(devices[message.source], devices[message.target])
            sender = needs.get(message.source) or needs.setdefault(message.source, _Needs())
            receiver = needs.get(message.target) or needs.setdefault(message.target, _Needs())
            lasts = way.time(message.elements * element_bytes)
            receiver.expect(message.step)
            sender.to_send.append(_Unit((-priority, self._count), message, part, way, lanes, lasts, receiver))
            self._count += 1

    def has_credits(self, devices: Sequence[int], sent: Iterable[Sent]) -> bool:
        """True if every link of these messages has a credit that no message waits for."""
        lanes = [lane for message in sent for lane in self._way(devices[message.source], devices[message.target])[1]]
        return all(lane.credits > len(lane.waiting) for lane in lanes)

    def start(self) -> None:
        """Let go of what was added all that waits for nothing."""
        ready = [unit for part in self._added.values() for needs in part.values() for unit in needs.ready()]
        self._added.clear()
        self._let_go(sorted(ready, key=lambda unit: unit.number), self._engine.now)

    def _happen(self) -> None:
        """Let happen what is due now: links are left free, messages arrive, links fail, and others leave."""
        now = self._engine.now
        due = self._due.pop(now)
        ready: dict[Number, _Unit] = {}
        changed: dict[int, _Lane] = {}
        for unit in due.sent:
            for lane in unit.lanes:
                lane.free = True
                changed[id(lane)] = lane
        due.arrived.sort(key=lambda unit: unit.number)
        for unit in due.arrived:
            for lane in unit.lanes:
                lane.credits += 1
                changed[id(lane)] = lane
            ready.update((other.number, other) for other in unit.receiver.arrived(unit.sent.step))
            start = now - unit.lasts - unit.way.latency - FIXED
            self._arrived(unit.part, Transfer(unit.sent, unit.way.links, start, now))
        if self._cuts and self._cuts[0].at == now:
            ready.update(self._cut(now, tuple(ready.values())))
        self._let_go(_in_turn(sorted(ready.values(), key=lambda unit: unit.number), changed.values()), now)
        if self._checked:
            self.check()

    def check(self) -> None:
        """Every link has all of its credits, each way, but for those of the messages in flight on it."""
        in_use = Counter(
            direction for due in self._due.values() for unit in due.arrived for direction in unit.way.directions
        )
        for link in self._topology.links:
            for end in (link.a, link.b):
                left, out = self._lanes[link.name, end].credits, in_use[link.name, end]
                assert left + out == link.credits, f"{link.name} from {end}: {left} credits left, {out} taken"

    def _cut(self, now: int, leaving: Sequence[_Unit]) -> dict[Number, _Unit]:
        """Let the links fail that fail now. Returns, by number, what may be able to leave: what was lost, what waits.

        Messages whose way a failed link was on get another one, also those that are about to leave. Raises `Failure`.
        """
        failed: set[str] = set()
        while self._cuts and self._cuts[0].at == now:
            failed.add(self._cuts.popleft().link)
        self._down |= failed
        self._ways.clear()
        lost = self._lose(now, failed)
        waiting = {number: unit for lane in self._lanes.values() for number, unit in lane.waiting.items()}
        later = [unit for part in self._needs.values() for needs in part.values() for unit in needs.to_send]
        for unit in (*lost, *waiting.values(), *leaving, *later):
            if not failed.isdisjoint(unit.way.links):
                self._reroute(unit)
        return waiting | {unit.number: unit for unit in lost}

    def _lose(self, now: int, failed: Set[str]) -> list[_Unit]:
        """Take back the messages in flight on links that fail: their links are free, and have their credits again."""
        lost = []
        for arrival, due in self._due.items():
            for unit in _taken_out(due.sent, failed):
                for lane in unit.lanes:
                    lane.free = True
            for unit in _taken_out(due.arrived, failed):
                for lane in unit.lanes:
                    lane.credits += 1
                start = arrival - unit.lasts - unit.way.latency - FIXED
                self.lost.append(Transfer(unit.sent, unit.way.links, start, now, lost=True))
                lost.append(unit)
        return lost

    def _reroute(self, unit: _Unit) -> None:
        """Give a message that is not in flight the way there is now. Raises `Failure` where there is none."""
        devices, element_bytes = self._of[unit.part]
        for lane in unit.lanes:
            lane.waiting.pop(unit.number, None)
        unit.way, unit.lanes = self._way(devices[unit.sent.source], devices[unit.sent.target])
        unit.lasts = unit.way.time(unit.sent.elements * element_bytes)

    def _let_go(self, units: Iterable[_Unit], now: int) -> None:
        """Start each message whose links are free and have credits; the others wait at their links."""
        waiting = []
        for unit in units:
            lanes = unit.lanes
            for lane in lanes:
                if not (lane.free and lane.credits):
                    waiting.append(unit)
                    break
            else:
                for lane in lanes:
                    lane.free = False
                    lane.credits -= 1
                    lane.waiting.pop(unit.number, None)
                self._at(now + unit.lasts).sent.append(unit)
                self._at(now + unit.lasts + unit.way.latency + FIXED).arrived.append(unit)
        for unit in waiting:
            if unit.number not in unit.lanes[0].waiting:
                for lane in unit.lanes:
                    lane.hold(unit)

    def _at(self, time: int) -> _Due:
        """Return the events of a time."""
        due = self._due.get(time)
        if due is None:
            due = self._due[time] = _Due([], [])
            self._engine.call_at(time, self._happen)
        return due

    def _way(self, source: int, target: int) -> tuple[Way, tuple[_Lane, ...]]:
        """The way between two devices, with its lanes. Raises `Failure`."""
        entry = self._ways.get((source, target))
        if entry is None:
            way = way_between(self._topology, source, target, self._down, self._path)
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

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")

Devices: TypeAlias = tuple[int, ...]


def algorithms(topology: Topology, devices: Sequence[int], down: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The algorithms that a group of devices can run, none where some cannot reach others.

    Hierarchical takes several nodes with as many devices of the group on each, or one node on which a switch joins all
    of the group (RT-13-05).
    """
    if any(topology.route(devices[0], device, down) is None for device in devices):
        return ()
    possible = tuple(ALGORITHMS)
    if _is_hierarchy(topology, devices, down):
        return possible
    return tuple(name for name in possible if name != "hierarchical")


def collective_duration(
    topology: Topology,
    devices: Sequence[int],
    collective: str,
    size: int,
    algorithm: str,
    root: int = 0,
    down: frozenset[str] = frozenset(),
    path: str = "auto",
    cuts: tuple[Cut, ...] = (),
) -> int:
    """The duration of a collective over a full buffer of a size; `root` is the group index of a broadcast's root.

    Messages go by the `path` where it is there. The links of `cuts` fail midway, after which they go by others. A group
    of one, or an empty buffer, takes no time. Raises `Failure`: TESS_ERR_INVALID_VALUE for unknown names or a root
    outside the group, TESS_ERR_UNSUPPORTED for an algorithm it cannot run, TESS_ERR_LAUNCH_FAILED where devices are cut
    off.
    """
    require_known("collective", "collective", collective, COLLECTIVES)
    require_known("collective", "algorithm", algorithm, tuple(ALGORITHMS))
    if not 0 <= root < len(devices):
        raise invalid(collective, f"root {shown(root)}", f"0 to {len(devices) - 1}")
    if len(devices) == 1 or size == 0:
        return 0
    possible = algorithms(topology, devices, down)
    if not possible:
        actual = f"devices {', '.join(map(str, devices))}, some of which are cut off from others"
        raise Failure(Status.TESS_ERR_LAUNCH_FAILED, collective, actual, "links that are not down")
    if algorithm not in possible:
        actual = f"algorithm {algorithm!r} for devices {', '.join(map(str, devices))}"
        raise unsupported(collective, actual, f"one of {', '.join(possible)}")
    around = (*devices[root:], *devices[:root])
    return _duration(topology, around, collective, size, algorithm, maker(algorithm), down, path, cuts)


@lru_cache(maxsize=4096)
def _duration(
    topology: Topology,
    devices: tuple[int, ...],
    collective: str,
    size: int,
    algorithm: str,
    make: Maker,
    down: frozenset[str],
    path: str,
    cuts: tuple[Cut, ...],
) -> int:
    """The ranks are taken node by node, since those of a hierarchy are adjacent; `make` is part of the key."""
    nodes = topology.by_node(devices)
    together = tuple(device for node in nodes for device in node)
    if VECTORS and len(together) > FEW and path == "auto" and not cuts:  # only the engine follows a path, and cuts
        for shortcut in (alike_duration, ring_duration):
            if (duration := shortcut(topology, together, collective, algorithm, size, down)) is not None:
                return duration
    sent = messages(collective, algorithm, len(devices), size, per_node=len(nodes[0]))
    return max(
        (transfer.end for transfer in travel(topology, together, sent, 1, down=down, path=path, cuts=cuts)), default=0
    )


def _is_hierarchy(topology: Topology, devices: Sequence[int], down: frozenset[str]) -> bool:
    nodes = topology.by_node(devices)
    if len(nodes) > 1:
        return len({len(node) for node in nodes}) == 1
    switches = [switch.name for switch in topology.switches if switch.node is not None]
    return any(all(len(topology.route(device, switch, down) or ()) == 1 for device in devices) for switch in switches)


_ROUNDS: Mapping[str, Callable[[int], list[tuple[int, int]]]] = {
    "ring": lambda ranks: [(1, 1)] * (ranks - 1),
    "direct": lambda ranks: [(ranks - 1, 1)],
    "hierarchical": lambda ranks: [(ranks - 1, 1)],  # of one node
    "halving_doubling": lambda ranks: [(1, ranks >> step) for step in range(1, ranks.bit_length())],
}
"""The messages that a rank sends in each step of combining, and the shares in each; spreading is the way back."""


def alike_duration(
    topology: Topology, devices: Devices, collective: str, algorithm: str, size: int, down: frozenset[str]
) -> int | None:
    """Return the duration of a collective whose ranks are all alike, or None where they are not.

    One switch joins them by like links, and all shares are of one size, so that at each time all have sent and
    received as much.
    """
    ranks = len(devices)
    links = like_links(topology, devices, down) if size % ranks == 0 else None
    if links is None or collective == "broadcast" or algorithm not in _ROUNDS:
        return None
    if algorithm == "halving_doubling" and ranks & (ranks - 1):
        return None
    combining = _ROUNDS[algorithm](ranks)
    rounds = {
        "all_reduce": [*combining, *reversed(combining)],
        "reduce_scatter": combining,
        "all_gather": combining[::-1],
    }[collective]
    way = Way((), 2 * links.latency, links.bandwidth)
    arrived = free = 0
    in_flight = deque([0] * links.credits, maxlen=links.credits)
    for messages_sent, shares in rounds:
        ready, lasts = arrived, way.time(size // ranks * shares)
        for _ in range(messages_sent):
            free = max(ready, free, in_flight[0]) + lasts
            arrived = free + way.latency + FIXED
            in_flight.append(arrived)
    return arrived


def ring_duration(
    topology: Topology, devices: Devices, collective: str, algorithm: str, size: int, down: frozenset[str]
) -> int | None:
    """Return the duration of a ring whose messages share no link with those of other ranks, or None of other cases.

    A rank sends on what has just come, by one way, so that its messages leave in order; `ends` are the arrivals of
    earlier steps. Shares are of two sizes at most. Raises `Failure` with TESS_ERR_LAUNCH_FAILED for devices cut off.
    """
    ranks = len(devices)
    if algorithm != "ring" or collective == "broadcast" or size < ranks:
        return None
    ways = [way_between(topology, *pair, down) for pair in pairwise((*devices, devices[0]))]
    directions = [direction for way in ways for direction in way.directions]
    if len(set(directions)) < len(directions):
        return None
    steps = (ranks - 1) * (2 if collective == "all_reduce" else 1)
    small = size // ranks
    times = [[way.time(share) for way in ways] for share in (small, small + 1)]
    if steps * (max(times[1]) + max(way.latency for way in ways) + FIXED) >= _LONGEST:
        return None
    lasts, longer = np.array(times)
    fixed = np.array([way.latency + FIXED for way in ways])
    of_link = {link.name: link.credits for link in topology.links}
    credits = np.array([min(of_link[name] for name in way.links) for way in ways])
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
