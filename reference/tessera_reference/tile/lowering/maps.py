"""Maps: elementwise operations over tiles, which may be staged in shared memory (spec sections 6.1, 7.2, 8.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from ...graph.elementwise import Elementwise
from ...graph.term import Term
from ...ir.targets import Target
from ...ir.types import Value
from ...schedule.nests import Nest
from ..operations import SIZES, CopyAsync, CopyCommit, CopyWait
from ..verifier import MOST_BLOCKS
from .elements import NestKernel, dtype_of, evaluate
from .kernel import (
    Condition,
    Extents,
    Index,
    KernelBuilder,
    Position,
    Terms,
    broadcast_to,
    ceiling,
    extents_of,
    unravelled,
)

# The grid of a kernel: the tile and the matrix that a block computes (spec sections 8.1, 8.2; AMB-LANG-203).


@dataclass(frozen=True)
class Grid:
    """Blocks for the tiles of matrices: columns along x, rows along y, matrices along z; all along x if too many."""

    extents: Extents
    corner: tuple[Index, Index]
    matrix: Index

    @classmethod
    def of(cls, kernel: KernelBuilder, shape: Sequence[int], tile: Sequence[int], matrices: int) -> Grid:
        """Return the grid for `matrices` matrices of a shape in tiles, and a block's place in it; never empty."""
        (rows, columns), (m, n) = shape, tile
        x, y, z = max(ceiling(columns, n), 1), max(ceiling(rows, m), 1), max(matrices, 1)
        if all(extent <= most for extent, most in zip((x, y, z), MOST_BLOCKS, strict=True)):
            extents = zip("zyx", (z, y, x), strict=True)
            matrix, row, column = (kernel.block_id(axis) if blocks > 1 else kernel.index(0) for axis, blocks in extents)
            return cls((x, y, z), (row * m, column * n), matrix)
        matrix, row, column = unravelled(kernel.block_id("x"), (z, y, x))
        return cls((x * y * z, 1, 1), (row * m, column * n), matrix)


# Staging: tiles of operands in shared memory, filled ahead of the computation (sections 6.1, 7.2, 8.2; AMB-LANG-33).
#
# A stage is a ring of buffers, one for each tile in flight. Elements beyond the extents of an operand are filled with
# +0, which changes no sum that began with +0. Aligned rows are copied asynchronously in pieces of up to 16 bytes,
# others element by element.


