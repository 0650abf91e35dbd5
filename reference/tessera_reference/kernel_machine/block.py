"""A running block: its lanes, shared memory, pending copies and values (spec sections 7.2, 8.1, 8.3)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..graph.interpreter import divided_by_zero
from ..ir.diagnostics import Diagnostic, Location, Rejection, Span, UnsupportedConstruct
from ..ir.operation import Function, Instruction, Operation, Refusal, diagnostic_of, refused_by
from ..ir.targets import Target
from ..ir.types import Fragment, Memref, Scalar, Value
from ..numerics.array import Array
from ..numerics.errors import DivisionByZero
from ..numerics.formats import DTYPES, DType, NumericsFailure, dtype
from ..numerics.matmul import matmul
from .storage import (
    AbsentLane,
    Address,
    Clock,
    GlobalStorage,
    KernelFault,
    Misaligned,
    NotUniform,
    Offsets,
    OutOfBounds,
    PartialBarrier,
    PartialWarp,
    Place,
    SharedStorage,
    Storage,
    Unwritten,
    Values,
    Who,
)

INDEX_DTYPE = DTYPES["int32"]
"""The dtype of places and indices."""

Mask = npt.NDArray[np.bool_] | None


@lru_cache(64)
def _coordinates(extents: Place) -> tuple[Array, Array, Array]:
    """Return the x, y and z of each thread of a block."""
    x, y, z = extents
    number = np.arange(x * y * z, dtype=np.int32)
    return Array(INDEX_DTYPE, number % x), Array(INDEX_DTYPE, number // x % y), Array(INDEX_DTYPE, number // (x * y))


# Checks and exchanges in a warp: whole warps, equal values, values read from another lane.


def whole_warps(block: BlockState, what: str) -> Offsets:
    """Return the numbers of the active warps. Raises `PartialWarp`, naming `what`, for one with inactive lanes."""
    if block.mask is None and block.lanes % block.warp == 0:
        return np.arange(block.warps)
    lanes = _rows(block, np.ones(block.lanes, bool) if block.mask is None else block.mask)
    active = np.asarray(lanes.any(axis=1))
    partial = np.flatnonzero(active & ~lanes.all(axis=1))
    if partial.size:
        warp = int(partial[0])
        missing = warp * block.warp + int(np.flatnonzero(~lanes[warp])[0])
        raise PartialWarp(block.thread(missing) if missing < block.lanes else None, warp, what)
    return np.flatnonzero(active)


def _rows(block: BlockState, values: Values) -> Values:
    """Return the lanes of each warp as a row; threads that the block does not have are zeros."""
    every = np.zeros(block.warps * block.warp, values.dtype)
    every[: block.lanes] = values
    return every.reshape(block.warps, block.warp)


def by_warp(block: BlockState, what: str, values: Offsets) -> Offsets:
    """Return the value shared by a warp's lanes; arbitrary if inactive. Raises `PartialWarp` and `NotUniform`."""
    block = block.holding(values)
    active = whole_warps(block, what)
    lanes = _rows(block, values)
    differing = np.argwhere(lanes[active] != lanes[active, :1])
    if differing.size:
        warp, lane = int(active[differing[0, 0]]), int(differing[0, 1])
        raise NotUniform(what, int(lanes[warp, 0]), int(lanes[warp, lane]), block.thread(warp * block.warp + lane))
    return lanes[:, 0]


def exchanged(block: BlockState, values: Values, sources: Offsets, mask: int | None = None) -> Values:
    """Return for each lane the value of lane `sources`, counted within its warp. Raises `AbsentLane`.

    Both lanes are active and, where there is one, in the mask, which has a bit for each lane of a warp.
    """
    lane = block.every_lane % block.warp
    places = block.every_lane - lane + sources
    active = block.active
    if mask is not None:
        named = np.array([mask >> number & 1 for number in range(block.warp)], bool)
        for lanes, outside in ((lane[active], ~named[lane[active]]), (sources[active], ~named[sources[active]])):
            if outside.any():
                raise AbsentLane(block.thread(active[outside][0]), int(lanes[outside][0]), "outside the mask")
    missing = places[active] >= block.lanes
    if block.mask is not None:
        present = np.minimum(places[active], block.lanes - 1)  # integers
        missing |= ~block.mask[present]
    if missing.any():
        raise AbsentLane(block.thread(active[missing][0]), int(sources[active][missing][0]), "not active")
    return block.spread(values[places[active]])


