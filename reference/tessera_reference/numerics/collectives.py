"""Collectives: the data of each rank of a group after a collective (runtime 4.6; collectives spec 2; language spec 9).

The reductions as data, and five functions of contributions in order of the axis coordinate, an operator, and the order
of combination. Graph IR, the C API, `collectives.run` and plans of programs call them. Leaves out how data travel
(`collectives.operations`) and who refuses with which error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from . import reductions
from .array import Array
from .errors import require_room
from .formats import DType
from .node_arithmetic import NodeArithmetic
from .rounding import cast
from .trees import Tree

# The reductions: the kinds of dtypes that each takes, and what it does along axis 0 (AMB-RT-28, -57, AMB-COLL-31).


class Reduction(NamedTuple):
    """An operator over ranks; a tree of None is the canonical one."""

    kinds: tuple[str, ...]
    reduce: Callable[[Array, Tree | None], Array]


REDUCTIONS: Mapping[str, Reduction] = {
    "sum": Reduction(("float", "int", "complex"), lambda x, tree: reductions.sum(x, 0, tree=tree)),
    "prod": Reduction(("float", "int", "complex"), lambda x, tree: reductions.prod(x, 0, tree=tree)),
    "mean": Reduction(("float", "complex"), lambda x, tree: reductions.mean(x, 0, tree=tree)),
    "max": Reduction(("float", "int", "bool"), lambda x, tree: reductions.extreme("max", x)),
    "min": Reduction(("float", "int", "bool"), lambda x, tree: reductions.extreme("min", x)),
}


def alternative(op: str, dtype: DType) -> str | None:
    """Return the operators to use instead of one that a dtype lacks, in words; None where it has the operator."""
    if dtype.kind in REDUCTIONS[op].kinds:
        return None
    alternatives = {"bool": "max (or) or min (and)", "int": "sum, and a division"}
    return alternatives.get(dtype.kind, "sum, since complex numbers have no order")


# The five collectives (LANG-09-05, LANG-09-06, RT-04.6-08 to -13; AMB-RT-02, -04, AMB-COLL-10).
#
# Values are combined in the accumulator type and rounded once. Without an order this is the canonical tree; an order
# gives elements of the flat tensor to trees, each element to one.


Values: TypeAlias = npt.NDArray[Any]

Order: TypeAlias = Iterable[tuple[Tree, slice | npt.NDArray[np.int64]]]


def reduced(op: str, contributions: Sequence[Array], order: Order | None = None) -> Array:
    """Return the combination of all contributions, in their shape."""
    first, reduce = contributions[0], REDUCTIONS[op].reduce
    # Flat, since numpy takes no more axes than it takes of an operand.
    flat = [contribution.values.reshape(-1) for contribution in contributions]
    if order is None:
        return Array(first.dtype, reduce(Array(first.dtype, np.stack(flat)), None).values.reshape(first.shape))
    result = np.empty(flat[0].size, first.dtype.carrier)
    for tree, places in order:
        rows = [row[places] for row in flat]
        if op == "sum" and len(rows) > 1 and is_addable(first.dtype):
            total = np.empty(rows[0].size, first.dtype.carrier)
            add_over(tree, rows, total)
            result[places] = cast(Array(first.dtype.accumulator, total), first.dtype).values
        else:
            result[places] = reduce(Array(first.dtype, np.stack(rows)), tree).values
    return Array(first.dtype, result.reshape(first.shape))


def all_reduce(
    contributions: Sequence[Array], op: str, order: Order | None = None, ranks: int | None = None
) -> list[Array]:
    """Return the combination for every rank; there are fewer `ranks` than contributions where they are partial."""
    return [reduced(op, contributions, order)] * (ranks or len(contributions))


def reduce_scatter(
    contributions: Sequence[Array],
    op: str,
    order: Order | None = None,
    ranks: int | None = None,
    dim: int | None = None,
) -> list[Array]:
    """Return each rank's part of the combination: an equal part along `dim`, or its share of the flat buffer."""
    whole, ranks = reduced(op, contributions, order), ranks or len(contributions)
    if dim is not None:
        return parts(whole, dim, ranks)
    flat = whole.values.reshape(-1)
    return [Array(whole.dtype, flat[share_of(flat.size, rank, ranks)]) for rank in range(ranks)]


def all_gather(contributions: Sequence[Array], dim: int = 0) -> list[Array]:
    """Return all contributions put together along `dim`, for every rank. Raises `TooLarge`."""
    return [_joined("all_gather", contributions, dim)] * len(contributions)


def broadcast(contributions: Sequence[Array], root: int) -> list[Array]:
    """Return the root's contribution for every rank."""
    return [contributions[root]] * len(contributions)


def all_to_all(contributions: Sequence[Array], split: int = 0, concat: int = 0) -> list[Array]:
    """Return for rank s the parts s along `split` of all contributions, put together along `concat` (AMB-COLL-10)."""
    cut = [parts(contribution, split, len(contributions)) for contribution in contributions]
    return [_joined("all_to_all", received, concat) for received in zip(*cut, strict=True)]


def share_of(count: int, rank: int, ranks: int) -> slice:
    """The elements, of `count`, that the rank at a place in its group owns (AMB-RT-04)."""
    return slice(rank * count // ranks, (rank + 1) * count // ranks)


def parts(x: Array, dim: int, number: int) -> list[Array]:
    """Return equal parts along a dimension, in order."""
    extent = x.shape[dim] // number
    before = (slice(None),) * (dim % x.rank)
    return [Array(x.dtype, x.values[(*before, slice(i * extent, (i + 1) * extent))]) for i in range(number)]


def _joined(operation: str, arrays: Sequence[Array], dim: int) -> Array:
    """Arrays put together along a dimension. Raises `TooLarge`."""
    first = arrays[0]
    extents = list(first.shape)
    extents[dim] = sum(array.shape[dim] for array in arrays)
    require_room(operation, extents, first.values.size)
    return Array(first.dtype, np.concatenate([array.values for array in arrays], axis=dim))


# What ranks bring, added over a tree in the arithmetic of its type, without a copy of it all.
#
# Each addition is one of numpy on a block of elements, so that partial sums stay in the cache of the processor; the
# bits are those of `reductions.sum`, whose nodes these are (reference arithmetic, "sums and all-reduce"; AMB-RT-26).


BLOCK = 8192
"""Elements that are added over the whole tree before the next ones."""


class _Addition(NamedTuple):
    """Two operands by number, and the one that takes their sum: rows come first, then the result, then partial sums."""

    a: int
    b: int
    total: int


def is_addable(dtype: DType) -> bool:
    """True if numpy's + on the carriers of a dtype is a node of its sums."""
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
            places += [segment[: places[-1].size] for segment in scratch]
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
        sums = sorted(child for child in children if child >= rows)
        total = sums[0] if sums else min(free, default=None) or next(fresh)
        free.difference_update([total])
        free.update(sums[1:])
        additions.append(_Addition(a, b, total))
        return total

    tree.over(rows).evaluate(lambda leaf: leaf, add, rows)
    return tuple(additions), next(fresh) - rows - 1
