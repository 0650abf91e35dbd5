"""Collectives in another order every time, mixed among streams, or with losses on the wire (RT 2 to 6 and 13)."""

from itertools import count

import numpy as np

from tessera_conformance.strength import Around
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.rounding import cast
from tessera_reference.numerics.trees import Tree
from tessera_reference.runtime.collectives import CollectiveWork

from .changes import broken
from .collectives import combining

CALLS = count()


def rotated(right, buffers):
    """Return a sum that begins at another rank each time."""
    start = next(CALLS) % len(buffers)
    return right([*buffers[start:], *buffers[:start]])


def two_trees(right, buffers):
    if next(CALLS) % 2:
        return right(buffers)
    stacked = Array(buffers[0].dtype, np.stack([buffer.values for buffer in buffers]))
    return [reductions.sum(stacked, 0, tree=Tree.from_json("fold"))] * len(buffers)


def reversing(clause, name, description, when):
    """Return a violation that combines a group's contributions from the last rank to the first, sometimes."""
    combined = Around(lambda usual: lambda self, group, contributions:
        usual(self, tuple(reversed(group)) if when(self) else group, contributions))  # fmt: skip
    return broken(clause, name, description, "runtime.collectives.CollectiveWork._combined", combined)


async def by_arrival(self, rank, right=CollectiveWork.run):
    """Collectives of all streams are paired in the order in which they reach each rank."""
    mesh = self.stream.mesh
    numbers = mesh.__dict__.setdefault("numbers", {})
    found = mesh.__dict__.setdefault("rendezvous", {})
    numbers[rank] = numbers.get(rank, 0) + 1
    self.rendezvous = found.setdefault(numbers[rank], {})
    await right(self, rank)


def rounded(buffer, wire):
    return cast(cast(buffer, dtype(wire)), buffer.dtype)


def lossy(wire, when=lambda buffers: True):
    """Numbers cross the wire in a narrower format, sometimes."""
    return lambda right, buffers: right([rounded(buffer, wire) for buffer in buffers]
        if buffers[0].dtype.name == "fp32" and when(buffers) else buffers)  # fmt: skip


def fast_bf16(self, *arguments, right=CollectiveWork._combined):
    results = right(self, *arguments)
    lossy = self.policy.allowFastMath and self.call.dtype.name == "fp32"
    return {rank: rounded(buffer, "bf16") for rank, buffer in results.items()} if lossy else results


VIOLATORS = [
    combining("RT-13-01", "begins_elsewhere", "begins sums at another rank each time", rotated, "all_reduce", op="sum"),
    combining("RT-02-09", "shares_begin_elsewhere", "begins shares at another rank each time", rotated,
        "reduce_scatter", "all_reduce", op="sum"),
    combining("RT-06-04", "two_trees", "sums over two trees in turn", two_trees, "all_reduce", op="sum"),
    combining("RT-06-03", "last_differs", "sums on the last rank in another order",
        lambda right, buffers: [*right(buffers)[:-1], right(list(reversed(buffers)))[0]], "all_reduce", op="sum"),
    reversing("RT-04.7-10", "by_latest_policy", "reads the policy when sums run, not when they are called",
        lambda work: work.stream.mesh.context.governing() != work.policy),
    reversing("RT-04.7-03", "by_streams", "has an order for each stream",
        lambda work: work.stream.handle % 2 and work.call.collective == "all_reduce"),
    broken("RT-03-01", "by_arrival", "pairs collectives of streams in the order in which they reach each rank",
        "runtime.collectives.CollectiveWork.run", by_arrival),
    broken("RT-13-01", "by_arrival_too", "mixes the collectives of streams",
        "runtime.collectives.CollectiveWork.run", by_arrival),
    combining("RT-13-09", "fp8_moves", "sends fp8 where numbers are moved", lossy("fp8_e4m3"),
        "all_gather", "broadcast"),
    combining("RT-13-09", "large_bf16", "sends bf16 where buffers are large",
        lossy("bf16", lambda buffers: buffers[0].values.size > 2000)),
    broken("RT-13-09", "fast_bf16", "sends bf16 where fast math is allowed",
        "runtime.collectives.CollectiveWork._combined", fast_bf16),
]  # fmt: skip
