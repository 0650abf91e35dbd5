"""Many blocks at once, as a fast path beside running one block after another (spec sections 8.1, 8.3).

Blocks of one kernel mostly do the same on different data. Here several blocks run in lockstep. A value that is the same
in all of them is stored once, `[lanes]`. One that differs is stored for all, `[blocks * lanes]`, the lanes of one block
after those of another. Addresses in shared memory are the same in all blocks, so that its access stamps are kept for
one block. An element of global memory is read by any number of blocks, or written once. Anything else raises
`Diverged`: masks, bounds or shared addresses that differ between blocks, and every fault. So do global elements that
are written twice or read as well as written. The launch then starts again with one block after another, which checks
and reports it. TESSERA_PLAIN_NUMERICS=1 disables lockstep; `tests/tile/test_lockstep.py` holds both to the same bits
and faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..ir.operation import Instruction
from ..ir.targets import Target
from ..ir.types import Memref, Pointer
from ..numerics.array import Array
from ..numerics.formats import DType
from .block import INDEX_DTYPE, BlockState, Budget, Call, Code, Mask, Program, Step, identity
from .storage import PENDING, Clock, GlobalStorage, KernelFault, Offsets, Place, SharedStorage, Storage, Values, Who


class Diverged(KernelFault):
    """The blocks do not run in lockstep."""


class LockstepShared(SharedStorage):
    """Shared memory of several blocks, `values` [blocks, size], with the access stamps of one."""

    def __init__(self, name: str, dtype: DType, shape: tuple[int, ...], clock: Clock, blocks: int) -> None:
        super().__init__(name, dtype, shape, clock)
        self.blocks = blocks
        self.values = np.zeros((blocks, self.size), dtype.carrier)

    def read(self, at: Offsets, who: Offsets) -> Values:
        """Return the elements of each block. Raises `KernelFault`."""
        _require_same(at, who)
        self.note_read(at, who)
        return self.values.take(at, axis=1).reshape(-1, *at.shape[1:])

    def write(self, at: Offsets, who: Offsets, values: Values) -> None:
        """Write elements of each block. Raises `KernelFault`."""
        self._write(at, who, values, self.clock.base)

    def begin_copy(self, at: Offsets, who: Offsets, values: Values) -> None:
        """Write elements of each block that are not visible before `finish_copy`. Raises `KernelFault`."""
        self._write(at, who, values, PENDING)

    def _write(self, at: Offsets, who: Offsets, values: Values, base: int) -> None:
        _require_same(at, who)
        self._claim(at, who, base)
        self.values[:, at] = values.reshape(-1, *at.shape)


class LockstepGlobal(GlobalStorage):
    """Memory of all blocks, which records for each element only whether it was read or written."""

    EMPTY, INITIAL, READ, WRITTEN = range(4)

    def __init__(
        self, name: str, dtype: DType, shape: tuple[int, ...], clock: Clock, initial: Array | None, noted: bool
    ) -> None:
        super().__init__(name, dtype, shape, clock, initial, noted=False)
        self.noted = noted
        self.state = np.full(self.size if noted else 0, self.EMPTY if initial is None else self.INITIAL, np.uint8)
        self.writes = 0

    def read(self, at: Offsets, who: Offsets) -> Values:
        """Return the elements, none of which this launch has written. Raises `Diverged`."""
        if self.noted:
            if np.count_nonzero(self.state[at] % self.WRITTEN == 0):
                raise Diverged
            self.state[at] = self.READ
        return self.values[at]

    def write(self, at: Offsets, who: Offsets, values: Values) -> None:
        """Write elements that this launch has neither read nor written. Raises `Diverged`."""
        if at.shape[0] == who.shape[0] or np.count_nonzero(self.state[at] >= self.READ):
            raise Diverged
        self.state[at] = self.WRITTEN
        self.writes += at.size
        self.values[at.reshape(-1, *values.shape)] = values

    def require_written(self) -> None:
        """Raise `Diverged` for a double write, and for an unwritten element of uninitialised memory."""
        if self.noted and (
            np.count_nonzero(self.state == self.WRITTEN) != self.writes or np.count_nonzero(self.state == self.EMPTY)
        ):
            raise Diverged


def _require_same(at: Offsets, who: Offsets) -> None:
    if at.shape[0] != who.shape[0]:
        raise Diverged


class AllLanes(BlockState):
    """The lanes of several blocks one after another, for operations whose operands differ between blocks."""

    def __init__(self, program: Program, target: Target, grid: Place, extents: Place, blocks: int) -> None:
        super().__init__(program, target, grid, extents, Budget(0))
        self.lanes *= blocks
        self.warps *= blocks
        self.active = self.every_lane = np.arange(self.lanes, dtype=np.int64)

    def thread(self, lane: int) -> Who:
        """Raise `Diverged`, since only faults name a thread."""
        raise Diverged


class LockstepState(BlockState):
    """Several blocks as if they were one; `every` has the lanes of all of them."""

    global_memory: type[GlobalStorage] = LockstepGlobal

    def __init__(
        self, program: Program, target: Target, grid: Place, extents: Place, budget: Budget, numbers: Sequence[int]
    ) -> None:
        super().__init__(program, target, grid, extents, budget)
        self.blocks = len(numbers)
        self.every = AllLanes(program, target, grid, extents, self.blocks)
        super().begin(numbers[0])
        places = zip(*map(self.clock.place_of, numbers), strict=True)
        self.position: Any = tuple(along[0] if len(set(along)) == 1 else along for along in places)

    def holding(self, values: Values) -> BlockState:
        """Return this state for values that are the same in all blocks, else that of all lanes."""
        return self if values.shape[0] == self.lanes else self.every

    def uniform(self, number: Any, dtype: DType = INDEX_DTYPE) -> Array:
        """Return one number in all lanes, or one for each block."""
        if isinstance(number, tuple):
            along = np.broadcast_to(np.array(number, dtype.carrier)[:, None], (self.blocks, self.lanes))
            return Array(dtype, along.reshape(-1))
        return Array(dtype, np.broadcast_to(np.asarray(number, dtype.carrier), self.lanes))

    @contextmanager
    def under(self, condition: npt.NDArray[np.bool_], outer: Mask) -> Iterator[None]:
        """Make only the lanes of `outer` active where the condition holds, in each block."""
        with super().under(condition, outer), self.every.under(self.tiled(condition), self.every.mask):
            yield

    def of_active(self, values: Values) -> Values:
        holder = self.holding(values)
        return super().of_active(values) if holder is self else holder.of_active(values)

    def spread(self, values: Values) -> Values:
        return super().spread(values) if len(values) == self.active.size else self.every.spread(values)

    def whole_warps(self, what: str) -> Offsets:
        """Return the numbers of all warps. Raises `Diverged` where some lanes are inactive."""
        if self.mask is not None:
            raise Diverged
        return super().whole_warps(what)

    def require_within(self, memory: Storage, offsets: Offsets, count: int = 1) -> None:
        """Raise `OutOfBounds` or `Diverged` unless `count` elements from the offset of each lane lie in the memory."""
        BlockState.require_within(self.holding(offsets), memory, offsets, count)

    def require_aligned(self, memory: Storage, offsets: Offsets, alignment: int, lanes: Offsets) -> None:
        """Raise `Diverged` unless the elements begin at multiples of `alignment` bytes."""
        if np.count_nonzero(offsets * memory.dtype.storage_bytes % alignment):
            raise Diverged

    def merged(self, condition: npt.NDArray[np.bool_], a: Any, b: Any) -> Any:
        """Return `a` in the lanes where the condition holds, `b` in the others."""
        if self.differs(a) or self.differs(b):
            return self.every.merged(self.tiled(condition), self.widened(a), self.widened(b))
        return super().merged(condition, a, b)

    def allocate(self, memref: Memref) -> SharedStorage:
        assert self.instruction is not None
        if self.instruction not in self.shared:
            shared = LockstepShared("", memref.dtype, memref.extents, self.clock, self.blocks)
            self.shared[self.instruction] = shared
        return self.shared[self.instruction]

    def offsets(self, memory: Storage, indices: tuple[Array, ...]) -> Offsets:
        if not any(map(self.differs, indices)):
            return super().offsets(memory, indices)
        if isinstance(memory, LockstepShared):
            raise Diverged
        return self.every.offsets(memory, tuple(map(self.widened, indices)))

    # Values that differ between blocks

    def differs(self, value: Any) -> bool:
        """True if a value is stored for all blocks."""
        if isinstance(value, Array):
            shape = value.values.shape
            return bool(shape[0] != (self.warps if len(shape) == 3 else self.lanes))
        return not isinstance(value, Storage) and bool(value.bytes.shape[0] != self.lanes)

    def widened(self, value: Any) -> Any:
        """Return a value as one that is stored for all blocks."""
        if isinstance(value, Storage) or self.differs(value):
            return value
        if not isinstance(value, Array):
            return replace(value, bytes=self.tiled(value.bytes))
        values = value.values
        if values.strides == (0,):
            return type(value)(value.dtype, np.broadcast_to(values[0], self.every.lanes))
        return type(value)(value.dtype, self.tiled(values))

    def tiled(self, values: Values) -> Values:
        """Return the values of one block's lanes, repeated for each block."""
        return np.broadcast_to(values, (self.blocks, *values.shape)).reshape(-1, *values.shape[1:])

    def agreed(self, value: Array) -> Array:
        """Return a scalar as one that is the same in all blocks. Raises `Diverged`."""
        rows = value.values.reshape(self.blocks, -1)
        if np.count_nonzero(rows != rows[0]):
            raise Diverged
        return type(value)(value.dtype, rows[0])


