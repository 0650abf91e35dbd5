"""Disagreements of ranks not reported, not exactly once, or with another status (runtime spec, 7, 11, Appendix A)."""

from dataclasses import fields, replace

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Around
from tessera_reference.runtime.collectives import CollectiveCall, Issued

from .changes import answering, broken

MISMATCH = "TESS_ERR_COLLECTIVE_MISMATCH"


def overlooking(clause, name):
    """Return a violation that overlooks a difference in one part of the plan."""
    return broken(clause, f"no_{name}", f"does not compare the {name} of collectives",
        "runtime.collectives.CollectiveCall.difference", Around(lambda usual: lambda self, other, rank:
            usual(self, replace(other, **{name: getattr(self, name)}), rank)))  # fmt: skip


def of_descriptors(ranks, change):
    """Return the contributions, with descriptors changed by `change(own, that of rank 0)`."""
    first = ranks[0].descriptor
    return {rank: replace(arrival, descriptor=change(arrival.descriptor, first)) for rank, arrival in ranks.items()}


def agreeing(clause, name, description, change):
    """Return a violation that changes contributions before comparing them."""
    require = Around(lambda usual: lambda self, contributions: usual(self, change(contributions)))
    return broken(clause, name, description, "runtime.collectives.CollectiveWork._require_agreement", require)


def but_for(name):
    """Return a change that removes differences in one field of descriptors."""
    return lambda ranks: of_descriptors(ranks, lambda own, first: replace(own, **{name: getattr(first, name)}))


def but_for_switch(name):
    """Return a change that removes differences in one switch of policies."""
    return lambda ranks: {rank: replace(arrival, policy=replace(arrival.policy,
        **{name: getattr(ranks[0].policy, name)})) for rank, arrival in ranks.items()}  # fmt: skip


def reported_every_time(self):
    self.drain()
    if self.error is not None:
        raise self.error


def reported_everywhere(self, failure, number, rank):
    for stream in self.mesh.streams.values():
        stream.failures.setdefault((number, rank), failure)


async def patient(self, work, rank, contribution, complete):
    self.contributions[rank] = contribution
    if len(self.contributions) == len(self.expected) and not self.done.is_set:
        await self._complete(work, complete)
    await work.wait_for(self.done, 2, None)


def one_stream(adapter, call, given):
    stream = adapter.runtime.stream(given["stream"])
    issued = adapter.runtime.issued.setdefault(stream, Issued())
    for other in stream.mesh.streams.values():
        adapter.runtime.issued[other] = issued
    return call(**given)


def exhausted(adapter, call, given):
    mesh = adapter.runtime.stream(given["stream"]).mesh
    try:
        answer = call(**given)
    except Refusal as refusal:
        vars(mesh)["lost_credits"] = vars(mesh).get("lost_credits", 0) + (refusal.outcome.code == MISMATCH)
        raise
    if vars(mesh).get("lost_credits", 0) >= 8:
        raise Refusal(MISMATCH, "call", "tessStreamSynchronize: no credit is left")
    return answer


VIOLATORS = [
    *(overlooking(clause, field.name)
        for field, clause in zip(fields(CollectiveCall), ("RT-07-08", "RT-19.A-07") * 4, strict=False)
        if field.name != "axis"),  # ranks along other axes do not meet at all: group_rendezvous
    agreeing("RT-07-08", "five_ranks", "compares the calls of five ranks at most",
        lambda ranks: dict(list(ranks.items())[:5])),
    agreeing("RT-11-08", "moves_without", "compares no descriptors where data are moved",
        lambda ranks: of_descriptors(ranks, lambda own, first: first) if ranks[0].call.op is None else ranks),
    agreeing("RT-11-09", "no_seed", "does not compare seeds", but_for("seed")),
    agreeing("RT-11-09", "no_stream", "does not compare streams of random numbers", but_for("stream")),
    agreeing("RT-11-09", "no_order", "does not compare orders of reduction", but_for("reduction_order")),
    agreeing("RT-19.A-08", "no_fast_math", "does not compare fast math", but_for_switch("allowFastMath")),
    agreeing("RT-07-09", "no_determinism", "does not compare determinism", but_for_switch("deterministic")),
    agreeing("RT-07-08", "rank_1_only", "compares the first two ranks",
        lambda ranks: {rank: arrival for rank, arrival in ranks.items() if rank < 2}),
    agreeing("RT-07-09", "rank_1_only_too", "compares the descriptors of the first two ranks", lambda ranks: {
        rank: replace(arrival, descriptor=ranks[0].descriptor, policy=ranks[0].policy) if rank > 1 else arrival
        for rank, arrival in ranks.items()}),
    answering("RT-07-08", "exhausted", "keeps a credit for each mismatch", "tessStreamSynchronize", exhausted),
    broken("RT-07-09", "told_for_ever", "tells of an error every time", "runtime.streams.Stream.synchronize",
        reported_every_time),
    broken("RT-07-08", "last_told", "tells of the last error", "runtime.streams.Stream.fail",
        lambda self, failure, number, rank: setattr(self, "failures", {(number, rank): failure})),
    broken("RT-07-08", "told_everywhere", "tells every stream", "runtime.streams.Stream.fail", reported_everywhere),
    broken("RT-19.A-07", "patient", "lets ranks go on without one that never arrives",
        "runtime.streams.Rendezvous.arrive", patient),
    answering("RT-11-08", "one_stream", "pairs collectives of all streams", "tessxIssue", one_stream),
]  # fmt: skip
