"""Sends and receives of programs with wrong destinations or wrong waits (collectives specification, 2.1)."""

from dataclasses import replace

from tessera_reference.abi.status import Failure, Status
from tessera_reference.collectives import planner
from tessera_reference.graph import execution
from tessera_reference.graph.execution import Group, Ranks
from tessera_reference.graph.futures import FutureCollective, PointToPoint, Send
from tessera_reference.numerics.array import Array

from ...ir.violators.changes import changed
from .waiting import sends_the_number, waits_at_issue

ARRIVE, AWAIT, RESULTS, ENDS = Ranks._arrive, Ranks._await, Ranks.results, PointToPoint.ends
BROUGHT, CHUNKS, DEADLOCK = execution.brought, planner.chunk_elements, execution.deadlock


# Time


def waits_for_its_receiver(self, rank, arrival):
    """Make a message wait where it is issued."""
    message = isinstance(arrival.operation, PointToPoint)
    return waits_at_issue(self, rank, arrival) if message else ARRIVE(self, rank, arrival)


def of_the_latest(self, rank, arrival):
    number = int(arrival.operands[0].values)
    before = vars(self).setdefault("awaited_before", {}).setdefault(rank, [])
    again, before[:] = number in before, [*before, number]
    values = [self.futures[rank][future] for future in (number, before[-2])] if again else []
    arrays = [value for value in values if isinstance(value, Array)]
    if len(arrays) == 2 and arrays[0].shape == arrays[1].shape:
        return {rank: (arrays[1],)}
    return AWAIT(self, rank, arrival)


def is_gone(self, rank, arrival):
    where = self.futures[rank][int(arrival.operands[0].values)]
    own = self.waiting.get(where, {}).get(rank) if isinstance(where, Group) else None
    return {rank: own.operands} if own and isinstance(own.operation, Send) else AWAIT(self, rank, arrival)


def unnoticed(self):
    for group, arrived in list(self.waiting.items()):
        messages = all(isinstance(arrival.operation, PointToPoint) for arrival in arrived.values())
        if messages and not any(rank in self.awaited for rank in arrived):
            del self.waiting[group]
    if len(self.ended) == len(self.running) and not self.failed and not self.mismatched and not self.waiting:
        return tuple(self.ended[rank] for rank in range(len(self.running)))
    return RESULTS(self)


def with_every_rank(self, rank, arrival):
    if isinstance(arrival.operation, PointToPoint) and self.ended:
        raise Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, "collectives.execute", f"without {self.ended}", "all ranks")
    return ARRIVE(self, rank, arrival)


def unnamed(standing):
    return replace(DEADLOCK(standing), message="deadlock", operands=())


# Destination


def as_a_collective(self, message, rank):
    return replace(self, ranks=message.ends(rank, self.ranks))


def backwards(self, rank, among):
    return ENDS(self if self.shift is None else replace(self, shift=-self.shift), rank, among)


def by_rank(self, rank, among):
    if self.peer is None:
        return ENDS(self, rank, among)
    return (rank, self.peer) if self.sends else (self.peer, rank)


def ascending(self, rank, among):
    return ENDS(self, rank, sorted(among))


def to_itself(self, rank, among):
    return (rank, rank) if self.peer is not None and among[self.peer] == rank else ENDS(self, rank, among)


# Content


def alike(*names):
    """Return terms without the ones that the two ends need not agree on."""

    def brought(arrival):
        usual = BROUGHT(arrival)
        message = isinstance(arrival.operation, PointToPoint)
        return {name: value for name, value in usual.items() if not message or name not in names}

    return brought


def in_one_piece(operation, tile):
    return None if isinstance(operation, PointToPoint) else CHUNKS(operation, tile)


def between(clause, name, description, *substitutions):
    """Return a violation with other messages."""
    return changed(clause, f"message_{name}", description, *substitutions)


WAITS = (
    ("graph.execution.Ranks._arrive", waits_for_its_receiver),
    ("graph.execution.Ranks._exchange", sends_the_number),
)

VIOLATIONS = [
    between("COLL-02.1-02", "waits_at_issue", "waits where a message is issued", *WAITS),
    between("COLL-02.1-05", "latest_value", "yields the value awaited last where a future is awaited again",
        ("graph.execution.Ranks._await", of_the_latest)),
    between("COLL-02.1-02", "is_gone", "takes a send for complete when it is issued",
        ("graph.execution.Ranks._await", is_gone)),
    between("COLL-02.1-02", "unnoticed", "drops what nobody receives", ("graph.execution.Ranks.results", unnoticed)),
    between("COLL-02.1-02", "unnamed", "names no ranks that wait for each other",
        ("graph.execution.deadlock", unnamed)),
    between("COLL-02.1-03", "every_rank", "waits for all ranks of the mesh",
        ("graph.execution.Ranks._arrive", with_every_rank)),
    between("COLL-02.1-03", "as_a_collective", "counts messages as collectives",
        ("graph.execution.Group.channel", as_a_collective)),
    between("COLL-02.1-01", "no_tags", "ignores tags", ("graph.execution.Group.channel",
        lambda self, message, rank: replace(self, axis="messages", ranks=message.ends(rank, self.ranks)))),
    between("COLL-02.1-01", "backwards", "shifts the other way", ("graph.futures.PointToPoint.ends", backwards)),
    between("COLL-02.1-01", "by_rank", "takes a peer for a rank of the mesh",
        ("graph.futures.PointToPoint.ends", by_rank)),
    between("COLL-02.2-03", "ascending", "counts places in ascending order",
        ("graph.futures.PointToPoint.ends", ascending)),
    between("COLL-02.1-01", "to_itself", "lets a rank wait for itself", ("graph.futures.PointToPoint.ends", to_itself)),
    between("COLL-02.1-05", "kept_buffer", "leaves the buffer as it was",
        ("graph.futures.PointToPoint.combine", lambda self, contributions: contributions)),
    between("COLL-02.1-05", "exchanged", "gives the sender the buffer",
        ("graph.futures.PointToPoint.combine", lambda self, contributions: contributions[::-1])),
    between("COLL-02.1-01", "any_count", "takes any shape at the other end",
        ("graph.execution.brought", alike("shape"))),
    between("COLL-02.1-01", "any_dtype", "takes any dtype at the other end",
        ("graph.execution.brought", alike("dtype"))),
    between("COLL-02.1-01", "any_chunk", "takes any chunk at the other end",
        ("graph.execution.brought", alike("chunk"))),
    between("COLL-02.1-01", "any_peer", "takes any peer and tag",
        ("graph.futures.PointToPoint.infer", FutureCollective.infer)),
    between("COLL-02.3-01", "in_one_piece", "sends in one piece", ("collectives.planner.chunk_elements", in_one_piece)),
    between("COLL-02.4-02", "folded", "folds scalings into a message", ("collectives.planner.PointToPoint", ())),
]  # fmt: skip
