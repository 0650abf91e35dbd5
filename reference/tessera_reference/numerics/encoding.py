"""Storage codes <-> values.

A code is the unsigned integer whose bits are stored; `decode` gives the value it stands for, in the carrier of the
dtype, and `encode` gives the code of a value. Both are exact: integer operations and scaling by powers of two.
Every NaN encodes to one code, the positive quiet NaN. Complex dtypes are encoded by component, in `array`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .formats import DType

__all__ = ["code_dtype", "decode", "encode", "nan_code"]

Codes = npt.NDArray[Any]
Values = npt.NDArray[Any]


_CODES = {size: np.dtype(f"<u{size}") for size in (1, 2, 4, 8)}
_NATIVE = {size: np.dtype(f"u{size}") for size in _CODES}
"""What holds a code of so many bytes, in memory and in the byte order of this machine."""


def code_dtype(dtype: DType) -> np.dtype[Any]:
    """Return the little-endian unsigned numpy dtype that holds one code of `dtype`."""
    return _CODES[dtype.storage_bytes]


def nan_code(dtype: DType) -> int:
    """Return the code every NaN of a float dtype is stored as."""
    dtype = dtype.storage
    exponent = ((1 << dtype.exponent_bits) - 1) << dtype.fraction_bits
    quiet = 1 << (dtype.fraction_bits - 1) if dtype.has_infinity else (1 << dtype.fraction_bits) - 1
    return exponent | quiet


def decode(codes: Codes, dtype: DType) -> Values:
    """Return the values of `codes`, in the same shape and in `dtype.carrier`. Any non-zero bool reads as true."""
    if dtype.kind == "bool":
        return np.asarray(codes != 0)
    if dtype.is_narrow:
        return _decode_narrow(codes.astype(np.int32), dtype)
    return codes.astype(_NATIVE[dtype.storage_bytes]).view(dtype.carrier)


def encode(values: Values, dtype: DType) -> Codes:
    """Return the codes of `values`, each exactly a value of `dtype`, in the same shape."""
    if dtype.kind == "bool":
        codes = values.astype(np.uint8)
    elif dtype.is_narrow:
        with np.errstate(all="ignore"):  # a signaling NaN in the carrier is no fault
            codes = _encode_narrow(values, dtype)
    else:
        codes = np.array(values, dtype.carrier, order="C").view(_NATIVE[dtype.storage_bytes])
    if dtype.kind == "float":
        codes[np.isnan(values)] = nan_code(dtype)
    return codes.astype(code_dtype(dtype), copy=False)


def _decode_narrow(codes: Codes, dtype: DType) -> Values:
    negative = (codes >> (dtype.bits - 1)) & 1
    exponent = (codes >> dtype.fraction_bits) & ((1 << dtype.exponent_bits) - 1)
    fraction = codes & ((1 << dtype.fraction_bits) - 1)

    significand = fraction + np.where(exponent > 0, 1 << dtype.fraction_bits, 0)
    scale = np.maximum(exponent, 1) - dtype.bias - dtype.fraction_bits  # integers
    magnitude = np.ldexp(significand.astype(np.float64), scale)

    if dtype.has_infinity:
        special = exponent == (1 << dtype.exponent_bits) - 1
        magnitude = np.where(special, np.where(fraction == 0, np.inf, np.nan), magnitude)
    else:
        magnitude = np.where((codes & 0x7F) == nan_code(dtype), np.nan, magnitude)
    return np.copysign(magnitude, np.where(negative, -1.0, 1.0)).astype(np.float32)


def _encode_narrow(values: Values, dtype: DType) -> Codes:
    magnitude = np.abs(values.astype(np.float64))
    finite = np.where(magnitude <= dtype.max_finite, magnitude, 0.0)
    _, exponent = np.frexp(finite)
    exponent = np.maximum(exponent - 1, dtype.min_exponent)  # integers
    significand = np.ldexp(finite, dtype.fraction_bits - exponent).astype(np.int64)
    # The leading bit of a normal significand carries into the exponent field, which therefore starts one lower.
    code = np.where(finite == 0.0, 0, significand + ((exponent - dtype.min_exponent) << dtype.fraction_bits))
    if dtype.has_infinity:
        infinity = ((1 << dtype.exponent_bits) - 1) << dtype.fraction_bits
        code = np.where(np.isinf(magnitude), infinity, code)
    code = np.where(np.signbit(values), code | (1 << (dtype.bits - 1)), code)
    return np.asarray(code).astype(code_dtype(dtype))
