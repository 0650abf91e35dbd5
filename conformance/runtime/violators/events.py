"""Events that do not order what they should, and waits that block (runtime specification, 2 and 12)."""

from weakref import WeakSet

from tessera_conformance.strength import replaced
from tessera_reference.runtime import calls
from tessera_reference.runtime.streams import CopyWork, RecordWork, Stream, WaitWork

from .changes import BuildsOnce, answering, broken, only_if, unless
from .order import both, exchanging


def urgent_waits(wait, rank):
    """True if no stream of a lower priority recorded the event."""
    recorded = wait.recording.reached.name
    streams = wait.stream.mesh.streams.values()
    lower = [stream for stream in streams if stream.priority < wait.stream.priority]
    return not any(recorded.endswith(f" on stream {stream.handle}") for stream in lower)


def last_of(adapter, given):
    return calls._event(adapter.runtime, given["event"]).last


def of_its_first_stream(adapter, call, given):
    event = calls._event(adapter.runtime, given["event"])
    kept = event.last
    answer = call(**given)
    if kept is not None and f"stream {given['stream']}" not in kept.reached.name:
        event.last = kept
    return answer


def releases(adapter, call, given):
    last = last_of(adapter, given)
    if last is not None:
        last.reached.set()
    return call(**given)


def anywhere(adapter, call, given):
    last, waiting = last_of(adapter, given), adapter.runtime.stream(given["stream"])
    return call(**given) if last is None or set(last.mesh.devices) & set(waiting.mesh.devices) else {}


def on_its_own_stream(adapter, given):
    last = last_of(adapter, given)
    return last is not None and f"stream {given['stream']}" in last.reached.name.split(" on ")


ENQUEUE, SYNCHRONIZE = Stream.enqueue, Stream.synchronize
ENDED = WeakSet()
"""Waits that hold nothing back any more."""


def end_all_but_the_last(stream):
    ENDED.update([work for work in stream.queued if isinstance(work, WaitWork)][:-1])


def ends_waits_of_others(self):
    for other in self.mesh.streams.values():
        if other is not self:
            end_all_but_the_last(other)
    SYNCHRONIZE(self)


def ended_by_a_record(self, work):
    if isinstance(work, RecordWork):
        end_all_but_the_last(self)
    ENQUEUE(self, work)


def joining(name, description, attribute, substitute):
    """Return a violation whose streams wait for several others, and forget one of them."""
    waits = ("runtime.streams.WaitWork.run", only_if(lambda wait, rank: wait not in ENDED))
    return replaced("RT-12-03", description, BuildsOnce, (Stream, attribute, substitute), waits, name=name)


VIOLATORS = [
    joining("join_forgets", "forgets all waits of a stream but the last when another is synchronized", "synchronize",
        ends_waits_of_others),
    joining("join_recorded", "forgets all waits but the last before a recording", "enqueue", ended_by_a_record),
    broken("RT-12-03", "own_mesh_only", "does not wait for events of another mesh", "runtime.streams.WaitWork.run",
        only_if(lambda wait, rank: wait.recording.mesh is wait.stream.mesh)),
    broken("RT-12-03", "urgent_goes_on", "does not wait for streams of lower priority", "runtime.streams.WaitWork.run",
        only_if(urgent_waits)),
    exchanging("RT-02-06", "without_copies", "does not count the copy before a recording", both(CopyWork, RecordWork)),
    exchanging("RT-02-06", "copies_do_not_wait", "lets a copy overtake the wait before it", both(WaitWork, CopyWork)),
    answering("RT-02-06", "first_stream", "keeps an event with its first stream", "tessEventRecord",
        of_its_first_stream),
    answering("RT-12-03", "released", "lets waits go when the event is destroyed", "tessEventDestroy", releases),
    answering("RT-12-04", "anywhere", "takes a wait on a mesh apart", "tessStreamWaitEvent", anywhere),
    answering("RT-02-13", "refuses_its_own", "refuses a stream's own event", "tessStreamWaitEvent",
        unless(on_its_own_stream)),
]  # fmt: skip
