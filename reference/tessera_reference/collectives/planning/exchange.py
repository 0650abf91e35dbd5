"""What a chunk of a collective brings to the ranks of a group (COLL-02.3-01, COLL-08-09; AMB-COLL-55, -88).

A chunk is a range of the elements that every rank brings. All-reduce and broadcast leave elements where they are; of
the others the definition, applied to the places of elements instead of values, says where each of them goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...abi.status import Failure, Status
from ...graph.collectives import AllReduce, Reducing, RootBroadcast, RootSum
from ...graph.futures import GroupCollective
from ...graph.messages import PointToPoint
from ...numerics.array import Array
from ...numerics.formats import dtype
from ..program_orders import joined_order, ordered, reduced
from .slicing import elements
from .steps import NAME, Issue

__all__ = ["Brought", "Exchange"]

Places: TypeAlias = npt.NDArray[np.int64]

Brought: TypeAlias = tuple[Places, Array]
"""Places of the flat result, and the elements for them."""

PLACES = dtype("int64")


class Exchange:
    """A collective of a group of some ranks, chunk by chunk."""

    def __init__(self, step: Issue, ranks: int, level: str = "strict") -> None:
        """Raises `Failure` with TESS_ERR_UNSUPPORTED for a collective that the dialect does not have."""
        operation = step.operation
        self._plain = operation.plain() if isinstance(operation, GroupCollective) else operation
        if isinstance(self._plain, RootSum | PointToPoint):
            raise Failure(Status.TESS_ERR_UNSUPPORTED, NAME, operation.name, "a collective of a whole group")
        self._ranks = ranks
        self._order = joined_order(operation, step.types, ranks) if ordered(operation, level) else None
        self._stays = isinstance(self._plain, AllReduce | RootBroadcast)
        self._origins: Sequence[Places] = () if self._stays else self._moved()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what each rank is given, of a collective of one tensor."""
        given = self._plain.given()
        return tuple(int(extent) for extent in given.shape)

    def bring(self, first: int, chunk: Sequence[Array]) -> list[Brought]:
        """What each rank gets of the elements from `first` on, of which `chunk` has those of every rank, flat."""
        count = chunk[0].values.size
        reduces = isinstance(self._plain, Reducing)
        rows = [self._reduced(first, chunk)] if reduces else chunk
        if self._stays:
            places = np.arange(first, first + count, dtype=np.int64)
            given = [*rows] * self._ranks if reduces else self._plain.combine(chunk)
            return [(places, each) for each in given]
        values = np.concatenate([each.values for each in rows])
        return [self._taken(origin, first, count, chunk[0], values) for origin in self._origins]

    def _reduced(self, first: int, chunk: Sequence[Array]) -> Array:
        assert isinstance(self._plain, Reducing)
        return reduced(self._plain.op, chunk, self._order, first)

    def _taken(self, origin: Places, first: int, count: int, like: Array, values: npt.NDArray[Any]) -> Brought:
        """The elements of a result that come from this chunk."""
        size = elements(self._plain.x)
        row, place = origin // max(size, 1), origin % max(size, 1)
        here = np.flatnonzero((place >= first) & (place < first + count))
        return here, Array(like.dtype, values[row[here] * count + place[here] - first])

    def _moved(self) -> list[Places]:
        """Of each element of each result where it comes from: row times the elements that a rank brings, plus place.

        A row is a rank, or, where ranks are combined, the only one.
        """
        size = elements(self._plain.x)
        shape = tuple(int(extent) for extent in self._plain.x.shape)
        reduces = isinstance(self._plain, Reducing)
        rows = [np.arange(size, dtype=np.int64) + (0 if reduces else rank * size) for rank in range(self._ranks)]
        brought = [Array(PLACES, row.reshape(shape)) for row in rows]
        plain = self._plain
        moved = plain.dealt(brought[0], self._ranks) if isinstance(plain, Reducing) else plain.combine(brought)
        return [each.values.reshape(-1) for each in moved]
