"""Rows: reductions, softmax and transforms along one axis, in the order of the canon (sections 8.2, 10; AMB-LANG-239).

A block computes several rows, as many lanes on each. A reduction goes up the tree of adjacent pairs, an odd tail
carried: the first levels within a warp by shuffles, the others in shared memory with a barrier after each. Whatever the
tile is, the tree is the same.
"""

from __future__ import annotations

from collections.abc import Callable

from ...graph.fft import FourierTransform
from ...graph.reductions import Max, Min, Reduction
from ...graph.term import Term
from ...ir.operation import Operation
from ...ir.targets import Target
from ...numerics.formats import DType
from ...schedule.kinds import row_axis
from ...schedule.nests import Nest
from ..copies import SIZES, CopyAsync
from .fourier import fourier_kernel
from .index import Index
from .kernel import Extents, Terms, extents_of
from .nest_kernel import NestKernel, dtype_of
from .reductions import reduced, softmax
from .row_blocks import RowBlocks
from .staging import finish_copies


def rows_kernel(nest: Nest, target: Target) -> tuple[NestKernel, Extents, int]:
    """The kernel of a nest of rows, its grid and the threads of its blocks. Raises `Refusal`."""
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
    """Copy what is staged to shared memory, each row as a whole, where the block has room for it (AMB-LANG-242)."""
    kernel, (x,) = rows.kernel, rows.kernel.nest.lead.operands
    dtype, count = dtype_of(x), rows.threads // rows.lanes
    size = count * rows.length * dtype.storage_bytes + 2 * rows.node_bytes(dtype.accumulator)
    if x not in kernel.nest.staged or not rows.length or size > kernel.target.shared_bytes:
        return
    memory, at = kernel.shared((count, rows.length), dtype), rows.position

    def copy(index: Index) -> Terms:
        there, here = (*at[:axis], index, *at[axis:]), (rows.local, index)
        if dtype.storage_bytes in SIZES:
            places = (place.value for place in (*there, *here))
            kernel.build.all(CopyAsync, kernel.memory_of(x), memory, *places, bytes=dtype.storage_bytes)
        else:
            kernel.store(kernel.read_there(x, there), memory, here)
        return ()

    rows.each(copy)
    finish_copies(kernel, "the rows are there")
    kernel.through[x] = lambda there: kernel.load(memory, (rows.local, there[axis]))


def elements_of(rows: RowBlocks, axis: int) -> Callable[[Index], Term]:
    """The elements of the lane's row in the accumulator type."""
    kernel, at = rows.kernel, rows.position
    (x,) = rows.kernel.nest.lead.operands
    accum = dtype_of(x).accumulator
    return lambda index: kernel.read(x, (*at[:axis], index, *at[axis:])).cast_to(accum)


def reduce_rows(rows: RowBlocks, operation: Operation, axis: int) -> None:
    """One element for each row."""
    assert isinstance(operation, Reduction)
    kernel = rows.kernel
    (result,) = kernel.nest.lead.results
    found = reduced(operation, rows, elements_of(rows, axis), operation.accum)
    at = rows.position
    place = (*at[:axis], kernel.index(0), *at[axis:]) if operation.keepdims else at

    def write() -> Terms:
        kernel.write(result, place, finished(operation, found, dtype_of(result)))
        return ()

    rows.once(write)


def finished(operation: Reduction, found: Term, dtype: DType) -> Term:
    """A reduction in its result type: rounded once; an extremum is an element of the row, an infinite one too."""
    if isinstance(operation, Max | Min) and dtype.kind == "float" and dtype.bits == 8:
        return found.cast(dtype=dtype, overflow="nonfinite")
    return found.cast_to(dtype)


def normalize_rows(rows: RowBlocks, operation: Operation, axis: int) -> None:
    """A softmax of each row."""
    kernel, at = rows.kernel, rows.position
    (x,), (result,) = kernel.nest.lead.operands, kernel.nest.lead.results
    found = softmax(rows, elements_of(rows, axis), dtype_of(x).accumulator)

    def write(index: Index) -> Terms:
        kernel.write(result, (*at[:axis], index, *at[axis:]), found(index).cast_to(dtype_of(result)))
        return ()

    rows.each(write)
