"""Forms of tensors: chunks, casts, scaled blocks, error feedback, packing, top-k (collectives spec 2.3 to 2.5, 8)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from math import prod
from typing import Any, Literal

import numpy as np

from ..abi.status import invalid, unsupported
from ..graph import futures
from ..ir.attributes import UNITS
from ..numerics import quantization
from ..numerics.arithmetic import add, subtract
from ..numerics.array import Array
from ..numerics.errors import NonFinite, TooLarge, require_room, require_shape
from ..numerics.formats import DTYPES, DType, shown
from ..numerics.quantization import top_k
from ..numerics.rounding import cast
from .schedules import require_known

# How large a chunk is: in bytes, as a number or as text with a unit, or in rows or columns (COLL-02.3-01, -02, -07).
#
# `chunk` and `chunk_bytes` are two names of one attribute (AMB-COLL-01); units, fractions and what excludes each
# other are AMB-COLL-35.


MOST = futures.LARGEST_CHUNK
"""The largest number of bytes, rows or columns."""

RANGE = f"a whole number from 1 to {MOST}"
ALLOWED = f"bytes, as {RANGE} or as text like 512KiB, in {', '.join(UNITS)}; or rows or columns, as {{rows: 64}}"
AMOUNT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)([A-Za-z]*)")


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """At most so many bytes, rows or columns a chunk."""

    measure: Literal["bytes", "rows", "columns"]
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
    if list(chunk) not in (["rows"], ["columns"]):
        raise invalid(function, f"chunk has the members {shown(list(chunk))}", "rows or columns, one of the two")
    ((measure, amount),) = chunk.items()
    return ChunkSize(measure, _whole(function, f"chunk.{measure}", amount))


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
        return [Chunk(first * columns, count * columns, 1, count * columns) for first, count in extents]
    step = aligned(size.amount // dtype.storage_bytes, prod(tile))
    return [Chunk(first, count, 1, count) for first, count in bands(function, rows * columns, step)]


def aligned(amount: int, tile: int) -> int:
    """The largest multiple of a tile within an amount, and at least one tile."""
    return max(amount // tile, 1) * tile


def bands(function: str, extent: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield the start and length of each band of `step` along an extent; the last may be short. Raises `TooLarge`."""
    count = -(-extent // step)
    if count > MOST_CHUNKS:
        raise TooLarge(function, "chunks", count, MOST_CHUNKS)
    return ((first, min(step, extent - first)) for first in range(0, extent, step))


# Compressed tensors: a cast to the wire dtype, or blockwise quantization (COLL-02.5-01, -02, -05 to -08, COLL-06-06).
#
# Without a scheme the wire's dtype takes any float data by one cast (AMB-COLL-37). The scheme "blockwise" takes fp32
# data and sends a scale beside each block of consecutive elements of the flat tensor, whatever its rows and chunks
# are (AMB-COLL-38); its arithmetic is that of `numerics.quantization`.


WIRES = {name: DTYPES[sent] for name, sent in futures.WIRES.items()}
"""The names of wires, those of the dialect, and the dtypes that travel."""

DEFAULT_BLOCK = 128
"""Elements of a block where none is asked for; the text names no number (AMB-COLL-26)."""


@dataclass(frozen=True, slots=True)
class Compression:
    """A wire dtype, and the elements of a block where blocks are scaled."""

    wire: DType
    block: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Compressed:
    """A compressed tensor: `payload` of its shape, `scales` (blocks) of fp32, and the restored tensor."""

    payload: Array
    scales: Array | None
    restored: Array


def read_compression(function: str, dtype: Any, qscheme: Any = None, block: Any = None) -> Compression:
    """Read the attributes of a compressed collective. Raises `Failure` with TESS_ERR_INVALID_VALUE."""
    require_known(function, "wire dtype", dtype, tuple(WIRES))
    if qscheme is None:
        if block is not None:
            raise invalid(function, f"block {shown(block)} without a qscheme", "qscheme = blockwise, or no block")
        return Compression(WIRES[dtype])
    require_known(function, "qscheme", qscheme, futures.SCHEMES)
    if block is not None and (type(block) is not int or not 1 <= block <= MOST):
        raise invalid(function, f"block {shown(block)}", f"a whole number of elements from 1 to {MOST}")
    return Compression(WIRES[dtype], DEFAULT_BLOCK if block is None else block)


def compress(function: str, x: Array, compression: Compression) -> Compressed:
    """Compress a tensor and restore it, in its own dtype.

    Raises `Failure` with TESS_ERR_UNSUPPORTED for data that the compression does not take, `NonFinite` for a NaN or an
    infinity that would need a scale.
    """
    if compression.block is None:
        if x.dtype.kind != "float":
            raise unsupported(function, f"compression of {x.dtype}", "data of a float dtype")
        payload = cast(x, compression.wire)
        return Compressed(payload, None, cast(payload, x.dtype))
    require_fp32(function, x)
    require_finite(function, x)
    sent = quantization.quantize(Array(x.dtype, x.values.reshape(-1)), compression.wire, compression.block)
    restored = _restored(TensorType(x.dtype, x.shape), [sent.codes, sent.scales], compression)
    return Compressed(Array(compression.wire, sent.codes.values.reshape(x.shape)), sent.scales, restored)


def require_fp32(function: str, x: Array) -> None:
    """Raise `Failure` with TESS_ERR_UNSUPPORTED for data of another dtype."""
    if x.dtype.name != "fp32":
        raise unsupported(function, f"data of {x.dtype}", "fp32, as scales and residuals are")


def require_finite(function: str, x: Array) -> None:
    """Raise `NonFinite` for the first element, in row-major order, that is NaN or an infinity."""
    bad = ~np.isfinite(x.values)
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise NonFinite(function, index, float(x.values[index]), "finite")


# Error feedback: what compression loses of a gradient is added to the next one (COLL-02.5-04, COLL-06-07).
#
# At each step w = g + r is compressed, what is restored of it is sent, and r = w - sent is kept; r begins at zero
# (AMB-COLL-25, AMB-COLL-39). The sum of what was sent and the last residual is the sum of the gradients: exactly,
# where neither g + r nor w - sent has to be rounded to fp32.


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A step of error feedback: the gradient as a receiver restores it, and the part kept."""

    sent: Array
    residual: Array


def feed_back(function: str, gradients: Sequence[Array], compression: Compression) -> list[Step]:
    """Compress one gradient a step, fp32 tensors of one shape, each with the residual of the step before.

    Raises `Failure` with TESS_ERR_UNSUPPORTED for other dtypes, with TESS_ERR_INVALID_VALUE for no gradient and for
    shapes that differ; `NonFinite` for a sum, or what is sent of it, that is not finite.
    """
    if not gradients:
        raise invalid(function, "no gradients", "one of each step")
    for number, gradient in enumerate(gradients):
        require_fp32(f"{function}: gradients[{number}]", gradient)
        if gradient.shape != gradients[0].shape:
            shapes = f"gradients[{number}] has the shape {list(gradient.shape)}"
            raise invalid(function, shapes, f"{list(gradients[0].shape)}, as gradients[0] has")
    residual = Array(gradients[0].dtype, np.zeros_like(gradients[0].values))
    steps: list[Step] = []
    for number, gradient in enumerate(gradients):
        whole = add(gradient, residual)
        require_finite(f"{function}: step {number}, gradient and residual", whole)
        sent = compress(function, whole, compression).restored
        require_finite(f"{function}: step {number}, what is sent as {compression.wire}", sent)
        residual = subtract(whole, sent)
        steps.append(Step(sent, residual))
    return steps


# Tensors packed into the bytes of a wire, and unpacked (collectives spec 2.4 and 2.5).
#
# The bytes of one tensor after the other: the elements, row-major and little-endian, of the wire's dtype where there is
# one, and behind them the scales of a blockwise tensor. The text has no form of the wire; it is the reference's own.


@dataclass(frozen=True, slots=True)
class TensorType:
    """A dtype and a shape."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Return the bytes of a tensor of this type."""
        return prod(self.shape) * self.dtype.storage_bytes


def pack(tensors: Sequence[Array], compression: Compression | None) -> bytes:
    """Return the bytes that travel. Raises `Failure` and `NonFinite` as `compress` does."""
    if compression is None:
        return b"".join(tensor.to_bits() for tensor in tensors)
    parts = [compress("collectives.pack", tensor, compression) for tensor in tensors]
    return b"".join(array.to_bits() for part in parts for array in (part.payload, part.scales) if array is not None)


def unpack(wire: bytes, types: Sequence[TensorType], compression: Compression | None) -> list[Array]:
    """Return the tensors of these types that the bytes hold.

    Raises `Failure` with TESS_ERR_INVALID_VALUE where they are not as many bytes as these tensors have on the wire.
    """
    size = sum(part.bytes for type_ in types for part in _parts(type_, compression))
    if size != len(wire):
        raise invalid("collectives.unpack", f"{len(wire)} bytes", f"the {size} bytes of these tensors on the wire")
    stream, outputs = BytesIO(wire), []
    for type_ in types:
        parts = _parts(type_, compression)
        arrays = [Array.from_bits(part.dtype, part.shape, stream.read(part.bytes)) for part in parts]
        outputs.append(_restored(type_, arrays, compression))
    return outputs


def _parts(tensor: TensorType, compression: Compression | None) -> list[TensorType]:
    """Return the wire form of a tensor: its elements, flat if they are scaled, and their scales."""
    if compression is None:
        return [tensor]
    if compression.block is None:
        return [TensorType(compression.wire, tensor.shape)]
    count = prod(tensor.shape)
    return [TensorType(compression.wire, (count,)), TensorType(DTYPES["fp32"], (-(-count // compression.block),))]


def _restored(tensor: TensorType, parts: Sequence[Array], compression: Compression | None) -> Array:
    if compression is None:
        return parts[0]
    if compression.block is None:
        return cast(parts[0], tensor.dtype)
    restored = quantization.dequantize(parts[0], parts[1], compression.block)
    return Array(tensor.dtype, restored.values.reshape(tensor.shape))


# Top-k messages: indices and values of the elements of largest magnitude (COLL-02.5-05, COLL-02.5-09).
#
# Of equal magnitudes the lower index is kept, and indices ascend (AMB-COLL-27), so that a message is one and the same
# for the same tensor; NaN, zeros and the range of k are AMB-COLL-40, what a receiver makes of a message is AMB-
# COLL-41.


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """A message, `indices` (k) of int64 into the flat tensor and `values` (k), and `rest`, what was not sent of it."""

    indices: Array
    values: Array
    rest: Array


def sparsify(function: str, x: Array, k: int) -> Sparse:
    """The message of the `k` largest elements of a tensor of any shape; in `rest` their places are +0.

    Raises `Failure` with TESS_ERR_INVALID_VALUE unless 0 <= k <= n, with TESS_ERR_UNSUPPORTED for a dtype without
    magnitudes; `NonFinite` for NaN.
    """
    if x.dtype.kind not in ("float", "int"):
        raise unsupported(function, f"top-k of {x.dtype}", "data of a float or integer dtype")
    if type(k) is not int or not 0 <= k <= x.values.size:
        raise invalid(function, f"k is {shown(k)}", f"a whole number from 0 to {x.values.size}, the elements there are")
    flat = x.values.reshape(-1)
    largest = top_k(Array(x.dtype, flat), k)
    indices = largest.indices.values.astype(np.int64)
    rest = flat.copy()
    rest[indices] = 0
    return Sparse(Array(DTYPES["int64"], indices), largest.values, Array(x.dtype, rest.reshape(x.shape)))


def densify(function: str, indices: Array, values: Array, shape: Sequence[int]) -> Array:
    """A tensor with `values` at `indices`, and +0, false for bool, elsewhere.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a message that does not hold together, `ShapeMismatch`, `TooLarge`.
    """
    require_room(function, shape)
    if indices.dtype.name != "int64":
        raise invalid(function, f"indices of {indices.dtype}", "int64")
    if indices.rank != 1 or indices.shape != values.shape:
        shapes = f"indices of shape {list(indices.shape)} and values of shape {list(values.shape)}"
        raise invalid(function, shapes, "one flat shape of both")
    places = indices.values
    outside = (places < 0) | (places >= prod(shape))
    if outside.any():
        first = int(np.flatnonzero(outside)[0])
        raise invalid(function, f"indices[{first}] is {places[first]}", f"from 0 to {prod(shape) - 1}")
    behind = places[1:] <= places[:-1]
    if behind.any():
        first = int(np.flatnonzero(behind)[0]) + 1
        raise invalid(function, f"indices[{first}] is {places[first]}", f"more than {places[first - 1]}, before it")
    flat = np.zeros(prod(shape), values.dtype.carrier)
    flat[places] = values.values
    return Array(values.dtype, flat.reshape(tuple(shape)))
