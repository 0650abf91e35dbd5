"""Streams that lose their order, priorities that change results, synchronizations that return early.

Runtime specification, 2, 4.3, 6 and 12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.runtime.collectives import CollectiveWork
from tessera_reference.runtime.launches import LaunchWork
from tessera_reference.runtime.streams import CopyWork, Stream, WaitWork, Work

from .changes import BuildsOnce


def broken(clause: str, name: str, description: str, owner: Any, attribute: str, value: Any) -> Violation:
    """Return a violation that replaces an attribute of the runtime."""
    return replaced(clause, description, BuildsOnce, (owner, attribute, value), name=name)


# Order


def exchanging(
    clause: str, name: str, description: str, exchanged: Callable[[Stream, int, Work, Work], bool]
) -> Violation:
    """Return a violation whose work overtakes the work queued just before it, on some rank."""
    right = Stream.enqueue

    def enqueue(self: Stream, work: Work) -> None:
        right(self, work)
        for rank in work.ranks():
            queue = self._mailboxes[rank].work
            if len(queue) > 1 and queue[-2] is not None and exchanged(self, rank, queue[-2], work):
                queue[-1], queue[-2] = queue[-2], queue[-1]

    return broken(clause, name, description, Stream, "enqueue", enqueue)


def both(first: type[Work], second: type[Work]) -> Callable[[Stream, int, Work, Work], bool]:
    """Return a predicate that is true if work of one kind is followed by work of another."""
    return lambda stream, rank, one, two: isinstance(one, first) and isinstance(two, second)


def in_a_long_queue(stream: Stream, rank: int, one: Work, two: Work) -> bool:
    long = len(stream._mailboxes[rank].work) > 8
    return stream.priority > 0 and long and both(CopyWork, CopyWork)(stream, rank, one, two)


EXCHANGED = [
    exchanging("RT-12-01", "urgent_copies", "exchanges copies of urgent streams with long queues", in_a_long_queue),
    exchanging("RT-02-05", "launches_overtake", "lets launches overtake copies", both(CopyWork, LaunchWork)),
    exchanging("RT-12-01", "collectives_late", "lets launches overtake collectives", both(CollectiveWork, LaunchWork)),
    exchanging("RT-12-01", "other_ranks_exchanged", "keeps the order on rank 0 only",
        lambda stream, rank, one, two: rank > 0 and both(LaunchWork, CopyWork)(stream, rank, one, two)),
]  # fmt: skip


# Priorities


def impatient(more: Callable[[int], bool]) -> Any:
    """Return a wait that streams of some priorities skip."""
    right = WaitWork.run

    async def run(self: WaitWork, rank: int) -> None:
        if not more(self.stream.priority):
            await right(self, rank)

    return run


def dropping(self: Stream, work: Work, right: Any = Stream.enqueue) -> None:
    if not (self.priority < 0 and isinstance(work, LaunchWork) and self.queued):
        right(self, work)


PRIORITIES = [
    broken("RT-12-02", "urgent_do_not_wait", "does not let urgent streams wait", WaitWork, "run",
        impatient(lambda p: p > 0)),
    broken("RT-12-02", "low_priorities_dropped", "drops work of streams of low priority", Stream, "enqueue", dropping),
    exchanging("RT-12-02", "priority_exchanges", "runs launches of streams with a priority in another order",
        lambda stream, rank, one, two: stream.priority != 0 and both(LaunchWork, LaunchWork)(stream, rank, one, two)),
]  # fmt: skip


# Synchronization


def returning(clause: str, name: str, description: str, until: Callable[[Stream, int], bool]) -> Violation:
    """Return a violation whose tessStreamSynchronize returns once `until` holds, given the time of the call."""

    def synchronize(self: Stream) -> None:
        machine = self.mesh.machine
        begun = max(machine.engine.now, machine.host_time)
        self.end_residents()
        machine.settle(lambda: not self.queued or until(self, begun))
        error = self.error
        self.failures = {}
        if error is not None:
            raise error

    return broken(clause, name, description, Stream, "synchronize", synchronize)
