"""Contractions lane by lane: for dtypes and accumulators that no matrix instruction of the target takes (section 8.2).

Prefetched operands are read from shared memory, tile by tile along k, others from global memory. If none is staged
there is no shared memory and no barrier: every lane works on its own.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf

from ...graph.term import Term
from ...ir.module import Value
from ...numerics.formats import DTYPES
from .contraction import Contraction
from .index import Index, ceiling
from .kernel import KernelBuilder, Terms
from .maps import lanes_for
from .staging import Stage, pipelined, stage_elements

MOST_LANES = 1024
"""Threads of a block: many, so that each has few totals to keep."""


def lane_products(work: Contraction) -> int:
    """Build the body of the kernel; its threads."""
    lanes = lanes_for(work.tile[0] * work.tile[1], work.kernel.target, MOST_LANES)
    stage_elements(work.kernel, work.batch, (work.row, work.column), work.tile[:2], lanes)
    staged = [value for value in (work.a, work.b) if value in work.kernel.nest.staged]
    if staged:
        _Staged(work, lanes).build()
    else:
        _from_global_memory(work, lanes)
    return lanes


def _from_global_memory(work: Contraction, lanes: int) -> None:
    """Each lane computes one element after another."""
    kernel, (m, n, _) = work.kernel, work.tile

    def element(start: Index, _: tuple[Term, ...]) -> Terms:
        place = start + kernel.thread_id()
        row, column = divmod(place, n)

        def compute() -> Terms:
            def add(k: Index, totals: tuple[Term, ...]) -> Terms:
                a = kernel.read(work.a, (*work.batch, work.row + row, k))
                b = kernel.read(work.b, (*work.batch, k, work.column + column))
                return (added(work, totals[0], a, b),)

            (total,) = kernel.loop(0, work.extents[2], 1, add, (zero(work),))
            return work.write(row, column, total)

        return kernel.when(work.inside(row, column, room_of(work, lanes)), compute)

    kernel.loop(0, m * n, lanes, element)


class _Staged:
    """A product with at least one operand staged in shared memory; each lane computes some of its elements."""

    def __init__(self, work: Contraction, lanes: int) -> None:
        self.work = work
        self.kernel = work.kernel
        self.lanes = lanes
        m, n, k = work.tile
        self.a, self.b = self._stage(work.a, (m, k)), self._stage(work.b, (k, n))
        self.own = self._own(m, n)

    def _stage(self, value: Value, tile: tuple[int, int]) -> Stage | None:
        nest = self.kernel.nest
        return Stage.of(self.kernel, value, tile, tile, nest.depth, self.lanes) if value in nest.staged else None

    def _own(self, m: int, n: int) -> list[tuple[Index, Index]]:
        """The positions of a lane's elements: in one column where the lanes cover whole rows."""
        starts, thread = range(0, m * n, self.lanes), self.kernel.thread_id()
        if self.lanes % n:
            return [divmod(thread + start, n) for start in starts]
        row, column = divmod(thread, n)
        return [(row + start // n, column) for start in starts]

    def build(self) -> None:
        """Build the body: each lane keeps the totals of all its elements in registers along k."""
        zeros = [zero(self.work) for _ in self.own]
        depth = self.kernel.nest.depth
        totals = pipelined(self.kernel, self.work.steps, depth, self.fill, self.compute, zeros)
        for (row, column), total in zip(self.own, totals, strict=True):
            self._write(row, column, total)

    def _write(self, row: Index, column: Index, total: Term) -> None:
        inside = self.work.inside(row, column, room_of(self.work, self.lanes))
        self.kernel.when(inside, lambda: self.work.write(row, column, total))

    def fill(self, step: Index, slot: Index) -> None:
        """Copy the tiles of the staged operands."""
        along = step * self.work.tile[2]
        if self.a:
            self.a.fill(slot, self.work.batch, self.work.row, along)
        if self.b:
            self.b.fill(slot, self.work.batch, along, self.work.column)

    def compute(self, step: Index, slot: Index, totals: tuple[Term, ...]) -> Terms:
        """Add the products of one tile along k."""
        k, along = self.work.tile[2], step * self.work.tile[2]
        left = self.kernel.index(self.work.extents[2]) - along
        stop = self.kernel.index(k) if self.work.extents[2] % k == 0 else left.at_most(k)

        def add(local: Index, handed: tuple[Term, ...]) -> Terms:
            rows = {row: self._left(slot, along, local, row) for row, _ in self.own}
            columns = {column: self._right(slot, along, local, column) for _, column in self.own}
            places = zip(self.own, handed, strict=True)
            return tuple(added(self.work, total, rows[row], columns[column]) for (row, column), total in places)

        return self.kernel.loop(0, stop, 1, add, totals)

    def _left(self, slot: Index, along: Index, k: Index, row: Index) -> Term:
        """The element of a in a row of the tile; below the tile, where nothing is written, the one in its last row."""
        m, n, _ = self.work.tile
        row = row if m * n % self.lanes == 0 else row.at_most(m - 1)
        if self.a:
            return self.a.load(slot, row, k)
        nearest = (self.work.row + row).at_most(self.work.extents[0] - 1)
        return self.kernel.read(self.work.a, (*self.work.batch, nearest, along + k))

    def _right(self, slot: Index, along: Index, k: Index, column: Index) -> Term:
        """The element of b in a column of the tile."""
        if self.b:
            return self.b.load(slot, k, column)
        nearest = (self.work.column + column).at_most(self.work.extents[1] - 1)
        return self.kernel.read(self.work.b, (*self.work.batch, along + k, nearest))


def room_of(work: Contraction, lanes: int) -> tuple[int, int]:
    """The rows and columns that the lanes visit, rounded up to whole passes of the block."""
    m, n, _ = work.tile
    return ceiling(ceiling(m * n, lanes) * lanes, n), n


def zero(work: Contraction) -> Term:
    """The start value of a total: +0."""
    return work.kernel.exactly(0, work.operation.accum)


def added(work: Contraction, total: Term, a: Term, b: Term) -> Term:
    """The total and a product, both rounded to the accumulator (LANG-10-02)."""
    if work.dtype.name == "tf32":
        a, b = rounded_to_tf32(work.kernel, a), rounded_to_tf32(work.kernel, b)
    return total + a.cast_to(work.operation.accum) * b.cast_to(work.operation.accum)


SCALES = range(-112, 113, 28)
"""Powers of two that bring the numbers of fp32, from the largest to the smallest, into the range of fp16."""

BELOW = 15
"""A scale is for numbers that it brings below this power of two, where fp16 has all that they may be rounded to."""


def rounded_to_tf32(kernel: KernelBuilder, x: Term) -> Term:
    """A number rounded to the ten fraction bits of tf32, as matmul rounds its operands (AMB-LANG-238).

    fp16 has as many. So the number is scaled, range by range, by a power of two into the range of fp16, rounded to it
    and scaled back; both scalings are exact. What overflows tf32 overflows fp16 at the first scale; at the last scale
    the subnormals of tf32 are those of fp16.
    """
    wide, narrow = DTYPES["fp32"], DTYPES["fp16"]
    x = x.cast_to(wide)
    size = x.abs()
    scale = _power(kernel, SCALES[0])
    for exponent in SCALES[1:]:
        scale = kernel.chosen(size < _power(kernel, BELOW - exponent), _power(kernel, exponent), scale)
    rounded = (x * scale).cast_to(narrow).cast_to(wide) * scale.reciprocal()
    return kernel.chosen(size < kernel.exactly(inf, wide), rounded, x)


def _power(kernel: KernelBuilder, exponent: int) -> Term:
    return kernel.number(Fraction(2) ** exponent, DTYPES["fp32"])
