"""Default tile sizes: as large as the target's memory and registers allow (section 8.2).

They never change a bit (LANG-08.2-01); a schedule that names sizes replaces them.
"""

from __future__ import annotations

from math import prod

from ..ir.targets import Target
from ..ir.types import Tensor, Type
from ..numerics.formats import DType

CONTRACTION = 128
"""m and n of a contraction."""
DEPTH_BYTES = 128
"""k of a contraction: as many elements as make these bytes."""
THREADS = 256
"""Threads of a block that share a tile, where it has as many elements."""
MAP = (32, 128)
ROWS = 8

TileSizes = tuple[int, int, int]


def contraction_tile(
    reached: TileSizes, operands: DType, target: Target, depth: int, wished: tuple[int, ...] = ()
) -> TileSizes:
    """Sizes for the extents m, n and k of a product, clipped to them in whole matrix instructions."""
    chosen = (CONTRACTION, CONTRACTION, max(DEPTH_BYTES // operands.storage_bytes, 8))
    sizes = (*wished, *chosen[len(wished) :])
    granules = granules_of(operands, target)
    clipped = [
        min(size, -(-max(extent, 1) // granule) * granule)
        for size, extent, granule in zip(sizes, reached, granules, strict=True)
    ]
    while not wished:
        crowded = accumulators(clipped, operands) > target.registers // 2
        if not crowded and staged_bytes(clipped, operands, depth) <= target.shared_bytes:
            break
        position = 2 if clipped[2] > 16 and not crowded else max((0, 1), key=lambda i: clipped[i])
        if clipped[position] <= granules[position]:
            break
        clipped[position] = max(clipped[position] // 2 // granules[position], 1) * granules[position]
    return clipped[0], clipped[1], clipped[2]


def accumulators(sizes: list[int], operands: DType) -> int:
    """The registers in which a thread holds its part of a tile of a product."""
    return -(-sizes[0] * sizes[1] // THREADS) * -(-operands.accumulator.bits // 32)


def staged_bytes(sizes: list[int], operands: DType, depth: int) -> int:
    """The shared memory that the tiles of both operands of a contraction take, `depth` times."""
    m, n, k = sizes
    return (m * k + k * n) * operands.storage_bytes * depth


def granules_of(operands: DType, target: Target) -> TileSizes:
    """The largest steps in which a matrix instruction of the target covers m, n and k; 1 where it has none."""
    shapes = target.shapes_of(operands)
    if not shapes:
        return 1, 1, 1
    first = shapes[0]
    return first.m, first.n, first.k


def map_tile(type_: Type) -> TileSizes:
    """Sizes over the last two dimensions of a tensor."""
    shape = extents(type_)
    rows, columns = (1, 1, *shape)[-2:]
    m = min(max(rows, 1), MAP[0])
    return m, min(max(columns, 1), MAP[0] * MAP[1] // m), 1


def rows_tile(type_: Type, axis: int, dtype: DType, target: Target) -> TileSizes:
    """How many rows together, and how many of their elements at a time: all, where shared memory has room."""
    shape = extents(type_)
    length = max(shape[axis], 1)
    rows = max(prod(shape[:axis] + shape[axis + 1 :]), 1)
    room = target.shared_bytes // dtype.storage_bytes
    return min(rows, ROWS, max(room // length, 1)), min(length, room), 1


def extents(type_: Type) -> tuple[int, ...]:
    """The extents of a value that are known."""
    shape = type_.shape if isinstance(type_, Tensor) else ()
    return tuple(extent for extent in shape if isinstance(extent, int))
