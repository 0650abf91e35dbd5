"""Asynchronous copies that are not finished, each with its thread and group (AMB-LANG-64, AMB-LANG-201)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .lanes import Lanes
from .storage import Offsets, Storage


@dataclass(frozen=True)
class Copy:
    """The copies of one instruction: for each copying lane a row of offsets, and the number of the lane's group."""

    storage: Storage
    at: Offsets
    lanes: Offsets
    groups: Offsets

    def finish(self, which: Offsets) -> None:
        """Finish the copies of some of its lanes."""
        self.storage.finish_copy(self.at[which], self.lanes[which, None])

    def only(self, which: Offsets) -> Copy:
        """The copies of some of its lanes."""
        return Copy(self.storage, self.at[which], self.lanes[which], self.groups[which])


class PendingCopies:
    """The unfinished copies of a block, and for each lane how many groups it has committed."""

    def __init__(self, lanes: int) -> None:
        self.committed: Offsets = np.zeros(lanes, np.int64)
        self.copies: list[Copy] = []

    def clear(self) -> None:
        """Drop all pending copies and group counts."""
        self.committed.fill(0)
        self.copies = []

    def add(self, storage: Storage, at: Offsets, lanes: Offsets) -> None:
        """Copies that the lanes have begun, each to the elements of its row."""
        self.copies.append(Copy(storage, at, lanes, self.committed[lanes]))

    def commit(self, block: Lanes) -> None:
        """Close a group of each active lane."""
        self.committed[block.active] += 1

    def wait(self, block: Lanes, pending: int) -> None:
        """Finish, for each active lane, all its groups but the newest `pending`."""
        done = np.full(self.committed.size, -1, np.int64)
        done[block.active] = self.committed[block.active] - pending
        self._finish(lambda copy: copy.groups < done[copy.lanes])

    def barrier(self) -> None:
        """Finish the copies that are in no group."""
        self._finish(lambda copy: copy.groups == self.committed[copy.lanes])

    def _finish(self, is_done: Callable[[Copy], npt.NDArray[np.bool_]]) -> None:
        left = []
        for copy in self.copies:
            done = is_done(copy)
            finished = done.nonzero()[0]
            if finished.size:
                copy.finish(finished)
            if finished.size < done.size:
                left.append(copy.only((~done).nonzero()[0]) if finished.size else copy)
        self.copies = left
