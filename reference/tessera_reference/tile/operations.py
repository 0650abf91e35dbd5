"""Operations of Tile IR: indices, memory, copies, synchronization, control flow (spec section 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graph.control import Choice, Counting, ZeroStep
from ..ir.operation import Attribute, Operand, Operands, Refusal, Stated, operation
from ..ir.types import Memref, Scalar, Type, is_unknown
from ..kernel_machine.block import INDEX_TYPE, BlockState, KernelOperation, require_indices
from ..kernel_machine.storage import NotUniform, Storage
from ..numerics import arithmetic
from ..numerics.array import Array
from ..numerics.formats import DTYPES

# The position of a thread: its block in the grid, its place in the block, and its lane (section 8.1; AMB-LANG-63).
#
# Threads are numbered with x fastest; consecutive threads, as many as the target's warp has lanes, form a warp.


AXES = ("x", "y", "z")

_CLAUSES = ("LANG-08.1-07", "LANG-08.1-08", "LANG-08.2-03")


@dataclass(frozen=True)
class AlongAxis(KernelOperation):
    """A number for one of the axes x, y and z."""

    axis: Attribute[str]

    is_total = True

    def infer(self) -> Scalar:
        if self.axis not in AXES:
            raise Refusal("types", f"there is no axis {self.axis!r}", "x, y or z", "LANG-11-01")
        return INDEX_TYPE

    @property
    def position(self) -> int:
        """The axis as a number."""
        return AXES.index(self.axis)


@operation("tessera.tile.block_id", clauses=_CLAUSES)
class BlockId(AlongAxis):
    """The place of the block in the grid."""

    def run(self, block: BlockState) -> Array:
        return block.uniform(block.position[self.position])


@operation("tessera.tile.thread_id", clauses=_CLAUSES)
class ThreadId(AlongAxis):
    """The place of the thread in its block."""

    def run(self, block: BlockState) -> Array:
        return block.threads[self.position]


@operation("tessera.tile.block_dim", clauses=_CLAUSES)
class BlockDim(AlongAxis):
    """The extent of the block."""

    def run(self, block: BlockState) -> Array:
        return block.uniform(block.extents[self.position])


@operation("tessera.tile.grid_dim", clauses=_CLAUSES)
class GridDim(AlongAxis):
    """The extent of the grid."""

    def run(self, block: BlockState) -> Array:
        return block.uniform(block.grid[self.position])


@operation("tessera.tile.lane_id", clauses=("LANG-07.2-06", "LANG-08.2-03"))
class LaneId(KernelOperation):
    """The place of the thread in its warp."""

    def infer(self) -> Scalar:
        return INDEX_TYPE

    def run(self, block: BlockState) -> Array:
        return Array(INDEX_TYPE.dtype, (block.every_lane % block.warp).astype(np.int32))


@operation("tessera.tile.warp_id", clauses=("LANG-08.2-03",))
class WarpId(KernelOperation):
    """The number of the warp in its block."""

    def infer(self) -> Scalar:
        return INDEX_TYPE

    def run(self, block: BlockState) -> Array:
        return Array(INDEX_TYPE.dtype, (block.every_lane // block.warp).astype(np.int32))


# Complex numbers of a lane: `tessera.tile.part` takes their parts, `tessera.tile.complex` joins them (section 7).
#
# Graph IR needs no such operations: a computation by component, such as a mean, is one operation there, and several
# steps in a kernel. The names are ours (AMB-LANG-240).


PARTS = ("real", "imaginary")


@operation("tessera.tile.part", clauses=("LANG-08.2-03",))
class Part(KernelOperation):
    """The real or the imaginary part of a complex number."""

    x: Operand[Scalar]
    which: Attribute[str]

    def infer(self) -> Scalar:
        if self.which not in PARTS:
            raise Refusal("types", f"there is no part {self.which!r}", " or ".join(PARTS), "LANG-11-01")
        if self.x.dtype.kind != "complex":
            raise Refusal("types", f"is not defined on {self.x.dtype}", "a complex dtype", "LANG-11-01")
        return Scalar(self.x.dtype.component)

    def run(self, block: BlockState, x: Array) -> Array:
        return Array(x.dtype.component, arithmetic.parts(x.values)[PARTS.index(self.which)])


@operation("tessera.tile.complex", clauses=("LANG-08.2-03",))
class Complex(KernelOperation):
    """The complex number with these two parts."""

    real: Operand[Scalar]
    imaginary: Operand[Scalar]

    def infer(self) -> Scalar:
        if self.real != self.imaginary or self.real.dtype.name not in _WHOLE:
            message = f"the parts are {self.real} and {self.imaginary}"
            raise Refusal("types", message, "both fp32 or both fp64", "LANG-11-01")
        return Scalar(DTYPES[_WHOLE[self.real.dtype.name]])

    def run(self, block: BlockState, real: Array, imaginary: Array) -> Array:
        whole = DTYPES[_WHOLE[real.dtype.name]]
        return Array(whole, arithmetic.join(real.values, imaginary.values))


_WHOLE = {"fp32": "complex64", "fp64": "complex128"}

# Memory that a kernel reads and writes: load, store and shared allocations (spec sections 7.1, 7.2, 8.3).


def require_known(memory: Memref) -> None:
    """Require that every extent of memory is a number, as at Tile IR. Raises `Refusal`."""
    if any(not isinstance(dim, int) for dim in memory.shape):
        message = f"{memory} has {'unknown' if any(map(is_unknown, memory.shape)) else 'named'} dimensions"
        requirement = "extents that are numbers"
        remedy = "specialize the function to the shapes that it runs on"
        raise Refusal("shapes", message, requirement, "LANG-11-02", remedy)


@operation("tessera.tile.load", clauses=("LANG-08.3-01",))
class Load(KernelOperation):
    """The element at the indices, for each lane its own."""

    memory: Operand[Memref]
    indices: Operands[Scalar]

    def infer(self) -> Scalar:
        require_indices(self.indices, len(self.memory.shape))
        return Scalar(self.memory.dtype)

    def run(self, block: BlockState, memory: Storage, *indices: Array) -> Array:
        return Array(memory.dtype, block.load(memory, block.offsets(memory, indices)))


@operation("tessera.tile.store", clauses=("LANG-08.3-01",))
class Store(KernelOperation):
    """Writes the element at the indices, each lane its own."""

    value: Operand[Scalar]
    memory: Operand[Memref]
    indices: Operands[Scalar]

    effects = frozenset({"memory"})
    moved = (0,)

    def infer(self) -> None:
        """Return no types; nothing is cast."""
        require_indices(self.indices, len(self.memory.shape))
        if self.value.dtype != self.memory.dtype:
            message = f"the value is {self.value}, the memory {self.memory}"
            raise Refusal("types", message, "one dtype", "LANG-03.1-05", "cast the value: tessera.graph.cast")

    def run(self, block: BlockState, value: Array, memory: Storage, *indices: Array) -> None:
        block.store(memory, block.offsets(memory, indices), value.values)


@operation("tessera.tile.shared.alloc", clauses=("LANG-07.2-01", "LANG-08.2-04"))
class SharedAlloc(KernelOperation):
    """Shared memory of the block, for as long as it runs, uninitialised; aligned to 16 bytes (AMB-LANG-200)."""

    returns: Stated[Memref]

    effects = frozenset({"memory"})

    def infer(self) -> Memref:
        if self.returns.space != "shared":
            raise Refusal("types", f"it allocates {self.returns}", "a memref in addrspace=shared", "LANG-07.2-01")
        require_known(self.returns)
        return self.returns

    def run(self, block: BlockState) -> Storage:
        return block.allocate(self.returns)


# Asynchronous copies from global to shared memory (spec section 7.2; AMB-LANG-64, AMB-LANG-201).
#
# A copy belongs to the group that its thread commits next. A wait makes finished groups visible to the thread that
# copied, a barrier after it to the other threads. A barrier alone finishes copies that are in no group.


SIZES = (4, 8, 16)
"""The numbers of bytes that one copy may move."""


@operation("tessera.tile.cp.async", clauses=("LANG-07.2-04", "LANG-08.2-04"))
class CopyAsync(KernelOperation):
    """Each lane copies `bytes` contiguous bytes, aligned to their number, from global to shared memory.

    The indices are those of the source, then those of the destination; without any, both begin at the first element.
    Section 7.2 names a result; no operation takes it, so that it is no value (AMB-LANG-280).
    """

    source: Operand[Memref]
    destination: Operand[Memref]
    indices: Operands[Scalar]
    bytes: Attribute[int]

    effects = frozenset({"memory"})
    handle = True

    def infer(self) -> None:
        source, destination = self.source, self.destination
        if (source.space, destination.space) != ("global", "shared"):
            message = f"it copies from {source.space} to {destination.space} memory"
            raise Refusal("types", message, "from global to shared memory", "LANG-07.2-04")
        if source.dtype != destination.dtype:
            raise Refusal("types", f"it copies {source.dtype} to {destination.dtype}", "one dtype", "LANG-03.1-05")
        require_indices(self.indices, len(source.shape) + len(destination.shape), optional=True)
        size = source.dtype.storage_bytes
        if self.bytes not in SIZES or self.bytes % size != 0:
            message = f"it copies {self.bytes} bytes of elements of {size}"
            raise Refusal("tile", message, "4, 8 or 16 bytes, whole elements", "LANG-07.2-04")

    def run(self, block: BlockState, source: Storage, destination: Storage, *indices: Array) -> None:
        rank = len(self.source.shape) if indices else 0
        begin = block.offsets(source, indices[:rank])
        end = block.offsets(destination, indices[rank:])
        block.copy(source, begin, destination, end, self.bytes)


@dataclass(frozen=True)
class GroupCommit(KernelOperation):
    """Closes each thread's group of the copies that it has begun since its last commit, in Tile and Target IR."""

    effects = frozenset({"memory"})

    def infer(self) -> None:
        pass

    def run(self, block: BlockState) -> None:
        block.copies.commit(block)


