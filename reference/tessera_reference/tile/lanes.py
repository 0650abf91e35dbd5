"""The lanes of a block: their positions, and which of them are active (spec sections 7.2, 8.1).

What is "for each lane" is an array of shape [lanes], or [lanes, n]; what it holds in inactive lanes is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..numerics.array import Array
from ..numerics.formats import DTYPES, DType
from .clock import Clock
from .faults import Place, Who
from .storage import Offsets, Values

INT32 = DTYPES["int32"]
"""What places and indices are counted in."""

Mask = npt.NDArray[np.bool_] | None


class Lanes:
    """The threads of one block after another, counted with x fastest.

    `lanes`, `warp` (lanes of one warp), `warps`, `extents`, `grid`, `position` say where the block is; `threads` has
    the x, y and z of each lane, `every_lane` their numbers. `mask` says which lanes are active, None when all are;
    `active` has the numbers of those.
    """

    def __init__(self, grid: Place, extents: Place, warp: int) -> None:
        self.grid = grid
        self.extents = extents
        self.warp = warp
        self.clock = Clock(grid, extents, warp)
        self.lanes = self.clock.lanes
        self.warps = self.clock.warps
        self.position: Place = (0, 0, 0)
        self.every_lane: Offsets = np.arange(self.lanes, dtype=np.int64)
        self.threads = _coordinates(extents)
        self.mask: Mask = None
        self.active = self.every_lane

    def begin(self, number: int) -> None:
        """Start the block of that number."""
        self.clock.begin(number)
        self.position = self.clock.place_of(number)

    @contextmanager
    def under(self, condition: npt.NDArray[np.bool_], outer: Mask) -> Iterator[None]:
        """Let only the lanes of `outer` be active where the condition holds."""
        before, active = self.mask, self.active
        self.mask = condition if outer is None else condition & outer
        self.active = self.mask.nonzero()[0]
        try:
            yield
        finally:
            self.mask, self.active = before, active

    def uniform(self, number: int | float, dtype: DType = INT32) -> Array:
        """One number in all lanes."""
        values = np.empty(self.lanes, dtype.carrier)
        values.fill(number)
        return Array(dtype, values)

    def of_active(self, values: Values) -> Values:
        """Of what is for each lane, that of the active ones."""
        return values if self.mask is None else values[self.active]

    def spread(self, values: Values) -> Values:
        """A value for each active lane as one for each lane."""
        if self.mask is None:
            return values
        made = np.zeros((self.lanes, *values.shape[1:]), values.dtype)
        made[self.active] = values
        return made

    def thread(self, lane: int) -> Who:
        """A lane as messages name it."""
        return self.clock.thread(int(lane))


@lru_cache(64)
def _coordinates(extents: Place) -> tuple[Array, Array, Array]:
    """The x, y and z of each thread of a block."""
    x, y, z = extents
    number = np.arange(x * y * z, dtype=np.int32)
    return Array(INT32, number % x), Array(INT32, number // x % y), Array(INT32, number // (x * y))
