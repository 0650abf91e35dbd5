"""Buffers between memory and computation: a ring of stages, and a pipeline that fills them ahead (section 6.1).

A buffer holds poison, NaN where the dtype has one, until a tile is copied into it, so that a missing or stale copy
shows in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..numerics.formats import DType

Values: TypeAlias = npt.NDArray[Any]
Place = tuple[int, ...]


@dataclass(frozen=True)
class Event:
    """One step of a nest: a tile copied into a slot, computed with, or its results written.

    `tile` counts tiles: along the batch, then m and n, then, while there are steps inside a tile, k. A store has no
    slot: -1.
    """

    kind: Literal["stage", "compute", "store"]
    nest: int
    tile: Place
    slot: int


Observer = Callable[[Event], None]


@dataclass(frozen=True)
class Tracer:
    """Reports the steps of one nest to an observer, under the number of the nest."""

    nest: int
    observer: Observer | None

    def __call__(self, kind: Literal["stage", "compute", "store"], tile: Place, slot: int = -1) -> None:
        """Report a step."""
        if self.observer is not None:
            self.observer(Event(kind, self.nest, tile, slot))


class Ring:
    """Buffers of one staged operand, one for each stage of the pipeline."""

    def __init__(self, depth: int, shape: tuple[int, ...], dtype: DType) -> None:
        self.slots = [poisoned(shape, dtype) for _ in range(depth)]

    def fill(self, step: int, tile: Values, padding: Any = None) -> None:
        """Copy a tile into the buffer of a step; the rest of the buffer is unchanged, or padded."""
        buffer = self.slots[step % len(self.slots)]
        if padding is not None:
            buffer[...] = padding
        buffer[tuple(slice(extent) for extent in tile.shape)] = tile

    def read(self, step: int, shape: tuple[int, ...]) -> Values:
        """The first elements of a step's buffer along each dimension."""
        return self.slots[step % len(self.slots)][tuple(slice(extent) for extent in shape)].copy()


def pipelined(steps: int, depth: int, stage: Callable[[int], None], compute: Callable[[int], None]) -> None:
    """Compute every step in order, each staged `depth` - 1 steps ahead."""
    for step in range(min(depth - 1, steps)):
        stage(step)
    for step in range(steps):
        if step + depth - 1 < steps:
            stage(step + depth - 1)
        compute(step)


def poisoned(shape: tuple[int, ...], dtype: DType) -> Values:
    """Memory as it is before anything is written to it."""
    filler: Any = {"bool": True, "int": dtype.int_min if dtype.kind == "int" else 0}.get(dtype.kind, np.nan)
    return np.full(shape, filler, dtype.carrier)


@dataclass(frozen=True)
class Grid:
    """Tiles over the last two dimensions of a shape, of which there are at least two, and single steps over the others.

    The last dimension goes fastest.
    """

    shape: tuple[int, ...]
    m: int
    n: int

    @classmethod
    def over(cls, shape: tuple[int, ...], m: int, n: int) -> Grid:
        """A grid over any shape: dimensions that it does not have have extent 1."""
        return cls((*(1,) * (2 - len(shape)), *shape), m, n)

    def tiles(self) -> Iterator[tuple[Place, tuple[slice, ...]]]:
        """Each tile's indices, and the elements that it covers, without padding."""
        *batch, rows, columns = self.shape
        counts = (*batch, -(-rows // self.m), -(-columns // self.n))
        sizes = (*(1,) * len(batch), self.m, self.n)
        for place in product(*map(range, counts)):
            yield (
                place,
                tuple(
                    slice(number * size, min((number + 1) * size, extent))
                    for number, size, extent in zip(place, sizes, self.shape, strict=True)
                ),
            )

    def part(self, values: Values, covered: tuple[slice, ...]) -> Values:
        """The part of an operand that a tile reads; the operand broadcasts to the shape, and a scalar is read whole."""
        if values.ndim == 0:
            return values
        spread = values.reshape((1,) * (len(self.shape) - values.ndim) + values.shape)
        taken = zip(spread.shape, covered, strict=True)
        return spread[tuple(slice(0, 1) if extent == 1 else part for extent, part in taken)]


def shape_of(covered: tuple[slice, ...]) -> tuple[int, ...]:
    """The extents of what a tile covers."""
    return tuple(part.stop - part.start for part in covered)
