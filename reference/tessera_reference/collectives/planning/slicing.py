"""Slicing: the chunks of a collective, ranges of the elements that it is given, row-major (COLL-02.3-01, COLL-08-09).

A boundary is a multiple of the producer's tile; the last chunk may be short; a chunk below a tile is one tile, one that
is no multiple of it is rounded down (AMB-COLL-21, AMB-COLL-55).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ...abi.status import Failure, Status
from ...graph.collectives import Collective
from ...graph.futures import FutureCollective
from ...ir.types import Numeric
from .steps import NAME

__all__ = ["chunk_elements", "elements", "ranges"]


def elements(type_: Numeric) -> int:
    """How many elements a tensor has. Raises `Failure` with TESS_ERR_UNSUPPORTED where that is not known."""
    known = [extent for extent in type_.shape if isinstance(extent, int)]
    if len(known) != len(type_.shape):
        expected = "extents that are numbers, for which a plan is made"
        raise Failure(Status.TESS_ERR_UNSUPPORTED, NAME, f"a collective of {type_}", expected)
    return prod(known)


def chunk_elements(operation: Collective, tile: int | None) -> int | None:
    """The elements of a full chunk; nothing for a collective that is not to be sliced.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a tile that ends within an element.
    """
    size = operation.x.dtype.storage_bytes
    if tile is not None and tile % size:
        given = f"a tile of {tile} bytes, elements of {size}"
        raise Failure(Status.TESS_ERR_INVALID_VALUE, NAME, given, f"a multiple of {size} bytes")
    chunk = operation.chunk_size if isinstance(operation, FutureCollective) else None
    if chunk is None:
        return None
    unit = tile or size
    return max(1, chunk // unit) * unit // size


def ranges(count: int, chunk: int | None) -> Iterator[tuple[int, int]]:
    """First element and count of each chunk; one chunk of nothing for no elements, since the ranks still meet."""
    step = chunk or max(1, count)
    for first in range(0, max(1, count), step):
        yield first, min(step, count - first)