@operation("tessera.tile.cp.async.commit", clauses=("LANG-07.2-04",))
class CopyCommit(GroupCommit):
    """Closes each thread's group of the copies that it has begun since its last commit."""


@operation("tessera.tile.cp.async.wait", clauses=("LANG-07.2-04",))
class CopyWait(KernelOperation):
    """Waits until at most `pending` of the thread's newest groups are unfinished."""

    pending: Attribute[int] = 0

    effects = frozenset({"memory"})

    def infer(self) -> None:
        if self.pending < 0:
            raise Refusal("types", f"pending is {self.pending}", "at least 0", "LANG-07.2-04")

    def run(self, block: BlockState) -> None:
        block.copies.wait(block, self.pending)


# Synchronization: the barrier of a block, the shuffle of a warp (sections 7.2, 8.3; AMB-LANG-31, -63, -84).


WIDEST = (1 << 64) - 1
"""A mask of as many lanes as the widest warp has."""


@dataclass(frozen=True)
class BlockBarrier(KernelOperation):
    """Base of the barriers of Tile and Target IR."""

    effects = frozenset({"barrier"})

    def infer(self) -> None:
        pass

    def run(self, block: BlockState) -> None:
        """Let all threads of the block arrive. Raises `PartialBarrier` where some do not."""
        block.barrier()


