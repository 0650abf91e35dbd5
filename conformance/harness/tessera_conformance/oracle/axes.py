"""Lines of elements along an axis, and tensors stacked along a new one."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.tensors import Tensor


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
    moved = _axis_last(shape, axis)
    axis %= len(shape)
    places = moved.reshape(prod(moved.shape[:-1]), shape[axis]).tolist()
    return Lines(places, moved.shape[:-1], (*shape[:axis], 1, *shape[axis + 1 :]))


def channels(shape: tuple[int, ...], axis: int) -> list[list[int]]:
    """The flat places of the elements at each position along an axis, in row-major order.

    Raises:
        BadArgument: there is no such axis.
    """
    moved = _axis_last(shape, axis)
    found: list[list[int]] = moved.reshape(prod(moved.shape[:-1]), moved.shape[-1]).T.tolist()
    return found


def _axis_last(shape: tuple[int, ...], axis: int) -> Any:
    """The flat place of each element, the axis moved to the end."""
    rank = len(shape)
    if not -rank <= axis < rank:
        raise BadArgument("axis", axis, f"an axis from {-rank} to {rank - 1} of a tensor of rank {rank}")
    return np.moveaxis(np.arange(prod(shape)).reshape(shape), axis, -1)


def stacked(inputs: tuple[Tensor, ...]) -> Tensor:
    """The contributions along a new first axis.

    Raises:
        BadArgument: there are none, or they differ in dtype or shape.
    """
    forms = {(x.dtype, x.shape) for x in inputs}
    if len(forms) != 1:
        raise BadArgument("inputs", sorted(map(str, forms)), "one tensor of each rank, all of one dtype and shape")
    ((dtype, shape),) = forms
    return Tensor(dtype, (len(inputs), *shape), b"".join(x.data for x in inputs))
