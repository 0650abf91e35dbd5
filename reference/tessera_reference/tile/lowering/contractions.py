"""Contractions: matrix products by lanes or matrix instructions, with an epilogue (spec sections 7, 8.2, 13.1, 15)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from math import inf, prod

from ...graph.reductions import MatMul
from ...graph.term import Term
from ...ir.operation import Refusal
from ...ir.targets import MmaShape, Target
from ...ir.types import Fragment, Value
from ...numerics.formats import DTYPES, DType
from ...schedule.nests import Nest, buffers
from ..fragments import ALIGNMENT, FragmentStore, FragmentZero, LoadMatrix, MmaSync
from .elements import NestKernel, dtype_of
from .kernel import Condition, Extents, Index, KernelBuilder, Position, Terms, ceiling, extents_of, unravelled
from .maps import Grid, Stage, lanes_for, pipelined, stage_elements, write_elements

# The product of a nest in its kernel: extents, the tile of a block, the epilogue of a total (section 15).


@dataclass(frozen=True)
class Contraction:
    """The product of a nest, and the tile of it that a block computes."""

    kernel: NestKernel
    operation: MatMul
    a: Value
    b: Value
    product: Value
    extents: tuple[int, int, int]
    tile: tuple[int, int, int]
    batch: Position
    """The place of the matrix in the batch."""
    row: Index
    column: Index
    """The corner of the tile."""

    @property
    def dtype(self) -> DType:
        """The dtype of the operands."""
        return dtype_of(self.a)

    @property
    def steps(self) -> int:
        """The number of tiles along k."""
        return ceiling(self.extents[2], self.tile[2])

    def inside(self, row: Index, column: Index, room: tuple[int, int]) -> Condition:
        """Return the condition that a position in `room` rows and columns lies in the tile and in the product."""
        m, n, _ = self.extents
        conditions: list[Condition] = []
        places, indices = (row, column), (self.row + row, self.column + column)
        for place, index, size, padded, extent in zip(places, indices, self.tile, room, (m, n), strict=False):
            conditions += [padded <= size or place.below(size), extent % size == 0 or index.below(extent)]
        return self.kernel.every(*conditions)

    def write(self, row: Index, column: Index, total: Term) -> None:
        """Round a total to the product's dtype, apply the epilogue and write the outputs."""
        at = (*self.batch, self.row + row, self.column + column)
        write_elements(self.kernel, at, {self.product: total.cast_to(dtype_of(self.product))})


# Contractions lane by lane: for dtypes and accumulators that no matrix instruction of the target takes (section 8.2).
#
# Prefetched operands are read from shared memory, tile by tile along k, others from global memory. Without staged ones
# there is no shared memory and no barrier: every lane works alone.


MOST_LANES = 1024
"""The most threads of a block: many, so that each keeps few totals."""


def lane_products(work: Contraction) -> int:
    """Build the body of the kernel, and return its number of threads."""
    lanes = lanes_for(work.tile[0] * work.tile[1], work.kernel.target, MOST_LANES)
    stage_elements(work.kernel, work.batch, (work.row, work.column), work.tile[:2], lanes)
    staged = [value for value in (work.a, work.b) if value in work.kernel.nest.staged]
    if staged:
        _Staged(work, lanes).build()
    else:
        _from_global_memory(work, lanes)
    return lanes


def _from_global_memory(work: Contraction, lanes: int) -> None:
    """Let each lane compute one element after another."""
    kernel, (m, n, _) = work.kernel, work.tile

    def element(start: Index, _: tuple[Term, ...]) -> Terms:
        place = start + kernel.thread_id()
        row, column = divmod(place, n)

        def compute() -> None:
            def add(k: Index, totals: tuple[Term, ...]) -> Terms:
                a = kernel.read(work.a, (*work.batch, work.row + row, k))
                b = kernel.read(work.b, (*work.batch, k, work.column + column))
                return (added(work, totals[0], a, b),)

            (total,) = kernel.loop(0, work.extents[2], 1, add, (zero(work),))
            work.write(row, column, total)

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
        """Return the positions of a lane's elements, in one column where the lanes cover whole rows."""
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
        for place, total in zip(self.own, totals, strict=True):
            inside = self.work.inside(*place, room_of(self.work, self.lanes))
            self.kernel.when(inside, partial(self.work.write, *place, total))

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
        """Return the element of a in a row of the tile; below the tile, where nothing is written, its last row's."""
        m, n, _ = self.work.tile
        row = row if m * n % self.lanes == 0 else row.at_most(m - 1)
        if self.a:
            return self.a.load(slot, row, k)
        nearest = (self.work.row + row).at_most(self.work.extents[0] - 1)
        return self.kernel.read(self.work.a, (*self.work.batch, nearest, along + k))

    def _right(self, slot: Index, along: Index, k: Index, column: Index) -> Term:
        """Return the element of b in a column of the tile."""
        if self.b:
            return self.b.load(slot, k, column)
        nearest = (self.work.column + column).at_most(self.work.extents[1] - 1)
        return self.kernel.read(self.work.b, (*self.work.batch, along + k, nearest))


