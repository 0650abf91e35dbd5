"""What ranks bring, added over a tree in the arithmetic of its type, without a copy of it all.

Each addition is one of numpy on a block of elements, so that partial sums stay in the cache of the processor; the bits
are those of `reductions.sum`, whose nodes these are (canon of arithmetic, "sums and all-reduce"; AMB-RT-26).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..numerics.formats import DType
from ..numerics.node_arithmetic import NodeArithmetic
from ..numerics.trees import Tree

__all__ = ["add_over", "is_addable"]

Values = npt.NDArray[Any]

BLOCK = 8192
"""Elements that are added over the whole tree before the next ones."""


class _Addition(NamedTuple):
    """Two operands by number, and the one that takes their sum: rows come first, then the result, then partial sums."""

    a: int
    b: int
    total: int


def is_addable(dtype: DType) -> bool:
    """Whether numpy's + on the carriers of a dtype is a node of its sums."""
    inner = dtype.accumulator
    return (
        dtype.kind in ("float", "int")
        and inner.carrier == dtype.carrier
        and NodeArithmetic.canonical(dtype).is_plain(dtype)
    )


def add_over(tree: Tree, rows: Sequence[Values], result: Values) -> None:
    """Write the sum of two flat rows or more over a tree of nodes of two into `result`, of their length and type.

    Raises `LeafCount` for a tree over another number of rows.
    """
    additions, partial = _additions(tree, len(rows))
    scratch = [np.empty(min(BLOCK, result.size), result.dtype) for _ in range(partial)]
    with np.errstate(all="ignore"):
        for first in range(0, result.size, BLOCK):
            block = slice(first, first + BLOCK)
            places = [*(row[block] for row in rows), result[block]]
            places += [each[: places[-1].size] for each in scratch]
            for a, b, total in additions:
                np.add(places[a], places[b], out=places[total])


@lru_cache(maxsize=256)
def _additions(tree: Tree, rows: int) -> tuple[tuple[_Addition, ...], int]:
    """The additions of a tree from its leaves up, and how many partial sums they keep beside the result.

    A sum takes the place of one of its operands that is itself a sum. The first place is in use from the first addition
    on, so that it is the last one's too.
    """
    additions: list[_Addition] = []
    free = set[int]()
    fresh = count(rows)

    def add(children: list[int]) -> int:
        a, b = children
        sums = sorted(each for each in children if each >= rows)
        total = sums[0] if sums else min(free, default=None) or next(fresh)
        free.difference_update([total])
        free.update(sums[1:])
        additions.append(_Addition(a, b, total))
        return total

    tree.over(rows).evaluate(lambda leaf: leaf, add, rows)
    return tuple(additions), next(fresh) - rows - 1
