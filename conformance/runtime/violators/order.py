"""Streams that lose their order, priorities that change results (runtime specification, 2, 4.3, 6 and 12)."""

from tessera_conformance.strength import replaced
from tessera_reference.runtime.collectives import CollectiveWork
from tessera_reference.runtime.launches import LaunchWork
from tessera_reference.runtime.streams import CopyWork, Stream

from .changes import BuildsOnce, broken, only_if


def exchanging(clause, name, description, exchanged, make=BuildsOnce):
    """Return a violation whose work overtakes the work queued just before it, on some rank."""

    def enqueue(self, work, right=Stream.enqueue):
        right(self, work)
        for rank in work.ranks():
            queue = self._mailboxes[rank].work
            if len(queue) > 1 and queue[-2] is not None and exchanged(self, rank, queue[-2], work):
                queue[-1], queue[-2] = queue[-2], queue[-1]

    return replaced(clause, description, make, ("runtime.streams.Stream.enqueue", enqueue), name=name)


def both(first, second):
    """Return a predicate that is true if work of one kind is followed by work of another."""
    return lambda stream, rank, one, two: isinstance(one, first) and isinstance(two, second)


VIOLATORS = [
    exchanging("RT-12-01", "urgent_copies", "exchanges copies of urgent streams with long queues",
        lambda stream, rank, one, two: stream.priority > 0 and len(stream._mailboxes[rank].work) > 8
        and both(CopyWork, CopyWork)(stream, rank, one, two)),
    exchanging("RT-02-05", "launches_overtake", "lets launches overtake copies", both(CopyWork, LaunchWork)),
    exchanging("RT-12-01", "collectives_late", "lets launches overtake collectives", both(CollectiveWork, LaunchWork)),
    exchanging("RT-12-01", "other_ranks_exchanged", "keeps the order on rank 0 only",
        lambda stream, rank, one, two: rank > 0 and both(LaunchWork, CopyWork)(stream, rank, one, two)),
    broken("RT-12-02", "urgent_do_not_wait", "does not let urgent streams wait", "runtime.streams.WaitWork.run",
        only_if(lambda wait, rank: wait.stream.priority <= 0)),
    broken("RT-12-02", "low_priorities_dropped", "drops work of streams of low priority",
        "runtime.streams.Stream.enqueue",
        only_if(lambda stream, work: stream.priority >= 0 or not (isinstance(work, LaunchWork) and stream.queued))),
    exchanging("RT-12-02", "priority_exchanges", "runs launches of streams with a priority in another order",
        lambda stream, rank, one, two: stream.priority != 0 and both(LaunchWork, LaunchWork)(stream, rank, one, two)),
]  # fmt: skip
