"""The two queues of every device in virtual time: computations beside the chunks of collectives.

Collectives spec 4.1, 4.2; AMB-COLL-18, -67 to -69. A compute queue runs one unit at a time, the communication queue
keeps up to `max_inflight` chunks in flight. Among units that are ready, those of higher priority go first, then those
listed first; a chunk for whose first messages a link lacks credits stands back for the next one. Chunks travel through
the progress engine of `travel.py`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from ..abi.status import Failure, Status
from ..mesh.topology import Topology
from .argument_checks import require_within
from .durations import algorithms
from .operations import Sent, messages
from .travel import Progress
from .work import Collective, Compute, Unit, require_work

__all__ = ["MAX_INFLIGHT", "MOST_MESSAGES", "Run", "Slot", "idle", "simulate"]

MAX_INFLIGHT = 4
"""Chunks in flight on a device where nothing else is said."""

MOST_MESSAGES = 1 << 16
"""Messages of all collectives of one simulation."""


@dataclass(frozen=True)
class Slot:
    """When a computation ran on a device, or a chunk was in flight there: from its issue until its last message is
    with all ranks (AMB-COLL-67). Times in picoseconds."""

    id: str
    queue: Literal["compute", "comm"]
    device: int
    chunk: int | None
    start: int
    end: int


@dataclass(frozen=True)
class Run:
    """What every device did, in order of start, and when the last unit had ended."""

    devices: tuple[int, ...]
    slots: tuple[Slot, ...]
    duration: int


def simulate(
    units: Sequence[Unit],
    topology: Topology,
    devices: Sequence[int] | None = None,
    max_inflight: int = MAX_INFLIGHT,
) -> Run:
    """Run units on the devices of their ranks, all of the topology where none are named, node by node.

    Raises `Failure`: TESS_ERR_INVALID_VALUE for work that can never be done, TESS_ERR_UNSUPPORTED for algorithms that
    the ranks of a collective cannot run and for too many messages.
    """
    function = "simulate"
    used = [each.id for each in topology.devices] if devices is None else list(devices)
    if not used or len(set(used)) != len(used):
        raise Failure(Status.TESS_ERR_INVALID_VALUE, function, f"devices {used}", "one at least, each once")
    together = tuple(each for node in topology.by_node(used) for each in node)
    require_within(function, "max_inflight", max_inflight, 1, 1 << 16)
    require_work(function, units, len(together))
    chunks = {each.id: _chunks(topology, together, each) for each in units if isinstance(each, Collective)}
    total = sum(len(sent) for each in chunks.values() for sent in each)
    if total > MOST_MESSAGES:
        raise Failure(Status.TESS_ERR_UNSUPPORTED, function, f"{total} messages", f"at most {MOST_MESSAGES}")
    return _Queues(units, chunks, topology, together, max_inflight).run()


def idle(run: Run, queue: str) -> int:
    """Picoseconds, summed over the devices, in which a queue works at nothing before the last unit has ended."""
    total = 0
    for device in run.devices:
        reached = 0
        for slot in sorted((each for each in run.slots if (each.device, each.queue) == (device, queue)), key=_begin):
            total += max(slot.start - reached, 0)
            reached = max(reached, slot.end)
        total += run.duration - reached
    return total


def _begin(slot: Slot) -> int:
    return slot.start


def _chunks(topology: Topology, devices: Sequence[int], unit: Collective) -> list[list[Sent]]:
    """The messages of each chunk, between places in the unit's ranks. Raises `Failure`."""
    used = [devices[rank] for rank in unit.ranks]
    nodes = topology.by_node(used)
    possible = algorithms(topology, used)
    if unit.algorithm not in possible:
        given = f"unit {unit.id!r} by {unit.algorithm!r} on devices {used}"
        raise Failure(Status.TESS_ERR_UNSUPPORTED, "simulate", given, f"one of {', '.join(possible)}")

    @cache
    def sent(bytes: int) -> list[Sent]:
        per_node = len(nodes[0]) if unit.algorithm == "hierarchical" else None
        return messages(unit.operation, unit.algorithm, len(used), bytes, root=unit.root, per_node=per_node)

    most = MOST_MESSAGES // max(len(sent(unit.chunk_bytes)), 1)
    if unit.bytes // unit.chunk_bytes > most:
        given = f"unit {unit.id!r} in chunks of {unit.chunk_bytes} bytes"
        raise Failure(Status.TESS_ERR_UNSUPPORTED, "simulate", given, f"at most {most} chunks")
    return [sent(bytes) for bytes in unit.chunks]


@dataclass(eq=False)
class _Flight:
    """A chunk in flight: when it was issued, and how many of its messages have not arrived."""

    unit: Collective
    number: int
    start: int
    missing: int


@dataclass(eq=False)
class _State:
    """How far a unit has come: the devices on which it runs or has run, and those on which it has ended."""

    started: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    issued: int = 0
    arrived: int = 0