def room_of(work: Contraction, lanes: int) -> tuple[int, int]:
    """Return the rows and columns that the lanes visit, rounded up to whole passes of the block."""
    m, n, _ = work.tile
    return ceiling(ceiling(m * n, lanes) * lanes, n), n


def zero(work: Contraction) -> Term:
    """Return the start value of a total: +0."""
    return work.kernel.exactly(0, work.operation.accum)


def added(work: Contraction, total: Term, a: Term, b: Term) -> Term:
    """Return the total plus a product, both rounded to the accumulator (LANG-10-02)."""
    if work.dtype.name == "tf32":
        a, b = rounded_to_tf32(work.kernel, a), rounded_to_tf32(work.kernel, b)
    return total + a.cast_to(work.operation.accum) * b.cast_to(work.operation.accum)


SCALES = range(-112, 113, 28)
"""The powers of two that bring the numbers of fp32, from the largest to the smallest, into the range of fp16."""

BELOW = 15
"""A scale applies to numbers that it maps below this power of two, where fp16 has all their rounded values."""


def rounded_to_tf32(kernel: KernelBuilder, x: Term) -> Term:
    """Return a number rounded to the ten fraction bits of tf32, as matmul rounds its operands (AMB-LANG-238).

    fp16 has as many. So the number is scaled, range by range, by a power of two into the range of fp16, rounded to it
    and scaled back; both scalings are exact. A number that overflows tf32 overflows fp16 at the first scale; at the
    last scale the subnormals of tf32 are those of fp16.
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


# Contractions by matrix instructions: ldmatrix, mma.sync and shared memory (spec sections 7.2, 7.3, 8.2, 16).
#
# The warps of a block divide the fragments of its tile. Matrix instructions read shared memory, so both operands are
# staged there, prefetched or not. Accumulators are stored to a buffer of one fragment per warp in shared memory, from
# which the lanes read single elements: the epilogue needs no fragments.


MOST_WARPS = 8
"""The most warps of a block: enough to hide latencies, and few enough for the registers of large tiles."""


@dataclass(frozen=True)
class Share:
    """The fragments of a tile, in rows and columns, and the number of warps along each."""

    fragments: tuple[int, int]
    warps: tuple[int, int]

    @classmethod
    def of(cls, rows: int, columns: int, most: int) -> Share:
        """Return the split over the most warps with equal parts, as square as possible."""
        ways = [
            (down, across)
            for down, across in product(range(1, rows + 1), range(1, columns + 1))
            if rows % down == 0 and columns % across == 0 and down * across <= most
        ]
        return cls((rows, columns), max(ways, key=lambda way: (way[0] * way[1], -abs(way[0] - way[1]))))

    @property
    def per_warp(self) -> tuple[int, int]:
        """The rows and columns of fragments that one warp has."""
        return self.fragments[0] // self.warps[0], self.fragments[1] // self.warps[1]


def matrix_units(work: Contraction, shape: MmaShape) -> int:
    """Build the body of the kernel, and return its number of threads."""
    return _MatrixProduct(fitted(work, shape), shape).build()


def fitted(work: Contraction, shape: MmaShape) -> Contraction:
    """Return the work with its tile halved along k until accumulators fit beside the stages (AMB-LANG-241).

    Tiles of any size are added in ascending order of k, so no bit depends on it.
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
        self.threads = prod(self.share.warps) * self.kernel.target.warp
        along = self.depth_in_fragments * shape.k
        self.a = self._stage(work.a, (m, k), (self.room[0], along))
        # B transposed where the rows of its fragments would not be aligned
        transposed = shape.n * work.dtype.storage_bytes % ALIGNMENT != 0
        self.b = self._stage(work.b, (k, n), (along, self.room[1]), transposed)
        self.type = Fragment(shape.m, shape.n, shape.k, work.dtype)
        self.row, self.column = divmod(self.kernel.warp_id(), self.share.warps[1])

    def _stage(self, value: Value, tile: tuple[int, int], room: tuple[int, int], transposed: bool = False) -> Stage:
        return Stage.of(self.kernel, value, tile, room, self.kernel.nest.depth, self.threads, transposed)

    def build(self) -> int:
        """Build the whole body, and return the threads of a block."""
        build, work = self.kernel.build, self.work
        stage_elements(self.kernel, work.batch, (work.row, work.column), work.tile[:2], self.threads)
        every, accum = range(prod(self.share.per_warp)), work.operation.accum
        zeros = [self.kernel.term(build(FragmentZero, returns=self.type, accum=accum)) for _ in every]
        self.store(pipelined(self.kernel, work.steps, self.kernel.nest.depth, self.fill, self.compute, zeros))
        return self.threads

    def fill(self, step: Index, slot: Index) -> None:
        """Copy the tiles of both operands."""
        along = step * self.work.tile[2]
        self.a.fill(slot, self.work.batch, self.work.row, along)
        self.b.fill(slot, self.work.batch, along, self.work.column)

    def compute(self, step: Index, slot: Index, totals: tuple[Term, ...]) -> Terms:
        """Add the products of one tile along k, in ascending order of k, to every accumulator of the warp."""
        rows, columns = self.share.per_warp
        sums = list(totals)
        for depth in range(self.depth_in_fragments):
            along = self.kernel.index(depth * self.shape.k)
            left = [self._load(self.a, slot, self._row(i), along) for i in range(rows)]
            right = [self._load(self.b, slot, along, self._column(j)) for j in range(columns)]
            for place, (i, j) in enumerate(product(range(rows), range(columns))):
                sums[place] = self._multiplied(left[i], right[j], sums[place])
        return sums

    def _row(self, i: int) -> Index:
        """Return the first row of the warp's fragments in its row i."""
        return (self.row * self.share.per_warp[0] + i) * self.shape.m

    def _column(self, j: int) -> Index:
        """Return the first column of the warp's fragments in its column j."""
        return (self.column * self.share.per_warp[1] + j) * self.shape.n

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
        scratch = kernel.shared((prod(self.share.warps), m, n), self.work.operation.accum)
        corner = (kernel.warp_id(), kernel.index(0), kernel.index(0))
        for place, (i, j) in enumerate(product(*map(range, self.share.per_warp))):
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

            def write() -> None:
                self.work.write(row + i, column + j, kernel.load(scratch, (kernel.warp_id(), i, j)))

            exists = count % lanes == 0 or place.below(count)
            inside = self.work.inside(row + i, column + j, self.room)
            return kernel.when(kernel.every(exists, inside), write)

        kernel.loop(0, count, lanes, element)


