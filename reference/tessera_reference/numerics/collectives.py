"""Collectives: the data of each rank of a group after a collective (runtime 4.6; collectives spec 2; language spec 9).

The reductions as data, and functions of contributions in order of the axis coordinate: one combines them, the others
move elements. Graph IR, the C API, `collectives.run` and plans of programs call these. `collectives.operations` defines
how data travel, and each caller refuses with its own errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from . import reductions
from .array import Array
from .errors import require_room
from .formats import DType
from .trees import Tree

# The reductions: the kinds of dtypes that each takes, and its function along axis 0 (AMB-RT-28, -57, AMB-COLL-31).


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


# The collectives (LANG-09-05, LANG-09-06, RT-04.6-08 to -13; AMB-RT-02, -04, AMB-COLL-10).
#
# Values are combined in the accumulator type and rounded once.


def reduced(op: str, contributions: Sequence[Array], tree: Tree | None = None) -> Array:
    """Return the combination of all contributions, in their shape, over a tree, or over the canonical one."""
    first, reduce = contributions[0], REDUCTIONS[op].reduce
    # Flat, since numpy takes no more axes than it takes of an operand.
    rows = np.stack([contribution.values.reshape(-1) for contribution in contributions])
    return Array(first.dtype, reduce(Array(first.dtype, rows), tree).values.reshape(first.shape))


def all_gather(contributions: Sequence[Array], dim: int = 0) -> list[Array]:
    """Return all contributions concatenated along `dim`, for every rank. Raises `TooLarge`."""
    return [_joined("all_gather", contributions, dim)] * len(contributions)


def broadcast(contributions: Sequence[Array], root: int) -> list[Array]:
    """Return the root's contribution for every rank."""
    return [contributions[root]] * len(contributions)


def all_to_all(contributions: Sequence[Array], split: int = 0, concat: int = 0) -> list[Array]:
    """Return for rank s the parts s along `split` of all contributions, concatenated along `concat` (AMB-COLL-10)."""
    cut = [parts(contribution, split, len(contributions)) for contribution in contributions]
    return [_joined("all_to_all", received, concat) for received in zip(*cut, strict=True)]


def share_of(count: int, rank: int, ranks: int) -> slice:
    """Return the elements, of `count`, that the rank at a place in its group owns (AMB-RT-04)."""
    return slice(rank * count // ranks, (rank + 1) * count // ranks)


def group_results(
    operation: str, inputs: Sequence[Array], ranks: int, root: int, whole: Callable[[Sequence[Array]], Array]
) -> Sequence[Array]:
    """Return the results of a group's ranks, in their order, from the contributions of each; `whole` combines them.

    Arrays are taken as flat buffers; a reduce-scatter gives each rank its share, an all-gather takes the shares of all
    (AMB-RT-02, AMB-RT-04).
    """
    flat = [Array(array.dtype, array.values.reshape(-1)) for array in inputs]
    match operation:
        case "all_reduce":
            return [whole(inputs)] * ranks
        case "broadcast":
            return broadcast(inputs, root)
        case "all_gather":
            return all_gather(flat)
        case "all_to_all":
            return [Array(array.dtype, array.values.reshape(inputs[0].shape)) for array in all_to_all(flat)]
    total = whole(inputs)
    values = total.values.reshape(-1)
    return [Array(total.dtype, values[share_of(values.size, rank, ranks)]) for rank in range(ranks)]


def parts(x: Array, dim: int, number: int) -> list[Array]:
    """Return equal parts along a dimension, in order."""
    return [Array(x.dtype, part) for part in np.split(x.values, number, axis=dim)]


def _joined(operation: str, arrays: Sequence[Array], dim: int) -> Array:
    """Return arrays concatenated along a dimension. Raises `TooLarge`."""
    first = arrays[0]
    extents = list(first.shape)
    extents[dim] = sum(array.shape[dim] for array in arrays)
    require_room(operation, extents, first.values.size)
    return Array(first.dtype, np.concatenate([array.values for array in arrays], axis=dim))
