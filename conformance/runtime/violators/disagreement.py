"""Disagreements of ranks not reported, not exactly once, or with another status (runtime spec, 7, 11, Appendix A)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation
from tessera_reference.abi.policy import Descriptor
from tessera_reference.abi.status import Failure, Status
from tessera_reference.runtime.collectives import CollectiveCall, CollectiveWork, Issued
from tessera_reference.runtime.streams import Rendezvous, Stream

from .changes import Call, Given, answering
from .order import broken

Ranks = Mapping[int, CollectiveWork]

MISMATCH = Status.TESS_ERR_COLLECTIVE_MISMATCH


# Comparison


def overlooking(clause: str, name: str) -> Violation:
    """Return a violation that overlooks a difference in one part of the plan."""
    right = CollectiveCall.difference

    def difference(self: CollectiveCall, other: CollectiveCall, rank: int) -> str:
        return right(self, replace(other, **{name: getattr(self, name)}), rank)

    description = f"does not compare the {name} of collectives"
    return broken(clause, f"no_{name}", description, CollectiveCall, "difference", difference)


def of_descriptors(ranks: Ranks, change: Callable[[Descriptor, Descriptor], Descriptor]) -> Ranks:
    """Return the contributions, with descriptors changed by `change(own, that of rank 0)`."""
    first = ranks[0].descriptor
    return {rank: replace(arrival, descriptor=change(arrival.descriptor, first)) for rank, arrival in ranks.items()}


def agreeing(clause: str, name: str, description: str, change: Callable[[Ranks], Ranks]) -> Violation:
    """Return a violation that changes contributions before comparing them."""
    right = CollectiveWork._require_agreement

    def require(self: CollectiveWork, contributions: Ranks) -> None:
        right(self, change(contributions))

    return broken(clause, name, description, CollectiveWork, "_require_agreement", require)


def without_descriptors(ranks: Ranks) -> Ranks:
    """Return the contributions without differences in descriptors."""
    return of_descriptors(ranks, lambda own, first: first)


def moves_without(ranks: Ranks) -> Ranks:
    return without_descriptors(ranks) if ranks[0].call.op is None else ranks


def rank_1_only(ranks: Ranks) -> Ranks:
    return {rank: arrival for rank, arrival in ranks.items() if rank < 2}


def but_for(name: str) -> Callable[[Ranks], Ranks]:
    """Return a change that removes differences in one field of descriptors."""
    return lambda ranks: of_descriptors(ranks, lambda own, first: replace(own, **{name: getattr(first, name)}))


def but_for_switch(name: str) -> Callable[[Ranks], Ranks]:
    """Return a change that removes differences in one switch of policies."""

    def change(ranks: Ranks) -> Ranks:
        kept = getattr(ranks[0].policy, name)
        return {
            rank: replace(arrival, policy=replace(arrival.policy, **{name: kept})) for rank, arrival in ranks.items()
        }

    return change


COMPARED = [
    *(
        overlooking(clause, field.name)
        for field, clause in zip(fields(CollectiveCall), ("RT-07-08", "RT-19.A-07") * 4, strict=False)
        if field.name != "axis"  # ranks along other axes do not meet at all: group_rendezvous
    ),
    agreeing("RT-11-08", "moves_without", "compares no descriptors where data are moved", moves_without),
    agreeing("RT-11-09", "no_seed", "does not compare seeds", but_for("seed")),
    agreeing("RT-11-09", "no_stream", "does not compare streams of random numbers", but_for("stream")),
    agreeing("RT-11-09", "no_order", "does not compare orders of reduction", but_for("reduction_order")),
    agreeing("RT-19.A-08", "no_fast_math", "does not compare fast math", but_for_switch("allowFastMath")),
    agreeing("RT-07-09", "no_determinism", "does not compare determinism", but_for_switch("deterministic")),
    agreeing("RT-07-08", "rank_1_only", "compares the first two ranks", rank_1_only),
    agreeing("RT-07-09", "rank_1_only_too", "compares the descriptors of the first two ranks", lambda ranks: {
        rank: replace(arrival, descriptor=ranks[0].descriptor, policy=ranks[0].policy) if rank > 1 else arrival
        for rank, arrival in ranks.items()
    }),
]  # fmt: skip


# Reports


def reported_as(clause: str, name: str, description: str, was: Status, becomes: Status) -> Violation:
    """Return a violation that reports a failure with another status."""
    right = Stream.fail

    def fail(self: Stream, failure: Failure, number: int, rank: int) -> None:
        sent = Failure(becomes, failure.function, failure.given, failure.allowed) if failure.status is was else failure
        right(self, sent, number, rank)

    return broken(clause, name, description, Stream, "fail", fail)


def unreported(clause: str, name: str, description: str, status: Status) -> Violation:
    """Return a violation that does not report a status."""
    right = Stream.fail

    def fail(self: Stream, failure: Failure, number: int, rank: int) -> None:
        if failure.status is not status:
            right(self, failure, number, rank)

    return broken(clause, name, description, Stream, "fail", fail)


def reported_every_time(self: Stream) -> None:
    self.drain()
    if self.error is not None:
        raise self.error


def only_last_reported(self: Stream, failure: Failure, number: int, rank: int) -> None:
    self.failures = {(number, rank): failure}


def reported_everywhere(self: Stream, failure: Failure, number: int, rank: int) -> None:
    for stream in self.mesh.streams.values():
        stream.failures.setdefault((number, rank), failure)


async def patient(self: Rendezvous, work: Any, rank: int, contribution: Any, complete: Any) -> None:
    self.contributions[rank] = contribution
    if len(self.contributions) == len(self.expected) and not self.done.is_set:
        await self._complete(work, complete)
    await work.wait_for(self.done, 2, None)


def one_stream(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    stream = adapter.runtime.stream(given["stream"])
    issued = adapter.runtime.issued.setdefault(stream, Issued())
    for other in stream.mesh.streams.values():
        adapter.runtime.issued[other] = issued
    return call(**given)


def exhausted(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    mesh = adapter.runtime.stream(given["stream"]).mesh
    try:
        answer = call(**given)
    except Refusal as refusal:
        vars(mesh)["lost_credits"] = vars(mesh).get("lost_credits", 0) + (refusal.outcome.code == MISMATCH.name)
        raise
    if vars(mesh).get("lost_credits", 0) >= 8:
        raise Refusal(MISMATCH.name, "call", "tessStreamSynchronize: no credit is left")
    return answer


TOLD = [
    answering("RT-07-08", "exhausted", "keeps a credit for each mismatch", "tessStreamSynchronize", exhausted),
    broken("RT-07-09", "told_for_ever", "tells of an error every time", Stream, "synchronize", reported_every_time),
    broken("RT-07-08", "last_told", "tells of the last error", Stream, "fail", only_last_reported),
    broken("RT-07-08", "told_everywhere", "tells every stream", Stream, "fail", reported_everywhere),
    broken("RT-19.A-07", "patient", "lets ranks go on without one that never arrives", Rendezvous, "arrive", patient),
    answering("RT-11-08", "one_stream", "pairs collectives of all streams", "tessxIssue", one_stream),
]
