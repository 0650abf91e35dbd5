"""Compressed tensors: a cast to the wire dtype, or blockwise quantization (COLL-02.5-01, -02, -05 to -08, COLL-06-06).

Without a scheme the wire's dtype takes any float data by one cast (AMB-COLL-37). The scheme "blockwise" takes fp32 data
and sends a scale beside each block of consecutive elements of the flat tensor, whatever its rows and chunks are
(AMB-COLL-38); its arithmetic is that of `numerics.quantization`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..abi.status import Failure, Status, invalid
from ..graph import collective_hints
from ..numerics import quantization
from ..numerics.array import Array
from ..numerics.errors import NonFinite, shown
from ..numerics.formats import DTYPES, DType
from ..numerics.rounding import cast
from .argument_checks import require_known

__all__ = ["DEFAULT_BLOCK", "WIRES", "Compressed", "Compression", "compress", "read_compression"]

WIRES = {name: DTYPES[sent] for name, sent in collective_hints.WIRES.items()}
"""The names of wires, those of the dialect, and the dtypes that travel."""

SCHEMES = ("blockwise",)
DEFAULT_BLOCK = 128
"""Elements of a block where none is asked for; the text names no number (AMB-COLL-26)."""

MOST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Compression:
    """A wire dtype, and the elements of a block where blocks are scaled."""

    wire: DType
    block: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Compressed:
    """What travels, `payload` of the tensor's shape and `scales` (blocks) of fp32, and what a receiver makes of it."""

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
    require_known(function, "qscheme", qscheme, SCHEMES)
    if block is None:
        return Compression(WIRES[dtype], DEFAULT_BLOCK)
    if type(block) is not int or not 1 <= block <= MOST:
        raise invalid(function, f"block {shown(block)}", f"a whole number of elements from 1 to {MOST}")
    return Compression(WIRES[dtype], block)


def compress(function: str, x: Array, compression: Compression) -> Compressed:
    """Compress a tensor and restore it, in its own dtype.

    Raises `Failure` with TESS_ERR_UNSUPPORTED for data that the compression does not take, `NonFinite` for a NaN or an
    infinity that would need a scale.
    """
    if compression.block is not None:
        require_fp32(function, x)
        return _quantized(function, x, compression.wire, compression.block)
    if x.dtype.kind != "float":
        raise Failure(Status.TESS_ERR_UNSUPPORTED, function, f"compression of {x.dtype}", "data of a float dtype")
    payload = cast(x, compression.wire)
    return Compressed(payload, None, cast(payload, x.dtype))


def require_fp32(function: str, x: Array) -> None:
    """Raise `Failure` with TESS_ERR_UNSUPPORTED for data of another dtype."""
    if x.dtype.name != "fp32":
        raise Failure(Status.TESS_ERR_UNSUPPORTED, function, f"data of {x.dtype}", "fp32, as scales and residuals are")


def require_finite(function: str, x: Array) -> None:
    """Raise `NonFinite` for the first element, in row-major order, that is NaN or an infinity."""
    bad = ~np.isfinite(x.values)
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise NonFinite(function, index, float(x.values[index]), "finite")


def _quantized(function: str, x: Array, wire: DType, block: int) -> Compressed:
    require_finite(function, x)
    quantized = quantization.quantize(Array(x.dtype, x.values.reshape(-1)), wire, block)
    restored = quantization.dequantize(quantized.codes, quantized.scales, block)
    payload = Array(wire, quantized.codes.values.reshape(x.shape))
    return Compressed(payload, quantized.scales, Array(x.dtype, restored.values.reshape(x.shape)))