MOST_TURNS = 16
"""The most turns of a loop that are written one after another, so that their addresses are computed once, before it."""


def in_lockstep(program: Program) -> Program:
    """Return the program for `LockstepState`, in which every call receives operands and a state that fit each other.

    A computation that depends on its operands alone is done once, where the last of them is known, as before a loop.
    """
    placement = _Placement(program.places)
    code = placement.of(program.code)
    return replace(program, code=code, places=placement.places)


class _Placement:
    """The places of computations; `levels` has the depth of regions at which each slot is written."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.levels: dict[int, int] = {}
        self.same: dict[int, int] = {}
        self.numbers: dict[int, int] = {}
        self.indices: dict[int, int] = {}
        self.open: list[tuple[list[Step], dict[Any, Step]]] = []
        self.costs: list[int] = []

    def of(self, code: Code) -> Code:
        """Return the code of a region inside those that are open."""
        depth = len(self.open)
        steps: list[Step] = []
        self.open.append((steps, {}))
        self.costs.append(code.cost)
        self.levels.update(dict.fromkeys(code.arguments, depth))
        for step in code.steps:
            self.put(step._replace(operands=self.current(step.operands)), depth)
        self.open.pop()
        return replace(code, steps=tuple(steps), results=self.current(code.results), cost=self.costs.pop())

    def unrolled(self, step: Step, depth: int) -> bool:
        """Put the body of a short loop without carried values once for each index, if its bounds are constants."""
        bounds = [self.numbers.get(slot, 0) for slot in step.operands]
        turns = range(*bounds) if len(bounds) == 3 and bounds[2] else range(0)
        bodies = step.regions if step.instruction.operation.regions == ("body",) else ()
        if not 0 < len(turns) <= MOST_TURNS or not bodies or any(inner.regions for inner in bodies[0].steps):
            return False
        for index in turns:
            self.costs[-1] += bodies[0].cost
            slots = {bodies[0].arguments[0]: self.index(index, step)}
            for inner in bodies[0].steps:
                operands = self.current(tuple([slots.get(slot, slot) for slot in inner.operands]))
                slots.update({slot: self.places + place for place, slot in enumerate(inner.results)})
                self.places += len(inner.results)
                results = tuple([slots[slot] for slot in inner.results])
                self.put(inner._replace(operands=operands, results=results), depth)
        return True

    def index(self, number: int, loop: Step) -> int:
        """Return the slot of an index of a loop."""
        if number not in self.indices:
            self.indices[number], self.places = self.places, self.places + 1
            uniform = loop._replace(call=lambda block: block.uniform(number), operands=(), regions=(), is_total=True)
            self.open[0][0].append(uniform._replace(results=(self.indices[number],)))
            self.levels[self.indices[number]] = 0
        return self.indices[number]

    def current(self, slots: tuple[int, ...]) -> tuple[int, ...]:
        """Return the slots, or those with the same values that were written first."""
        return tuple([self.same.get(slot, slot) for slot in slots])

    def put(self, step: Step, depth: int) -> None:
        """Put a step at a depth, or further out; nowhere if its results exist already."""
        if step.regions and self.unrolled(step, depth):
            return
        if step.is_total:
            depth = max((self.levels.get(slot, 0) for slot in step.operands), default=0)
        steps, steps_by_form = self.open[depth]
        first = step
        if step.is_total:
            first = steps_by_form.setdefault((identity(step.instruction.operation), step.operands), step)
        if first is not step:
            self.same.update(zip(step.results, first.results, strict=True))
            return
        self.levels.update(dict.fromkeys(step.results, depth))
        number = getattr(step.instruction.operation, "value", None)
        if type(number) is int:
            self.numbers[step.results[0]] = number
        if step.regions:
            step = step._replace(call=_control(step.call), regions=tuple(map(self.of, step.regions)))
        elif step.operands and not _accesses(step.instruction):
            step = step._replace(call=_computation(step.call))
        steps.append(step)


def _accesses(instruction: Instruction) -> bool:
    """True if an instruction accesses memory, which itself detects differences between blocks."""
    inputs, outputs = ([value.type for value in values] for values in (instruction.operands, instruction.results))
    return any(isinstance(type_, Memref | Pointer) for type_ in inputs) and Pointer not in map(type, outputs)


def _computation(call: Call) -> Call:
    """Return a call in the lanes of all blocks if an operand differs between them, else in those of one."""

    def run(block: LockstepState, *operands: Any) -> Any:
        for operand in operands:
            if block.differs(operand):
                break
        else:
            return call(block, *operands)
        block.every.instruction = block.instruction
        return call(block.every, *map(block.widened, operands))

    return run


def _control(call: Call) -> Call:
    """Return a call whose conditions and bounds, its first three operands at most, must be the same in all blocks."""

    def run(block: LockstepState, *operands: Any) -> Any:
        first = [block.agreed(value) if block.differs(value) else value for value in operands[:3]]
        return call(block, *first, *operands[3:])

    return run
