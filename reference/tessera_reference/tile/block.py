"""The state of a running block: its lanes, shared memory and values, and their accesses to memory (7.2, 8.3).

This is all that an operation of a kernel sees (spec sections 7.2, 8.3). Offsets count elements of a memory from its
first one; an argument "for each lane" has shape [lanes], or [lanes, n], and what it holds in inactive lanes is ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..ir.diagnostics import Rejection, UnsupportedConstruct
from ..ir.module import Instruction
from ..ir.targets import Target
from ..ir.types import Memref
from ..numerics.array import Array
from ..numerics.errors import NumericsFailure
from .exchange import by_warp, exchanged, whole_warps
from .faults import Address, Misaligned, OutOfBounds, PartialBarrier, Place, Who
from .lanes import Lanes
from .pending_copies import PendingCopies
from .program import Code, FragmentUse, Program
from .reports import Budget, failed
from .storage import Offsets, SharedStorage, Storage, Values


class BlockState(Lanes):
    """The state of a block: its lanes, memory, and the values of a kernel that runs in it.

    `regions` and `instruction` belong to the instruction that is running.
    """

    def __init__(self, program: Program, target: Target, grid: Place, extents: Place, budget: Budget) -> None:
        super().__init__(grid, extents, target.warp)
        self.program = program
        self.target = target
        self.copies = PendingCopies(self.lanes)
        self.shared: dict[Instruction, SharedStorage] = {}
        self.frame: list[Any] = [None] * program.places
        self.parameters: tuple[Any, ...] = ()
        self.budget = budget
        self.regions: tuple[Code, ...] = ()
        self.instruction: Instruction | None = None

    def begin(self, number: int) -> None:
        """Start the block of that number, with empty shared memory."""
        super().begin(number)
        self.copies.clear()
        for storage in self.shared.values():
            storage.clear()

    @property
    def use_of_result(self) -> FragmentUse:
        """What the fragment that the instruction makes is used as."""
        assert self.instruction is not None
        return self.program.uses[self.instruction.results[0]]

    # Control

    def region(self, code: Code, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run a region under the current mask; returns what it yields. Raises `Rejection`."""
        frame = self.frame
        for place, argument in zip(code.arguments, arguments, strict=True):
            frame[place] = argument
        self.budget.spend(code, self.instruction)
        for call, operands, results, instruction, regions in code.steps:
            self.instruction, self.regions = instruction, regions
            try:
                made = call(self, *[frame[place] for place in operands])
            except NumericsFailure as failure:
                raise Rejection([failed(instruction, failure, self)]) from failure
            except MemoryError as error:
                raise UnsupportedConstruct("execute.more_memory", instruction.location) from error
            if type(made) is tuple:
                for place, value in zip(results, made, strict=True):
                    frame[place] = value
            else:
                (place,) = results
                frame[place] = made
        return tuple([frame[place] for place in code.results])

    def merged(self, condition: npt.NDArray[np.bool_], a: Any, b: Any) -> Any:
        """`a` in the lanes where the condition holds, `b` in the others; a fragment as a whole."""
        if not isinstance(a, Array):
            return a.merged(condition, b)
        chosen = condition
        if a.rank == 3:
            chosen = by_warp(self, "the choice of a fragment", condition.astype(np.int64)).astype(bool)
        shape = (-1,) + (1,) * (a.rank - 1)
        return Array(a.dtype, np.where(chosen.reshape(shape), a.values, b.values))

    # Memory

    def allocate(self, memref: Memref) -> SharedStorage:
        """The shared memory of the instruction that runs."""
        assert self.instruction is not None
        found = self.shared.get(self.instruction)
        if found is None:
            name = f"%{self.instruction.results[0].name}"
            extents = tuple(int(dim) for dim in memref.shape)
            found = self.shared[self.instruction] = SharedStorage(name, memref.dtype, extents, self.clock)
        return found

    def offsets(self, memory: Storage, indices: tuple[Array, ...]) -> Offsets:
        """The offset of the element at the indices, for each lane; of the first one without indices.

        Raises `OutOfBounds`.
        """
        total = np.zeros(self.lanes, np.int64)
        for index, extent, stride in zip(indices, memory.shape, memory.strides, strict=bool(indices)):
            outside = (index.values < 0) | (index.values >= extent)
            if np.count_nonzero(outside) and outside[self.active].any():
                lane = int(self.active[outside[self.active]][0])
                raise self.out_of_bounds(memory, self.thread(lane), tuple(int(each.values[lane]) for each in indices))
            total += np.multiply(index.values, stride, dtype=np.int64)
        return total

    def require_within(self, memory: Storage, offsets: Offsets, count: int = 1) -> None:
        """Raise `OutOfBounds` unless `count` elements from the offset of each active lane lie in the memory."""
        begin = self.of_active(offsets)
        outside = (begin < 0) | (begin > memory.size - count)
        if np.count_nonzero(outside):
            lane, at = int(self.active[outside][0]), int(begin[outside][0])
            at = at if at < 0 else max(at, memory.size)
            raise self.out_of_bounds(memory, self.thread(lane), (at,))

    def out_of_bounds(self, memory: Storage, who: Who, indices: tuple[int, ...]) -> OutOfBounds:
        """An access outside a memory; one index alone, where it has several dimensions, is an offset."""
        return OutOfBounds(who, Address(memory.name, indices), memory.shape)

    def load(self, memory: Storage, offsets: Offsets) -> Values:
        """The elements at the offsets, which lie in the memory, for each lane. Raises `KernelFault`."""
        return self.spread(memory.read(self.of_active(offsets), self._who(offsets)))

    def store(self, memory: Storage, offsets: Offsets, values: Values) -> None:
        """Write an element, or n of them, for each active lane. Raises `KernelFault`."""
        memory.write(self.of_active(offsets), self._who(offsets), self.of_active(values))

    def _who(self, offsets: Offsets) -> Offsets:
        return self.active if offsets.ndim == 1 else self.active[:, None]

    def copy(self, source: Storage, begin: Offsets, destination: Storage, end: Offsets, size: int) -> None:
        """Begin an asynchronous copy of `size` contiguous bytes for each active lane. Raises `KernelFault`."""
        count = size // source.dtype.storage_bytes
        along = np.arange(count)
        for memory, offsets in ((source, begin), (destination, end)):
            self.require_within(memory, offsets, count)
            self.require_aligned(memory, self.of_active(offsets), size, self.active)
        begin, end = self.of_active(begin)[:, None] + along, self.of_active(end)[:, None] + along
        destination.begin_copy(end, self.active[:, None], source.read(begin, self.active[:, None]))
        self.copies.add(destination, end, self.active)

    def require_aligned(self, memory: Storage, offsets: Offsets, alignment: int, lanes: Offsets) -> None:
        """Raise `Misaligned` unless the elements, each of one lane, begin at multiples of `alignment` bytes."""
        odd = offsets * memory.dtype.storage_bytes % alignment != 0
        if np.count_nonzero(odd):
            lane, at = int(lanes[odd][0]), int(offsets[odd][0])
            raise Misaligned(self.thread(lane), memory.address(at), at * memory.dtype.storage_bytes, alignment)

    # Synchronization

    def barrier(self) -> None:
        """Let all threads arrive. Raises `PartialBarrier` where some do not."""
        if self.mask is not None:
            missing = np.flatnonzero(~self.mask)
            if missing.size:
                raise PartialBarrier(self.thread(missing[0]), self.active.size, self.lanes)
        self.copies.barrier()
        self.clock.tick()

    def whole_warps(self, what: str) -> Offsets:
        """The numbers of the active warps. Raises `PartialWarp`, naming `what`, for one with inactive lanes."""
        return whole_warps(self, what)

    def shuffle(self, values: Values, delta: int, mask: int | None = None) -> Values:
        """Lane i gets the value of lane i + delta, its own beyond the warp (AMB-LANG-63). Raises `AbsentLane`."""
        lane = self.every_lane % self.warp
        return exchanged(self, values, np.where(lane + delta < self.warp, lane + delta, lane), mask)