class _Queues:
    """The queues of all devices, and the clock that they share."""

    def __init__(
        self,
        units: Sequence[Unit],
        chunks: Mapping[str, list[list[Sent]]],
        topology: Topology,
        devices: Sequence[int],
        max_inflight: int,
    ) -> None:
        self._units = {each.id: each for each in units}
        self._chunks = chunks
        self._devices = devices
        self._max_inflight = max_inflight
        self._progress = Progress(topology)
        self._states = {each.id: _State() for each in units}
        order = sorted(units, key=lambda unit: -unit.priority)
        self._computations = [each for each in order if isinstance(each, Compute)]
        self._collectives = [each for each in order if isinstance(each, Collective)]
        self._busy: set[int] = set()
        self._inflight = [0] * len(devices)
        self._flights: dict[int, _Flight] = {}
        self._ends: list[tuple[int, int, str]] = []
        self._slots: list[Slot] = []
        self._issued = 0

    def run(self) -> Run:
        """Advance from event to event until nothing is left to do."""
        now = 0
        self._start_all(now)
        while (following := self._next()) is not None:
            now = following
            while self._ends and self._ends[0][0] == now:
                _, rank, name = heapq.heappop(self._ends)
                self._busy.discard(rank)
                self._states[name].ended.add(rank)
            if self._progress.next == now:
                self._receive(now)
            self._start_all(now)
        slots = tuple(sorted(self._slots, key=lambda each: (each.start, each.end)))
        return Run(tuple(self._devices), slots, max((each.end for each in slots), default=0))

    def _next(self) -> int | None:
        times = [self._ends[0][0]] if self._ends else []
        if self._progress.next is not None:
            times.append(self._progress.next)
        return min(times, default=None)

    def _receive(self, now: int) -> None:
        """The messages that arrive now, and the chunks that end with them."""
        for arrival in self._progress.advance():
            assert isinstance(arrival.part, int), "the part that `_issue` gave"
            flight = self._flights[arrival.part]
            flight.missing -= 1
            if not flight.missing:
                self._end_chunk(self._flights.pop(arrival.part), now)

    def _end_chunk(self, flight: _Flight, now: int) -> None:
        unit, state = flight.unit, self._states[flight.unit.id]
        for rank in unit.ranks:
            self._inflight[rank] -= 1
            self._slots.append(Slot(unit.id, "comm", self._devices[rank], flight.number, flight.start, now))
        state.arrived += 1
        if state.arrived == len(self._chunks[unit.id]):
            state.ended.update(unit.ranks)

    def _start_all(self, now: int) -> None:
        """Start what can start, until no more can: what takes no time may let others start at once."""
        while self._issue_one(now) or self._compute_one(now):
            pass

    def _issue_one(self, now: int) -> bool:
        """Issue the first chunk that can be: of a collective whose values are there, with room and credits for it."""
        for unit in self._ready_collectives():
            state, chunks = self._states[unit.id], self._chunks[unit.id]
            if not chunks:
                self._collectives.remove(unit)
                state.ended.update(unit.ranks)
                return True
            sent = chunks[state.issued]
            devices = [self._devices[rank] for rank in unit.ranks]
            first = [each for each in sent if each.step == sent[0].step]
            if all(self._inflight[rank] < self._max_inflight for rank in unit.ranks) and self._progress.has_credits(
                devices, first
            ):
                self._issue(unit, sent, devices, now)
                return True
        return False

    def _ready_collectives(self) -> Iterator[Collective]:
        for unit in self._collectives:
            if all(self._is_there(each, unit, rank) for each in unit.after for rank in unit.ranks):
                yield unit

    def _issue(self, unit: Collective, sent: Sequence[Sent], devices: Sequence[int], now: int) -> None:
        """A chunk takes its place in the queues of all its ranks."""
        state, self._issued = self._states[unit.id], self._issued + 1
        flight = _Flight(unit, state.issued, now, len(sent))
        state.issued += 1
        if state.issued == len(self._chunks[unit.id]):
            self._collectives.remove(unit)
        for rank in unit.ranks:
            self._inflight[rank] += 1
        if not sent:
            self._end_chunk(flight, now)
            return
        self._flights[self._issued] = flight
        self._progress.add(self._issued, devices, sent, 1, unit.priority)
        self._progress.start(now)

    def _compute_one(self, now: int) -> bool:
        """Start the first computation whose device is free and whose values are there."""
        for unit in self._computations:
            state = self._states[unit.id]
            for rank in unit.ranks:
                free = rank not in self._busy and rank not in state.started
                if free and all(self._is_there(each, unit, rank) for each in unit.after):
                    self._compute(unit, rank, now)
                    return True
        return False

    def _compute(self, unit: Compute, rank: int, now: int) -> None:
        self._busy.add(rank)
        started = self._states[unit.id].started
        started.add(rank)
        if len(started) == len(unit.ranks):
            self._computations.remove(unit)
        end = now + unit.picoseconds
        heapq.heappush(self._ends, (end, rank, unit.id))
        self._slots.append(Slot(unit.id, "compute", self._devices[rank], None, now, end))

    def _is_there(self, name: str, unit: Unit, rank: int) -> bool:
        """Whether what a unit awaits has ended: where it runs itself, or, where it does not run there, everywhere."""
        awaited, ended = self._units[name], self._states[name].ended
        return rank in ended if rank in awaited.ranks else len(ended) == len(awaited.ranks)
