"""Errors of one stream that another one loses or reports (runtime specification, 6 and 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.abi.status import Failure
from tessera_reference.runtime.streams import Stream, WaitWork, Work

from .changes import BuildsOnce, Call, Given, answering

FAIL, ENQUEUE, SYNCHRONIZE, WAIT = Stream.fail, Stream.enqueue, Stream.synchronize, WaitWork.run


def sync(clause: str, name: str, description: str, synchronize: Any) -> Violation:
    """Return a violation with another synchronization."""
    return replaced(clause, description, BuildsOnce, ("runtime.streams.Stream.synchronize", synchronize), name=name)


def others(stream: Stream) -> Iterator[Stream]:
    """Return the other streams of its mesh."""
    return (other for other in stream.mesh.streams.values() if other is not stream and isinstance(other, Stream))


def one_slot(self: Stream, failure: Failure, number: int, rank: int) -> None:
    if not any(other.failures for other in others(self)):
        FAIL(self, failure, number, rank)


def kind_of_the_first(self: Stream) -> None:
    self.mesh.drain()
    failed = [other for other in (self, *others(self)) if other.failures]
    try:
        SYNCHRONIZE(self)
    except Failure as failure:
        first = min(failed, key=lambda stream: stream.handle).error if len(failed) > 1 else failure
        raise first or failure from None


async def handed_on(self: WaitWork, rank: int) -> None:
    await WAIT(self, rank)
    for other in others(self.stream):  # type: ignore[arg-type]
        if f"on stream {other.handle}" in self.recording.reached.name and other.failures:
            self.stream.fail(next(iter(other.failures.values())), self.number, rank)


def with_the_destroyed(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    stream = adapter.runtime.stream(given["stream"])
    stream.mesh.drain()
    for other in others(stream) if stream.failures else ():
        other.failures = {}
    return call(**given)


def not_of_the_last_rank(self: Stream, failure: Failure, number: int, rank: int) -> None:
    if rank == 0 or rank < len(self.mesh.devices) - 1:
        FAIL(self, failure, number, rank)


def not_of_others(self: Stream, failure: Failure, number: int, rank: int) -> None:
    if rank in (0, len(self.mesh.devices) - 1):
        FAIL(self, failure, number, rank)


def gone_with_new_work(self: Stream, work: Work) -> None:
    if not self.queued:
        self.failures = {}
    ENQUEUE(self, work)


KEPT = [
    replaced("RT-07-07", "loses an error of the last rank alone", BuildsOnce,
        ("runtime.streams.Stream.fail", not_of_the_last_rank), name="not_of_the_last_rank"),
    replaced("RT-07-07", "loses errors of ranks between the first and the last", BuildsOnce,
             ("runtime.streams.Stream.fail", not_of_others), name="not_of_others"),
    replaced("RT-07-07", "forgets an error when a stream that is done gets new work", BuildsOnce,
             ("runtime.streams.Stream.enqueue", gone_with_new_work), name="gone_with_new_work"),
    replaced("RT-06-06", "keeps one error for all streams of a mesh", BuildsOnce,
        ("runtime.streams.Stream.fail", one_slot), name="one_slot"),
    sync("RT-07-07", "kind_of_the_first", "reports every error with the status of the first stream's",
         kind_of_the_first),
    answering("RT-07-07", "with_the_destroyed", "forgets the errors of a mesh with a stream that is destroyed",
              "tessStreamDestroy", with_the_destroyed),
]  # fmt: skip
