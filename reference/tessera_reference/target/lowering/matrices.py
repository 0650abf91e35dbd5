"""Fragments and matrix instructions of a kernel in the forms of its vendor (LANG-08.2-05, -06, -10; AMB-LANG-62).

A fragment becomes the vectors of one or several matrices of the hardware: a 16x16x16 of bf16 is two m16n8k16 on NVIDIA
and one 16x16x16 on AMD. Along k they are used in ascending order, so that a sum is the left fold over the whole of k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...ir.module import Instruction, Value
from ...ir.types import Fragment, Scalar, Vector
from ...numerics.formats import DType
from ...tile.fragments import FragmentZero, LoadMatrix, MmaSync
from ...tile.program import FragmentUse
from .. import layouts
from ..layouts import Role, Spread
from ..operations import nvvm_matrix, rocdl_matrix, vectors
from .body import Body, Buffer, Share
from .memory import address, as_offset, load, offset, store


@dataclass(frozen=True)
class Unit:
    """The matrix instruction of the hardware into which operations on a fragment are split."""

    m: int
    n: int
    k: int
    dtype: DType
    spread: Callable[[Role, int, int, int, DType], Spread]
    kind: rocdl_matrix.Kind | None = None

    def of(self, role: Role) -> Spread:
        """The layout of an operand over the lanes."""
        return self.spread(role, self.m, self.n, self.k, self.dtype)

    def held(self, role: Role) -> DType:
        """The dtype of an operand's elements."""
        return self.dtype.accumulator if role == "c" else self.dtype

    def corners(self, role: Role, fragment: Fragment) -> Iterator[tuple[int, int]]:
        """The corner of each of the unit's matrices in a fragment, row by row."""
        rows, columns = FragmentUse(role).shape(fragment)
        height, width = self.of(role).shape
        return ((row, column) for row in range(0, rows, height) for column in range(0, columns, width))


def unit_for(body: Body, fragment: Fragment) -> Unit:
    """The largest instruction that divides a fragment. Raises `UnsupportedConstruct` where there is none."""
    held = fragment.dtype
    if body.target.vendor == "nvidia":
        for m, n, k in nvvm_matrix.SHAPES.get(held.name, ()):
            if _divides(fragment, m, n, k):
                return Unit(m, n, k, held, layouts.nvidia)
            if _divides(fragment, n, m, k):
                return Unit(n, m, k, held, layouts.nvidia_swapped)
    for kind in rocdl_matrix.KINDS if body.target.vendor == "amd" else ():
        if kind.dtype == held and body.target.name in kind.targets and _divides(fragment, *kind.shape):
            return Unit(*kind.shape, held, layouts.amd, kind)
    raise body.unsupported(f"mma.m{fragment.m}n{fragment.n}k{fragment.k}.{held}")


def _divides(fragment: Fragment, m: int, n: int, k: int) -> bool:
    return (fragment.m % m, fragment.n % n, fragment.k % k) == (0, 0, 0)


def parts_of(body: Body, fragment: Fragment, use: FragmentUse) -> tuple[Vector, ...]:
    """The types of the vectors that a fragment is lowered to."""
    unit = unit_for(body, fragment)
    if use.part == "c" and use.accum not in (None, fragment.dtype.accumulator):
        raise body.unsupported(f"mma.accum.{use.accum}")
    spread = unit.of(use.part)
    return (Vector(spread.held, unit.held(use.part)),) * len(list(unit.corners(use.part, fragment)))


def zeros(body: Body, instruction: Instruction, use: FragmentUse) -> Share:
    """An accumulator of zeros."""
    assert isinstance(instruction.operation, FragmentZero)
    types = parts_of(body, instruction.operation.returns, use)
    return Share(tuple(body(vectors.Zero, returns=type_) for type_ in types))


def multiplied(body: Body, instruction: Instruction, use: FragmentUse) -> Share:
    """A times B added to C, matrix by matrix, ascending along k."""
    operation = instruction.operation
    assert isinstance(operation, MmaSync)
    unit = unit_for(body, operation.c)
    parts_of(body, operation.c, use)
    a, b, c = (body.share(value).parts for value in instruction.operands)
    rows, columns, depth = operation.m // unit.m, operation.n // unit.n, operation.k // unit.k
    made = []
    for row in range(rows):
        for column in range(columns):
            total = c[row * columns + column]
            for step in range(depth):
                total = _product(body, unit, a[row * depth + step], b[step * columns + column], total)
            made.append(total)
    return Share(tuple(made))


def _product(body: Body, unit: Unit, a: Value, b: Value, c: Value) -> Value:
    if unit.kind is not None:
        return body(rocdl_matrix.MFMA[unit.kind.intrinsic], a, b, c)
    if unit.spread is layouts.nvidia_swapped:
        return body(nvvm_matrix.MmaSync, b, a, c, m=unit.n, n=unit.m, k=unit.k)
    return body(nvvm_matrix.MmaSync, a, b, c, m=unit.m, n=unit.n, k=unit.k)


