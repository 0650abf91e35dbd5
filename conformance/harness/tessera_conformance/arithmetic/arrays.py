"""Tensors as numpy arrays that hold the same numbers, and back with one rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tessera_conformance.arithmetic.fast_sums import Array
from tessera_conformance.arithmetic.model import NodeArithmetic
from tessera_conformance.oracle.exact import INFINITY, NAN, NEGATIVE_INFINITY, NEGATIVE_ZERO, Value, value_of
from tessera_conformance.oracle.formats import float_format
from tessera_conformance.tensors import Tensor

_SPECIAL = {NAN: np.nan, INFINITY: np.inf, NEGATIVE_INFINITY: -np.inf, NEGATIVE_ZERO: -0.0}


def as_array(tensor: Tensor) -> Array:
    """The numbers of a float tensor: float64 for fp64, float32 for everything that fits it."""
    words = tensor.words()
    if tensor.dtype == "fp64":
        numbers: Array = words.view(np.float64)
    elif tensor.dtype in ("fp32", "tf32"):
        numbers = words.view(np.float32)
    elif tensor.dtype == "bf16":
        numbers = (words.astype(np.uint32) << 16).view(np.float32)
    elif tensor.dtype == "fp16":
        numbers = words.view(np.float16).astype(np.float32)
    else:
        numbers = _table(tensor.dtype)[words]
    return numbers.reshape(tensor.shape)


def as_tensor(numbers: Array, dtype: str, shape: tuple[int, ...]) -> Tensor:
    """Numbers rounded once to a float dtype, to nearest even; NaN becomes the canonical one."""
    flat = np.ascontiguousarray(numbers).reshape(-1)
    words = _words(flat, dtype)
    words[np.isnan(flat)] = float_format(dtype).nan_code
    return Tensor(dtype, shape, words.astype(words.dtype.newbyteorder("<")).tobytes())


def flushed_operands(numbers: Array, dtype: str, model: NodeArithmetic) -> Array:
    """Operands with subnormals of their dtype made zeros of their sign, where the model says so."""
    if model.subnormals == "kept":
        return numbers
    smallest = float(float_format(dtype).smallest_normal)
    return np.where(np.abs(numbers) < smallest, np.copysign(np.zeros_like(numbers), numbers), numbers)


def tf32_operands(numbers: Array) -> Array:
    """fp32 numbers rounded to 10 fraction bits, to nearest even, as the operands of a tf32 product are."""
    words = np.ascontiguousarray(numbers).view(np.uint32)
    kept = (words + np.uint32(0xFFF) + ((words >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(numbers), kept.view(np.float32), numbers)


def _words(flat: Array, dtype: str) -> Array:
    with np.errstate(all="ignore"):
        if dtype == "fp64":
            return flat.astype(np.float64).view(np.uint64)
        if dtype in ("fp32", "tf32"):
            return flat.astype(np.float32).view(np.uint32)
        if dtype == "fp16":
            return flat.astype(np.float16).view(np.uint16)
    if dtype == "bf16" and flat.dtype == np.float32:
        words = flat.view(np.uint32)
        nearest = (words + np.uint32(0x7FFF) + ((words >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        return nearest.astype(np.uint16)
    return _words_of_few(flat, dtype)


def _words_of_few(flat: Array, dtype: str) -> Array:
    """Through the oracle's rounding, each distinct number once."""
    format_ = float_format(dtype)
    bits = flat.view(np.uint32 if flat.dtype == np.float32 else np.uint64)
    distinct, places = np.unique(bits, return_inverse=True)
    codes = [format_.encode(value_of(float(number))) for number in distinct.view(flat.dtype)]
    width = {8: np.uint8, 16: np.uint16}[1 + format_.exponent_bits + format_.fraction_bits]
    words: Array = np.array(codes, width)
    return np.asarray(words[places.reshape(-1)])


def _table(dtype: str) -> Array:
    decode = float_format(dtype).decode
    return np.array([_float(decode(code)) for code in range(256)], np.float32)


def _float(value: Value) -> float:
    return float(value) if isinstance(value, Fraction) else _SPECIAL[value]
