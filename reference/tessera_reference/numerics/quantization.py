"""Lossy compression with bounds: blockwise quantisation, error feedback, top-k.

Collectives spec section 2.5; AMB-COLL-25 (error feedback), -26 (blocks), -27 (top-k); reference ("quantisation").
Data are fp32, blocks run along the last axis, the last one may be short. In a block with largest magnitude m

    scale = R32(m / max_finite(wire)), 1 if that is 0;   q = round(R32(x / scale)), saturating;   x' = R32(q * scale)

A scale with which max_finite would overflow is the next smaller number instead. fp16 needs this for m near the end of
fp32. bf16 has the range of fp32 and scale 1. An element is off by at most half a step of the wire format at m, times
the scale, and rounding in fp32: m/28 in fp8_e4m3, m/14 in fp8_e5m2, m/4094 in fp16, 2**-8 of itself in bf16 unless
subnormal. A subnormal scale, m < 2**-126 * max_finite, is itself off by up to 2**-150, and so an element by up to
max_finite times that.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .array import Array
from .errors import InvalidArgument, NonFinite, ShapeMismatch
from .formats import DTYPES, DType, UnsupportedDType
from .rounding import round_to

Float32s: TypeAlias = npt.NDArray[np.float32]

WIRE_FORMATS = ("fp8_e4m3", "fp8_e5m2", "fp16", "bf16")
_FP32 = DTYPES["fp32"]


class Quantized(NamedTuple):
    """`codes` (..., n) of a wire format and `scales` (..., ceil(n / block)) of fp32."""

    codes: Array
    scales: Array


class Feedback(NamedTuple):
    """One step of error feedback: the value of the codes sent over the wire, and the residual for the next step."""

    sent: Array
    residual: Array


class TopK(NamedTuple):
    """The kept elements: their `values` (k), and `indices` (k) of int32, ascending, into the flat tensor."""

    values: Array
    indices: Array


def quantize(x: Array, wire: DType, block: int) -> Quantized:
    """Quantise fp32 data (..., n) to `wire`, in blocks of `block` elements along the last axis.

    Raises `UnsupportedDType`, `ShapeMismatch` for rank 0, `InvalidArgument`, `NonFinite`.
    """
    _require_fp32("quantize", x)
    _require_wire(wire)
    _require_blocks("quantize", x, block)
    _require_finite("quantize", x.values)
    scales = _scales(x.values, wire, block)
    with np.errstate(all="ignore"):
        quotients = x.values / _spread(scales, x.shape[-1], block)
        codes = round_to(quotients, wire)
        # Data are finite, so an infinity is an overflow; bf16 has no saturation of its own.
        codes = np.where(np.isinf(codes), np.copysign(np.float32(wire.max_finite), codes), codes)
    return Quantized(Array(wire, codes), Array(_FP32, scales))


def dequantize(codes: Array, scales: Array, block: int) -> Array:
    """Return R32(code * scale), fp32 (..., n), from codes (..., n) and fp32 scales (..., ceil(n / block)).

    Raises `UnsupportedDType`, `ShapeMismatch`, `InvalidArgument`; `NonFinite` for a code or scale that is not finite.
    """
    _require_wire(codes.dtype)
    _require_fp32("dequantize: scales", scales)
    _require_blocks("dequantize", codes, block)
    expected = (*codes.shape[:-1], _block_count(codes.shape[-1], block))
    if scales.shape != expected:
        problem = f"codes of {list(codes.shape)} in blocks of {block} need scales of {list(expected)}"
        raise ShapeMismatch("dequantize", f"{problem}, not {list(scales.shape)}")
    _require_finite("dequantize: codes", codes.values)
    _require_finite("dequantize: scales", scales.values)
    with np.errstate(all="ignore"):
        return Array(_FP32, codes.values * _spread(scales.values, codes.shape[-1], block))


def error_feedback(gradient: Array, residual: Array, wire: DType, block: int) -> Feedback:
    """Quantise gradient + residual and keep the loss: g' = R32(g + r), sent = Q(g'), r' = R32(g' - sent).

    All fp32 of one shape. Over any number of steps the sum of the sent values plus the last residual is the sum of the
    gradients, up to the fp32 rounding of these additions (AMB-COLL-25). Raises as `quantize` does.
    """
    _require_fp32("error_feedback", gradient)
    _require_fp32("error_feedback", residual)
    if gradient.shape != residual.shape:
        problem = f"gradient {list(gradient.shape)} and residual {list(residual.shape)} differ in shape"
        raise ShapeMismatch("error_feedback", problem)
    with np.errstate(all="ignore"):
        corrected = Array(_FP32, np.asarray(gradient.values + residual.values))
        sent = dequantize(*quantize(corrected, wire, block), block)
        return Feedback(sent, Array(_FP32, np.asarray(corrected.values - sent.values)))


def top_k(x: Array, k: int) -> TopK:
    """Keep the `k` elements of largest magnitude of a float or integer tensor (n); of equal ones the lower index.

    Raises `UnsupportedDType`, `ShapeMismatch` unless the rank is 1, `InvalidArgument` unless 0 <= k <= n, `NonFinite`
    for NaN; infinities are the largest magnitudes.
    """
    if x.dtype.kind not in ("float", "int"):
        raise UnsupportedDType("top_k", x.dtype)
    if x.rank != 1:
        raise ShapeMismatch("top_k", f"the tensor is flat, not of shape {list(x.shape)}")
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= x.shape[0]:
        raise InvalidArgument("top_k", "k", k, f"an integer from 0 to {x.shape[0]}")
    _require_no_nan("top_k", x.values)
    rank = ~_magnitude_code(x.values)  # the largest magnitude first
    chosen = np.zeros(x.shape, np.bool_)
    chosen[rank.argsort(kind="stable")[:k]] = True
    indices = np.flatnonzero(chosen)
    return TopK(Array(x.dtype, x.values[indices]), Array(DTYPES["int32"], indices.astype(np.int32)))


def _scales(values: Float32s, wire: DType, block: int) -> Float32s:
    """Return the scale of each block."""
    shape = (*values.shape[:-1], _block_count(values.shape[-1], block))
    if wire.name == "bf16" or values.size == 0:
        return np.ones(shape, np.float32)
    codes = np.abs(values).view(np.uint32)  # ordered as the magnitudes, which are finite
    firsts = np.arange(0, values.shape[-1], min(block, values.shape[-1]))
    largest = np.maximum.reduceat(codes, firsts, axis=-1).view(np.float32)  # integers
    with np.errstate(all="ignore"):
        scales = largest / np.float32(wire.max_finite)
        too_large = np.isinf(scales * np.float32(wire.max_finite))
    scales = (scales.view(np.uint32) - too_large.astype(np.uint32)).view(np.float32)
    return np.where(scales == 0.0, np.float32(1.0), scales)


def _spread(scales: Float32s, n: int, block: int) -> Float32s:
    """Repeat each block's scale over its elements: (..., blocks) -> (..., n)."""
    if scales.size == 0:
        return np.ones((*scales.shape[:-1], n), np.float32)
    return np.asarray(scales[..., np.arange(n) // min(block, n)])


def _block_count(n: int, block: int) -> int:
    return -(-n // block)


def _magnitude_code(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return unsigned integers ordered as the magnitudes of `values`, including that of the least integer."""
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    if values.dtype.kind == "i":
        return np.asarray(np.abs(values).astype(unsigned))
    return np.asarray(np.abs(values).view(unsigned))


def _require_fp32(operation: str, x: Array) -> None:
    if x.dtype.name != "fp32":
        raise UnsupportedDType(operation, x.dtype)


def _require_wire(wire: DType) -> None:
    if wire.name not in WIRE_FORMATS:
        raise InvalidArgument("quantize", "wire", wire.name, "one of " + ", ".join(WIRE_FORMATS))


def _require_blocks(operation: str, x: Array, block: int) -> None:
    if x.rank == 0:
        raise ShapeMismatch(operation, "blocks run along the last axis, and a tensor of rank 0 has none")
    if isinstance(block, bool) or not isinstance(block, int) or block < 1:
        raise InvalidArgument(operation, "block", block, "an integer of at least 1")


def _require_finite(operation: str, values: npt.NDArray[Any]) -> None:
    _raise_at(operation, values, ~np.isfinite(values), "finite")


def _require_no_nan(operation: str, values: npt.NDArray[Any]) -> None:
    if values.dtype.kind == "f":
        _raise_at(operation, values, np.isnan(values), "a number")


def _raise_at(operation: str, values: npt.NDArray[Any], bad: npt.NDArray[np.bool_], allowed: str) -> None:
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise NonFinite(operation, index, float(values[index]), allowed)