# Contractions: a matrix product with an elementwise epilogue (spec sections 7, 8.2, 13.1, 15; AMB-LANG-237).
#
# A block computes a tile of m by n elements of one matrix of the batch: with the target's matrix instructions where it
# has any for the dtype and the accumulator is the reference arithmetic's (`matrix_units`), else lane by lane
# (`lane_products`). In both, products are added in ascending order of k to +0, each rounded, and the total is rounded
# once to the result.


CHOSEN = (16, 16, 16)
"""The preferred shape of matrix instructions, where there are several (section 7.2)."""


def contraction_kernel(nest: Nest, target: Target) -> tuple[NestKernel, Extents, int]:
    """Return the kernel of a contraction, its grid and the threads of its blocks. Raises `Refusal`."""
    kernel = NestKernel(nest, target)
    (a, b), (product,) = nest.lead.operands, nest.lead.results
    operation = nest.lead.operation
    assert isinstance(operation, MatMul)
    *batch, m, n = extents_of(product.type)
    k = extents_of(a.type)[-1]
    grid = Grid.of(kernel, (m, n), nest.tile[:2], prod(batch))
    row, column = grid.corner
    at = unravelled(grid.matrix, batch)
    work = Contraction(kernel, operation, a, b, product, (m, n, k), nest.tile, at, row, column)
    require_accumulator(operation)
    shape = shape_for(dtype_of(a), target) if operation.accum == dtype_of(a).accumulator else None
    empty = 0 in (*batch, m, n)
    threads = target.warp if empty else matrix_units(work, shape) if shape else lane_products(work)
    return kernel, grid.extents, threads


def shape_for(operands: DType, target: Target) -> MmaShape | None:
    """Return the matrix instruction for operands of a dtype, if the target has any."""
    shapes = target.shapes_of(operands)
    return next((shape for shape in shapes if (shape.m, shape.n, shape.k) == CHOSEN), shapes[0] if shapes else None)


def require_accumulator(operation: MatMul) -> None:
    """Refuse an accumulator that cannot hold the operands exactly, since products would be rounded twice."""
    dtype, accum = operation.a.dtype.storage, operation.accum.storage
    holds = accum.kind != "float" or (
        accum.fraction_bits >= dtype.fraction_bits
        and accum.max_finite >= dtype.max_finite
        and accum.min_subnormal <= dtype.min_subnormal
        and accum.bits > 8
    )
    if not holds:
        message = f"a product of {operation.a.dtype} accumulates in {accum}"
        requirement = f"an accumulator that holds every {operation.a.dtype}"
        raise Refusal("numerics", message, requirement, "LANG-10-01", f"accumulate in {operation.a.dtype.accumulator}")
