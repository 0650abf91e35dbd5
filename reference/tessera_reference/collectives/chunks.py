"""Slicing a tensor into chunks that end on tile boundaries (COLL-02.3-01 to -03, COLL-08-01, COLL-08-09).

Every element is in exactly one chunk, chunks come in ascending order, all but the last are of one size, and an empty
tensor has none. What a tile is to a chunk of each measure is AMB-COLL-21 and AMB-COLL-36.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ..numerics.errors import TooLarge
from ..numerics.formats import DType
from ..numerics.limits import require_shape
from .chunk_sizes import ChunkSize

__all__ = ["MOST_CHUNKS", "Chunk", "aligned", "bands", "chunks_of"]

MOST_CHUNKS = 1 << 16
"""Chunks of one tensor; a tebibyte in chunks of 16 MiB."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """`runs` runs of `count` consecutive elements, the first from `first`, each beginning `stride` after the last.

    Places count elements of the flat tensor in row-major order. A chunk of bytes or rows is one run.
    """

    first: int
    count: int
    runs: int
    stride: int


def chunks_of(
    function: str, shape: Sequence[int], dtype: DType, size: ChunkSize, tile: tuple[int, int] = (1, 1)
) -> list[Chunk]:
    """The chunks of a tensor, which is taken as a matrix: columns along the last axis, all other axes are rows.

    `tile` are the rows and columns of the producer's tile. Raises `ShapeMismatch`, and `TooLarge` for more chunks than
    `MOST_CHUNKS`.
    """
    require_shape(function, shape)
    rows, columns = prod(shape[:-1]), prod(shape[-1:])
    if rows * columns == 0:
        return []
    if size.measure == "columns":
        found = bands(function, columns, aligned(size.amount, tile[1]))
        return [Chunk(first, count, rows, columns) for first, count in found]
    if size.measure == "rows":
        found = bands(function, rows, aligned(size.amount, tile[0]))
        return [_run(first * columns, count * columns) for first, count in found]
    step = aligned(size.amount // dtype.storage_bytes, prod(tile))
    return [_run(first, count) for first, count in bands(function, rows * columns, step)]


def aligned(amount: int, tile: int) -> int:
    """The largest multiple of a tile within an amount, and at least one tile."""
    return max(amount // tile, 1) * tile


def bands(function: str, extent: int, step: int) -> Iterator[tuple[int, int]]:
    """Where each band of `step` begins along an extent, and its length; the last may be short. Raises `TooLarge`."""
    count = -(-extent // step)
    if count > MOST_CHUNKS:
        raise TooLarge(function, "chunks", count, MOST_CHUNKS)
    return ((first, min(step, extent - first)) for first in range(0, extent, step))


def _run(first: int, count: int) -> Chunk:
    return Chunk(first, count, 1, count)
