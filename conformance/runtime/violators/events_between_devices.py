"""Events that hold back only some devices or kinds of work, on a machine without access to single ranks (spec 12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.runtime.collectives import CollectiveWork
from tessera_reference.runtime.streams import CopyWork, RecordWork, Stream, WaitWork, Work

from .changes import BuildsOnce

ENQUEUE = Stream.enqueue
OPTIONAL = ("rank-memory", "schedule-control")


class Plain(BuildsOnce):
    """The reference without access to ranks and schedules: only the functions of the text show its behaviour."""

    def hello(self) -> dict[str, Any]:
        """Return the Hello without these features."""
        message = super().hello()
        claimed = {name: state for name, state in message["capabilities"].items() if name not in OPTIONAL}
        return message | {"capabilities": claimed}


def plain(name: str, description: str, owner: Any, attribute: str, value: Any) -> Violation:
    """Return a violation that replaces an attribute of that runtime."""
    return replaced("RT-12-04", description, Plain, (owner, attribute, value), name=name)


def overtaking(name: str, description: str, overtakes: Callable[[Work, Work, int], bool]) -> Violation:
    """Return a violation whose work overtakes the preceding wait, or is overtaken by the recording, on some ranks."""

    def enqueue(self: Stream, work: Work) -> None:
        ENQUEUE(self, work)
        for rank in work.ranks():
            queue = self._mailboxes[rank].work
            if len(queue) > 1 and queue[-2] is not None and overtakes(queue[-2], work, rank):
                queue[-1], queue[-2] = queue[-2], queue[-1]

    return plain(name, description, Stream, "enqueue", enqueue)


def is_broadcast(work: Work) -> bool:
    return isinstance(work, CollectiveWork) and work.function == "tessBroadcast"


PLAIN = [
    overtaking("copies_do_not_wait_on_others", "lets copies of ranks behind the first overtake the wait before them",
               lambda one, two, rank: rank > 0 and isinstance(one, WaitWork) and isinstance(two, CopyWork)),
    overtaking("copies_not_counted_on_others", "does not count the copy before a recording on ranks behind the first",
               lambda one, two, rank: rank > 0 and isinstance(one, CopyWork) and isinstance(two, RecordWork)),
    overtaking("broadcasts_not_counted", "does not count the broadcast before a recording",
               lambda one, two, rank: is_broadcast(one) and isinstance(two, RecordWork)),
]  # fmt: skip