def loaded(body: Body, instruction: Instruction, use: FragmentUse) -> Share:
    """A fragment from shared memory."""
    operation = instruction.operation
    assert isinstance(operation, LoadMatrix)
    unit, role = unit_for(body, operation.returns), use.part
    source = _Matrix(body, instruction, 0, operation.stride, operation.transpose)
    is_16_bit = unit.held(role).bits == 16 and unit.held(role).kind == "float"
    by_ldmatrix = unit.spread is layouts.nvidia and role != "c" and is_16_bit
    read = _by_ldmatrix if by_ldmatrix else _by_elements
    return Share(tuple(read(source, unit, role, corner) for corner in unit.corners(role, operation.returns)))


def stored(body: Body, instruction: Instruction) -> None:
    """An accumulator to memory, element by element."""
    fragment = instruction.operands[0].type
    assert isinstance(fragment, Fragment)
    unit = unit_for(body, fragment)
    into = _Matrix(body, instruction, 1)
    spread = unit.of("c")
    for part, corner in zip(body.share(instruction.operands[0]).parts, unit.corners("c", fragment), strict=True):
        base = into.of_lane(spread, corner)
        for position in range(spread.held):
            element = body(vectors.ExtractElement, part, position=position)
            store(body, into.buffer, into.element(base, spread, position), element)


class _Matrix:
    """A matrix in memory: where its rows and columns lie, from the corner that an instruction names."""

    def __init__(
        self, body: Body, instruction: Instruction, memory: int, stride: int | None = None, transpose: bool = False
    ) -> None:
        self.body = body
        self.buffer: Buffer = body.buffer(instruction.operands[memory])
        indices = [body.scalar(value) for value in instruction.operands[memory + 1 :]]
        self.corner = offset(body, self.buffer, indices)
        along = stride or self.buffer.shape[-1]
        self.row_step, self.column_step = (1, along) if transpose else (along, 1)

    def at(self, row: int, column: int) -> int:
        """An element's offset from the corner."""
        return row * self.row_step + column * self.column_step

    def of_lane(self, spread: Spread, corner: tuple[int, int]) -> Value:
        """The offset of the first element that the lane holds of one of the unit's matrices."""
        row, column = spread.row, spread.column
        base = self.plus(self.corner, self.at(corner[0] + row.offsets[0], corner[1] + column.offsets[0]))
        for along, step in ((row, self.row_step), (column, self.column_step)):
            part = self.body.lane_part(along.of, spread.width, along.factor * step)
            base = self.body.plus(base, as_offset(self.body, self.buffer, part))
        return base

    def element(self, base: Value, spread: Spread, position: int) -> Value:
        """The offset of another element that the lane holds."""
        row, column = (each.offsets[position] - each.offsets[0] for each in (spread.row, spread.column))
        return self.plus(base, self.at(row, column))

    def plus(self, value: Value, number: int) -> Value:
        """An offset, a constant number of elements further on."""
        return self.body.plus(value, self.body.index(number, self.buffer.index_dtype))

    def is_run(self, spread: Spread) -> bool:
        """Whether a lane's elements are contiguous and aligned to their size; rows are aligned to 16 bytes."""
        offsets = [self.at(row, column) for row, column in zip(spread.row.offsets, spread.column.offsets, strict=True)]
        size = spread.held * self.buffer.dtype.storage_bytes
        step = spread.row if self.row_step == 1 else spread.column
        aligned = size <= 16 and size & (size - 1) == 0 and step.factor % spread.held == 0
        return aligned and [each - offsets[0] for each in offsets] == list(range(spread.held))


def _by_elements(source: _Matrix, unit: Unit, role: Role, corner: tuple[int, int]) -> Value:
    """A lane's elements, loaded as one vector where they are contiguous, else one by one."""
    body, spread, held = source.body, unit.of(role), unit.held(role)
    base = source.of_lane(spread, corner)
    type_ = Vector(spread.held, held)
    if source.is_run(spread):
        return load(body, source.buffer, base, type_)
    made = body(vectors.Zero, returns=type_)
    for position in range(spread.held):
        element = load(body, source.buffer, source.element(base, spread, position), Scalar(held))
        made = body(vectors.InsertElement, made, element, position=position)
    return made


def _by_ldmatrix(source: _Matrix, unit: Unit, role: Role, corner: tuple[int, int]) -> Value:
    """By ldmatrix: the lane gives the address of the row of the 8x8 matrix that its number stands for.

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
    return body(nvvm_matrix.LoadMatrix, pointer, returns=Vector(2 * num, unit.held(role)), num=num, layout=layout)
