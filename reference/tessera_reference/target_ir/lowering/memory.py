"""Memory, copies, barriers, shuffles and matrix instructions in the dialect of the vendor (LANG-08.2-05 to -12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ...ir.operation import Instruction
from ...ir.types import Fragment, Scalar, Value, Vector
from ...kernel_machine.block import FragmentUse
from ...numerics.formats import DType
from ...tile.fragments import FragmentStore, FragmentZero, LoadMatrix, MmaSync
from ...tile.operations import Barrier, CopyAsync, CopyCommit, CopyWait, Load, SharedAlloc, ShuffleSync, Store
from ..operations import llvm, memory, vendors
from ..operations import memory as vectors
from ..operations.vendors import Role, Spread
from .scalars import INT64, Body, Buffer, Number, Pair, Share, in_memory, lowered, packed, unpacked

# Memory, copies, barriers and shuffles of a kernel in the dialects of its vendor (LANG-08.2-07 to -09, -11, -12).
#
# Row-major addresses are 32-bit arithmetic where offsets fit, else 64-bit. AMD has no asynchronous copies of this
# kind: a copy is a load and a store to the LDS, which the next barrier makes visible, as on NVIDIA (AMB-LANG-225).


LANE_BYTES = 4
"""The bytes for each lane, in which ds_bpermute counts lanes."""


@lowered.register
def _shared_alloc(operation: SharedAlloc, instruction: Instruction, body: Body) -> Buffer:
    memref = operation.returns
    shape, dtype = memref.extents, memref.dtype.storage
    name = f"shared{sum(isinstance(earlier.operation, memory.AddressOf) for earlier in body.before)}"
    with body.within(body.before):
        pointer = body(memory.AddressOf, global_name=name, elements=prod(shape), elem_type=dtype)
    return Buffer(pointer, shape, dtype, "shared")


def offset(body: Body, buffer: Buffer, indices: Sequence[Value]) -> Value:
    """Return the row-major offset of the element at some indices; of the first one without any."""
    total = body.index(0, buffer.index_dtype)
    for axis, index in enumerate(indices):
        total = body.plus(total, body.times(as_offset(body, buffer, index), prod(buffer.shape[axis + 1 :])))
    return total


def as_offset(body: Body, buffer: Buffer, index: Value) -> Value:
    """Return an index in the dtype of the buffer's offsets."""
    if buffer.index_dtype != INT64:
        return index
    number = body.number_of(index)
    return body(llvm.SExt, index, to=INT64) if number is None else body.index(number, INT64)


def address(body: Body, buffer: Buffer, at: Value) -> Value:
    """Return a pointer to the element at an offset."""
    if body.number_of(at) == 0:
        return buffer.pointer
    return body(memory.GetElementPtr, buffer.pointer, at, elem_type=buffer.dtype)


def load(body: Body, buffer: Buffer, at: Value, type_: Scalar | Vector) -> Value:
    """Load from an offset; AMD has its own instructions for the LDS."""
    kind = vendors.DsRead if _is_lds(body, buffer) else memory.Load
    return body(kind, address(body, buffer, at), returns=type_)


def store(body: Body, buffer: Buffer, at: Value, value: Value) -> None:
    """Write at an offset."""
    body.all(vendors.DsWrite if _is_lds(body, buffer) else memory.Store, value, address(body, buffer, at))


def _is_lds(body: Body, buffer: Buffer) -> bool:
    return body.target.vendor == "amd" and buffer.space == "shared"


@lowered.register
def _load(operation: Load, instruction: Instruction, body: Body) -> Number:
    buffer = body.form(instruction.operands[0], Buffer)
    at = offset(body, buffer, [body.scalar(operand) for operand in instruction.operands[1:]])
    if buffer.dtype.kind == "complex":
        return unpacked(body, load(body, buffer, at, in_memory(buffer.dtype)))
    return load(body, buffer, at, Scalar(buffer.dtype))


@lowered.register
def _store(operation: Store, instruction: Instruction, body: Body) -> None:
    value, buffer = body.element(instruction.operands[0]), body.form(instruction.operands[1], Buffer)
    if isinstance(value, Pair):
        value = packed(body, value, buffer.dtype)
    at = offset(body, buffer, [body.scalar(operand) for operand in instruction.operands[2:]])
    store(body, buffer, at, value)


