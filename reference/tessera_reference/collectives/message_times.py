"""When the messages of a collective travel, by the recurrence where it can tell and by the engine elsewhere.

The two give the same times (AMB-COLL-60); the answer says which one gave them, and why where it was the engine. The
recurrence always tells the times of a ring's all-reduce, reduce-scatter and all-gather in one piece, with an element or
more a share, and those of the other algorithms where a power of two of ranks shares a switch and all shares are of one
size. Irregular, so that the engine is asked, are many cases of

- shares of two sizes, or fewer elements than ranks, but around a ring in one piece;
- chunks that do not fit the shares, or that wait for credits;
- `tree` and `halving_doubling` of ranks that are no power of two, some of which come a step later than the others;
- several nodes whose messages share a link, or wait for its credits;
- times of more than a month, which the recurrence's 64-bit integers do not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np

from ..mesh.topology import Topology
from .operations import messages
from .recurrence import Irregular, Times, recurrence
from .travel import Transfer, travel

__all__ = ["MessageTimes", "message_times"]


@dataclass(frozen=True)
class MessageTimes:
    """The messages of every step with their times in picoseconds, what they were found by, and why if by the engine."""

    by: Literal["recurrence", "engine"]
    why: str
    steps: tuple[Times, ...]

    @property
    def last(self) -> int:
        """When the last message has arrived; 0 where there is none."""
        return max((int(each.end.max()) for each in self.steps), default=0)


def message_times(
    topology: Topology,
    devices: Sequence[int],
    operation: str,
    name: str,
    count: int,
    element_bytes: int,
    *,
    root: int = 0,
    per_node: int | None = None,
    chunk: int | None = None,
    down: frozenset[str] = frozenset(),
) -> MessageTimes:
    """The times of all messages of ranks on these devices, over a buffer of so many elements.

    Raises `Failure` as `schedules.algorithm` and `travel` do.
    """
    try:
        found = recurrence(
            topology, devices, operation, name, count, element_bytes,
            root=root, per_node=per_node, chunk=chunk, down=down,
        )  # fmt: skip
        return MessageTimes("recurrence", "", tuple(found))
    except Irregular as irregular:
        sent = messages(operation, name, len(devices), count, root=root, per_node=per_node, chunk=chunk)
        transfers = travel(topology, devices, sent, element_bytes, chunk=chunk, down=down)
        return MessageTimes("engine", str(irregular), tuple(_by_step(transfers)))


def _by_step(transfers: Sequence[Transfer]) -> Iterator[Times]:
    """The transfers of each step, as vectors in the order of their messages."""
    in_order = sorted(transfers, key=lambda each: each.sent)
    for step, together in groupby(in_order, lambda each: each.sent.step):
        rows = [(each.sent[1:5], each.start, each.end) for each in together]
        source, target, first, elements = np.array([sent for sent, _, _ in rows], np.int64).T
        start, end = (np.array(times) for times in zip(*(row[1:] for row in rows), strict=True))
        yield Times(step, source, target, first, elements, start, end)
