"""Chunks of a tensor: sizes, slices on tile boundaries, limits of a topology (collectives spec 2.3, 3.3, 8)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, Literal, TypeAlias

from ..abi.status import invalid
from ..ir.attributes import UNITS
from ..mesh.topology import Topology
from ..numerics.errors import TooLarge, require_shape
from ..numerics.formats import DType, shown
from .schedules import require_within

# How large a chunk is: in bytes, as a number or as text with a unit, or in rows or columns (COLL-02.3-01, -02, -07).
#
# `chunk` and `chunk_bytes` are two names of one attribute (AMB-COLL-01); units, fractions and what excludes each
# other are AMB-COLL-35.


Measure: TypeAlias = Literal["bytes", "rows", "columns"]

MOST = (1 << 63) - 1
"""The largest number of bytes, rows or columns."""

RANGE = f"a whole number from 1 to {MOST}"
ALLOWED = f"bytes, as {RANGE} or as text like 512KiB, in {', '.join(UNITS)}; or rows or columns, as {{rows: 64}}"
AMOUNT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)([A-Za-z]*)")


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """At most so many bytes, rows or columns a chunk."""

    measure: Measure
    amount: int


def read_chunk_size(function: str, chunk: Any = None, chunk_bytes: Any = None) -> ChunkSize:
    """Read the attributes `chunk`, of any measure, and `chunk_bytes`, in bytes.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for neither, for two that differ, and for an impossible chunk.
    """
    if chunk is None and chunk_bytes is None:
        raise invalid(function, "neither chunk nor chunk_bytes is given", f"chunk: {ALLOWED}")
    sizes = [] if chunk is None else [_size(function, chunk)]
    if chunk_bytes is not None:
        sizes.append(ChunkSize("bytes", _bytes(function, "chunk_bytes", chunk_bytes)))
    if sizes[0] != sizes[-1]:
        given = f"chunk is {shown(chunk)} and chunk_bytes is {shown(chunk_bytes)}"
        raise invalid(function, given, "one of them, or the same number of bytes in both (AMB-COLL-01)")
    return sizes[0]


def _size(function: str, chunk: Any) -> ChunkSize:
    if not isinstance(chunk, dict):
        return ChunkSize("bytes", _bytes(function, "chunk", chunk))
    if len(chunk) == 1:
        if "rows" in chunk:
            return ChunkSize("rows", _whole(function, "chunk.rows", chunk["rows"]))
        if "columns" in chunk:
            return ChunkSize("columns", _whole(function, "chunk.columns", chunk["columns"]))
    raise invalid(function, f"chunk has the members {shown(list(chunk))}", "rows or columns, one of the two")


def _bytes(function: str, name: str, value: Any) -> int:
    if not isinstance(value, str):
        return _whole(function, name, value, ALLOWED)
    match = AMOUNT.fullmatch(value)
    if match is None or match[2] not in UNITS:
        raise invalid(function, f"{name} is {shown(value)}", ALLOWED)
    amount = Fraction(match[1]) * UNITS[match[2]]
    if amount.denominator != 1:
        raise invalid(function, f"{name} is {shown(value)}, {float(amount)} bytes", RANGE)
    return _whole(function, name, amount.numerator)


def _whole(function: str, name: str, value: Any, allowed: str = RANGE) -> int:
    if type(value) is not int or not 1 <= value <= MOST:
        raise invalid(function, f"{name} is {shown(value)}", allowed)
    return value


# Slicing a tensor into chunks that end on tile boundaries (COLL-02.3-01 to -03, COLL-08-01, COLL-08-09).
#
# Every element is in exactly one chunk, chunks come in ascending order, all but the last are of one size, and an
# empty tensor has none. What a tile is to a chunk of each measure is AMB-COLL-21 and AMB-COLL-36.


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
        extents = bands(function, columns, aligned(size.amount, tile[1]))
        return [Chunk(first, count, rows, columns) for first, count in extents]
    if size.measure == "rows":
        extents = bands(function, rows, aligned(size.amount, tile[0]))
        return [_run(first * columns, count * columns) for first, count in extents]
    step = aligned(size.amount // dtype.storage_bytes, prod(tile))
    return [_run(first, count) for first, count in bands(function, rows * columns, step)]


def aligned(amount: int, tile: int) -> int:
    """The largest multiple of a tile within an amount, and at least one tile."""
    return max(amount // tile, 1) * tile


def bands(function: str, extent: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield the start and length of each band of `step` along an extent; the last may be short. Raises `TooLarge`."""
    count = -(-extent // step)
    if count > MOST_CHUNKS:
        raise TooLarge(function, "chunks", count, MOST_CHUNKS)
    return ((first, min(step, extent - first)) for first in range(0, extent, step))


def _run(first: int, count: int) -> Chunk:
    return Chunk(first, count, 1, count)


# Which chunk sizes and how many chunks in flight a topology allows (collectives spec 3.3; COLL-03.3-04, -05).


@dataclass(frozen=True)
class ChunkLimits:
    """The most bytes of a chunk, and the most chunks in flight; the least of each is 1."""

    chunk_bytes: int
    max_inflight: int


def check_chunks(topology: Topology, chunk_bytes: int, max_inflight: int) -> ChunkLimits:
    """Return the allowed limits: chunks in flight have a credit of every link, and fit together on every device.

    Raises `Failure` with TESS_ERR_INVALID_VALUE, naming the allowed range (AMB-COLL-46).
    """
    inflight = min((link.credits for link in topology.links), default=1)
    require_within("check_chunks", "max_inflight", max_inflight, 1, inflight)
    largest = min(device.memory_bytes for device in topology.devices) // max_inflight
    require_within("check_chunks", "chunk_bytes", chunk_bytes, 1, largest)
    return ChunkLimits(largest, inflight)