@lowered.register
def _copy(operation: CopyAsync, instruction: Instruction, body: Body) -> None:
    source, destination = (body.form(value, Buffer) for value in instruction.operands[:2])
    indices = [body.scalar(value) for value in instruction.operands[2:]]
    rank = len(source.shape) if indices else 0
    begin, end = offset(body, source, indices[:rank]), offset(body, destination, indices[rank:])
    if body.target.vendor == "nvidia":
        to, from_ = address(body, destination, end), address(body, source, begin)
        body.all(vendors.CopyAsync, to, from_, size=operation.bytes)
        return
    count = operation.bytes // source.dtype.storage_bytes
    store(body, destination, end, load(body, source, begin, Vector(count, source.dtype)))


@lowered.register
def _commit(operation: CopyCommit, instruction: Instruction, body: Body) -> None:
    if body.target.vendor == "nvidia":
        body.all(vendors.CopyCommit)


@lowered.register
def _wait(operation: CopyWait, instruction: Instruction, body: Body) -> None:
    """Wait until copies are finished; on AMD, where they are loads and stores, they already are."""
    if body.target.vendor == "nvidia":
        body.all(vendors.CopyWait, n=operation.pending)


@lowered.register
def _barrier(operation: Barrier, instruction: Instruction, body: Body) -> None:
    body.all(vendors.Barrier if body.target.vendor == "nvidia" else vendors.RocdlBarrier)


@lowered.register
def _shuffle(operation: ShuffleSync, instruction: Instruction, body: Body) -> Number:
    """Return the value of the lane `delta` further on in the warp, part by part."""
    value = body.element(instruction.operands[0])
    if isinstance(value, Pair):
        return Pair(_shuffled(body, operation, value.real), _shuffled(body, operation, value.imaginary))
    return _shuffled(body, operation, value)


def _shuffled(body: Body, operation: ShuffleSync, value: Value) -> Value:
    """Return the value of the lane `delta` further on, its own beyond the warp's end; on AMD by lane number."""
    if body.target.vendor == "nvidia":
        mask = vendors.FULL if operation.mask is None else operation.mask & vendors.FULL
        return body(vendors.ShuffleDown, value, delta=min(operation.delta, body.target.warp - 1), mask=mask)
    later = body.plus(body.lane, body.index(operation.delta))
    exists = body(llvm.ICmp, later, body.index(body.target.warp), predicate="slt")
    source = body(llvm.Select, exists, later, body.lane)
    return body(vendors.BPermute, body.times(source, LANE_BYTES), value)


# Fragments and matrix instructions of a kernel in the forms of its vendor (LANG-08.2-05, -06, -10; AMB-LANG-62).
#
# A fragment becomes the vectors of one or several matrices of the hardware: a 16x16x16 of bf16 is two m16n8k16 on
# NVIDIA and one 16x16x16 on AMD. Along k they are used in ascending order, so that a sum is the left fold over the
# whole of k.


@dataclass(frozen=True)
class Unit:
    """The matrix instruction of the hardware into which operations on a fragment are split."""

    m: int
    n: int
    k: int
    dtype: DType
    spread: Callable[[Role, int, int, int, DType], Spread]
    kind: vendors.Kind | None = None

    def of(self, role: Role) -> Spread:
        """Return the layout of an operand over the lanes."""
        return self.spread(role, self.m, self.n, self.k, self.dtype)

    def held(self, role: Role) -> DType:
        """Return the dtype of an operand's elements."""
        return self.dtype.accumulator if role == "c" else self.dtype

    def corners(self, role: Role, fragment: Fragment) -> Iterator[tuple[int, int]]:
        """Yield the corner of each of the unit's matrices in a fragment, row by row."""
        rows, columns = FragmentUse(role).shape(fragment)
        height, width = self.of(role).shape
        return ((row, column) for row in range(0, rows, height) for column in range(0, columns, width))


