"""Matrix instructions of a warp, and the fragments that they work on (spec sections 7.1 to 7.3; AMB-LANG-34)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..ir.operation import Attribute, Function, Instruction, Operand, Operands, Refusal, Stated, derived, operation
from ..ir.types import Fragment, Memref, Scalar, Value
from ..kernel_machine.block import BlockState, FragmentUse, KernelOperation, by_warp, require_indices
from ..kernel_machine.storage import Address, Misaligned, Offsets, OutOfBounds, Storage, Values
from ..numerics.array import Array
from ..numerics.formats import DType
from .operations import For

# Matrices in memory as warps read and write them: one corner for each warp, rows a stride apart (section 7.2).


def load_matrices(block: BlockState, memory: Storage, corners: Offsets, shape: tuple[int, int], stride: int) -> Values:
    """Return a matrix for each warp, [warps, rows, columns]; zeros for inactive warps. Raises `KernelFault`."""
    warps = block.whole_warps("a matrix")
    at = _elements(block, memory, corners, warps, shape, stride)
    read = memory.read(at, block.clock.of_warps(warps)[:, None, None])
    if warps.size == block.warps:
        return read
    values = np.zeros((block.warps, *shape), read.dtype)
    values[warps] = read
    return values


def store_matrices(block: BlockState, memory: Storage, corners: Offsets, values: Values) -> None:
    """Write the matrix of each active warp. Raises `KernelFault`."""
    warps = block.whole_warps("a matrix")
    at = _elements(block, memory, corners, warps, (values.shape[1], values.shape[2]), memory.shape[-1])
    written = values if warps.size == block.warps else values[warps]
    memory.write(at, block.clock.of_warps(warps)[:, None, None], written)


def require_aligned(block: BlockState, memory: Storage, corners: Offsets, alignment: int) -> None:
    """Raise `Misaligned` unless the corner of each active warp lies at a multiple of `alignment` bytes."""
    warps = block.whole_warps("a matrix")
    begin = corners[warps] * memory.dtype.storage_bytes
    odd = begin % alignment != 0
    if odd.any():
        warp = int(warps[odd][0])
        raise Misaligned(block.clock.warp(warp), memory.address(int(corners[warp])), int(begin[odd][0]), alignment)


def _elements(
    block: BlockState, memory: Storage, corners: Offsets, warps: Offsets, shape: tuple[int, int], stride: int
) -> Offsets:
    """Return the offsets of all elements. Raises `OutOfBounds`.

    With the memory's own stride, a matrix must lie within its rows and columns; with another one, within the memory.
    """
    at = corners[warps, None, None] + _pattern(*shape, stride)
    outside = at[:, -1, -1] >= memory.size
    if stride == memory.shape[-1]:
        outside |= corners[warps] % stride + shape[1] > stride
        outside |= corners[warps] // stride % memory.shape[-2] + shape[0] > memory.shape[-2]
    if outside.any():
        warp = int(warps[outside][0])
        *batch, row, column = memory.address(int(corners[warp])).indices
        last = Address(memory.name, (*batch, row + shape[0] - 1, column + shape[1] - 1))
        raise OutOfBounds(block.clock.warp(warp), last, memory.shape)
    return np.asarray(at)


@cache
def _pattern(rows: int, columns: int, stride: int) -> Offsets:
    """Return the offsets of a matrix from its corner."""
    offsets = np.arange(rows)[:, None] * stride + np.arange(columns)
    offsets.flags.writeable = False
    return offsets


# Matrix instructions of a warp: ldmatrix, mma.sync, and the start and end of an accumulation (spec sections 7.1, 7.2).
#
# A fragment type names m, n, k and the dtype of the operands. Its use determines whether a fragment is A, m by k, B, k
# by n, or the accumulator, m by n in another dtype (AMB-LANG-34, AMB-LANG-65).


ALIGNMENT = 16
"""The alignment in bytes of each row that ldmatrix reads (LANG-07.3-01, LANG-16-05, LANG-16-06; AMB-LANG-36)."""


def _require_accumulator(accum: DType, fragment: Fragment) -> None:
    canonical = fragment.dtype.accumulator
    if accum.kind != canonical.kind or accum.storage_bytes < min(2, canonical.storage_bytes):
        message = f"{fragment.dtype} does not accumulate in {accum}"
        requirement = f"{canonical}, or another {canonical.kind} dtype of at least 16 bits"
        raise Refusal("numerics", message, requirement, "LANG-07.2-03")


@operation("tessera.tile.ldmatrix", clauses=("LANG-07.2-02", "LANG-07.3-01"))
class LoadMatrix(KernelOperation):
    """The matrix whose corner is at the indices, which are the same in all lanes of a warp; each warp has its own.

    `stride` counts elements from row to row. Transposed, the fragment's columns are the rows in memory.
    """

    memory: Operand[Memref]
    indices: Operands[Scalar]
    returns: Stated[Fragment]
    transpose: Attribute[bool] = False
    stride: Attribute[int] = derived(lambda self: self.memory.shape[-1] if self.memory.shape else 1)

    def infer(self) -> Fragment:
        """Return the fragment; its dtype is that of the memory or, for an accumulator, that of the accumulation."""
        memory, dtype = self.memory, self.returns.dtype
        if memory.space != "shared":
            message = f"it reads {memory}"
            requirement = "a memref in addrspace=shared"
            raise Refusal("types", message, requirement, "LANG-07.2-02", "stage the tile in shared memory")
        if memory.dtype not in (dtype, dtype.accumulator):
            raise Refusal("types", f"it reads {memory.dtype} into {self.returns}", f"memory of {dtype}", "LANG-11-01")
        if len(memory.shape) < 2:
            raise Refusal("shapes", f"{memory} has no rows", "at least two dimensions", "LANG-07.2-02")
        require_indices(self.indices, len(memory.shape), optional=True)
        if self.stride < 1 or self.stride * memory.dtype.storage_bytes % ALIGNMENT != 0:
            message = f"rows of {memory.dtype} lie {self.stride} elements apart"
            requirement = f"rows that begin at multiples of {ALIGNMENT} bytes"
            raise Refusal("tile", message, requirement, "LANG-07.3-01", "pad the rows of the shared tile")
        return self.returns

    def run(self, block: BlockState, memory: Storage, *indices: Array) -> Array:
        rows, columns = block.use_of_result.shape(self.returns)
        corners = by_warp(block, "the corner of ldmatrix", block.offsets(memory, indices))
        require_aligned(block, memory, corners, ALIGNMENT)
        shape = (columns, rows) if self.transpose else (rows, columns)
        values = load_matrices(block, memory, corners, shape, self.stride)
        return Array(memory.dtype, values.swapaxes(-1, -2) if self.transpose else values)


@operation("tessera.tile.fragment.zero", clauses=("LANG-07.2-03",))
class FragmentZero(KernelOperation):
    """An accumulator of zeros."""

    returns: Stated[Fragment]
    accum: Attribute[DType] = derived(lambda self: self.returns.dtype.accumulator)

    def infer(self) -> Fragment:
        _require_accumulator(self.accum, self.returns)
        return self.returns

    def run(self, block: BlockState) -> Array:
        """Return +0 everywhere."""
        return Array(self.accum, np.zeros((block.warps, self.returns.m, self.returns.n), self.accum.carrier))


@operation("tessera.tile.mma.sync", clauses=("LANG-07.2-03", "LANG-07.3-02", "LANG-11-10"))
class MmaSync(KernelOperation):
    """A times B added to C, a left fold over ascending k; each product and each sum is rounded to `accum`."""

    a: Operand[Fragment]
    b: Operand[Fragment]
    c: Operand[Fragment]
    m: Attribute[int]
    n: Attribute[int]
    k: Attribute[int]
    accum: Attribute[DType] = derived(lambda self: self.c.dtype.accumulator)

    moved = (0, 1, 2)

    def infer(self) -> Fragment:
        if not self.a == self.b == self.c:
            message = f"the fragments are {self.a}, {self.b} and {self.c}"
            raise Refusal("types", message, "three fragments of one type", "LANG-07.2-03")
        stated, actual = (self.m, self.n, self.k), (self.c.m, self.c.n, self.c.k)
        if stated != actual:
            message = f"m, n and k are {', '.join(map(str, stated))}, the fragments {self.c}"
            raise Refusal("shapes", message, "the m, n and k of the fragments", "LANG-07.2-03")
        _require_accumulator(self.accum, self.c)
        return self.c

    def run(self, block: BlockState, a: Array, b: Array, c: Array) -> Array:
        block.whole_warps("mma.sync")
        return block.program.product(a, b, self.accum, addend=c, accumulator=self.accum)


@operation("tessera.tile.fragment.store", clauses=("LANG-07.2-03", "LANG-08.3-01"))
class FragmentStore(KernelOperation):
    """Writes an accumulator as a matrix whose corner is at the indices, the same in all lanes of a warp."""

    fragment: Operand[Fragment]
    memory: Operand[Memref]
    indices: Operands[Scalar]

    effects = frozenset({"memory"})
    moved = (0,)

    def infer(self) -> None:
        if len(self.memory.shape) < 2:
            raise Refusal("shapes", f"{self.memory} has no rows", "at least two dimensions", "LANG-11-01")
        require_indices(self.indices, len(self.memory.shape), optional=True)

    def run(self, block: BlockState, fragment: Array, memory: Storage, *indices: Array) -> None:
        corners = by_warp(block, "the corner of fragment.store", block.offsets(memory, indices))
        store_matrices(block, memory, corners, fragment.values)


# The use of each fragment of a kernel: A, B or an accumulator, and the dtype of its sums (AMB-LANG-34, -65).
#
# Fragments that loops and branches pass on are one fragment, so that any use determines all of them.


@dataclass(frozen=True)
class Clash:
    """An instruction uses a fragment in a second role."""

    instruction: Instruction
    uses: tuple[FragmentUse, FragmentUse]


def fragment_uses(function: Function) -> tuple[Mapping[Value, FragmentUse], list[Clash]]:
    """Return the use of every fragment of a kernel, A where nothing determines it, and the contradictions."""
    same = _Classes()
    stated: list[tuple[Instruction, Value, FragmentUse]] = []
    every: dict[Value, None] = {}
    for instruction in function.body.walk():
        for region in instruction.regions:
            every.update(dict.fromkeys([value for value in region.arguments if isinstance(value.type, Fragment)]))
        every.update(dict.fromkeys([value for value in instruction.results if isinstance(value.type, Fragment)]))
        if instruction.regions:
            for one, other in _handed_on(instruction):
                same.join(one, other)
        stated += [(instruction, value, use) for value, use in _stated(instruction)]
    uses: dict[Value, FragmentUse] = {}
    clashes = []
    for instruction, value, use in stated:
        first = uses.setdefault(same.of(value), use)
        if first.part == use.part == "c" and None in (first.accum, use.accum):
            uses[same.of(value)] = FragmentUse("c", first.accum or use.accum)
        elif first != use:
            clashes.append(Clash(instruction, (first, use)))
    return {value: uses.get(same.of(value), FragmentUse("a")) for value in every}, clashes


def _stated(instruction: Instruction) -> list[tuple[Value, FragmentUse]]:
    """Return the uses that an instruction determines."""
    operation = instruction.operation
    if isinstance(operation, MmaSync):
        a, b, c = instruction.operands
        sum_ = FragmentUse("c", operation.accum)
        return [(a, FragmentUse("a")), (b, FragmentUse("b")), (c, sum_), (instruction.results[0], sum_)]
    if isinstance(operation, FragmentZero):
        return [(instruction.results[0], FragmentUse("c", operation.accum))]
    if isinstance(operation, FragmentStore):
        return [(instruction.operands[0], FragmentUse("c", operation.memory.dtype))]
    if isinstance(operation, LoadMatrix) and operation.memory.dtype != operation.returns.dtype:
        return [(instruction.results[0], FragmentUse("c", operation.memory.dtype))]
    return []


def _handed_on(instruction: Instruction) -> Iterator[tuple[Value, Value]]:
    """Yield pairs of values that are one fragment."""
    carried = instruction.operands[3:] if isinstance(instruction.operation, For) else ()
    for region in instruction.regions:
        inner = region.arguments[1:] if carried else ()
        yield from zip(carried, inner, strict=False)
        yield from zip(region.results, instruction.results, strict=False)
        if carried:
            yield from zip(carried, instruction.results, strict=False)


class _Classes:
    """Equivalence classes of values (union-find)."""

    def __init__(self) -> None:
        self.parents: dict[Value, Value] = {}

    def of(self, value: Value) -> Value:
        """Return the representative of a value's class."""
        while value in self.parents:
            value = self.parents[value]
        return value

    def join(self, one: Value, other: Value) -> None:
        """Merge two classes."""
        one, other = self.of(one), self.of(other)
        if one is not other:
            self.parents[one] = other