@dataclass(frozen=True)
class Stage:
    """The ring of one operand, `buffers` tiles of its last two dimensions, each with `room` for rows and columns.

    Transposed, a buffer has the columns of the tile as its rows.
    """

    kernel: NestKernel
    source: Value
    tile: tuple[int, int]
    room: tuple[int, int]
    buffers: int
    lanes: int
    memory: Value
    transposed: bool = False

    @classmethod
    def of(
        cls,
        kernel: NestKernel,
        source: Value,
        tile: tuple[int, int],
        room: tuple[int, int],
        buffers: int,
        lanes: int,
        transposed: bool = False,
    ) -> Stage:
        """Return a stage with its shared memory."""
        shape = room[::-1] if transposed else room
        memory = kernel.shared((buffers, *shape), dtype_of(source))
        return cls(kernel, source, tile, room, buffers, lanes, memory, transposed)

    @property
    def piece(self) -> int:
        """The elements that a lane copies at once; 0 where no asynchronous copy is possible."""
        size, columns = dtype_of(self.source).storage_bytes, matrix_of(self.source)[-1]
        for bytes_ in reversed(SIZES):
            fits = all(count * size % bytes_ == 0 for count in (columns, self.tile[1], self.room[1]))
            if fits and bytes_ % size == 0 and not self.transposed:
                return bytes_ // size
        return 0

    def fill(self, slot: Index, batch: Position, row: Index, column: Index) -> None:
        """Copy the tile whose corner is at a row and column into a buffer; all threads take part."""
        width = max(self.piece, 1)
        across = self.room[1] // width
        count = self.room[0] * across

        def piece(start: Index, _: tuple[Term, ...]) -> Terms:
            place = start + self.kernel.thread_id()
            line, before = divmod(place, across)
            here = line, before * width
            fits = count % self.lanes == 0 or place.below(count)
            return self.kernel.when(fits, lambda: self._piece(slot, batch, (row, column), here))

        self.kernel.loop(0, count, self.lanes, piece)

    def _piece(self, slot: Index, batch: Position, corner: Position, here: Position) -> Terms:
        """Copy one lane's piece, or fill it with +0."""
        there = corner[0] + here[0], corner[1] + here[1]
        inside = self.kernel.every(*self._inside(here, there))
        copy, rank = self._copy if self.piece else self._copy_element, len(extents_of(self.source.type))
        return self.kernel.when(
            inside, lambda: copy(slot, here, (*batch, *there)[-rank:]), lambda: self._clear(slot, here)
        )

    def _inside(self, here: Position, there: Position) -> list[Condition]:
        """Return the conditions that a position lies in the tile and in the operand."""
        conditions: list[Condition] = []
        extents = matrix_of(self.source)
        for local, index, size, room, extent in zip(here, there, self.tile, self.room, extents, strict=True):
            conditions += [] if size == room else [local.below(size)]
            conditions += [] if extent % size == 0 else [index.below(extent)]
        return conditions

    def _copy(self, slot: Index, here: Position, there: Position) -> None:
        source, size = self.kernel.memory_of(self.source), dtype_of(self.source).storage_bytes
        indices = (index.value for index in (*there, *self._place(slot, here)))
        self.kernel.build.all(CopyAsync, source, self.memory, *indices, bytes=self.piece * size)

    def _copy_element(self, slot: Index, here: Position, there: Position) -> None:
        self.kernel.store(self.kernel.read_there(self.source, there), self.memory, self._place(slot, here))

    def _clear(self, slot: Index, here: Position) -> None:
        zero = self.kernel.exactly(0, dtype_of(self.source))
        for ahead in range(max(self.piece, 1)):
            self.kernel.store(zero, self.memory, self._place(slot, (here[0], here[1] + ahead)))

    def _place(self, slot: Index, here: Position) -> Position:
        return (slot, *(reversed(here) if self.transposed else here))

    def load(self, slot: Index, row: Index, column: Index) -> Term:
        """Return an element of a buffer."""
        return self.kernel.load(self.memory, self._place(slot, (row, column)))


def matrix_of(value: Value) -> tuple[int, int]:
    """Return the last two extents of a tensor; a vector has one row."""
    rows, columns = (1, *extents_of(value.type))[-2:]
    return rows, columns


def stage_elements(
    kernel: NestKernel, batch: Position, corner: tuple[Index, Index], tile: tuple[int, int], lanes: int
) -> None:
    """Copy the staged operands of elementwise operations to tiles in shared memory; all threads take part.

    `batch` and `corner` are the position of the result's tile. An operand that broadcasts has a smaller one.
    """
    elementwise = [step for step in kernel.nest.operations if isinstance(step.operation, Elementwise)]
    read = dict.fromkeys(value for step in elementwise for value in step.operands)
    staged = [value for value in read if value in kernel.nest.staged]
    for value in staged:
        extents = matrix_of(value)
        room = tuple(1 if extent == 1 else size for extent, size in zip(extents, tile, strict=True))
        first = tuple(index * 0 if extent == 1 else index for extent, index in zip(extents, corner, strict=True))
        stage = Stage.of(kernel, value, (room[0], room[1]), (room[0], room[1]), 1, lanes)
        stage.fill(kernel.index(0), broadcast_to(batch, extents_of(value.type)[:-2]), *first)
        kernel.through[value] = partial(_staged, stage, first)
    if staged:
        finish_copies(kernel, "the operands of the elements are there")


def _staged(stage: Stage, corner: Position, at: Position) -> Term:
    """Return the element at a position of an operand, which lies in the tile."""
    row, column = (stage.kernel.index(0), *at)[-2:]
    return stage.load(stage.kernel.index(0), row - corner[0], column - corner[1])