def unit_for(body: Body, fragment: Fragment) -> Unit:
    """Return the largest instruction that divides a fragment. Raises `UnsupportedConstruct` where there is none."""
    dtype = fragment.dtype
    if body.target.vendor == "nvidia":
        for m, n, k in vendors.SHAPES.get(dtype.name, ()):
            if _divides(fragment, m, n, k):
                return Unit(m, n, k, dtype, vendors.nvidia)
            if _divides(fragment, n, m, k):
                return Unit(n, m, k, dtype, vendors.nvidia_swapped)
    for kind in vendors.KINDS if body.target.vendor == "amd" else ():
        if kind.dtype == dtype and body.target.name in kind.targets and _divides(fragment, *kind.shape):
            return Unit(*kind.shape, dtype, vendors.amd, kind)
    raise body.unsupported(f"mma.m{fragment.m}n{fragment.n}k{fragment.k}.{dtype}")


def _divides(fragment: Fragment, m: int, n: int, k: int) -> bool:
    return (fragment.m % m, fragment.n % n, fragment.k % k) == (0, 0, 0)


def parts_of(body: Body, fragment: Fragment, use: FragmentUse) -> tuple[Vector, ...]:
    """Return the types of the vectors that a fragment is lowered to."""
    unit = unit_for(body, fragment)
    if use.part == "c" and use.accum not in (None, fragment.dtype.accumulator):
        raise body.unsupported(f"mma.accum.{use.accum}")
    spread = unit.of(use.part)
    return (Vector(spread.held, unit.held(use.part)),) * len(list(unit.corners(use.part, fragment)))


@lowered.register
def _zero(operation: FragmentZero, instruction: Instruction, body: Body) -> Share:
    types = parts_of(body, operation.returns, body.uses[instruction.results[0]])
    return Share(tuple(body(vectors.Zero, returns=type_) for type_ in types))


@lowered.register
def _mma_sync(operation: MmaSync, instruction: Instruction, body: Body) -> Share:
    """Return A times B added to C, matrix by matrix, ascending along k."""
    unit = unit_for(body, operation.c)
    parts_of(body, operation.c, body.uses[instruction.results[0]])
    a, b, c = (body.form(value, Share).parts for value in instruction.operands)
    rows, columns, depth = operation.m // unit.m, operation.n // unit.n, operation.k // unit.k
    products = []
    for row in range(rows):
        for column in range(columns):
            total = c[row * columns + column]
            for step in range(depth):
                total = _product(body, unit, a[row * depth + step], b[step * columns + column], total)
            products.append(total)
    return Share(tuple(products))


def _product(body: Body, unit: Unit, a: Value, b: Value, c: Value) -> Value:
    if unit.kind is not None:
        return body(vendors.MFMA[unit.kind.intrinsic], a, b, c)
    if unit.spread is vendors.nvidia_swapped:
        return body(vendors.MmaSync, b, a, c, m=unit.n, n=unit.m, k=unit.k)
    return body(vendors.MmaSync, a, b, c, m=unit.m, n=unit.n, k=unit.k)


@lowered.register
def _load_matrix(operation: LoadMatrix, instruction: Instruction, body: Body) -> Share:
    unit, role = unit_for(body, operation.returns), body.uses[instruction.results[0]].part
    source = _Matrix(body, instruction, 0, operation.stride, operation.transpose)
    is_16_bit = unit.held(role).bits == 16 and unit.held(role).kind == "float"
    by_ldmatrix = unit.spread is vendors.nvidia and role != "c" and is_16_bit
    read = _by_ldmatrix if by_ldmatrix else _by_elements
    return Share(tuple(read(source, unit, role, corner) for corner in unit.corners(role, operation.returns)))


@lowered.register
def _store_fragment(operation: FragmentStore, instruction: Instruction, body: Body) -> None:
    """Store an accumulator to memory, element by element."""
    fragment = operation.fragment
    unit = unit_for(body, fragment)
    into = _Matrix(body, instruction, 1)
    spread = unit.of("c")
    for part, corner in zip(body.form(instruction.operands[0], Share).parts, unit.corners("c", fragment), strict=True):
        base = into.of_lane(spread, corner)
        for position in range(spread.held):
            element = body(vectors.ExtractElement, part, position=position)
            store(body, into.buffer, into.element(base, spread, position), element)