@operation("tessera.tile.barrier", clauses=("LANG-07.2-05", "LANG-08.3-02", "LANG-08.3-03"))
class Barrier(BlockBarrier):
    """A barrier of the block: all accesses before it happen before all accesses after it."""

    label: Attribute[str] = ""


@operation("tessera.tile.shfl.sync", clauses=("LANG-07.2-06",))
class ShuffleSync(KernelOperation):
    """Lane i reads the value of lane i + delta of its warp, its own beyond the end; both are active and in the mask.

    Without a mask every lane of the warp is in it.
    """

    value: Operand[Scalar]
    delta: Attribute[int]
    mask: Attribute[int | None] = None

    moved = (0,)

    def infer(self) -> Scalar:
        if self.delta < 0:
            raise Refusal("types", f"delta is {self.delta}", "at least 0", "LANG-07.2-06")
        if self.mask is not None and not 0 <= self.mask <= WIDEST:
            raise Refusal("types", f"the mask is {self.mask}", "a bit for each lane of a warp", "LANG-07.2-06")
        return self.value

    def run(self, block: BlockState, value: Array) -> Array:
        return Array(value.dtype, block.shuffle(value.values, self.delta, self.mask))


# Control flow of a kernel: counted loops, the same for all threads of a block, and branches under a mask (section 7).
#
# The names are ours. A region runs at once for all lanes that take it; the others are inactive in it.


