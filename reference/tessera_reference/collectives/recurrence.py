"""The times of a collective's messages, step by step with vectors over ranks, not events (AMB-COLL-60).

The messages of a step are cut into waves, in each of which no two go the same way over a link. A message leaves as soon
as its sender is ready and each of its links is free and has a credit, which follows from those of earlier waves. These
are the times of `travel`, provided that no message would have left before one that comes earlier in their order; where
that cannot be excluded, the case is irregular and refused, and `travel` has to be asked.

A ring, whose messages of all steps go the same ways and share them with no other, needs a few operations a step. Of
ranks that are all alike one tells the time of all. A switch, `VECTORS`, asks the engine of everything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..mesh.topology import Topology
from ..numerics.collectives import share_of
from .links import FIXED, Direction, Way, like_links, way_between
from .schedules import algorithm, steps

Whole: TypeAlias = npt.NDArray[np.int64]

_LONGEST = 1 << 61
"""Picoseconds, a month; sums of two of them are exact."""

_NEVER = np.iinfo(np.int64).max


VECTORS = True
"""False asks the engine of everything."""


class Irregular(Exception):
    """A case whose times do not follow from the order of its messages."""


class Times(NamedTuple):
    """Messages of one step, as vectors: the elements they carry and the picoseconds at which they leave and arrive."""

    step: int
    source: Whole
    target: Whole
    first: Whole
    elements: Whole
    start: Whole
    end: Whole


class _Step(NamedTuple):
    """The messages of a step, as vectors over them; shares from `first` up to `last`."""

    source: Whole
    target: Whole
    first: Whole
    last: Whole


def recurrence(
    topology: Topology,
    devices: Sequence[int],
    operation: str,
    name: str,
    count: int,
    element_bytes: int,
    *,
    root: int = 0,
    per_node: int | None = None,
    chunk: int | None = None,
    down: frozenset[str] = frozenset(),
) -> Iterator[Times]:
    """The times of all messages of ranks on these devices, in parts that are in order of steps.

    Raises `Irregular`, and `Failure` as `schedules.algorithm` and `travel` do.
    """
    if not VECTORS:
        raise Irregular("the engine is asked of everything")
    ranks = len(devices)
    starts = np.array([share_of(count, share, ranks).start for share in range(ranks + 1)])
    ways = _Ways(topology, devices, down)
    if (
        name == "ring"
        and chunk is None
        and 1 < ranks <= count
        and operation in ("all_reduce", "reduce_scatter", "all_gather")
    ):
        around = _around(ranks)
        lanes = ways.lanes(ways.of(around))
        if len(set(lanes[lanes > 0].tolist())) == np.count_nonzero(lanes):
            return _ring_times(operation, around, ways, lanes, starts, element_bytes)
    given = (_Step(*np.array(step).T[:4]) for step in steps(operation, algorithm(name, ranks, per_node), root))
    return _wave_times(given, ways, starts, element_bytes, chunk)


def _around(ranks: int) -> _Step:
    """The first step of a ring: every rank sends the share before its own to the next rank."""
    each = np.arange(ranks)
    first = (each - 1) % ranks
    return _Step(each, (each + 1) % ranks, first, first + 1)


class _Ways:
    """The ways of messages, and the lanes of each, by number: a lane is a direction of a link.

    Lane 0 is always free; it fills up the lanes of the shorter ways.
    """

    def __init__(self, topology: Topology, devices: Sequence[int], down: frozenset[str]) -> None:
        self._topology, self._devices, self._down = topology, devices, down
        self._credits = {link.name: link.credits for link in topology.links}
        self._numbers: dict[Direction, int] = {}
        self._pairs: dict[tuple[int, int], int] = {}
        self.ways: list[Way] = []
        self.credits: list[int] = [1]

    def of(self, step: _Step) -> Whole:
        """The number of the way of each message. Raises `Failure`."""
        pairs = zip(step.source.tolist(), step.target.tolist(), strict=True)
        return np.array([self._pairs[pair] if pair in self._pairs else self._add(pair) for pair in pairs], np.int64)

    def _add(self, pair: tuple[int, int]) -> int:
        source, target = pair
        way = way_between(self._topology, self._devices[source], self._devices[target], self._down)
        for direction in way.directions:
            if direction not in self._numbers:
                self._numbers[direction] = len(self.credits)
                self.credits.append(self._credits[direction[0]])
        self._pairs[pair] = len(self.ways)
        self.ways.append(way)
        return self._pairs[pair]

    def lanes(self, ways: Whole) -> Whole:
        """The lanes of each way, (ways, most lanes of one)."""
        rows = [[self._numbers[direction] for direction in self.ways[way].directions] for way in ways.tolist()]
        longest = max(map(len, rows), default=0)
        return np.array([row + [0] * (longest - len(row)) for row in rows], np.int64).reshape(len(rows), longest)

    def fixed(self, ways: Whole) -> Whole:
        """Return the time beside that of a message's bytes."""
        return np.array([self.ways[way].latency + FIXED for way in ways.tolist()], np.int64)

    def time(self, ways: Whole, nbytes: Whole) -> Whole:
        """Return the times for which messages occupy their links. Raises `Irregular`."""
        sizes = zip(ways.tolist(), nbytes.tolist(), strict=True)
        times = [self.ways[way].time(size) for way, size in sizes]
        if max(times, default=0) >= _LONGEST:
            raise Irregular(f"a message takes {max(times)} ps, more than {_LONGEST}")
        return np.array(times, np.int64)


