"""The memory of a running kernel: values, access stamps that find races, faults (spec sections 7.1, 8.3, 12)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..numerics.array import Array
from ..numerics.formats import DType, NumericsFailure

# Errors of running kernels, as types with fields: the threads, the element, and their access.
#
# The interpreter reports each as a diagnostic of category tile, at the instruction that failed.


Access = Literal["reads", "writes"]
Place = tuple[int, int, int]


@dataclass(frozen=True)
class Who:
    """One thread of a block, a warp of it, or, with neither known, several of its threads."""

    block: Place
    thread: Place | None = None
    warp: int | None = None

    def __str__(self) -> str:
        inside = "several threads"
        if self.thread is not None:
            inside = f"thread {self.thread}"
        elif self.warp is not None:
            inside = f"warp {self.warp}"
        return f"{inside} of block {self.block}"


@dataclass(frozen=True)
class Address:
    """An element, or, where the indices name none, the indices."""

    memory: str
    indices: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.memory}[{', '.join(map(str, self.indices))}]"


class KernelFault(NumericsFailure):
    """Base of the errors of a running kernel."""

    requirement: ClassVar[str] = ""
    clause: ClassVar[str] = ""
    remedy: ClassVar[str] = ""


class OutOfBounds(KernelFault):
    """`who` accesses `address`, outside a memory of this shape."""

    requirement = "indices from 0 up to the extent of each dimension"
    clause = "LANG-08.3-01"

    def __init__(self, who: Who, address: Address, shape: tuple[int, ...]) -> None:
        super().__init__(who, address, shape)
        self.who, self.address, self.shape = who, address, shape

    def __str__(self) -> str:
        return f"{self.who} goes to {self.address}, out of bounds: the shape is {list(self.shape)}"


class Misaligned(KernelFault):
    """`who` accesses `address`, whose first byte `offset` is no multiple of `alignment`."""

    requirement = "addresses that are multiples of what is moved at once"
    clause = "LANG-07.3-01"

    def __init__(self, who: Who, address: Address, offset: int, alignment: int) -> None:
        super().__init__(who, address, offset, alignment)
        self.who, self.address, self.offset, self.alignment = who, address, offset, alignment

    def __str__(self) -> str:
        return f"{self.who} goes to {self.address}, byte {self.offset}: not aligned to {self.alignment} bytes"


class Uninitialised(KernelFault):
    """`who` reads `address`, which was never written."""

    requirement = "elements that were written before"
    clause = "LANG-08.3-01"

    def __init__(self, who: Who, address: Address) -> None:
        super().__init__(who, address)
        self.who, self.address = who, address

    def __str__(self) -> str:
        return f"{self.who} reads {self.address}, which nothing has written"


class Unwritten(KernelFault):
    """The grid has ended, and `address`, an element of its results, was never written."""

    requirement = "every element of a result written"
    clause = "LANG-08.2-03"

    def __init__(self, address: Address, count: int) -> None:
        super().__init__(address, count)
        self.address, self.count = address, count

    def __str__(self) -> str:
        more = f", nor {self.count - 1} more" if self.count > 1 else ""
        return f"{self.address} was never written{more}"


class EarlyRead(KernelFault):
    """`who` accesses `address`, to which `copier` copies asynchronously, without the required `missing`."""

    requirement = "a wait of the copying thread, then a barrier, before others touch what it copies"
    clause = "LANG-07.2-04"

    def __init__(self, who: Who, access: Access, address: Address, copier: Who, missing: str) -> None:
        super().__init__(who, access, address, copier, missing)
        self.who, self.access, self.address, self.copier, self.missing = who, access, address, copier, missing

    def __str__(self) -> str:
        return f"{self.who} {self.access} {self.address}, which {self.copier} copies to, without {self.missing} between"


class Race(KernelFault):
    """`who` and `other` access `address` unordered, and at least one of them writes."""

    requirement = "a barrier between threads of a block, and no element that two blocks share and one writes"
    clause = "LANG-08.3-02"

    def __init__(self, who: Who, access: Access, address: Address, other: Who, before: Access) -> None:
        super().__init__(who, access, address, other, before)
        self.who, self.access, self.address, self.other, self.before = who, access, address, other, before

    def __str__(self) -> str:
        between = "in another block" if self.who.block != self.other.block else "without a barrier between"
        return f"race: {self.who} {self.access} {self.address}, which {self.other} {self.before} {between}"


class PartialBarrier(KernelFault):
    """`missing` does not arrive at a barrier of its block."""

    requirement = "a barrier that all threads of the block reach"
    clause = "LANG-08.3-02"

    def __init__(self, missing: Who, arrived: int, threads: int) -> None:
        super().__init__(missing, arrived, threads)
        self.missing, self.arrived, self.threads = missing, arrived, threads

    def __str__(self) -> str:
        return f"{self.arrived} of {self.threads} threads come to the barrier: {self.missing} does not"


class PartialWarp(KernelFault):
    """`missing` does not take part in `what`, which needs its whole warp; None where the block has no such thread."""

    requirement = "an operation that all lanes of the warp reach"
    clause = "LANG-07.2-03"

    def __init__(self, missing: Who | None, warp: int, what: str) -> None:
        super().__init__(missing, warp, what)
        self.missing, self.warp, self.what = missing, warp, what

    def __str__(self) -> str:
        why = f"{self.missing} does not" if self.missing else "the block has no more threads"
        return f"only part of warp {self.warp} comes to {self.what}: {why}"


class NotUniform(KernelFault):
    """`what` is `first` in one thread and `value` in `who`, but must be the same in all."""

    requirement = "one value in all threads that take part"
    clause = "LANG-08.2-03"

    def __init__(self, what: str, first: int, value: int, who: Who) -> None:
        super().__init__(what, first, value, who)
        self.what, self.first, self.value, self.who = what, first, value, who

    def __str__(self) -> str:
        return f"{self.what} differs between threads: {self.first}, and {self.value} in {self.who}"


class AbsentLane(KernelFault):
    """`who` exchanges with lane `source` of its warp, which is `why`: inactive, missing, or outside the mask."""

    requirement = "lanes that are active and in the mask"
    clause = "LANG-07.2-06"

    def __init__(self, who: Who, source: int, why: str) -> None:
        super().__init__(who, source, why)
        self.who, self.source, self.why = who, source, why

    def __str__(self) -> str:
        return f"{self.who} reads lane {self.source} of its warp, which is {self.why}"


# Access stamps: block, epoch and thread of an access as one number, from which races are found (section 8.3).
#
# An epoch is the time between two barriers of a block; blocks run one after another, and no epoch number is used twice.
# A stamp is an epoch and an agent: a lane, a warp as a whole, several lanes, or a lane by an asynchronous copy. Stamps
# of one epoch are consecutive, so that two comparisons show whether another agent had access since the last barrier.


UNWRITTEN = -1
"""The stamp of an uninitialised element."""

INITIAL = 0
"""The stamp of contents from before the kernel."""

PENDING = 1 << 62
"""The number added to a lane whose copy to an element has not finished; later than every epoch."""


class Clock:
    """A counter of epochs; `base` is the first stamp of this one, `first` that of the block."""

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
        """Start the next block, by its number."""
        self.tick()
        self.first = self.base
        self.blocks.append(block)
        self.starts.append(self.base)

    def tick(self) -> None:
        """Start the epoch after a barrier."""
        self.base += self.span

    def of_warps(self, warps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the stamps of whole warps, for an instruction of the warp."""
        return warps + self.lanes

    def copying(self, lanes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the stamps of lanes that begin asynchronous copies."""
        return lanes + (self.several + 1)

    def who(self, stamp: int) -> Who:
        """Return the agent of a stamp."""
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
        """Return a lane of a block, by default of the running one."""
        return Who(self.place_of(self.blocks[-1]) if block is None else block, _place(lane, self.extents))

    def warp(self, number: int) -> Who:
        """Return a warp of the running block."""
        return Who(self.place_of(self.blocks[-1]), warp=number)

    def place_of(self, block: int) -> Place:
        """Return the place of a block in the grid."""
        return _place(block, self.grid)


def _place(number: int, extents: Place) -> Place:
    """Return the x, y and z of a linear index, x fastest."""
    x, y, _ = extents
    number = int(number)
    return number % x, number // x % y, number // (x * y)


# The memory of a kernel: values, and for each element the agents that last wrote and read it (sections 7.1, 8.3).
#
# Values are stored decoded, in the carrier of their dtype. An access by two threads of a block without a barrier
# between them, or by two blocks, is a race unless both read; so is an access to the target of an unfinished
# asynchronous copy. Stamps reveal races in whichever order the blocks run, so the order never changes a result
# unnoticed.


Values: TypeAlias = npt.NDArray[Any]
Offsets: TypeAlias = npt.NDArray[np.int64]


class Storage:
    """One memory: flat `values`, addressed by offsets in elements; agents are stamps of the clock."""

    across_blocks = False
    """True if accesses of other blocks matter here."""

    def __init__(
        self,
        name: str,
        dtype: DType,
        shape: tuple[int, ...],
        clock: Clock,
        initial: Array | None = None,
        noted: bool = True,
    ) -> None:
        """Create memory with `initial` contents, or uninitialised; it can be written only if accesses are `noted`."""
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.size = prod(shape)
        self.strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
        self.clock = clock
        self.noted = noted
        begin = UNWRITTEN if initial is None else INITIAL
        contents = np.zeros(self.size, dtype.carrier) if initial is None else np.array(initial.values, order="C")
        self.values: Values = contents.reshape(-1)
        self.wrote: Offsets = np.full(self.size if noted else 0, begin, np.int64)
        self.seen: Offsets = np.full(self.wrote.size, UNWRITTEN, np.int64)
        self.first_seen: Offsets = np.full(self.wrote.size if self.across_blocks else 0, UNWRITTEN, np.int64)

    def read(self, at: Offsets, who: Offsets) -> Values:
        """Return the elements at `at`, read by `who`, which broadcasts to it. Raises `KernelFault`."""
        if self.noted:
            self.note_read(at, who)
        return self.values[at]

    def note_read(self, at: Offsets, who: Offsets) -> None:
        """Check that the read is ordered after all writes, and record its stamp. Raises `KernelFault`."""
        base = self.clock.base
        mine = who + base
        wrote = self.wrote[at]
        if self._recent(wrote) and np.count_nonzero(
            ((wrote >= base) & (wrote != mine)) | (wrote < 0) | self._foreign(wrote)
        ):
            self._refuse_read(at, np.broadcast_to(mine, at.shape), wrote)
        self._mark_seen(at, mine)

    def write(self, at: Offsets, who: Offsets, values: Values) -> None:
        """Write elements. Raises `KernelFault`."""
        self._claim(at, who, self.clock.base)
        self.values[at] = values

    def begin_copy(self, at: Offsets, who: Offsets, values: Values) -> None:
        """Write elements that are not visible before `finish_copy`. Raises `KernelFault`."""
        self._claim(at, who, PENDING)
        self.values[at] = values

    def finish_copy(self, at: Offsets, lanes: Offsets) -> None:
        """Make a copy visible now to the lanes that copied, and to others after the next barrier."""
        self.wrote[at] = self.clock.copying(lanes) + self.clock.base

    def address(self, at: int) -> Address:
        """Return an element by its indices."""
        pairs = zip(self.strides, self.shape, strict=True)
        return Address(self.name, tuple(at // step % extent for step, extent in pairs))

    def _recent(self, stamps: Offsets) -> bool:
        """True if some stamp may conflict: it is not of an earlier epoch of this block, nor the initial one."""
        begin = self.clock.span if self.across_blocks else self.clock.base
        return bool(np.count_nonzero(stamps.view(np.uint64) >= begin))  # UNWRITTEN is then the largest

    def _foreign(self, stamps: Offsets) -> Any:
        """Return the stamps of other blocks; none in shared memory."""
        return False

    def _mark_seen(self, at: Offsets, mine: Offsets) -> None:
        base = self.clock.base
        last_readers = self.seen[at]
        marks = np.where((last_readers < base) | (last_readers == mine), mine, base + self.clock.several)
        self.seen[at] = marks
        others = self.seen[at] != marks  # two lanes read one element at once
        if np.count_nonzero(others):
            self.seen[at[others]] = base + self.clock.several

    def _claim(self, at: Offsets, who: Offsets, base: int) -> None:
        """Check that the write is ordered after all other accesses, and record its stamp."""
        now = self.clock.base
        mine = who + now
        wrote, readers = self.wrote[at], self.seen[at]
        conflicts = ((wrote >= now) & (wrote != mine)) | ((readers >= now) & (readers != mine))
        if np.count_nonzero(conflicts | self._foreign(wrote) | self._foreign(self._earliest_seen(at, readers))):
            self._refuse_write(at, np.broadcast_to(mine, at.shape), wrote, self._earliest_seen(at, readers), readers)
        stamp = who + base
        self.wrote[at] = stamp
        twice = self.wrote[at] != stamp  # two lanes write one element at once
        if np.count_nonzero(twice):
            place, other = int(at[twice][0]), int(self.wrote[at][twice][0])
            someone = self.clock.who(int(np.broadcast_to(stamp, at.shape)[twice][0]))
            raise Race(someone, "writes", self.address(place), self.clock.who(other), "writes")

    def _earliest_seen(self, at: Offsets, readers: Offsets) -> Offsets:
        """Return the earliest read of each element, from which reads by other blocks are found."""
        return readers

    def _refuse_read(self, at: Offsets, mine: Offsets, wrote: Offsets) -> None:
        base = self.clock.base
        conflicts = (
            ((wrote >= base) & (wrote != mine) & ~self._own_copy(mine, wrote)) | (wrote < 0) | self._foreign(wrote)
        )
        for place, me, stamp in _first(conflicts, at, mine, wrote):
            if stamp < 0:
                raise Uninitialised(self.clock.who(me), self.address(place))
            self._refuse(place, me, "reads", stamp, "writes")

    def _refuse_write(self, at: Offsets, mine: Offsets, wrote: Offsets, earliest: Offsets, readers: Offsets) -> None:
        now = self.clock.base
        here = (wrote >= now) & (wrote != mine) & ~self._own_copy(mine, wrote)
        before: list[tuple[Offsets, Any, Access]] = [
            (wrote, here | self._foreign(wrote), "writes"),
            (readers, (readers >= now) & (readers != mine), "reads"),
            (earliest, self._foreign(earliest), "reads"),
        ]
        for stamps, conflicts, access in before:
            for place, me, stamp in _first(np.broadcast_to(conflicts, at.shape), at, mine, stamps):
                self._refuse(place, me, "writes", stamp, access)

    def _own_copy(self, mine: Offsets, wrote: Offsets) -> npt.NDArray[np.bool_]:
        """Return a mask of elements that a thread has itself copied and waited for."""
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
        """Forget its contents."""
        self.wrote.fill(UNWRITTEN)
        self.seen.fill(UNWRITTEN)


class GlobalStorage(Storage):
    """Memory of all blocks."""

    across_blocks = True

    def array(self) -> Array:
        """Return the contents."""
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

    def _earliest_seen(self, at: Offsets, readers: Offsets) -> Offsets:
        return self.first_seen[at]


def _first(conflicts: npt.NDArray[np.bool_], at: Offsets, mine: Offsets, stamps: Offsets) -> list[tuple[int, int, int]]:
    """Return the first conflict: its offset and the two stamps; empty where there is none."""
    places = np.argwhere(conflicts)
    if not places.size:
        return []
    index = tuple(places[0])
    return [(int(at[index]), int(mine[index]), int(stamps[index]))]
