"""Maps: fused elementwise operations, and operations that move elements (section 8.2; AMB-LANG-236).

A block computes a tile of m by n elements of the last two dimensions, the grid covers the rest; each lane computes one
element at a time, reading operands at computed indices. Unless an operand is staged there is no barrier, so no thread
waits for another; operations that move elements read them from global memory, staged or not.
"""

from __future__ import annotations

from math import prod

from ...graph.term import Term
from ...ir.targets import Target
from ...schedule.nests import Nest
from .elements import evaluate
from .grid import Grid
from .index import Condition, Index, ceiling, unravelled
from .kernel import Extents, extents_of
from .nest_kernel import NestKernel
from .staging import stage_elements

MOST_LANES = 256
"""Threads of a block that computes elements one by one."""


def map_kernel(nest: Nest, target: Target) -> tuple[NestKernel, Extents, int]:
    """The kernel of a map, its grid and the threads of its blocks."""
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


def write_elements(kernel: NestKernel, at: tuple[Index, ...]) -> tuple[Term, ...]:
    """Compute and write the element at a position of every output."""
    nest = kernel.nest
    for output, found in zip(nest.outputs, evaluate(kernel, nest.instructions, nest.outputs, at), strict=True):
        kernel.write(output, at, found)
    return ()


def lanes_for(elements: int, target: Target, most: int = MOST_LANES) -> int:
    """Whole warps for so many elements, up to `most` threads."""
    return min(ceiling(elements, target.warp) * target.warp, most, target.threads_per_block)
