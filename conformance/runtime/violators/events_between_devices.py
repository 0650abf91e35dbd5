"""Events that hold back only some devices or kinds of work, on a machine without access to single ranks (spec 12)."""

from tessera_reference.runtime.collectives import CollectiveWork
from tessera_reference.runtime.streams import CopyWork, RecordWork, WaitWork

from .changes import BuildsOnce
from .order import both, exchanging

OPTIONAL = ("rank-memory", "schedule-control")


class Plain(BuildsOnce):
    """The reference without access to ranks and schedules: only the functions of the text show its behaviour."""

    def hello(self):
        message = super().hello()
        claimed = {name: state for name, state in message["capabilities"].items() if name not in OPTIONAL}
        return message | {"capabilities": claimed}


def is_broadcast(work):
    return isinstance(work, CollectiveWork) and work.function == "tessBroadcast"


PLAIN = [
    exchanging("RT-12-04", "copies_do_not_wait_on_others",
        "lets copies of ranks behind the first overtake the wait before them",
        lambda stream, rank, one, two: rank > 0 and both(WaitWork, CopyWork)(stream, rank, one, two), Plain),
    exchanging("RT-12-04", "copies_not_counted_on_others",
        "does not count the copy before a recording on ranks behind the first",
        lambda stream, rank, one, two: rank > 0 and both(CopyWork, RecordWork)(stream, rank, one, two), Plain),
    exchanging("RT-12-04", "broadcasts_not_counted", "does not count the broadcast before a recording",
        lambda stream, rank, one, two: is_broadcast(one) and isinstance(two, RecordWork), Plain),
]  # fmt: skip
