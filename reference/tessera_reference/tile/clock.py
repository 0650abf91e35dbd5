"""Access stamps: block, epoch and thread of an access as one number, by which races are found (section 8.3).

An epoch is what lies between two barriers of a block; blocks run one after another, and no epoch number is used twice.
A stamp is an epoch and an agent: a lane, a warp as a whole, several lanes, or a lane by an asynchronous copy. Stamps of
one epoch are consecutive, so that two comparisons show whether another agent had access since the last barrier.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from .faults import Place, Who

UNWRITTEN = -1
"""The stamp of an element that holds nothing."""

INITIAL = 0
"""The stamp of what was there before the kernel."""

PENDING = 1 << 62
"""Added to the lane whose copy to an element has not finished; later than every epoch."""


class Clock:
    """Counts epochs; `base` is the first stamp of this one, `first` that of the block."""

    def __init__(self, grid: Place, extents: Place, warp: int) -> None:
        self.grid = grid
        self.extents = extents
        self.lanes = extents[0] * extents[1] * extents[2]
        self.warps = -(-self.lanes // warp)
        self.several = self.lanes + self.warps
        self.span = 2 * self.lanes + self.warps + 1
        self.base = self.first = 0
        self.blocks: list[int] = []
        self.starts: list[int] = []

    def begin(self, block: int) -> None:
        """The next block, by its number."""
        self.tick()
        self.first = self.base
        self.blocks.append(block)
        self.starts.append(self.base)

    def tick(self) -> None:
        """A barrier."""
        self.base += self.span

    def of_warps(self, warps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The stamps of whole warps, for an instruction of the warp."""
        return warps + self.lanes

    def copying(self, lanes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The stamps of lanes that begin asynchronous copies."""
        return lanes + (self.several + 1)

    def who(self, stamp: int) -> Who:
        """The agent of a stamp."""
        if stamp >= PENDING:
            return self.thread(stamp - PENDING)
        someone = stamp % self.span
        block = self.place_of(self.blocks[bisect_right(self.starts, stamp) - 1])
        if someone < self.lanes:
            return self.thread(someone, block)
        if someone < self.several:
            return Who(block, warp=someone - self.lanes)
        return Who(block) if someone == self.several else self.thread(someone - self.several - 1, block)

    def thread(self, lane: int, block: Place | None = None) -> Who:
        """A lane of a block, by default of the one that is running."""
        return Who(self.place_of(self.blocks[-1]) if block is None else block, _place(lane, self.extents))

    def warp(self, number: int) -> Who:
        """A warp of the block that runs."""
        return Who(self.place_of(self.blocks[-1]), warp=number)

    def place_of(self, block: int) -> Place:
        """The place of a block in the grid."""
        return _place(block, self.grid)


def _place(number: int, extents: Place) -> Place:
    """The x, y and z of a linear index, x fastest."""
    x, y, _ = extents
    number = int(number)
    return number % x, number // x % y, number // (x * y)
