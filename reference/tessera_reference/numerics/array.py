"""Arrays of one dtype: storage codes and values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import MalformedStorage, NotRepresentable, WrongCarrier, require_shape
from .formats import DType

# Storage codes <-> values.
#
# A code is the unsigned integer whose bits are stored. `decode` returns its value, in the carrier of the dtype, and
# `encode` returns the code of a value. Both are exact: integer operations and scaling by powers of two. Every NaN
# encodes to one code, the positive quiet NaN. Complex dtypes are encoded by component, in `array`.


Codes = npt.NDArray[Any]
Values = npt.NDArray[Any]


BLOCK = 1 << 16
"""The number of elements handled at once, so that temporaries stay in cache; no result depends on it."""

_CODES = {size: np.dtype(f"<u{size}") for size in (1, 2, 4, 8)}
_NATIVE = {size: np.dtype(f"u{size}") for size in _CODES}
"""The dtype of codes in memory, in the byte order of this machine, by a number of bytes."""


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
        return in_blocks(lambda block: _decode_narrow(block.astype(np.int32), dtype), np.float32, codes)
    return codes.astype(_NATIVE[dtype.storage_bytes]).view(dtype.carrier)


def encode(values: Values, dtype: DType) -> Codes:
    """Return the codes of `values`, each exactly a value of `dtype`, in the same shape."""
    if dtype.is_narrow:
        return in_blocks(lambda block: _encode(block, dtype), code_dtype(dtype), values)
    return _encode(values, dtype)


def in_blocks(function: Callable[..., Values], carrier: npt.DTypeLike, *operands: Values) -> Values:
    """Return an elementwise function of operands that broadcast, computed in blocks that fit the cache."""
    alike = all(x.shape == operands[0].shape for x in operands)
    shape = operands[0].shape if alike else np.broadcast_shapes(*(x.shape for x in operands))
    if prod(shape) <= BLOCK:
        return function(*operands)
    wide = [x.reshape(-1) if alike else np.broadcast_to(x, shape) for x in operands]
    result = np.empty(wide[0].shape, carrier)
    rows = max(1, BLOCK // prod(wide[0].shape[1:]))
    for start in range(0, len(result), rows):
        result[start : start + rows] = function(*(x[start : start + rows] for x in wide))
    return result.reshape(shape)


def _encode(values: Values, dtype: DType) -> Codes:
    if dtype.kind == "bool":
        codes = values.astype(np.uint8)
    elif dtype.is_narrow:
        with np.errstate(all="ignore"):  # a signaling NaN in the carrier is not an error
            codes = _encode_narrow(values, dtype)
    else:
        codes = np.array(values, dtype.carrier, order="C").view(_NATIVE[dtype.storage_bytes])
    if dtype.kind == "float":
        codes[np.isnan(values)] = nan_code(dtype)
    return codes.astype(code_dtype(dtype), copy=False)


def _decode_narrow(codes: Codes, dtype: DType) -> Values:
    if dtype.bits == 16:  # bf16 is the upper half of fp32, fp16 is NumPy's float16
        upper = np.asarray(codes << 16).astype(np.int32, copy=False).view(np.float32)
        half = codes.astype(np.uint16).view(np.float16)
        wide = upper if dtype.name == "bf16" else half
        with np.errstate(all="ignore"):  # a signaling NaN is not an error
            values = wide.astype(np.float32)
        return np.where(np.isnan(values), np.copysign(np.float32(np.nan), values), values)
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
    if dtype.name == "bf16":
        return np.asarray(np.array(values, np.float32, order="C").view(np.uint32) >> 16).astype(np.uint16)
    if dtype.name == "fp16":
        return np.array(values, np.float16, order="C").view(np.uint16)
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


# An array of one dtype: its values, held exactly, and its storage bytes.


CODED = 1 << 24
"""The number of elements from which an array of a narrow dtype keeps its codes; infinity disables that."""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Array:
    """Values of `dtype`, of any shape, held in `dtype.carrier` and read-only.

    The caller guarantees that each value is one of `dtype`; `Array.checked` verifies it. Raises `WrongCarrier` when
    `values` is of another numpy dtype. Compare arrays by `to_bits`. A large array of a narrow dtype may have `codes`
    instead, which take a half or a quarter of the memory. Its values are decoded on first use.
    """

    dtype: DType
    values: npt.NDArray[Any]
    codes: Codes | None = field(init=False, repr=False)

    def __init__(self, dtype: DType, values: npt.NDArray[Any]) -> None:
        carrier = np.asarray(values).view()
        if carrier.dtype != dtype.carrier:
            raise WrongCarrier(dtype, carrier.dtype)
        carrier.setflags(write=False)
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "values", carrier)
        object.__setattr__(self, "codes", None)

    def __getattr__(self, name: str) -> Any:
        """Decode the values of an array that has codes. Python calls this for unset attributes."""
        if name != "values" or self.codes is None:
            raise AttributeError(f"Array has no {name!r}")
        decoded = Array(self.dtype, decode(self.codes, self.dtype)).values
        object.__setattr__(self, "values", decoded)
        object.__setattr__(self, "codes", None)
        return decoded

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each dimension."""
        return (self.values if self.codes is None else self.codes).shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @classmethod
    def from_codes(cls, dtype: DType, codes: Codes) -> Array:
        """Return the array of a narrow dtype that holds these codes, in their shape."""
        array = cls.__new__(cls)
        object.__setattr__(array, "dtype", dtype)
        object.__setattr__(array, "codes", codes)
        return array

    @classmethod
    def checked(cls, dtype: DType, values: npt.ArrayLike) -> Array:
        """Build an array from numbers, each of which must be a value of `dtype`. Raises `NotRepresentable`."""
        numbers = np.asarray(values)
        with np.errstate(all="ignore"):
            array = cls(dtype, numbers.astype(dtype.carrier))
            again = cls.from_bits(dtype, array.shape, array.to_bits()).values
            same = _alike(again.real, numbers.real) & _alike(again.imag, numbers.imag)
        if not same.all():
            index = tuple(int(i) for i in np.argwhere(~same)[0])
            raise NotRepresentable(dtype, index, numbers[index].item())
        return array

    @classmethod
    def from_bits(cls, dtype: DType, shape: tuple[int, ...], data: bytes) -> Array:
        """Read row-major little-endian storage codes, complex as real, imaginary part.

        Raises `MalformedStorage`; `ShapeMismatch` and `TooLarge` for a shape that numpy does not take.
        """
        require_shape("tensor", shape)
        expected = prod(shape) * dtype.storage_bytes
        if len(data) != expected:
            raise MalformedStorage(expected, len(data))
        stored = dtype.component if dtype.kind == "complex" else dtype
        codes = np.frombuffer(data, code_dtype(stored))
        if stored.is_narrow and codes.size >= CODED:
            return cls.from_codes(dtype, codes.reshape(shape))
        return cls(dtype, decode(codes, stored).view(dtype.carrier).reshape(shape))

    def to_bits(self) -> bytes:
        """Return the row-major little-endian storage codes, NaN as its one canonical code."""
        if (codes := self.codes) is not None:
            canonical = in_blocks(lambda block: encode(decode(block, self.dtype), self.dtype), codes.dtype, codes)
            return canonical.tobytes()
        stored = self.dtype.component if self.dtype.kind == "complex" else self.dtype
        flat = np.ascontiguousarray(self.values).reshape(-1)
        return encode(flat.view(stored.carrier), stored).tobytes()


def _alike(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a mask of the pairs that are equal, exactly, as Python compares, or both NaN."""
    equal = np.asarray(a.astype(object) == b.astype(object), bool)
    return np.asarray(equal | ((a != a) & (b != b)))
