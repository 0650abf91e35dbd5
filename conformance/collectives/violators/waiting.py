"""Futures that complete wrongly, at the wrong time, or with the wrong ranks. Collectives specification, 2, 8 and 9."""

from dataclasses import replace

import numpy as np

from tessera_reference.abi.status import Failure, Status
from tessera_reference.graph import collectives, futures
from tessera_reference.graph.execution import Group, Ranks
from tessera_reference.graph.futures import (
    FutureCollective,
    GroupCollective,
    IssueBroadcast,
    IssueReduceScatter,
)
from tessera_reference.numerics.array import Array

from ...ir.violators.changes import changed, nothing

USUAL_ARRIVE, USUAL_AWAIT, USUAL_EXCHANGE, USUAL_RESULTS = Ranks._arrive, Ranks._await, Ranks._exchange, Ranks.results


# Time


def waits_at_issue(self, rank, arrival):
    """Let a rank resume when its collective is complete."""
    sent = dict(USUAL_ARRIVE(self, rank, arrival))
    if isinstance(arrival.operation, FutureCollective) and rank in sent:
        number = int(sent[rank][0].values)
        if not isinstance(self.futures[rank][number], Array):
            self.awaited[rank] = number
            del sent[rank]
    return sent


def sends_the_number(self, group, arrived):
    """Resume a rank that waited where it issued."""
    numbers = {rank: self.awaited.get(rank) for rank in group.ranks}
    sent = dict(USUAL_EXCHANGE(self, group, arrived))
    for rank in sent:
        if numbers[rank] is not None and _is_latest(self, rank, numbers[rank]):
            sent[rank] = (Array(collectives.dtype("int64"), np.asarray(numbers[rank], np.int64)),)
    return sent


def _is_latest(self, rank, number):
    return number == len(self.futures[rank]) - 1 and getattr(self.running[rank], "gi_yieldfrom", None) is not None


def waits_for_all(self, rank, arrival):
    """Let an await wait for everything that the rank has issued."""
    unfinished = [number for number, value in self.futures[rank].items() if isinstance(value, Group)]
    if not unfinished:
        return USUAL_AWAIT(self, rank, arrival)
    later = self.__dict__.setdefault("later", {})
    later[rank] = arrival
    self.awaited[rank] = unfinished[0]
    return {}


def goes_on_when_all_are_there(self, group, arrived):
    """Resume a rank once none of its awaited values is unfinished."""
    sent = dict(USUAL_EXCHANGE(self, group, arrived))
    later = self.__dict__.setdefault("later", {})
    for rank in [rank for rank in sent if rank in later]:
        del sent[rank]
        sent |= waits_for_all(self, rank, later.pop(rank))
    return sent


def does_not_wait(self, rank, arrival):
    """Return the rank's own input for an incomplete future."""
    where = self.futures[rank][int(arrival.operands[0].values)]
    return {rank: self.waiting[where][rank].operands} if isinstance(where, Group) else USUAL_AWAIT(self, rank, arrival)


def notes_awaits(self, rank, arrival):
    """Record what was awaited."""
    self.__dict__.setdefault("seen", set()).add((rank, int(arrival.operands[0].values)))
    return USUAL_AWAIT(self, rank, arrival)


def all_awaited(self):
    """Raise for a future that was never awaited."""
    results = USUAL_RESULTS(self)
    seen = self.__dict__.get("seen", set())
    if any((rank, number) not in seen for rank, future in enumerate(self.futures) for number in future):
        raise Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, "collectives.execute", "a future", "an await of each")
    return results


def unnoticed_after_one(self):
    """The results of the ranks that ended, and for a rank that waits another's, if a future is complete."""
    complete = any(isinstance(future, Array) for futures in self.futures for future in futures.values())
    if complete and self.ended and not self.failed:
        return tuple(self.ended.get(rank, min(self.ended.items())[1]) for rank in range(len(self.running)))
    return USUAL_RESULTS(self)


ALL = (("graph.execution.Ranks._await", waits_for_all), ("graph.execution.Ranks._exchange", goes_on_when_all_are_there))
UNAWAITED = (("graph.execution.Ranks._await", notes_awaits), ("graph.execution.Ranks.results", all_awaited))

