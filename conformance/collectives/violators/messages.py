"""Sends and receives of programs with wrong destinations or wrong waits (collectives specification, 2.1)."""

from dataclasses import replace

from tessera_reference.abi.status import Failure, Status
from tessera_reference.graph.execution import Group
from tessera_reference.graph.futures import FutureCollective, PointToPoint, Send
from tessera_reference.numerics.array import Array

from ...ir.violators.changes import changed
from .changes import at, left_out

# Time


def of_the_latest(usual, self, rank, arrival):
    number = int(arrival.operands[0].values)
    before = vars(self).setdefault("awaited_before", {}).setdefault(rank, [])
    again, before[:] = number in before, [*before, number]
    values = [self.futures[rank][future] for future in (number, before[-2])] if again else []
    arrays = [value for value in values if isinstance(value, Array)]
    if len(arrays) == 2 and arrays[0].shape == arrays[1].shape:
        return {rank: (arrays[1],)}
    return usual(self, rank, arrival)


def is_gone(usual, self, rank, arrival):
    where = self.futures[rank][int(arrival.operands[0].values)]
    own = self.waiting.get(where, {}).get(rank) if isinstance(where, Group) else None
    return {rank: own.operands} if own and isinstance(own.operation, Send) else usual(self, rank, arrival)


def unnoticed(usual, self):
    for group, arrived in list(self.waiting.items()):
        messages = all(isinstance(arrival.operation, PointToPoint) for arrival in arrived.values())
        if messages and not any(rank in self.awaited for rank in arrived):
            del self.waiting[group]
    if len(self.ended) == len(self.running) and not self.failed and not self.mismatched and not self.waiting:
        return tuple(self.ended[rank] for rank in range(len(self.running)))
    return usual(self)


def with_every_rank(usual, self, rank, arrival):
    if isinstance(arrival.operation, PointToPoint) and self.ended:
        raise Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, "collectives.execute", f"without {self.ended}", "all ranks")
    return usual(self, rank, arrival)


# Destination


def alike(name):
    """Return a change of the terms of messages: the two ends need not agree on one."""
    return lambda usual, arrival: (
        left_out(name)(usual(arrival)) if isinstance(arrival.operation, PointToPoint) else usual(arrival)
    )


arriving, awaiting = at("graph.execution.Ranks._arrive"), at("graph.execution.Ranks._await")
ends, brought = at("graph.futures.PointToPoint.ends"), at("graph.execution.brought")
combining, channel = at("graph.futures.PointToPoint.combine"), at("graph.execution.Group.channel")

VIOLATIONS = [
    awaiting("COLL-02.1-05", "message_latest_value", "yields the value awaited last where a future is awaited again",
        of_the_latest),
    awaiting("COLL-02.1-02", "message_is_gone", "takes a send for complete when it is issued", is_gone),
    at("graph.execution.Ranks.results")("COLL-02.1-02", "message_unnoticed", "drops what nobody receives", unnoticed),
    arriving("COLL-02.1-03", "message_every_rank", "waits for all ranks of the mesh", with_every_rank),
    channel("COLL-02.1-03", "message_as_a_collective", "counts messages as collectives",
        lambda usual, self, message, rank: replace(self, ranks=message.ends(rank, self.ranks))),
    channel("COLL-02.1-01", "message_no_tags", "ignores tags",
        lambda usual, self, message, rank: replace(self, axis="messages", ranks=message.ends(rank, self.ranks))),
    ends("COLL-02.1-01", "message_backwards", "shifts the other way", lambda usual, self, rank, among: usual(
        self if self.shift is None else replace(self, shift=-self.shift), rank, among)),
    ends("COLL-02.2-03", "message_ascending", "counts places in ascending order",
        lambda usual, self, rank, among: usual(self, rank, sorted(among))),
    ends("COLL-02.1-01", "message_to_itself", "lets a rank wait for itself", lambda usual, self, rank, among:
        (rank, rank) if self.peer is not None and among[self.peer] == rank else usual(self, rank, among)),
    combining("COLL-02.1-05", "message_exchanged", "gives the sender the buffer",
        lambda usual, self, contributions: contributions[::-1]),
    brought("COLL-02.1-01", "message_any_count", "takes any shape at the other end", alike("shape")),
    brought("COLL-02.1-01", "message_any_dtype", "takes any dtype at the other end", alike("dtype")),
    brought("COLL-02.1-01", "message_any_chunk", "takes any chunk at the other end", alike("chunk")),
    changed("COLL-02.1-01", "message_any_peer", "takes any peer and tag",
        ("graph.futures.PointToPoint.infer", FutureCollective.infer)),
    at("collectives.planner.chunk_elements")("COLL-02.3-01", "message_in_one_piece", "sends in one piece",
        lambda usual, operation, tile: None if isinstance(operation, PointToPoint) else usual(operation, tile)),
    changed("COLL-02.4-02", "message_folded", "folds scalings into a message",
        ("collectives.planner.PointToPoint", ())),
]  # fmt: skip