def shuffled(block: BlockState, values: Values, delta: int, mask: int | None = None) -> Values:
    """Return to lane i the value of lane i + delta, its own beyond the warp (AMB-LANG-63). Raises `AbsentLane`."""
    if block.mask is None and block.lanes % block.warp == 0 and mask in (None, (1 << block.warp) - 1):
        moved = values.reshape(-1, block.warp).copy()
        if delta < block.warp:
            moved[:, : block.warp - delta] = values.reshape(-1, block.warp)[:, delta:]
        return moved.reshape(-1)
    lane = block.every_lane % block.warp
    return exchanged(block, values, np.where(lane + delta < block.warp, lane + delta, lane), mask)


# Unfinished asynchronous copies, each with its thread and group (AMB-LANG-64, AMB-LANG-201).


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
        """Return the copies of some of its lanes."""
        return Copy(self.storage, self.at[which], self.lanes[which], self.groups[which])


class PendingCopies:
    """The unfinished copies of a block, and for each lane the number of groups it has committed."""

    def __init__(self, lanes: int) -> None:
        self.committed: Offsets = np.zeros(lanes, np.int64)
        self.copies: list[Copy] = []

    def clear(self) -> None:
        """Drop all pending copies and group counts."""
        self.committed.fill(0)
        self.copies = []

    def add(self, storage: Storage, at: Offsets, lanes: Offsets) -> None:
        """Add copies that the lanes have begun, each to the elements of its row."""
        self.copies.append(Copy(storage, at, lanes, self.committed[lanes]))

    def commit(self, block: BlockState) -> None:
        """Close a group of each active lane."""
        self.committed[block.active] += 1

    def wait(self, block: BlockState, pending: int) -> None:
        """Finish, for each active lane, all its groups but the newest `pending`."""
        done = np.full(self.committed.size, -1, np.int64)
        done[block.active] = self.committed[block.active] - pending
        self._finish(lambda copy: copy.groups < done[copy.lanes])

    def barrier(self) -> None:
        """Finish the copies that are in no group."""
        self._finish(lambda copy: copy.groups == self.committed[copy.lanes])

    def _finish(self, is_done: Callable[[Copy], npt.NDArray[np.bool_]]) -> None:
        unfinished = []
        for copy in self.copies:
            done = is_done(copy)
            finished = done.nonzero()[0]
            if finished.size:
                copy.finish(finished)
            if finished.size < done.size:
                unfinished.append(copy.only((~done).nonzero()[0]) if finished.size else copy)
        self.copies = unfinished


# A prepared kernel: its instructions as calls, its values as slots of a frame (spec section 7).


Call: TypeAlias = Callable[..., Any]

Part = Literal["a", "b", "c"]


@dataclass(frozen=True)
class FragmentUse:
    """One of the operands of mma.sync; an accumulator has its dtype."""

    part: Part
    accum: DType | None = None

    def shape(self, fragment: Fragment) -> tuple[int, int]:
        """Return rows and columns."""
        return {"a": (fragment.m, fragment.k), "b": (fragment.k, fragment.n), "c": (fragment.m, fragment.n)}[self.part]

    def __str__(self) -> str:
        return f"an accumulator of {self.accum}" if self.part == "c" and self.accum else self.part.upper()


class Step(NamedTuple):
    """An instruction: the function to call with the block and the operands' slots, and the slots of its results."""

    call: Call
    operands: tuple[int, ...]
    results: tuple[int, ...]
    instruction: Instruction
    regions: tuple[Code, ...]
    is_total: bool = False
    """True if it depends on nothing but its operands and cannot fail, not even in inactive lanes."""