TIMES = [
    changed("COLL-02.1-02", "waits_for_all", "waits for all that was issued", *ALL),
    changed("COLL-02.1-02", "never_awaited_is_wrong", "refuses a future that is never awaited", *UNAWAITED),
    changed("COLL-02.1-05", "dropped_is_wrong", "refuses a future that is never awaited", *UNAWAITED),
    changed("COLL-02.1-02", "unnoticed_later", "does not notice who never came once a collective is complete",
        ("graph.execution.Ranks.results", unnoticed_after_one)),
    *(
        changed(clause, f"dropped_{clause[5:]}", "does not wait at an await",
                ("graph.execution.Ranks._await", does_not_wait))
        for clause in (
            "COLL-02.1-02",
            "COLL-02.1-05",
            "COLL-02.3-06",
            "COLL-09.1-02",
            "COLL-09.2-01",
            "COLL-09.2-02",
        )
    ),
]  # fmt: skip


# Data


def combining(clause, name, description, cls, combine):
    """Return a violation with other data of a collective."""
    usual = GroupCollective.combine

    def other(self, contributions):
        return combine(self, contributions) if isinstance(self, cls) else usual(self, contributions)

    return changed(clause, name, description, ("graph.futures.GroupCollective.combine", other))


def by_scope(self, contributions):
    turned = contributions[1:] + contributions[:1] if isinstance(contributions, list) else contributions
    return self.plain().combine(turned if self.scope in ("intra_sm", "node") else contributions)


def sum_for_mean(self, contributions):
    mean = getattr(self, "op", "") == "mean"
    return (replace(self, op="sum") if mean else self).plain().combine(contributions)


def root_0(self, contributions):
    return (contributions[0],) * len(contributions)


def next_part(self, contributions):
    given = list(self.plain().combine(contributions))
    return given[1:] + given[:1]


def alike(*names):
    """Return terms without the ones that are not compared."""
    usual = FutureCollective.terms
    return lambda self: {name: value for name, value in usual(self).items() if name not in names}


USUAL_SHARD = Group.in_shard.__func__  # of a class method


def in_a_group_of_its_own(cls, name, mesh, shard, rank):
    inside = any(rank in ranks for ranks in shard.groups) or not shard.groups
    found = USUAL_SHARD(cls, name, mesh, shard, rank if inside else shard.groups[0][0])
    return found if inside else replace(found, axis=f"{found.axis} {rank}")


REQUIRE_WIRE = futures.require_wire


def any_scheme(wire, scheme, x):
    REQUIRE_WIRE(wire, None, x)


DATA = [
    combining("COLL-02.2-02", "scope_orders", "adds in another order within a node", GroupCollective, by_scope),
    combining("COLL-02.1-04", "sum_for_mean", "gives sums for means", GroupCollective, sum_for_mean),
    combining("COLL-02.1-05", "root_0", "broadcasts from rank 0", IssueBroadcast, root_0),
    combining("COLL-02.1-04", "next_part", "scatters the part of the next rank", IssueReduceScatter, next_part),
    changed("COLL-02.1-01", "any_op", "does not compare op", ("graph.futures.FutureCollective.terms", alike("op"))),
    changed("COLL-02.1-01", "any_root", "does not compare roots",
        ("graph.futures.FutureCollective.terms", alike("root"))),
    changed("COLL-02.1-01", "any_algo", "does not compare algorithms",
        ("graph.futures.FutureCollective.terms", alike("algo"))),
    changed("COLL-02.2-03", "anyone_issues", "lets a rank of no group issue",
        ("graph.execution.Group.in_shard", classmethod(in_a_group_of_its_own))),
    changed("COLL-02.5-01", "lossy_wires", "loses bits under strict",
        ("collectives.programs._require_lossless", nothing)),
    changed("COLL-02.5-01", "no_wires", "refuses every wire",
        ("collectives.programs.loses", lambda wire, data: wire is not None)),
    changed("COLL-02.5-02", "any_scheme", "takes any scheme in a program", ("graph.futures.require_wire", any_scheme)),
]  # fmt: skip
