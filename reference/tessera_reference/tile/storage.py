"""The memory of a kernel: values, and for each element the agents that last wrote and read it (sections 7.1, 8.3).

Values are held decoded, in the carrier of their dtype. An access by two threads of a block without a barrier between,
or by two blocks, is a race unless both read; so is an access to the target of an unfinished asynchronous copy. Races
are found from the stamps in whichever order the blocks run, so the order never changes a result unnoticed.
"""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..numerics.array import Array
from ..numerics.formats import DType
from .clock import INITIAL, PENDING, UNWRITTEN, Clock
from .faults import Access, Address, EarlyRead, Race, Uninitialised, Unwritten

Values: TypeAlias = npt.NDArray[Any]
Offsets: TypeAlias = npt.NDArray[np.int64]


class Storage:
    """One memory: flat `values`, addressed by offsets in elements; agents are stamps of the clock."""

    across_blocks = False
    """Whether what another block does here matters."""

    def __init__(
        self,
        name: str,
        dtype: DType,
        shape: tuple[int, ...],
        clock: Clock,
        initial: Array | None = None,
        noted: bool = True,
    ) -> None:
        """Memory with `initial` contents, or uninitialised; it may be written only where accesses are `noted`."""
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.size = prod(shape)
        self.strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
        self.clock = clock
        self.noted = noted
        begin = UNWRITTEN if initial is None else INITIAL
        self.values: Values = (
            np.zeros(self.size, dtype.carrier) if initial is None else np.array(initial.values, order="C").reshape(-1)
        )
        self.wrote: Offsets = np.full(self.size if noted else 0, begin, np.int64)
        self.seen: Offsets = np.full(self.wrote.size, UNWRITTEN, np.int64)
        self.first_seen: Offsets = np.full(self.wrote.size if self.across_blocks else 0, UNWRITTEN, np.int64)

    def read(self, at: Offsets, who: Offsets) -> Values:
        """The elements at `at`, read by `who`, which broadcasts to it. Raises `KernelFault`."""
        if not self.noted:
            return self.values[at]
        base = self.clock.base
        mine = who + base
        wrote = self.wrote[at]
        if np.count_nonzero(((wrote >= base) & (wrote != mine)) | (wrote < 0) | self._foreign(wrote)):
            self._refuse_read(at, np.broadcast_to(mine, at.shape), wrote)
        self._mark_seen(at, mine)
        return self.values[at]

    def write(self, at: Offsets, who: Offsets, values: Values) -> None:
        """Write elements. Raises `KernelFault`."""
        self._claim(at, who, self.clock.base)
        self.values[at] = values

    def begin_copy(self, at: Offsets, who: Offsets, values: Values) -> None:
        """Write elements that are not visible before `finish_copy`. Raises `KernelFault`."""
        self._claim(at, who, PENDING)
        self.values[at] = values

    def finish_copy(self, at: Offsets, lanes: Offsets) -> None:
        """Make it visible to the lanes that copied now, and to others after the next barrier."""
        self.wrote[at] = self.clock.copying(lanes) + self.clock.base

    def address(self, at: int) -> Address:
        """An element by its indices."""
        return Address(
            self.name, tuple(at // step % extent for step, extent in zip(self.strides, self.shape, strict=True))
        )

    def _foreign(self, stamps: Offsets) -> Any:
        """Which stamps are of another block; none in shared memory."""
        return False

    def _mark_seen(self, at: Offsets, mine: Offsets) -> None:
        base = self.clock.base
        seen = self.seen[at]
        marks = np.where((seen < base) | (seen == mine), mine, base + self.clock.several)
        self.seen[at] = marks
        others = self.seen[at] != marks  # two lanes read one element at once
        if np.count_nonzero(others):
            self.seen[at[others]] = base + self.clock.several

    def _claim(self, at: Offsets, who: Offsets, base: int) -> None:
        """Check that the write is ordered after all other accesses, and record its stamp."""
        now = self.clock.base
        mine = who + now
        wrote, seen = self.wrote[at], self.seen[at]
        conflicts = ((wrote >= now) & (wrote != mine)) | ((seen >= now) & (seen != mine))
        if np.count_nonzero(conflicts | self._foreign(wrote) | self._foreign(self._earliest_seen(at, seen))):
            self._refuse_write(at, np.broadcast_to(mine, at.shape), wrote, self._earliest_seen(at, seen), seen)
        left = who + base
        self.wrote[at] = left
        twice = self.wrote[at] != left  # two lanes write one element at once
        if np.count_nonzero(twice):
            place, other = int(at[twice][0]), int(self.wrote[at][twice][0])
            someone = self.clock.who(int(np.broadcast_to(left, at.shape)[twice][0]))
            raise Race(someone, "writes", self.address(place), self.clock.who(other), "writes")

    def _earliest_seen(self, at: Offsets, seen: Offsets) -> Offsets:
        """The earliest read of each element, from which reads by other blocks are found."""
        return seen

    def _refuse_read(self, at: Offsets, mine: Offsets, wrote: Offsets) -> None:
        base = self.clock.base
        conflicts = (
            ((wrote >= base) & (wrote != mine) & ~self._own_copy(mine, wrote)) | (wrote < 0) | self._foreign(wrote)
        )
        for place, me, stamp in _first(conflicts, at, mine, wrote):
            if stamp < 0:
                raise Uninitialised(self.clock.who(me), self.address(place))
            self._refuse(place, me, "reads", stamp, "writes")

    def _refuse_write(self, at: Offsets, mine: Offsets, wrote: Offsets, earliest: Offsets, seen: Offsets) -> None:
        now = self.clock.base
        here = (wrote >= now) & (wrote != mine) & ~self._own_copy(mine, wrote)
        before: list[tuple[Offsets, Any, Access]] = [
            (wrote, here | self._foreign(wrote), "writes"),
            (seen, (seen >= now) & (seen != mine), "reads"),
            (earliest, self._foreign(earliest), "reads"),
        ]
        for stamps, conflicts, access in before:
            for place, me, stamp in _first(np.broadcast_to(conflicts, at.shape), at, mine, stamps):
                self._refuse(place, me, "writes", stamp, access)

    def _own_copy(self, mine: Offsets, wrote: Offsets) -> npt.NDArray[np.bool_]:
        """Where a thread accesses an element that it has itself copied and waited for."""
        lanes = mine - self.clock.base
        return np.asarray((lanes < self.clock.lanes) & (wrote == self.clock.copying(lanes) + self.clock.base))

    def _refuse(self, place: int, me: int, access: Access, stamp: int, before: Access) -> None:
        clock, address = self.clock, self.address(place)
        if stamp >= PENDING:
            raise EarlyRead(clock.who(me), access, address, clock.who(stamp), "a wait and a barrier")
        if stamp >= clock.base and stamp % clock.span > clock.several:
            raise EarlyRead(clock.who(me), access, address, clock.who(stamp), "a barrier")
        raise Race(clock.who(me), access, address, clock.who(stamp), before)


class SharedStorage(Storage):
    """Memory of one block, empty for the next one."""

    def clear(self) -> None:
        """Forget what it holds."""
        self.wrote.fill(UNWRITTEN)
        self.seen.fill(UNWRITTEN)


class GlobalStorage(Storage):
    """Memory of all blocks."""

    across_blocks = True

    def array(self) -> Array:
        """What it holds."""
        return Array(self.dtype, self.values.reshape(self.shape))

    def require_written(self) -> None:
        """Raise `Unwritten` unless every element was written."""
        empty = np.flatnonzero(self.wrote == UNWRITTEN)
        if empty.size:
            raise Unwritten(self.address(int(empty[0])), int(empty.size))

    def _foreign(self, stamps: Offsets) -> Any:
        return (stamps >= self.clock.span) & (stamps < self.clock.first)

    def _mark_seen(self, at: Offsets, mine: Offsets) -> None:
        super()._mark_seen(at, mine)
        first = self.first_seen[at]
        self.first_seen[at] = np.where(first < 0, mine, first)

    def _earliest_seen(self, at: Offsets, seen: Offsets) -> Offsets:
        return self.first_seen[at]


def _first(conflicts: npt.NDArray[np.bool_], at: Offsets, mine: Offsets, stamps: Offsets) -> list[tuple[int, int, int]]:
    """The first conflict: its offset and the two stamps; empty where there is none."""
    found = np.argwhere(conflicts)
    if not found.size:
        return []
    index = tuple(found[0])
    return [(int(at[index]), int(mine[index]), int(stamps[index]))]
