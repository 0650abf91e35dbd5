"""Contractions by matrix instructions: ldmatrix, mma.sync and shared memory (spec sections 7.2, 7.3, 8.2, 16).

The warps of a block share the fragments of its tile out among them. Matrix instructions read shared memory, so both
operands are staged there, prefetched or not. Accumulators are stored to a buffer of one fragment per warp in shared
memory, from which the lanes read single elements: the epilogue needs no fragments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

from ...graph.term import Term
from ...ir.module import Value
from ...ir.targets import MmaShape
from ...ir.types import Fragment
from ...schedule.resources import buffers
from ..fragments import ALIGNMENT, FragmentStore, FragmentZero, LoadMatrix, MmaSync
from .contraction import Contraction
from .index import Index, ceiling
from .kernel import Terms
from .staging import Stage, pipelined, stage_elements

MOST_WARPS = 8
"""Warps of a block: enough to hide latencies, and few enough for the registers of large tiles."""


@dataclass(frozen=True)
class Share:
    """Fragments of a tile, in rows and columns, and how many warps there are along each."""

    fragments: tuple[int, int]
    warps: tuple[int, int]

    @classmethod
    def of(cls, rows: int, columns: int, most: int) -> Share:
        """The split over the most warps that get equal parts, as square as possible."""
        ways = [
            (down, across)
            for down, across in product(range(1, rows + 1), range(1, columns + 1))
            if rows % down == 0 and columns % across == 0 and down * across <= most
        ]
        return cls((rows, columns), max(ways, key=lambda way: (way[0] * way[1], -abs(way[0] - way[1]))))

    @property
    def count(self) -> int:
        """The number of warps."""
        return self.warps[0] * self.warps[1]

    @property
    def each(self) -> tuple[int, int]:
        """The rows and columns of fragments that one warp has."""
        return self.fragments[0] // self.warps[0], self.fragments[1] // self.warps[1]


def matrix_units(work: Contraction, shape: MmaShape) -> int:
    """Build the body of the kernel; its threads."""
    return _MatrixProduct(fitted(work, shape), shape).build()


def fitted(work: Contraction, shape: MmaShape) -> Contraction:
    """The work with its tile halved along k until the accumulators' buffers fit beside the stages (AMB-LANG-241).

    Tiles are added in ascending order of k whatever their size, so no bit depends on it.
    """
    target = work.kernel.target
    m, n, k = work.tile
    rows, columns = ceiling(m, shape.m) * shape.m, ceiling(n, shape.n) * shape.n
    others = sum(size for value, size in buffers(work.kernel.nest) if value not in (work.a, work.b))
    leaving = MOST_WARPS * shape.m * shape.n * work.operation.accum.storage_bytes + others

    def staged(k: int) -> int:
        return (rows + columns) * ceiling(k, shape.k) * shape.k * work.dtype.storage_bytes * work.kernel.nest.depth

    while staged(k) + leaving > target.shared_bytes and k > shape.k:
        k = ceiling(k // 2, shape.k) * shape.k
    return replace(work, tile=(m, n, k))


class _MatrixProduct:
    """One product by instructions of one shape."""

    def __init__(self, work: Contraction, shape: MmaShape) -> None:
        self.work = work
        self.kernel = work.kernel
        self.shape = shape
        m, n, k = work.tile
        self.depth_in_fragments = ceiling(k, shape.k)
        self.share = Share.of(ceiling(m, shape.m), ceiling(n, shape.n), MOST_WARPS)
        self.room = self.share.fragments[0] * shape.m, self.share.fragments[1] * shape.n
        self.threads = self.share.count * self.kernel.target.warp
        self.a, self.b = self._stage_a(), self._stage_b()
        self.type = Fragment(shape.m, shape.n, shape.k, work.dtype)
        self.row, self.column = divmod(self.kernel.warp_id(), self.share.warps[1])

    def _stage_a(self) -> Stage:
        m, _, k = self.work.tile
        room = self.room[0], self.depth_in_fragments * self.shape.k
        return Stage.of(self.kernel, self.work.a, (m, k), room, self.kernel.nest.depth, self.threads)

    def _stage_b(self) -> Stage:
        """B transposed where the rows of its fragments would not be aligned."""
        _, n, k = self.work.tile
        room = self.depth_in_fragments * self.shape.k, self.room[1]
        transposed = self.shape.n * self.work.dtype.storage_bytes % ALIGNMENT != 0
        return Stage.of(self.kernel, self.work.b, (k, n), room, self.kernel.nest.depth, self.threads, transposed)

    def build(self) -> int:
        """The whole body; the threads of a block."""
        build, accum = self.kernel.build, self.work.operation.accum
        rows, columns = self.share.each
        work = self.work
        stage_elements(self.kernel, work.batch, (work.row, work.column), work.tile[:2], self.threads)
        zeros = [self.kernel.term(build(FragmentZero, returns=self.type, accum=accum)) for _ in range(rows * columns)]
        totals = pipelined(self.kernel, self.work.steps, self.kernel.nest.depth, self.fill, self.compute, zeros)
        self.store(totals)
        return self.threads

    def fill(self, step: Index, slot: Index) -> None:
        """Copy the tiles of both operands."""
        along = step * self.work.tile[2]
        self.a.fill(slot, self.work.batch, self.work.row, along)
        self.b.fill(slot, self.work.batch, along, self.work.column)

    def compute(self, step: Index, slot: Index, totals: tuple[Term, ...]) -> Terms:
        """Add the products of one tile along k, in ascending order of k, to every accumulator of the warp."""
        rows, columns = self.share.each
        found = list(totals)
        for depth in range(self.depth_in_fragments):
            along = self.kernel.index(depth * self.shape.k)
            left = [self._load(self.a, slot, self._row(i), along) for i in range(rows)]
            right = [self._load(self.b, slot, along, self._column(j)) for j in range(columns)]
            for place, (i, j) in enumerate(product(range(rows), range(columns))):
                found[place] = self._multiplied(left[i], right[j], found[place])
        return found

    def _row(self, i: int) -> Index:
        """The first row of the warp's fragments in its row i."""
        return (self.row * self.share.each[0] + i) * self.shape.m

    def _column(self, j: int) -> Index:
        """The first column of the warp's fragments in its column j."""
        return (self.column * self.share.each[1] + j) * self.shape.n

    def _load(self, stage: Stage, slot: Index, row: Index, column: Index) -> Value:
        corner = (slot, column, row) if stage.transposed else (slot, row, column)
        indices = (index.value for index in corner)
        build = self.kernel.build
        return build(LoadMatrix, stage.memory, *indices, returns=self.type, transpose=stage.transposed)

    def _multiplied(self, a: Value, b: Value, total: Term) -> Term:
        m, n, k = self.shape.m, self.shape.n, self.shape.k
        accum = self.work.operation.accum
        return self.kernel.term(self.kernel.build(MmaSync, a, b, total.value, m=m, n=n, k=k, accum=accum))

    def store(self, totals: tuple[Term, ...]) -> None:
        """Write every accumulator: to the fragment of the warp, and from there, element by element, to the outputs."""
        kernel, (m, n) = self.kernel, (self.shape.m, self.shape.n)
        scratch = kernel.shared((self.share.count, m, n), self.work.operation.accum)
        corner = (kernel.warp_id(), kernel.index(0), kernel.index(0))
        for place, (i, j) in enumerate(product(*map(range, self.share.each))):
            if place:
                kernel.barrier("the last fragment is written")
            kernel.build.all(FragmentStore, totals[place].value, scratch, *(index.value for index in corner))
            kernel.barrier("the fragment is there")
            self._store_fragment(scratch, self._row(i), self._column(j))

    def _store_fragment(self, scratch: Value, row: Index, column: Index) -> None:
        kernel, n = self.kernel, self.shape.n
        count, lanes = self.shape.m * n, kernel.target.warp

        def element(start: Index, _: tuple[Term, ...]) -> Terms:
            place = start + kernel.lane_id()
            i, j = divmod(place, n)

            def write() -> Terms:
                return self.work.write(row + i, column + j, kernel.load(scratch, (kernel.warp_id(), i, j)))

            exists = count % lanes == 0 or place.below(count)
            inside = self.work.inside(row + i, column + j, self.room)
            return kernel.when(kernel.every(exists, inside), write)

        kernel.loop(0, count, lanes, element)
