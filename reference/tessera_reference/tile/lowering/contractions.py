"""Contractions: a matrix product with an elementwise epilogue (spec sections 7, 8.2, 13.1, 15; AMB-LANG-237).

A block computes a tile of m by n elements of one matrix of the batch: with the matrix instructions of the target where
it has any for the dtype and the accumulator is the canon's (`matrix_units`), else lane by lane (`lane_products`). In
both, products are added in ascending order of k to +0, each rounded, and the total is rounded once to the result.
"""

from __future__ import annotations

from math import prod

from ...graph.matmul import MatMul
from ...ir.operation import require
from ...ir.targets import MmaShape, Target
from ...numerics.formats import DType
from ...schedule.nests import Nest
from .contraction import Contraction
from .grid import Grid
from .index import unravelled
from .kernel import Extents, extents_of
from .lane_products import lane_products
from .matrix_units import matrix_units
from .nest_kernel import NestKernel, dtype_of

CHOSEN = (16, 16, 16)
"""The shape of matrix instructions that is taken where there is a choice (section 7.2)."""


def contraction_kernel(nest: Nest, target: Target) -> tuple[NestKernel, Extents, int]:
    """The kernel of a contraction, its grid and the threads of its blocks. Raises `Refusal`."""
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
    """The matrix instruction for operands of a dtype, if the target has any."""
    shapes = target.shapes_of(operands)
    return next((shape for shape in shapes if (shape.m, shape.n, shape.k) == CHOSEN), shapes[0] if shapes else None)


def require_accumulator(operation: MatMul) -> None:
    """Refuse an accumulator that cannot hold the operands exactly: products would be rounded twice."""
    held, accum = operation.a.dtype.storage, operation.accum.storage
    holds = accum.kind != "float" or (
        accum.fraction_bits >= held.fraction_bits
        and accum.max_finite >= held.max_finite
        and accum.min_subnormal <= held.min_subnormal
        and accum.bits > 8
    )
    require(
        holds,
        "numerics",
        f"a product of {operation.a.dtype} accumulates in {accum}",
        f"an accumulator that holds every {operation.a.dtype}",
        "LANG-10-01",
        f"accumulate in {operation.a.dtype.accumulator}",
    )
