"""Events that do not order what they should, and waits that block (runtime specification, 2 and 12)."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced
from tessera_reference.mesh.engine import Signal
from tessera_reference.runtime import calls
from tessera_reference.runtime.streams import CopyWork, RecordWork, Stream, WaitWork, Work

from .changes import INVALID, BuildsOnce, Call, Given, answering
from .order import both, broken, exchanging


async def no_wait(self: WaitWork, rank: int) -> None:
    """Go on at once."""


async def first_rank_only(self: WaitWork, rank: int, right: Any = WaitWork.run) -> None:
    if rank == 0:
        await right(self, rank)


async def own_mesh_only(self: WaitWork, rank: int, right: Any = WaitWork.run) -> None:
    if self.recording.mesh is self.stream.mesh:
        await right(self, rank)


async def urgent_goes_on(self: WaitWork, rank: int, right: Any = WaitWork.run) -> None:
    streams_of_mesh = self.stream.mesh.streams.values()
    recorded = [
        stream for stream in streams_of_mesh if self.recording.reached.name.endswith(f" on stream {stream.handle}")
    ]
    if all(wait.priority >= self.stream.priority for wait in recorded):
        await right(self, rank)


async def any_rank(self: RecordWork, rank: int) -> None:
    """Be reached when the first rank is there."""
    self.recording.reached.set()


async def of_the_first(self: RecordWork, rank: int) -> None:
    if rank == 0:
        self.recording.reached.set()


async def never_for_itself(self: WaitWork, rank: int, right: Any = WaitWork.run) -> None:
    if f"stream {self.stream.handle}" in self.recording.reached.name:
        await Signal(self.stream.mesh.machine.engine, "what never comes")
    await right(self, rank)


def of_its_first_stream(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    event = calls._event(adapter.runtime, given["event"])
    kept = event.last
    answer = call(**given)
    if kept is not None and f"stream {given['stream']}" not in kept.reached.name:
        event.last = kept
    return answer


def releases(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    event = calls._event(adapter.runtime, given["event"])
    if event.last is not None:
        event.last.reached.set()
    return call(**given)


def anywhere(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    event = calls._event(adapter.runtime, given["event"])
    waiting = adapter.runtime.stream(given["stream"])
    if event.last is not None and not set(event.last.mesh.devices) & set(waiting.mesh.devices):
        return {}
    return call(**given)


def on_its_own_stream(adapter: Any, call: Call, given: Given) -> bool:
    """True if a stream waits for its own recording."""
    event = calls._event(adapter.runtime, given["event"])
    return event.last is not None and f"stream {given['stream']}" in event.last.reached.name.split(" on ")


def refuses_its_own(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    if on_its_own_stream(adapter, call, given):
        raise Refusal(INVALID, "call", "tessStreamWaitEvent: not this")
    return call(**given)


ENQUEUE, SYNCHRONIZE, WAIT = Stream.enqueue, Stream.synchronize, WaitWork.run
ENDED: WeakSet[Work] = WeakSet()
"""Waits that hold nothing back any more."""


async def unless_ended(self: WaitWork, rank: int) -> None:
    if self not in ENDED:
        await WAIT(self, rank)


def waits_of(stream: Any) -> list[Work]:
    """Return the queued waits of a stream, in order."""
    return [work for work in stream.queued if isinstance(work, WaitWork)]


def ends_waits_of_others(self: Stream) -> None:
    for other in self.mesh.streams.values():
        if other is not self:
            ENDED.update(waits_of(other)[:-1])
    SYNCHRONIZE(self)


def ended_by_a_record(self: Stream, work: Work) -> None:
    if isinstance(work, RecordWork):
        ENDED.update(waits_of(self)[:-1])
    ENQUEUE(self, work)


def joining(name: str, description: str, attribute: str, substitute: Any) -> Violation:
    """Return a violation whose streams wait for several others, and forget one of them."""
    substitutions = (Stream, attribute, substitute), ("runtime.streams.WaitWork.run", unless_ended)
    return replaced("RT-12-03", description, BuildsOnce, *substitutions, name=name)


JOINS = [
    joining("join_forgets", "forgets all waits of a stream but the last when another is synchronized", "synchronize",
        ends_waits_of_others),
    joining("join_recorded", "forgets all waits but the last before a recording", "enqueue", ended_by_a_record),
]  # fmt: skip

RUNS: list[Violation] = [
    broken("RT-12-03", "own_mesh_only", "does not wait for events of another mesh", WaitWork, "run", own_mesh_only),
    broken("RT-12-03", "urgent_goes_on", "does not wait for streams of lower priority", WaitWork, "run",
        urgent_goes_on),
    exchanging("RT-02-06", "without_copies", "does not count the copy before a recording", both(CopyWork, RecordWork)),
    exchanging("RT-02-06", "copies_do_not_wait", "lets a copy overtake the wait before it", both(WaitWork, CopyWork)),
]  # fmt: skip

CALLS: list[Violation] = [
    answering("RT-02-06", "first_stream", "keeps an event with its first stream", "tessEventRecord",
        of_its_first_stream),
    answering("RT-12-03", "released", "lets waits go when the event is destroyed", "tessEventDestroy", releases),
    answering("RT-12-04", "anywhere", "takes a wait on a mesh apart", "tessStreamWaitEvent", anywhere),
    answering("RT-02-13", "refuses_its_own", "refuses a stream's own event", "tessStreamWaitEvent", refuses_its_own),
]  # fmt: skip
