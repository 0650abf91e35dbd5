"""All-reduce and reduce-scatter in the order of their algorithm, with vectors over ranks and shares.

Carries out all messages of a step at once on what the ranks hold, where `operations.run` evaluates a tree for each
share (AMB-RT-26); the bits are the same. Shares of a ring are folded side by side, each from its own rank on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..numerics.array import Array
from ..numerics.node_arithmetic import NodeArithmetic
from ..numerics.rounding import cast
from .groups import share_of
from .schedules import Message, algorithm

Values = npt.NDArray[Any]


def combined(buffers: Sequence[Array], op: str, name: str, per_node: int | None = None) -> Array:
    """The sum or product of flat buffers of one dtype and length. Raises `Failure` as `schedules.algorithm` does."""
    dtype = buffers[0].dtype
    model = NodeArithmetic.canonical(dtype)
    node = {"sum": model.add, "prod": model.multiply}[op]
    held = model.enter(np.stack([each.values for each in buffers]), dtype)
    starts = [share_of(held.shape[1], share, len(buffers)).start for share in range(len(buffers) + 1)]
    with np.errstate(all="ignore"):
        total = _around(held, starts, node) if name == "ring" else _by_steps(held, starts, node, name, per_node)
        return cast(Array(model.accumulator, model.settle(total)), dtype)


def _around(held: Values, starts: Sequence[int], node: Callable[[list[Any]], Values]) -> Values:
    """Share s is passed on from rank s + 1 to rank s; each rank adds what it gets to its own."""
    ranks, count = held.shape
    share = _of_elements(range(ranks), starts)
    flat = held.reshape(-1)
    place = (share + 1) % ranks * count + np.arange(count)
    total: Values = flat[place]
    for _ in range(ranks - 1):
        place += count
        total = node([flat.take(place, mode="wrap"), total])
    return total


def _by_steps(
    held: Values, starts: Sequence[int], node: Callable[[list[Any]], Values], name: str, per_node: int | None
) -> Values:
    """Return the values of all shares' owners at the end."""
    used, held = algorithm(name, len(held), per_node), held.copy()
    for step in used.combining:
        sent = held.copy() if _passes_on(step) else held
        for message in step:
            place = slice(starts[message.first], starts[message.last])
            held[message.target, place] = node([held[message.target, place], sent[message.source, place]])
    owners = _of_elements(used.owners, starts)
    result: Values = held[owners, np.arange(held.shape[1])]
    return result


def _passes_on(step: Sequence[Message]) -> bool:
    """True if a rank that sends in a step gets something in it too, after which it must not send that."""
    return not {each.source for each in step}.isdisjoint({each.target for each in step})


def _of_elements(of_shares: Sequence[int], starts: Sequence[int]) -> npt.NDArray[np.int64]:
    """For each element what is given for its share."""
    sizes = [last - first for first, last in pairwise(starts)]
    return np.array([of for of, size in zip(of_shares, sizes, strict=True) for _ in range(size)], np.int64)
