"""Errors of one stream that another one loses or reports (runtime specification, 6 and 7)."""

from tessera_reference.abi.status import Failure
from tessera_reference.runtime.streams import Stream

from .changes import afterwards, answering, broken, only_if


def failing(clause, name, description, when):
    """Return a violation whose streams keep only some errors."""
    return broken(clause, name, description, "runtime.streams.Stream.fail", only_if(when))


def others(stream):
    """Return the other streams of its mesh."""
    return [other for other in stream.mesh.streams.values() if other is not stream]


def kind_of_the_first(self, right=Stream.synchronize):
    self.mesh.drain()
    failed = [other for other in (self, *others(self)) if other.failures]
    try:
        right(self)
    except Failure as failure:
        first = min(failed, key=lambda stream: stream.handle).error if len(failed) > 1 else failure
        raise first or failure from None


def forgetting(adapter, call, given):
    adapter.runtime.drain()
    for _, stream in adapter.runtime.handles.live("stream"):
        stream.failures = {}


def gone_with_new_work(self, work, right=Stream.enqueue):
    if not self.queued:
        self.failures = {}
    right(self, work)


KEPT = [
    failing("RT-07-07", "not_of_the_last_rank", "loses an error of the last rank alone",
        lambda stream, failure, number, rank: rank == 0 or rank < len(stream.mesh.devices) - 1),
    failing("RT-07-07", "not_of_others", "loses errors of ranks between the first and the last",
        lambda stream, failure, number, rank: rank in (0, len(stream.mesh.devices) - 1)),
    broken("RT-07-07", "gone_with_new_work", "forgets an error when a stream that is done gets new work",
        "runtime.streams.Stream.enqueue", gone_with_new_work),
    failing("RT-06-06", "one_slot", "keeps one error for all streams of a mesh",
        lambda stream, failure, number, rank: not any(other.failures for other in others(stream))),
    broken("RT-07-07", "kind_of_the_first", "reports every error with the status of the first stream's",
        "runtime.streams.Stream.synchronize", kind_of_the_first),
    *(answering("RT-07-07", f"with_{function}", f"forgets the errors of all streams in {function}", function,
        afterwards(forgetting)) for function in (
            "tessStreamDestroy", "tessMeshDestroy", "tessShutdown", "tessEventDestroy", "tessProfilerStop")),
]  # fmt: skip