def _ring_times(
    operation: str, around: _Step, ways: _Ways, lanes: Whole, starts: Whole, element_bytes: int
) -> Iterator[Times]:
    """Every rank sends on what has just come; what it sends leaves in order, since one way takes all of it.

    Shares are of two sizes at most, so that a message takes the time of the smaller and, of a larger one, some more.
    """
    ranks, used = len(starts) - 1, ways.of(around)
    once = starts[1:] - starts[:-1]
    sizes, shares = np.concatenate([once, once]), np.concatenate([starts[:-1], starts[:-1]])
    small = np.full(ranks, sizes.min())
    takes = ways.time(used, small * element_bytes)
    more = ways.time(used, (small + 1) * element_bytes) - takes
    fixed, larger = ways.fixed(used), sizes - sizes.min()
    credits = np.array(ways.credits)[np.where(lanes > 0, lanes, lanes[:, :1])].min(axis=1)
    total = (ranks - 1) * (2 if operation == "all_reduce" else 1)
    if total * int((takes + more + fixed).max()) >= _LONGEST:
        raise Irregular(f"{total} steps may take more than {_LONGEST} ps")
    different = [
        (credit, True if (credits == credit).all() else credits == credit) for credit in sorted(set(credits.tolist()))
    ]
    ends = deque[Whole](maxlen=int(min(credits.max(), total)))
    ready = free = np.zeros(ranks, np.int64)
    for step in range(total):
        at = (-step if operation == "all_gather" else -step - 1) % ranks
        start = np.maximum(ready, free)  # integers
        for each, where in different:
            if each <= len(ends):
                np.maximum(start, ends[-each], out=start, where=where)  # integers
        free = start + takes + more * larger[at : at + ranks] if larger.any() else start + takes
        end = free + fixed
        ends.append(end)
        yield Times(step, *around[:2], shares[at : at + ranks], sizes[at : at + ranks], start, end)
        ready = np.concatenate([end[-1:], end[:-1]])