def finish_copies(kernel: NestKernel, label: str) -> None:
    """Wait for all copies and make them visible to every thread."""
    kernel.build.all(CopyCommit)
    kernel.build.all(CopyWait, pending=0)
    kernel.barrier(label)


Fill = Callable[[Index, Index], None]
"""A function that fills the buffers of a slot, its second index, with the tiles of a step, its first."""
Compute = Callable[[Index, Index, tuple[Term, ...]], Terms]
"""A function that computes a step from the buffers of a slot, and maps carried values to the next ones."""


def pipelined(
    kernel: NestKernel, steps: int, depth: int, fill: Fill, compute: Compute, carried: Sequence[Term]
) -> tuple[Term, ...]:
    """Compute steps in order, while copies run `depth` - 1 steps ahead; return the loop-carried values.

    Each copy is a group of its own, so that waiting for all but the newest `depth` - 2 leaves those still running. The
    barrier makes the copies of other threads visible, and guarantees that the slot to be filled next is free.
    """
    ahead = depth - 1
    for step in range(ahead):
        if step < steps:
            fill(kernel.index(step), kernel.index(step))
        kernel.build.all(CopyCommit)

    def body(step: Index, handed: tuple[Term, ...]) -> Terms:
        if ahead:
            kernel.build.all(CopyWait, pending=ahead - 1)
        kernel.barrier("the tiles of this step are there" if ahead else "the tiles of the last step are done with")
        if ahead:
            coming = step + ahead
            kernel.when(coming.below(steps), lambda: fill(coming, coming % depth))
            kernel.build.all(CopyCommit)
        else:
            fill(step, kernel.index(0))
            finish_copies(kernel, "the tiles of this step are there")
        return compute(step, step % depth, handed)

    return kernel.loop(0, steps, 1, body, tuple(carried))


# Maps: fused elementwise operations, and operations that move elements (section 8.2; AMB-LANG-236).
#
# A block computes a tile of m by n elements of the last two dimensions, the grid covers the rest; each lane computes
# one element at a time, reading operands at computed indices. Unless an operand is staged there is no barrier, so no
# thread waits for another; operations that move elements read them from global memory, staged or not.


MOST_LANES = 256
"""The most threads of a block that computes elements one by one."""


def map_kernel(nest: Nest, target: Target) -> tuple[NestKernel, Extents, int]:
    """Return the kernel of a map, its grid and the threads of its blocks."""
    kernel = NestKernel(nest, target)
    shape = extents_of(nest.outputs[0].type)
    *batch, rows, columns = (1,) * (2 - len(shape)) + shape
    m, n, _ = nest.tile
    grid = Grid.of(kernel, (rows, columns), (m, n), prod(batch))
    lanes = lanes_for(m * n, target)

    def element(start: Index, _: tuple[Term, ...]) -> tuple[Term, ...]:
        place = start + kernel.thread_id()
        row, column = (corner + local for corner, local in zip(grid.corner, divmod(place, n), strict=True))
        at = (*unravelled(grid.matrix, batch), row, column)
        inside: tuple[Condition, ...] = (m * n % lanes == 0 or place.below(m * n),)
        inside += (rows % m == 0 or row.below(rows), columns % n == 0 or column.below(columns))
        return kernel.when(kernel.every(*inside), lambda: write_elements(kernel, at[len(at) - len(shape) :]))

    if prod(shape):
        stage_elements(kernel, unravelled(grid.matrix, batch), grid.corner, (m, n), lanes)
        kernel.loop(0, m * n, lanes, element)
    return kernel, grid.extents, lanes


def write_elements(kernel: NestKernel, at: Position, terms_of: Mapping[Value, Term] | None = None) -> None:
    """Compute and write the element at a position of every output, given those of some values."""
    nest = kernel.nest
    terms = evaluate(kernel, nest.instructions, nest.outputs, at, terms_of)
    for output, term in zip(nest.outputs, terms, strict=True):
        kernel.write(output, at, term)


def lanes_for(elements: int, target: Target, most: int = MOST_LANES) -> int:
    """Return whole warps for so many elements, up to `most` threads."""
    return min(ceiling(elements, target.warp) * target.warp, most, target.threads_per_block)
