"""Rows: reductions, softmax and transforms along one axis, in the reference's order (spec sections 8.2, 10, 15)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from ...graph.constant import ConstTensor
from ...graph.reductions import ArgMax, FourierTransform, LogSumExp, Max, Mean, Min, Prod, Reduction, Sum
from ...graph.term import Term
from ...ir.operation import Operation
from ...ir.targets import Target
from ...ir.types import Value
from ...numerics.formats import DTYPES, DType
from ...numerics.fourier import twiddles
from ...schedule.choices import row_axis
from ...schedule.nests import Nest
from ..fragments import ALIGNMENT
from ..operations import SIZES, Complex, CopyAsync, Part, ShuffleSync
from .elements import Extra, NestKernel, dtype_of
from .kernel import (
    Condition,
    Extents,
    Index,
    KernelBuilder,
    Position,
    Terms,
    ceiling,
    extents_of,
    power_of_two,
    unravelled,
)
from .maps import finish_copies

# The work of a block on rows: the elements of each lane, and the reference's tree over them (section 10).
#
# A power of two of lanes works on each row, on as many adjacent elements at a time. In the tree of adjacent pairs node
# i of level l covers the elements from i * 2**l on, and the lane of its first element keeps it. So at level l a lane
# reads the value of the lane 2**l further on; a node whose neighbour would lie beyond the end of the row, the odd tail,
# keeps its own value.


MOST_LANES = 1024
"""The most threads of a block that works on rows."""

Combine = Callable[[Term, Term], Term]


@dataclass(frozen=True)
class RowBlocks:
    """Rows of a length, counted over the extents of `shape`, and the lanes of a block on each of its rows."""

    kernel: NestKernel
    shape: tuple[int, ...]
    length: int
    together: int
    """The number of rows of a block."""
    lanes: int
    """The number of lanes of a row."""
    threads: int
    """The number of threads of a block, in whole warps."""
    local: Index
    """The row of a lane, counted in its block."""
    lane: Index
    """The place of a lane among those of its row."""
    position: Position
    """The position of a lane's row."""
    inside: Condition
    """True if a lane has a row."""

    @classmethod
    def of(cls, kernel: NestKernel, shape: tuple[int, ...], length: int) -> RowBlocks:
        """Return rows and lanes as the nest's tile requests, limited by the existing rows and threads."""
        rows, chunk, _ = kernel.nest.tile
        most = min(MOST_LANES, kernel.target.threads_per_block)
        together = max(min(rows, prod(shape), most), 1)
        lanes = max(min(power_of_two(min(chunk, length)), power_of_two(most // together + 1) // 2), 1)
        threads = ceiling(together * lanes, kernel.target.warp) * kernel.target.warp
        local, lane = divmod(kernel.thread_id(), lanes)
        row = kernel.block_id("x") * together + local
        inside = kernel.every(
            threads == together * lanes or local.below(together), prod(shape) % together == 0 or row.below(prod(shape))
        )
        return cls(kernel, shape, length, together, lanes, threads, local, lane, unravelled(row, shape), inside)

    @property
    def extents(self) -> Extents:
        """The grid."""
        return max(ceiling(prod(self.shape), self.together), 1), 1, 1

    def each(self, body: Callable[[Index], Terms]) -> None:
        """Run the body in every lane for each element of its row."""

        def chunk(start: Index, _: tuple[Term, ...]) -> None:
            place = start + self.lane
            self.kernel.when(self.kernel.every(self.inside, self._exists(place)), lambda: body(place))

        self.kernel.loop(0, self.length, self.lanes, chunk)

    def once(self, body: Callable[[], Terms]) -> None:
        """Run the body once for each row."""
        self.kernel.when(self.kernel.every(self.inside, self.lane.equals(0)), body)

    def _exists(self, place: Index) -> Condition:
        return self.length % self.lanes == 0 or place.below(self.length)

    @property
    def nodes(self) -> tuple[int, int]:
        """The rows of a tree in shared memory, and the nodes of each: one for each warp's part of it."""
        return self.threads // self.lanes, ceiling(self.length, min(self.lanes, self.kernel.target.warp))

    def node_bytes(self, dtype: DType) -> int:
        """Return the shared memory that one tree takes."""
        return ceiling(prod(self.nodes) * dtype.storage_bytes, ALIGNMENT) * ALIGNMENT

    def tree(self, element: Callable[[Index], Term], combine: Combine, dtype: DType) -> Term:
        """Return the result of the tree over the elements of a row, at least one, in each of its lanes."""
        width = min(self.lanes, self.kernel.target.warp)
        nodes = self.kernel.shared(self.nodes, dtype)

        def chunk(start: Index, _: tuple[Term, ...]) -> None:
            place = start + self.lane
            exists = self._exists(place)
            is_here = self.kernel.every(self.inside, exists)
            (value,) = self.kernel.when(is_here, lambda: (element(place),), lambda: (self.kernel.exactly(0, dtype),))
            value = self._of_warp(place, value, combine, width)
            node, within = divmod(place, width)
            first = self.kernel.every(exists, within.equals(0))
            self.kernel.when(first, lambda: self.kernel.store(value, nodes, (self.local, node)))

        self.kernel.loop(0, self.length, self.lanes, chunk)
        self.kernel.barrier("the nodes of all warps are there")
        self._of_block(nodes, self.nodes[1], combine)
        return self.kernel.load(nodes, (self.local, self.kernel.index(0)))

    def _of_warp(self, place: Index, value: Term, combine: Combine, width: int) -> Term:
        """Return a lane's value after the tree levels within a warp."""
        delta = 1
        while delta < width:
            other = self.kernel.term(self.kernel.build(ShuffleSync, value.value, delta=delta))
            paired = self.length % (2 * delta) == 0 or (place + delta).below(self.length)
            value = self.kernel.chosen(paired, combine(value, other), value)
            delta *= 2
        return value

    def _of_block(self, nodes: Value, count: int, combine: Combine) -> None:
        """Compute the levels above a warp, in shared memory."""
        local, delta = self.local, 1
        while delta < count:
            pairs = ceiling(count - delta, 2 * delta)

            def node(start: Index, _: tuple[Term, ...], pairs: int = pairs, delta: int = delta) -> None:
                pair = start + self.lane
                first = pair * (2 * delta)
                left, right = (local, first), (local, first + delta)

                def join() -> None:
                    both = combine(self.kernel.load(nodes, left), self.kernel.load(nodes, right))
                    self.kernel.store(both, nodes, left)

                self.kernel.when(pairs % self.lanes == 0 or pair.below(pairs), join)

            self.kernel.loop(0, pairs, self.lanes, node)
            self.kernel.barrier("the nodes of this level are there")
            delta *= 2


# Reductions and softmax of one row, as the reference composes them (spec sections 10, 15; reference arithmetic).
#
# All steps are in the accumulator type, with one final rounding. A maximum or minimum of narrow floats is that of the
# same numbers in the accumulator, and exact.


Element = Callable[[Index], Term]
"""An element of the lane's row, by its place, in the accumulator type."""


def added_up(rows: RowBlocks, element: Element, accum: DType) -> Term:
    """Return the sum of a row; +0 for no elements."""
    if not rows.length:
        return rows.kernel.exactly(0, accum)
    return rows.tree(element, lambda a, b: a + b, accum)


def multiplied(rows: RowBlocks, element: Element, accum: DType) -> Term:
    """Return the product of a row; 1 for no elements."""
    if not rows.length:
        return rows.kernel.exactly(1, accum)
    return rows.tree(element, lambda a, b: a * b, accum)


def averaged(rows: RowBlocks, element: Element, accum: DType) -> Term:
    """Return the mean of a row."""
    return by_component(rows.kernel, added_up(rows, element, accum), lambda part: part / rows.length)


def largest(rows: RowBlocks, element: Element, accum: DType) -> Term:
    """Return the maximum of a row."""
    return rows.tree(element, lambda a, b: a.maximum(b), accum)


def smallest(rows: RowBlocks, element: Element, accum: DType) -> Term:
    """Return the minimum of a row."""
    return rows.tree(element, lambda a, b: a.minimum(b), accum)


def place_of_largest(rows: RowBlocks, element: Element, accum: DType) -> Term:
    """Return the first place of the row's maximum: a NaN where there is one, +0 rather than -0."""
    kernel, most = rows.kernel, largest(rows, element, accum)
    int32 = DTYPES["int32"]
    beyond = kernel.exactly(rows.length, int32)

    def place(index: Index) -> Term:
        return kernel.chosen(is_that(kernel, element(index), most), index.term, beyond)

    return rows.tree(place, lambda a, b: a.minimum(b), int32)


def is_that(kernel: KernelBuilder, x: Term, most: Term) -> Condition:
    """Return the condition that an element is the maximum of its row; reciprocals distinguish +0 from -0."""
    equal = x.equal(most)
    if x.dtype.kind == "int":
        return equal
    same_sign = (x.reciprocal() < 0).equal(most.reciprocal() < 0)
    return kernel.chosen(x.not_equal(x), kernel.truth(True), kernel.chosen(equal, same_sign, kernel.truth(False)))


def log_of_sum(rows: RowBlocks, element: Element, accum: DType) -> Term:
    """Return log(sum(exp(x - m))) + m, with m the maximum, or +0 where that is not finite."""
    kernel, most = rows.kernel, largest(rows, element, accum)
    infinity = kernel.exactly(float("inf"), accum)
    shift = kernel.chosen(most.abs() < infinity, most, kernel.exactly(0, accum))
    total = added_up(rows, lambda index: (element(index) - shift).exp(), accum)
    return total.log() + shift


REDUCTIONS: Mapping[type[Operation], Callable[[RowBlocks, Element, DType], Term]] = {
    Sum: added_up,
    Prod: multiplied,
    Mean: averaged,
    Max: largest,
    Min: smallest,
    ArgMax: place_of_largest,
    LogSumExp: log_of_sum,
}
"""The reduction of a row, in each of its lanes, before the final rounding."""


def softmax(rows: RowBlocks, element: Element, accum: DType) -> Element:
    """Return the elements of a row's softmax before the final rounding."""
    most = largest(rows, element, accum)

    def exponential(index: Index) -> Term:
        return (element(index) - most).exp()

    total = added_up(rows, exponential, accum)
    return lambda index: exponential(index) / total


def by_component(kernel: KernelBuilder, x: Term, function: Callable[[Term], Term]) -> Term:
    """Apply a function to a number, or to both parts of a complex number."""
    if x.dtype.kind != "complex":
        return function(x)
    parts = (function(kernel.term(kernel.build(Part, x.value, which=which))) for which in ("real", "imaginary"))
    return kernel.term(kernel.build(Complex, *(part.value for part in parts)))


# Discrete Fourier transforms: each element of the result is a row of products (section 5.2; reference, "fft").
#
# For each k the tree over j of x[j] * w[jk mod n]. The factors w are a constant of the host, correctly rounded, which
# the kernel receives as two more buffers; the scale is multiplied last, by component.


UNSCALED = {False: "backward", True: "forward"}
"""The norm without a scale, for a transform and for an inverse one."""

MOST = DTYPES["int32"].int_max
"""The largest product of two indices that fits an index."""


def fourier_kernel(nest: Nest, target: Target) -> tuple[NestKernel, Extents, int]:
    """Return the kernel of a transform, its grid and the threads of its blocks."""
    operation = nest.lead.operation
    assert isinstance(operation, FourierTransform)
    (x,), (result,) = nest.lead.operands, nest.lead.results
    shape, dtype = extents_of(x.type), dtype_of(result)
    factors = tuple(map(Extra, factors_of(shape[-1], dtype.component, operation.inverse)))
    kernel = NestKernel(nest, target, factors)
    rows = RowBlocks.of(kernel, shape, shape[-1])
    at = rows.position

    def term(index: Index) -> Term:
        turn = turned(kernel, index, at[-1], shape[-1])
        real, imaginary = (kernel.read(factor.value, (turn,)).value for factor in factors)
        element = kernel.read(x, (*at[:-1], index)).cast_to(dtype)
        return element * kernel.term(kernel.build(Complex, real, imaginary))

    def write(total: Term) -> None:
        kernel.write(result, at, scaled(kernel, operation, shape[-1], total))

    if 0 not in shape:
        total = rows.tree(term, lambda a, b: a + b, dtype)
        rows.once(lambda: write(total))
    return kernel, rows.extents, rows.threads


def factors_of(n: int, component: DType, inverse: bool) -> tuple[ConstTensor, ConstTensor]:
    """Return the real and the imaginary parts of exp(-2 pi i m / n), m < n, or of its conjugate."""
    real, imaginary = twiddles(n, component)
    if inverse:
        imaginary = np.where(imaginary == 0, imaginary, np.negative(imaginary))
    first, second = (ConstTensor(shape=(n,), dtype=component, value=tuple(part.tolist())) for part in (real, imaginary))
    return first, second


def turned(kernel: NestKernel, j: Index, k: Index, n: int) -> Index:
    """Return jk mod n, computed in 64 bits where 32 do not hold the product."""
    if (n - 1) * (n - 1) <= MOST:
        return j * k % n
    wide, narrow = DTYPES["int64"], DTYPES["int32"]
    steps = j.term.cast_to(wide) * k.term.cast_to(wide)
    return kernel.index((steps - steps / n * kernel.exactly(n, wide)).cast_to(narrow).value)


def scaled(kernel: NestKernel, operation: FourierTransform, n: int, total: Term) -> Term:
    """Return the sum times 1 / sqrt(n), times 1 / n, or as it is."""
    if operation.norm == UNSCALED[operation.inverse]:
        return total
    component = total.dtype.component
    ortho = operation.norm == "ortho"
    factor = kernel.number(n, component).rsqrt() if ortho else kernel.number(Fraction(1, n), component)
    return by_component(kernel, total, lambda part: part * factor)


# Rows: reductions, softmax and transforms along one axis, in its order (sections 8.2, 10; AMB-LANG-239).
#
# A block computes several rows, with as many lanes on each. A reduction goes up the tree of adjacent pairs with a
# carried odd tail: the first levels within a warp by shuffles, the others in shared memory with a barrier after each.
# The tree is the same for every tile.


def rows_kernel(nest: Nest, target: Target) -> tuple[NestKernel, Extents, int]:
    """Return the kernel of a nest of rows, its grid and the threads of its blocks. Raises `Refusal`."""
    operation = nest.lead.operation
    if isinstance(operation, FourierTransform):
        return fourier_kernel(nest, target)
    kernel = NestKernel(nest, target)
    shape, axis = extents_of(nest.lead.operands[0].type), row_axis(operation)
    others = shape[:axis] + shape[axis + 1 :]
    rows = RowBlocks.of(kernel, others, shape[axis])
    if 0 not in others:
        stage_rows(rows, axis)
        build = reduce_rows if isinstance(operation, Reduction) else normalize_rows
        build(rows, operation, axis)
    return kernel, rows.extents, rows.threads


def stage_rows(rows: RowBlocks, axis: int) -> None:
    """Copy staged rows to shared memory, each row as a whole, where they fit the block (AMB-LANG-242)."""
    kernel, (x,) = rows.kernel, rows.kernel.nest.lead.operands
    dtype, count = dtype_of(x), rows.threads // rows.lanes
    size = count * rows.length * dtype.storage_bytes + 2 * rows.node_bytes(dtype.accumulator)
    if x not in kernel.nest.staged or not rows.length or size > kernel.target.shared_bytes:
        return
    memory, at = kernel.shared((count, rows.length), dtype), rows.position

    def copy(index: Index) -> None:
        there, here = (*at[:axis], index, *at[axis:]), (rows.local, index)
        if dtype.storage_bytes in SIZES:
            places = (place.value for place in (*there, *here))
            kernel.build.all(CopyAsync, kernel.memory_of(x), memory, *places, bytes=dtype.storage_bytes)
        else:
            kernel.store(kernel.read_there(x, there), memory, here)

    rows.each(copy)
    finish_copies(kernel, "the rows are there")
    kernel.through[x] = lambda there: kernel.load(memory, (rows.local, there[axis]))


def elements_of(rows: RowBlocks, axis: int) -> Callable[[Index], Term]:
    """Return the elements of the lane's row in the accumulator type."""
    kernel, at = rows.kernel, rows.position
    (x,) = rows.kernel.nest.lead.operands
    accum = dtype_of(x).accumulator
    return lambda index: kernel.read(x, (*at[:axis], index, *at[axis:])).cast_to(accum)


def reduce_rows(rows: RowBlocks, operation: Operation, axis: int) -> None:
    """Write one reduced element for each row."""
    assert isinstance(operation, Reduction)
    kernel = rows.kernel
    (result,) = kernel.nest.lead.results
    total = REDUCTIONS[type(operation)](rows, elements_of(rows, axis), operation.accum)
    at = rows.position
    place = (*at[:axis], kernel.index(0), *at[axis:]) if operation.keepdims else at

    def write() -> None:
        kernel.write(result, place, finished(operation, total, dtype_of(result)))

    rows.once(write)


def finished(operation: Reduction, total: Term, dtype: DType) -> Term:
    """Return a reduction in its result type: rounded once; an extremum is an element of the row, even infinite."""
    if isinstance(operation, Max | Min) and dtype.kind == "float" and dtype.bits == 8:
        return total.cast(dtype=dtype, overflow="nonfinite")
    return total.cast_to(dtype)


def normalize_rows(rows: RowBlocks, operation: Operation, axis: int) -> None:
    """Write a softmax of each row."""
    kernel, at = rows.kernel, rows.position
    (x,), (result,) = kernel.nest.lead.operands, kernel.nest.lead.results
    row = softmax(rows, elements_of(rows, axis), dtype_of(x).accumulator)

    def write(index: Index) -> None:
        kernel.write(result, (*at[:axis], index, *at[axis:]), row(index).cast_to(dtype_of(result)))

    rows.each(write)
