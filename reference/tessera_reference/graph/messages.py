"""Messages between two ranks, `tessera.collective.send` and `recv`, with futures (collectives spec 2.1; AMB-COLL-59).

A send of rank s to rank t meets a recv of rank t from rank s with the same tag: the n-th of the one the n-th of the
other. Neither waits where it is issued; the future of each has its value once both are issued, so that ranks which
await their sends before they issue their recvs wait for each other. Leaves out messages from any rank, and of any tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ..ir.operation import Attribute, Operand, operation, require
from ..ir.types import Future, Numeric, Scalar, Tensor
from ..numerics.array import Array
from .futures import COMMON_CLAUSES, FutureCollective

__all__ = ["LARGEST_TAG", "PointToPoint", "Recv", "Send"]

LARGEST_TAG = 2**31 - 1


@dataclass(frozen=True)
class PointToPoint(FutureCollective):
    """What a send and a recv share: the other end, as a place in the group or a distance in it, and a tag."""

    peer: Attribute[int | None] = field(default=None, kw_only=True)
    """The place of the other rank in the group."""
    shift: Attribute[int | None] = field(default=None, kw_only=True)
    """The place of the other rank less that of the own, around the group."""
    tag: Attribute[int] = field(default=0, kw_only=True)

    sends: ClassVar[bool]

    def infer(self) -> Future:  # type: ignore[override]  # a future, as of every collective of the dialect
        """A future of the operand's type; the other rank is in the group, and not the own one."""
        require(
            (self.peer is None) != (self.shift is None),
            "distributed",
            f"peer is {self.peer} and shift is {self.shift}",
            "one of peer and shift",
            "AMB-COLL-59",
            "say which rank is the other end: peer = 0, or shift = 1 for the next one",
        )
        group = self.group
        require(
            group > 1,
            "distributed",
            f"a group of {group} rank has no other end",
            "a group of at least 2 ranks",
            "AMB-COLL-59",
        )
        require(
            self.peer is None or 0 <= self.peer < group,
            "distributed",
            f"peer {self.peer} is not {super().where()}",
            f"0 <= peer <= {group - 1}",
            "AMB-COLL-59",
        )
        require(
            self.shift is None or 0 < abs(self.shift) < group,
            "distributed",
            "a rank cannot be its own peer" if self.shift == 0 else f"shift is {self.shift} among {group} ranks",
            f"1 <= shift <= {group - 1}, or the same backwards: -{group - 1} <= shift <= -1",
            "AMB-COLL-59",
        )
        require(
            0 <= self.tag <= LARGEST_TAG,
            "distributed",
            f"tag is {self.tag}",
            f"0 <= tag <= {LARGEST_TAG}",
            "AMB-COLL-59",
        )
        return super().infer()

    def given(self) -> Numeric:
        """The operand's type, at both ends."""
        return self.x

    def combine(self, contributions: Sequence[Array]) -> Sequence[Array]:
        """What the sender brings, at both ends; the receiver brings a buffer, whose values are not looked at."""
        sent, _ = contributions
        return (sent, sent)

    def where(self) -> str:
        """By which message."""
        return f"with a {self.short_name} of tag {self.tag}"

    def ends(self, rank: int, ranks: Sequence[int]) -> tuple[int, int]:
        """Who sends and who receives, from the rank that issues this in a group. Raises `Refusal`."""
        place = ranks.index(rank)
        other = self.peer if self.peer is not None else (place + (self.shift or 0)) % len(ranks)
        require(
            other != place,
            "distributed",
            f"rank {rank} is its own peer",
            f"another rank {super().where()}",
            "AMB-COLL-59",
            "keep the value: it is there already",
        )
        return (rank, ranks[other]) if self.sends else (ranks[other], rank)


@operation("tessera.collective.send", clauses=COMMON_CLAUSES)
class Send(PointToPoint):
    """The peer will have what this rank brings; the future has it too, once the peer has issued its recv."""

    x: Operand[Tensor | Scalar]

    sends = True


@operation("tessera.collective.recv", clauses=COMMON_CLAUSES)
class Recv(PointToPoint):
    """This rank will have what the peer sends, of the type of the operand, a buffer that is not read."""

    x: Operand[Tensor | Scalar]

    sends = False