def _wave_times(
    given: Iterator[_Step], ways: _Ways, starts: Whole, element_bytes: int, chunk: int | None
) -> Iterator[Times]:
    """Any collective, wave by wave. Raises `Irregular`."""
    parts = -(-int(starts[-1]) // chunk) if chunk else 1
    arrived = np.zeros((len(starts) - 1, parts), np.int64)
    state = _Lanes()
    for number, step in enumerate(given):
        source, target, first, count = _pieces(step, starts, chunk)
        if len(source) == 0:
            continue
        used = ways.of(_Step(source, target, first, count))
        lanes, lasts, fixed = ways.lanes(used), ways.time(used, count * element_bytes), ways.fixed(used)
        part = first // chunk if chunk else np.zeros_like(first)
        ready = arrived[source, part]
        state.extend(ways.credits)
        start = np.zeros_like(ready)
        for wave in _waves(lanes):
            start[wave] = state.leave(lanes[wave], ready[wave], lasts[wave], fixed[wave])
        end = start + lasts + fixed
        if int(end.max()) >= _LONGEST:
            raise Irregular(f"{int(end.max())} ps, more than {_LONGEST}")
        np.maximum.at(arrived, (target, part), end)  # integers
        yield Times(number, source, target, first, count, start, end)


def _pieces(step: _Step, starts: Whole, chunk: int | None) -> tuple[Whole, Whole, Whole, Whole]:
    """From, to, first element and number of elements of each message, cut where chunks end; no empty ones."""
    first, last = starts[step.first], starts[step.last]
    length = chunk or max(int(starts[-1]), 1)
    chunks = np.where(last > first, -(-last // length) - first // length, 0)
    cut = [(message, chunk) for message, many in enumerate(chunks.tolist()) for chunk in range(many)]
    whose, within = np.array(cut, np.int64).reshape(-1, 2).T
    begin = np.maximum(first[whose], (first[whose] // length + within) * length)  # integers
    end = np.minimum(last[whose], (first[whose] // length + within + 1) * length)  # integers
    return step.source[whose], step.target[whose], begin, end - begin


def _waves(lanes: Whole) -> Iterator[Whole]:
    """The places of messages, cut so that no two of a wave share a lane and those that share one stay in order."""
    taken: dict[int, int] = {0: 0}
    waves: list[list[int]] = []
    for message, used in enumerate(lanes.tolist()):
        wave = max((taken.get(lane, 0) for lane in used), default=0)
        taken.update((lane, wave + 1) for lane in used if lane)
        waves += [[]] if wave == len(waves) else []
        waves[wave].append(message)
    return map(np.array, waves)


class _Lanes:
    """Every lane after the messages so far: when it is free, when its last messages arrive, and since when it has not
    been open."""

    def __init__(self) -> None:
        self._free = self._closed_since = np.zeros(0, np.int64)
        self._ends = np.zeros((0, 0), np.int64)

    def extend(self, credits: Sequence[int]) -> None:
        """Take in lanes that are new; as many arrivals count for each as it has credits."""
        old, deepest = self._ends.shape
        if len(credits) == old:
            return
        ends = np.full((len(credits), max(credits)), _NEVER)
        ends[:old, :deepest] = self._ends
        for lane in range(old, len(credits)):
            ends[lane, : credits[lane]] = 0
        self._ends = ends
        self._free, self._closed_since = (
            np.concatenate([column, np.zeros(len(credits) - old, np.int64)])
            for column in (self._free, self._closed_since)
        )
        self._closed_since[0] = _NEVER

    def leave(self, lanes: Whole, ready: Whole, lasts: Whole, fixed: Whole) -> Whole:
        """Return the times at which the messages of a wave leave. Raises `Irregular`.

        A lane is open to a message that comes next when those before it leave it free and a credit of theirs is back.
        It stays in order for sure where one of its lanes has not been open since before it was ready.
        """
        slots = self._ends[lanes].argmin(axis=-1)
        opens = np.maximum(self._free[lanes], self._ends[lanes, slots])  # integers
        start: Whole = np.maximum(ready, opens.max(axis=1, initial=0))  # integers
        held = (opens == start[:, None]) & (self._closed_since[lanes] <= ready[:, None])
        if not ((start == ready) | held.any(axis=1)).all():
            raise Irregular("a message might leave before one that comes earlier")
        wide = np.broadcast_to(start[:, None], lanes.shape)
        self._closed_since[lanes] = np.where(wide > opens, wide, self._closed_since[lanes])
        self._free[lanes] = wide + lasts[:, None]
        self._ends[lanes, slots] = (start + lasts + fixed)[:, None]
        self._free[0], self._ends[0, 0], self._closed_since[0] = 0, 0, _NEVER
        return start


# Where one switch joins all ranks by like links and all shares are of one size, no rank differs from another: at each
# time all have sent and received as much, and one rank tells when all are done. The times are those of the engine.


def alike_duration(
    topology: Topology, devices: tuple[int, ...], collective: str, size: int, algorithm: str, down: frozenset[str]
) -> int | None:
    """Return the duration of a collective whose ranks are all alike, or None where they are not."""
    ranks = len(devices)
    links = like_links(topology, devices, down) if VECTORS and size % ranks == 0 else None
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


_ROUNDS: Mapping[str, Callable[[int], list[tuple[int, int]]]] = {
    "ring": lambda ranks: [(1, 1)] * (ranks - 1),
    "direct": lambda ranks: [(ranks - 1, 1)],
    "hierarchical": lambda ranks: [(ranks - 1, 1)],  # of one node
    "halving_doubling": lambda ranks: [(1, ranks >> step) for step in range(1, ranks.bit_length())],
}
"""The messages that a rank sends in each step of combining, and the shares in each; spreading is the way back."""