@dataclass(frozen=True)
class Code:
    """The instructions of a region, the slots of its arguments and yielded values, and its cost in `Budget`."""

    steps: tuple[Step, ...]
    arguments: tuple[int, ...]
    results: tuple[int, ...]
    cost: int


@dataclass(frozen=True)
class Program:
    """A whole kernel; `places` is the size of its frame, `written` the parameters that it stores to."""

    code: Code
    places: int
    uses: Mapping[Value, FragmentUse]
    written: frozenset[Value]
    product: Callable[..., Array] = matmul
    """The function by which matrix instructions multiply."""
    alike: Callable[[Any, Any], tuple[Any, Any]] = lambda a, b: (a, b)
    """A function that makes two values between which lanes choose values of one kind."""


# Diagnostics of kernels that fail while they run (section 12), and the limit on their instructions.


MOST_STEPS = 10_000_000
"""Instructions that one launch may run, each counted once for a block."""


NOWHERE = Location("<source>", Span(1, 1, 1, 1))


class Budget:
    """The number of instructions that may still run."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.left = steps

    def spend(self, code: Code, owner: Instruction | None) -> None:
        """Count a block of instructions, and one for entering it. Raises `Rejection` where they are too many."""
        self.left -= code.cost
        if self.left < 0:
            reached = min(max(code.cost - 1 + self.left, 0), len(code.steps) - 1)
            instruction = code.steps[reached].instruction if code.steps else owner
            raise Rejection([too_many_steps(instruction, self.steps)])

    def require(self, turns: int, code: Code, owner: Instruction | None) -> None:
        """Raise `Rejection` unless this many iterations of a region are within the budget."""
        if turns * code.cost > self.left:
            raise Rejection([too_many_steps(owner, self.steps)])


def too_many_steps(instruction: Instruction | None, steps: int) -> Diagnostic:
    """Return the error for a kernel that exceeds its budget at an instruction, or at None where it has none."""
    name = instruction.operation.short_name if instruction else "launch"
    location = instruction.location if instruction else NOWHERE
    message = f"{name}: a launch runs at most {steps} instructions, and the kernel is not done"
    refusal = Refusal("tile", message, "a kernel that ends", "", "does a loop never end? else give the run more steps")
    return diagnostic_of(refusal, location, phase="execute")


def failed(instruction: Instruction, failure: NumericsFailure) -> Diagnostic:
    """Return the error for a fault in an instruction."""
    if isinstance(failure, DivisionByZero):
        return divided_by_zero(instruction, failure)
    refusal = Refusal("numerics", str(failure))
    if isinstance(failure, KernelFault):
        refusal = Refusal("tile", str(failure), failure.requirement, failure.clause, failure.remedy)
    return refused_by(instruction.operation, refusal, instruction.location, "execute")


def unwritten(kernel: Function, fault: Unwritten) -> Diagnostic:
    """Return the error for a result that a kernel did not write completely."""
    refusal = Refusal("tile", f"@{kernel.name}: {fault}", fault.requirement, fault.clause)
    return diagnostic_of(refusal, kernel.location, phase="execute")


# The state of a running block: its lanes, shared memory and values, and their accesses to memory (7.2, 8.1, 8.3).
#
# An operation of a kernel sees only this. Offsets count elements of a memory from its first
# one; an argument "for each lane" has shape [lanes], or [lanes, n], and its values in inactive lanes are ignored.


class BlockState:
    """The state of a block: its lanes, memory, and the values of a kernel that runs in it.

    `lanes`, `warp` (lanes of one warp), `warps`, `extents`, `grid`, `position` describe the block; `threads` has the x,
    y and z of each lane, counted with x fastest, `every_lane` their numbers. `mask` marks the active lanes, None when
    all are; `active` has the numbers of those. `regions` and `instruction` belong to the instruction that is running.
    """

    global_memory: type[GlobalStorage] = GlobalStorage

    def __init__(self, program: Program, target: Target, grid: Place, extents: Place, budget: Budget) -> None:
        self.program = program
        self.target = target
        self.grid = grid
        self.extents = extents
        self.warp = target.warp
        self.clock = Clock(grid, extents, target.warp)
        self.lanes = self.clock.lanes
        self.warps = self.clock.warps
        self.position: Place = (0, 0, 0)
        self.every_lane: Offsets = np.arange(self.lanes, dtype=np.int64)
        self.threads = _coordinates(extents)
        self.mask: Mask = None
        self.active = self.every_lane
        self.copies = PendingCopies(self.lanes)
        self.shared: dict[Instruction, SharedStorage] = {}
        self.frame: list[Any] = [None] * program.places
        self.parameters: tuple[Any, ...] = ()
        self.budget = budget
        self.regions: tuple[Code, ...] = ()
        self.instruction: Instruction | None = None

    def begin(self, number: int) -> None:
        """Start the block with this number, with empty shared memory."""
        self.clock.begin(number)
        self.position = self.clock.place_of(number)
        self.copies.clear()
        for storage in self.shared.values():
            storage.clear()

    # Lanes

    @contextmanager
    def under(self, condition: npt.NDArray[np.bool_], outer: Mask) -> Iterator[None]:
        """Make only the lanes of `outer` active where the condition holds."""
        before, active = self.mask, self.active
        self.mask = condition if outer is None else condition & outer
        self.active = self.mask.nonzero()[0]
        try:
            yield
        finally:
            self.mask, self.active = before, active

    def uniform(self, number: int | float, dtype: DType = INDEX_DTYPE) -> Array:
        """Return one number in all lanes."""
        values = np.empty(self.lanes, dtype.carrier)
        values.fill(number)
        return Array(dtype, values)

    def holding(self, values: Values) -> BlockState:
        """Return the lanes to which these values belong: those of this block."""
        return self

    def of_active(self, values: Values) -> Values:
        """Return the values of the active lanes."""
        return values if self.mask is None else values[self.active]

    def spread(self, values: Values) -> Values:
        """Return a value for each active lane as one for each lane."""
        if self.mask is None:
            return values
        per_lane = np.zeros((self.lanes, *values.shape[1:]), values.dtype)
        per_lane[self.active] = values
        return per_lane

    def thread(self, lane: int) -> Who:
        """Return a lane as messages name it."""
        return self.clock.thread(int(lane))

    # Control

    @property
    def use_of_result(self) -> FragmentUse:
        """The use of the fragment that the instruction makes."""
        assert self.instruction is not None
        return self.program.uses[self.instruction.results[0]]

    def region(self, code: Code, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run a region under the current mask, and return what it yields. Raises `Rejection`."""
        frame = self.frame
        for place, argument in zip(code.arguments, arguments, strict=True):
            frame[place] = argument
        self.budget.spend(code, self.instruction)
        for call, operands, results, instruction, regions, _ in code.steps:
            self.instruction, self.regions = instruction, regions
            try:
                produced = call(self, *[frame[place] for place in operands])
            except NumericsFailure as failure:
                raise Rejection([failed(instruction, failure)]) from failure
            except MemoryError as error:
                raise UnsupportedConstruct("execute.more_memory", instruction.location) from error
            if type(produced) is tuple:
                for place, value in zip(results, produced, strict=True):
                    frame[place] = value
            elif results:
                frame[results[0]] = produced
        return tuple([frame[place] for place in code.results])

    def merged(self, condition: npt.NDArray[np.bool_], a: Any, b: Any) -> Any:
        """Return `a` in the lanes where the condition holds, `b` in the others; a fragment as a whole."""
        if not isinstance(a, Array):
            return a.merged(condition, b)
        chosen = condition
        a, b = self.program.alike(a, b)
        if a.rank == 3:
            chosen = by_warp(self, "the choice of a fragment", condition.astype(np.int64)).astype(bool)
        shape = (-1,) + (1,) * (a.rank - 1)
        return type(a)(a.dtype, np.where(chosen.reshape(shape), a.values, b.values))

    # Memory

    def allocate(self, memref: Memref) -> SharedStorage:
        """Return the shared memory of the running instruction."""
        assert self.instruction is not None
        storage = self.shared.get(self.instruction)
        if storage is None:
            name = f"%{self.instruction.results[0].name}"
            storage = self.shared[self.instruction] = SharedStorage(name, memref.dtype, memref.extents, self.clock)
        return storage

    def offsets(self, memory: Storage, indices: tuple[Array, ...]) -> Offsets:
        """Return the offset of the element at the indices, for each lane; of the first one without indices.

        Raises `OutOfBounds`.
        """
        total = np.zeros(self.lanes, np.int64)
        for index, extent, stride in zip(indices, memory.shape, memory.strides, strict=bool(indices)):
            outside = (index.values < 0) | (index.values >= extent)
            if np.count_nonzero(outside) and outside[self.active].any():
                lane = int(self.active[outside[self.active]][0])
                place = tuple(int(coordinate.values[lane]) for coordinate in indices)
                raise self.out_of_bounds(memory, self.thread(lane), place)
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
        """Return the error of an access outside a memory; a single index into several dimensions is an offset."""
        return OutOfBounds(who, Address(memory.name, indices), memory.shape)

    def load(self, memory: Storage, offsets: Offsets) -> Values:
        """Return the elements at the offsets, which lie in the memory, for each lane. Raises `KernelFault`."""
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
        """Return the numbers of the active warps. Raises `PartialWarp`, naming `what`, for one with inactive lanes."""
        return whole_warps(self, what)

    def shuffle(self, values: Values, delta: int, mask: int | None = None) -> Values:
        """Return to lane i the value of lane i + delta, its own beyond the warp (AMB-LANG-63). Raises `AbsentLane`."""
        return shuffled(self, values, delta, mask)


