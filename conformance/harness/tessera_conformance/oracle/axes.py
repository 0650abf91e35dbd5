"""Which elements of a tensor a reduction takes together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tessera_conformance.oracle.errors import BadArgument


@dataclass(frozen=True)
class Lines:
    """The flat places of the elements along an axis, a list for each result, in row-major order of the results."""

    places: list[list[int]]
    reduced: tuple[int, ...]
    kept: tuple[int, ...]

    def shape(self, keepdims: bool) -> tuple[int, ...]:
        """The shape of the results: the axis is dropped, or kept with extent 1."""
        return self.kept if keepdims else self.reduced


def along(shape: tuple[int, ...], axis: int) -> Lines:
    """The lines of a tensor along an axis from -rank to rank-1.

    Raises:
        BadArgument: there is no such axis.
    """
    rank = len(shape)
    if not -rank <= axis < rank:
        raise BadArgument("axis", axis, f"an axis from {-rank} to {rank - 1} of a tensor of rank {rank}")
    axis %= rank
    length, count = shape[axis], 1
    reduced = (*shape[:axis], *shape[axis + 1 :])
    for extent in reduced:
        count *= extent
    numbers = np.arange(length * count).reshape(shape)
    places = np.moveaxis(numbers, axis, -1).reshape(count, length).tolist()
    return Lines(places, reduced, (*shape[:axis], 1, *shape[axis + 1 :]))
