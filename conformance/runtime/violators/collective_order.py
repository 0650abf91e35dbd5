"""Collectives in another order every time, mixed among streams, or with losses on the wire.

Runtime specification, 2, 3, 4.7, 6 and 13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import numpy as np

from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.rounding import cast
from tessera_reference.numerics.trees import Tree
from tessera_reference.runtime.collectives import CollectiveWork, Met

from .collectives import Buffers, Change, Made, Right, combining, same
from .order import broken

# Order

CALLS = count()


def rotated(right: Right, buffers: Buffers) -> Made:
    """Return a sum that begins at another rank each time."""
    start = next(CALLS) % len(buffers)
    return right([*buffers[start:], *buffers[:start]])


def over(tree: Any) -> Change:
    def change(right: Right, buffers: Buffers) -> Made:
        if next(CALLS) % 2:
            return right(buffers)
        stacked = Array(buffers[0].dtype, np.stack([buffer.values for buffer in buffers]))
        return same(reductions.sum(stacked, 0, tree=Tree.from_json(tree)), buffers)

    return change


def last_differs(right: Right, buffers: Buffers) -> Made:
    return [*right(buffers)[:-1], right(list(reversed(buffers)))[0]]


def by_streams(self: CollectiveWork, group: Any, contributions: Any, right: Any = CollectiveWork._combined) -> Any:
    if self.stream.handle % 2 == 0 or self.call.collective != "all_reduce":
        return right(self, group, contributions)
    return right(self, tuple(reversed(group)), contributions)


def by_latest_policy(
    self: CollectiveWork, group: Any, contributions: Any, right: Any = CollectiveWork._combined
) -> Any:
    as_called = self.stream.mesh.context.governing() == self.policy
    return right(self, group if as_called else tuple(reversed(group)), contributions)


async def by_arrival(self: CollectiveWork, rank: int, right: Any = CollectiveWork.run) -> None:
    """Collectives of all streams are paired in the order in which they reach each rank."""
    mesh: Any = self.stream.mesh
    numbers = mesh.__dict__.setdefault("numbers", {})
    found: dict[int, Met] = mesh.__dict__.setdefault("rendezvous", {})
    numbers[rank] = numbers.get(rank, 0) + 1
    self.rendezvous = found.setdefault(numbers[rank], {})
    await right(self, rank)


ORDER = [
    combining("RT-13-01", "begins_elsewhere", "begins sums at another rank each time", rotated, "all_reduce", op="sum"),
    combining("RT-02-09", "shares_begin_elsewhere", "begins shares at another rank each time", rotated,
        "reduce_scatter", "all_reduce", op="sum"),
    combining("RT-06-04", "two_trees", "sums over two trees in turn", over("fold"), "all_reduce", op="sum"),
    combining("RT-06-03", "last_differs", "sums on the last rank in another order", last_differs, "all_reduce",
        op="sum"),
    broken("RT-04.7-10", "by_latest_policy", "reads the policy when sums run, not when they are called",
        CollectiveWork, "_combined", by_latest_policy),
    broken("RT-04.7-03", "by_streams", "has an order for each stream", CollectiveWork, "_combined", by_streams),
    broken("RT-03-01", "by_arrival", "pairs collectives of streams in the order in which they reach each rank",
        CollectiveWork, "run", by_arrival),
    broken("RT-13-01", "by_arrival_too", "mixes the collectives of streams", CollectiveWork, "run", by_arrival),
]  # fmt: skip


# The wire


def lossy(wire: str, when: Callable[[Buffers], bool]) -> Change:
    """Numbers cross the wire in a narrower format, sometimes."""

    def change(right: Right, buffers: Buffers) -> Made:
        if buffers[0].dtype.name != "fp32" or not when(buffers):
            return right(buffers)
        return right([cast(cast(buffer, dtype(wire)), dtype("fp32")) for buffer in buffers])

    return change


COMBINED = CollectiveWork._combined


def fast_bf16(self: CollectiveWork, *arguments: Any) -> Mapping[int, Array]:
    buffers = COMBINED(self, *arguments)
    if not self.policy.allowFastMath or self.call.dtype.name != "fp32":
        return buffers
    return {rank: cast(cast(buffer, dtype("bf16")), dtype("fp32")) for rank, buffer in buffers.items()}


WIRE = [
    combining("RT-13-09", "fp8_moves", "sends fp8 where numbers are moved", lossy("fp8_e4m3", lambda buffers: True),
        "all_gather", "broadcast"),
    combining("RT-13-09", "large_bf16", "sends bf16 where buffers are large",
        lossy("bf16", lambda buffers: buffers[0].values.size > 2000)),
    broken("RT-13-09", "fast_bf16", "sends bf16 where fast math is allowed", CollectiveWork, "_combined", fast_bf16),
]  # fmt: skip