# The base of kernel operations, which run for all lanes of a block at once (spec sections 7 and 8.3).
#
# A scalar of a kernel has one value for each lane: an `Array` of shape [lanes]. A fragment is an `Array` of shape
# [warps, rows, columns], a memref the `Storage` that it refers to. Values in inactive lanes are arbitrary.


INDEX_TYPE = Scalar(dtype("int32"))
"""The type of every index."""


class KernelOperation(Operation):
    """An operation of Tile or Target IR, which only kernels contain."""

    is_total: ClassVar[bool] = False
    """True if its result depends on its operands alone, in every lane, and it cannot fail."""
    moved: ClassVar[tuple[int, ...]] = ()
    """The places of operands whose elements it moves or passes to the program's `product`, computing with none."""

    @property
    def short_name(self) -> str:
        """The name without the dialect of Tile IR; names of other dialects are whole."""
        return self.name.removeprefix("tessera.tile.")

    @abstractmethod
    def run(self, block: BlockState, *operands: Any) -> Any:
        """Return the result or results, if any, for the active lanes of the block. Raises `KernelFault`."""

    def execute(self, *operands: Any, **context: Any) -> Any:
        """Never called, since `run` executes it in a block."""
        raise TypeError(f"{self.name} runs in kernels")


def extents_of(kernel: Function, name: str) -> Place:
    """Return the `grid` or the `block` of a kernel, which the verifier has checked."""
    extents = kernel.attributes[name]
    assert isinstance(extents, tuple) and len(extents) == 3, "a kernel that was not verified"
    return int(extents[0]), int(extents[1]), int(extents[2])


def identity(operation: Operation) -> tuple[type[Operation], str]:
    """Return a key that is equal only for operations with the same bits, as == equates the constants -0.0 and 0.0."""
    return type(operation), repr(operation)


def require_indices(indices: tuple[Scalar, ...], places: int, optional: bool = False) -> None:
    """Require an int32 index for each place or, if `optional`, for none. Raises `Refusal`."""
    if len(indices) != places and (not optional or indices):
        message = f"{len(indices)} indices given"
        requirement = f"{places} of them" + (", or none for the beginning" if optional else "")
        raise Refusal("types", message, requirement, "LANG-11-01")
    for index in indices:
        if index != INDEX_TYPE:
            raise Refusal("types", f"an index is {index}, not int32", "int32 scalars", "LANG-11-01", "")