class _Matrix:
    """A matrix in memory: the places of its rows and columns, from the corner that an instruction names."""

    def __init__(
        self, body: Body, instruction: Instruction, memory: int, stride: int | None = None, transpose: bool = False
    ) -> None:
        self.body = body
        self.buffer: Buffer = body.form(instruction.operands[memory], Buffer)
        indices = [body.scalar(value) for value in instruction.operands[memory + 1 :]]
        self.corner = offset(body, self.buffer, indices)
        along = stride or self.buffer.shape[-1]
        self.row_step, self.column_step = (1, along) if transpose else (along, 1)

    def at(self, row: int, column: int) -> int:
        """Return an element's offset from the corner."""
        return row * self.row_step + column * self.column_step

    def of_lane(self, spread: Spread, corner: tuple[int, int]) -> Value:
        """Return the offset of the lane's first element of one of the unit's matrices."""
        row, column = spread.row, spread.column
        base = self.plus(self.corner, self.at(corner[0] + row.offsets[0], corner[1] + column.offsets[0]))
        for along, step in ((row, self.row_step), (column, self.column_step)):
            part = self.body.lane_part(along.of, spread.width, along.factor * step)
            base = self.body.plus(base, as_offset(self.body, self.buffer, part))
        return base

    def element(self, base: Value, spread: Spread, position: int) -> Value:
        """Return the offset of another element of the lane."""
        row, column = (axis.offsets[position] - axis.offsets[0] for axis in (spread.row, spread.column))
        return self.plus(base, self.at(row, column))

    def plus(self, value: Value, number: int) -> Value:
        """Return an offset, a constant number of elements further on."""
        return self.body.plus(value, self.body.index(number, self.buffer.index_dtype))

    def is_run(self, spread: Spread) -> bool:
        """True if a lane's elements are contiguous and aligned to their size; rows are aligned to 16 bytes."""
        offsets = [self.at(row, column) for row, column in zip(spread.row.offsets, spread.column.offsets, strict=True)]
        size = spread.held * self.buffer.dtype.storage_bytes
        step = spread.row if self.row_step == 1 else spread.column
        aligned = size <= 16 and size & (size - 1) == 0 and step.factor % spread.held == 0
        return aligned and [offset - offsets[0] for offset in offsets] == list(range(spread.held))


def _by_elements(source: _Matrix, unit: Unit, role: Role, corner: tuple[int, int]) -> Value:
    """Return a lane's elements, loaded as one vector where they are contiguous, else one by one."""
    body, spread, dtype = source.body, unit.of(role), unit.held(role)
    base = source.of_lane(spread, corner)
    type_ = Vector(spread.held, dtype)
    if source.is_run(spread):
        return load(body, source.buffer, base, type_)
    vector = body(vectors.Zero, returns=type_)
    for position in range(spread.held):
        element = load(body, source.buffer, source.element(base, spread, position), Scalar(dtype))
        vector = body(vectors.InsertElement, vector, element, position=position)
    return vector


def _by_ldmatrix(source: _Matrix, unit: Unit, role: Role, corner: tuple[int, int]) -> Value:
    """Load by ldmatrix: the lane gives the address of the row of the 8x8 matrix of its number.

    The registers hold pairs along k. Memory whose rows run the other way is read transposed.
    """
    body, spread = source.body, unit.of(role)
    num = spread.held // 2
    down = spread.shape[0] // 8 if role == "a" else 1
    along_rows = (role == "a") == (source.column_step == 1)
    matrix = body.lane_part("quotient", 8, 1)
    matrix = body.modulo(matrix, num)
    across, along = (body.modulo(matrix, down) if down > 1 else body.index(0)), body.over(matrix, down)
    row, column = (across, along) if role == "a" else (along, across)
    inside = body.lane_part("remainder", 8, max(source.row_step, source.column_step))
    base = source.plus(source.corner, source.at(*corner))
    for part in (body.times(row, 8 * source.row_step), body.times(column, 8 * source.column_step), inside):
        base = body.plus(base, as_offset(body, source.buffer, part))
    pointer = address(body, source.buffer, base)
    layout = "row" if along_rows else "col"
    return body(vendors.LoadMatrix, pointer, returns=Vector(2 * num, unit.held(role)), num=num, layout=layout)