def _refuse_memory(types: tuple[Type, ...]) -> None:
    """Refuse memrefs as results of control flow, since every access names its memory statically."""
    for type_ in types:
        if isinstance(type_, Memref):
            message = f"a region hands on {type_}"
            raise Refusal("types", message, "values other than memory", "LANG-11-01", "choose the indices instead")


@operation("tessera.tile.for", clauses=("LANG-08.2-03", "LANG-01-06"))
class For(Counting, KernelOperation):
    """Counts from start to stop, excluded, by step; the region takes the int32 index and the carried values.

    Start, stop and step are the same in all active lanes; a step of zero is an error (AMB-LANG-29).
    """

    def infer(self) -> tuple[Type, ...]:
        _refuse_memory(self.carried)
        return super().infer()

    def run(self, block: BlockState, start: Array, stop: Array, step: Array, *carried: Any) -> tuple[Any, ...]:
        (body,) = block.regions
        bounds = (("start", start), ("stop", stop), ("step", step))
        first, end, stride = (_uniform(block, name, bound) for name, bound in bounds)
        if stride == 0:
            raise ZeroStep
        turns = range(first, end, stride)
        block.budget.require(len(turns), body, block.instruction)
        for index in turns:
            carried = block.region(body, (block.uniform(index), *carried))
        return carried


def _uniform(block: BlockState, name: str, bound: Array) -> int:
    """Return the value of a bound, the same in every active lane. Raises `NotUniform`."""
    values = block.of_active(bound.values)
    differing = (values != values[0]).nonzero()[0]
    if differing.size:
        raise NotUniform(name, int(values[0]), int(values[differing[0]]), block.thread(block.active[differing[0]]))
    return int(values[0])


@operation("tessera.tile.if", clauses=("LANG-08.2-03", "LANG-01-06"))
class If(Choice, KernelOperation):
    """Runs `then` in the lanes where the condition holds, `otherwise` in the others."""

    def infer(self) -> tuple[Type, ...]:
        _refuse_memory(self.returns)
        return super().infer()

    def run(self, block: BlockState, condition: Array) -> tuple[Any, ...]:
        """Run both regions, each under its mask, or the one that all active lanes take."""
        then, otherwise = block.regions
        count = np.count_nonzero(block.of_active(condition.values))
        if count == block.active.size:
            return block.region(then, ())
        if not count:
            return block.region(otherwise, ())
        outer = block.mask
        with block.under(condition.values, outer):
            first = block.region(then, ())
        with block.under(~condition.values, outer):
            second = block.region(otherwise, ())
        return tuple(block.merged(condition.values, a, b) for a, b in zip(first, second, strict=True))
