"""Slicing in plans: a collective's chunks are those of bytes of `collectives.chunks` (COLL-02.3-01, COLL-08-09).

They are ranges of the elements that a rank brings, row-major (AMB-COLL-21, AMB-COLL-55); an empty tensor has one chunk
here, since its ranks meet all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ...abi.status import Failure, Status
from ...graph.collectives import Collective
from ...graph.futures import FutureCollective
from ...ir.types import Numeric
from ..chunks import aligned, bands
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
    return aligned(chunk // size, 1 if tile is None else tile // size)


def ranges(count: int, chunk: int | None) -> Iterator[tuple[int, int]]:
    """First element and count of each chunk; one chunk of nothing for no elements, since the ranks still meet.

    Raises `TooLarge` for too many.
    """
    return bands(NAME, count, chunk or count) if count else iter([(0, 0)])
