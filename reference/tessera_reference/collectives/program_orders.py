"""In which order the collectives of a program combine what ranks bring (LANG-09-05, -06; AMB-COLL-29, -96).

Under strict over the canonical tree, whatever travels how. Under other levels a collective of the dialect has the order
of its algorithm, `orders`: the one that it names, or the one that is selected for its bytes where it leaves that to
auto. Collectives of Graph IR, `dist.*`, name none and have the canonical tree at every level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..graph.collectives import AllReduce, Collective, Reducing
from ..graph.futures import GroupCollective
from ..graph.ranks import Combine, canonically
from ..ir.types import Numeric
from ..numerics.array import Array
from ..numerics.formats import dtype
from ..numerics.trees import PAIRWISE, Tree
from .groups import share_of
from .operations import OPERATORS
from .orders import orders
from .selection import select

__all__ = ["Order", "combine_at", "joined_order", "ordered", "reduced"]

Places: TypeAlias = npt.NDArray[np.int64]

Order: TypeAlias = Mapping[Tree, Places]
"""The places of the elements that are combined over each tree; every place stands once."""


def ordered(operation: Collective, level: str) -> bool:
    """Whether a collective has the order of its algorithm at a level."""
    return level != "strict" and isinstance(operation, GroupCollective) and isinstance(operation.plain(), Reducing)


def combine_at(level: str) -> Combine:
    """How the collectives of a program combine at a level."""
    return canonically if level == "strict" else _by_algorithm


def joined_order(operation: Collective, types: Sequence[Numeric], ranks: int) -> Order:
    """The order of tensors of these types that travel as one collective: each has its own (AMB-COLL-29)."""
    found: dict[Tree, list[Places]] = {}
    first = 0
    for type_ in types:
        for tree, places in _order(operation, type_, ranks).items():
            found.setdefault(tree, []).append(places + first)
        first += _size(type_)
    return {tree: np.concatenate(places) for tree, places in found.items()}


def reduced(op: str, contributions: Sequence[Array], order: Order | None = None, first: int = 0) -> Array:
    """The combination of flat contributions, whose elements have the places from `first` on; None is canonical."""
    data = contributions[0].dtype
    stacked = np.stack([each.values for each in contributions])
    count, (_, reduce) = stacked.shape[1], OPERATORS[op]
    if order is None:
        return reduce(Array(data, stacked), PAIRWISE)
    result = np.empty(count, data.carrier)
    for tree, places in order.items():
        here = places[(places >= first) & (places < first + count)] - first
        result[here] = reduce(Array(data, stacked[:, here]), tree).values
    return Array(data, result)


def _by_algorithm(operation: Collective, contributions: Sequence[Array]) -> Sequence[Array]:
    """What each rank is given: reductions of the dialect in the order of their algorithm, the others as they are."""
    plain = operation.plain() if isinstance(operation, GroupCollective) else operation
    if plain is operation or not isinstance(plain, Reducing):
        return operation.combine(contributions)
    ranks, shape = len(contributions), contributions[0].shape
    flat = [Array(each.dtype, each.values.reshape(-1)) for each in contributions]
    whole = reduced(plain.op, flat, _order(operation, operation.x, ranks))
    return plain.dealt(Array(whole.dtype, whole.values.reshape(shape)), ranks)


def _order(operation: Collective, brought: Numeric, ranks: int) -> Order:
    """The order of a reduction of the dialect whose ranks bring tensors of a type.

    The share of a rank is what an all-reduce shares out, of a reduce-scatter the part that the rank is given.
    """
    assert isinstance(operation, GroupCollective)
    plain, size = operation.plain(), _size(brought)
    assert isinstance(plain, Reducing)
    places = np.arange(size, dtype=np.int64)
    shares = [places[share_of(size, rank, ranks)] for rank in range(ranks)]
    if not isinstance(plain, AllReduce):
        shape = tuple(int(extent) for extent in brought.shape)
        dealt = plain.dealt(Array(dtype("int64"), places.reshape(shape)), ranks)
        shares = [each.values.reshape(-1) for each in dealt]
    found: dict[Tree, list[Places]] = {}
    for tree, share in zip(orders(_algorithm(operation, size, ranks), ranks), shares, strict=True):
        found.setdefault(tree, []).append(share)
    return {tree: np.concatenate(each) for tree, each in found.items()}


def _algorithm(operation: GroupCollective, size: int, ranks: int) -> str:
    """The algorithm that a collective names, or that the table by size has for its full buffer."""
    if operation.algo not in (None, "auto"):
        return str(operation.algo)
    return select(operation.short_name, size * operation.x.dtype.storage_bytes, ranks).algorithm


def _size(type_: Numeric) -> int:
    """The elements of a tensor whose extents are known."""
    return prod(int(extent) for extent in type_.shape)
