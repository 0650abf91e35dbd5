"""Futures that complete wrongly, at the wrong time, or with the wrong ranks. Collectives specification, 2, 8 and 9."""

from dataclasses import replace

from tessera_reference.abi.status import Failure, Status
from tessera_reference.graph.execution import Group
from tessera_reference.numerics.array import Array

from ...ir.violators.changes import around, changed, nothing
from .changes import at, left_out, result_of

# Time


def waits_for_all(usual, self, rank, arrival):
    """Let an await wait for everything that the rank has issued."""
    unfinished = [number for number, value in self.futures[rank].items() if isinstance(value, Group)]
    if not unfinished:
        return usual(self, rank, arrival)
    self.__dict__.setdefault("later", {})[rank] = arrival
    self.awaited[rank] = unfinished[0]
    return {}


def goes_on_when_all_are_there(usual, self, group, arrived):
    """Resume a rank once none of its awaited values is unfinished."""
    sent = dict(usual(self, group, arrived))
    later = self.__dict__.setdefault("later", {})
    for rank in [rank for rank in sent if rank in later]:
        del sent[rank]
        sent |= self._await(rank, later.pop(rank))
    return sent


def does_not_wait(usual, self, rank, arrival):
    """Return the rank's own input for an incomplete future."""
    where = self.futures[rank][int(arrival.operands[0].values)]
    return {rank: self.waiting[where][rank].operands} if isinstance(where, Group) else usual(self, rank, arrival)


def notes_awaits(usual, self, rank, arrival):
    self.__dict__.setdefault("seen", set()).add((rank, int(arrival.operands[0].values)))
    return usual(self, rank, arrival)


def all_awaited(usual, self):
    """Raise for a future that was never awaited."""
    results = usual(self)
    seen = self.__dict__.get("seen", set())
    if any((rank, number) not in seen for rank, future in enumerate(self.futures) for number in future):
        raise Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, "collectives.execute", "a future", "an await of each")
    return results


def unnoticed_after_one(usual, self):
    """The results of the ranks that ended, and for a rank that waits another's, if a future is complete."""
    complete = any(isinstance(future, Array) for futures in self.futures for future in futures.values())
    if complete and self.ended and not self.failed:
        return tuple(self.ended.get(rank, min(self.ended.items())[1]) for rank in range(len(self.running)))
    return usual(self)


ALL = (
    ("graph.execution.Ranks._await", around(waits_for_all)),
    ("graph.execution.Ranks._exchange", around(goes_on_when_all_are_there)),
)
UNAWAITED = (
    ("graph.execution.Ranks._await", around(notes_awaits)),
    ("graph.execution.Ranks.results", around(all_awaited)),
)


# Data


def by_scope(usual, self, contributions):
    turned = contributions[1:] + contributions[:1] if isinstance(contributions, list) else contributions
    return usual(self, turned if self.scope in ("intra_sm", "node") else contributions)


def in_a_group_of_its_own(usual, name, mesh, shard, rank):
    inside = any(rank in ranks for ranks in shard.groups) or not shard.groups
    found = usual(name, mesh, shard, rank if inside else shard.groups[0][0])
    return found if inside else replace(found, axis=f"{found.axis} {rank}")


combining, terms = at("graph.futures.GroupCollective.combine"), result_of("graph.futures.FutureCollective.terms")

VIOLATIONS = [
    changed("COLL-02.1-02", "waits_for_all", "waits for all that was issued", *ALL),
    changed("COLL-02.1-02", "never_awaited_is_wrong", "refuses a future that is never awaited", *UNAWAITED),
    changed("COLL-02.1-05", "dropped_is_wrong", "refuses a future that is never awaited", *UNAWAITED),
    at("graph.execution.Ranks.results")("COLL-02.1-02", "unnoticed_later",
        "does not notice who never came once a collective is complete", unnoticed_after_one),
    *(
        at("graph.execution.Ranks._await")(f"COLL-{clause}", f"dropped_{clause}", "does not wait at an await",
            does_not_wait)
        for clause in ("02.1-02", "02.1-05", "02.3-06", "09.1-02", "09.2-01", "09.2-02")
    ),
    combining("COLL-02.2-02", "scope_orders", "adds in another order within a node", by_scope),
    combining("COLL-02.1-04", "sum_for_mean", "gives sums for means", lambda usual, self, contributions: usual(
        replace(self, op="sum") if getattr(self, "op", "") == "mean" else self, contributions)),
    at("graph.futures.IssueBroadcast.combine")("COLL-02.1-05", "root_0", "broadcasts from rank 0",
        lambda usual, self, contributions: (contributions[0],) * len(contributions)),
    result_of("graph.futures.IssueReduceScatter.combine")("COLL-02.1-04", "next_part",
        "scatters the part of the next rank", lambda found: [*found[1:], found[0]]),
    terms("COLL-02.1-01", "any_op", "does not compare op", left_out("op")),
    terms("COLL-02.1-01", "any_root", "does not compare roots", left_out("root")),
    terms("COLL-02.1-01", "any_algo", "does not compare algorithms", left_out("algo")),
    at("graph.execution.Group.in_shard")("COLL-02.2-03", "anyone_issues", "lets a rank of no group issue",
        in_a_group_of_its_own),
    changed("COLL-02.5-01", "lossy_wires", "loses bits under strict",
        ("collectives.programs._require_lossless", nothing)),
    changed("COLL-02.5-01", "no_wires", "refuses every wire",
        ("collectives.programs.loses", lambda wire, data: wire is not None)),
    at("graph.futures.require_wire")("COLL-02.5-02", "any_scheme", "takes any scheme in a program",
        lambda usual, wire, scheme, x: usual(wire, None, x)),
]  # fmt: skip
