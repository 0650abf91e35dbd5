"""Tensors packed into the bytes of a wire, and unpacked (collectives spec 2.4 and 2.5).

The bytes of one tensor after the other: the elements, row-major and little-endian, of the wire's dtype where there is
one, and behind them the scales of a blockwise tensor. The text has no form of the wire; it is the reference's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..abi.status import invalid
from ..numerics import quantization
from ..numerics.array import Array
from ..numerics.formats import DTYPES, DType
from ..numerics.rounding import cast
from .compression import Compression, compress

__all__ = ["TensorType", "pack", "unpack"]

_SCALE = DTYPES["fp32"]


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
    return b"".join(each.to_bits() for part in parts for each in (part.payload, part.scales) if each is not None)


def unpack(wire: bytes, types: Sequence[TensorType], compression: Compression | None) -> list[Array]:
    """Return the tensors of these types that the bytes hold.

    Raises `Failure` with TESS_ERR_INVALID_VALUE where they are not as many bytes as these tensors have on the wire.
    """
    size = sum(part.bytes for each in types for part in _parts(each, compression))
    if size != len(wire):
        raise invalid("collectives.unpack", f"{len(wire)} bytes", f"the {size} bytes of these tensors on the wire")
    outputs, first = [], 0
    for each in types:
        arrays = []
        for part in _parts(each, compression):
            arrays.append(Array.from_bits(part.dtype, part.shape, wire[first : first + part.bytes]))
            first += part.bytes
        outputs.append(_restored(each, arrays, compression))
    return outputs


def _parts(tensor: TensorType, compression: Compression | None) -> list[TensorType]:
    """Return the wire form of a tensor: its elements, flat if they are scaled, and their scales."""
    if compression is None:
        return [tensor]
    if compression.block is None:
        return [TensorType(compression.wire, tensor.shape)]
    count = prod(tensor.shape)
    return [TensorType(compression.wire, (count,)), TensorType(_SCALE, (-(-count // compression.block),))]


def _restored(tensor: TensorType, parts: Sequence[Array], compression: Compression | None) -> Array:
    if compression is None:
        return parts[0]
    if compression.block is None:
        return cast(parts[0], tensor.dtype)
    restored = quantization.dequantize(parts[0], parts[1], compression.block)
    return Array(tensor.dtype, restored.values.reshape(tensor.shape))
