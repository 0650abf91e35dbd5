"""An array of one dtype: its values, held exactly, and its storage bytes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from .encoding import code_dtype, decode, encode
from .errors import MalformedStorage, NotRepresentable, WrongCarrier
from .formats import DType
from .limits import require_shape

__all__ = ["Array"]


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Array:
    """Values of `dtype`, of any shape, held in `dtype.carrier` and read-only.

    The caller guarantees that each value is one of `dtype`; `Array.checked` verifies it.
    Raises `WrongCarrier` when `values` is of another numpy dtype. Compare arrays by `to_bits`.
    """

    dtype: DType
    values: npt.NDArray[Any]

    def __init__(self, dtype: DType, values: npt.NDArray[Any]) -> None:
        held = np.asarray(values).view()
        if held.dtype != dtype.carrier:
            raise WrongCarrier(dtype, held.dtype)
        held.setflags(write=False)
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "values", held)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each dimension."""
        return self.values.shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return self.values.ndim

    @classmethod
    def checked(cls, dtype: DType, values: npt.ArrayLike) -> Array:
        """Build an array from numbers, each of which must be a value of `dtype`. Raises `NotRepresentable`."""
        numbers = np.asarray(values)
        with np.errstate(all="ignore"):
            held = cls(dtype, numbers.astype(dtype.carrier))
            again = cls.from_bits(dtype, held.shape, held.to_bits()).values
            same = _alike(again.real, numbers.real) & _alike(again.imag, numbers.imag)
        if not same.all():
            index = tuple(int(i) for i in np.argwhere(~same)[0])
            raise NotRepresentable(dtype, index, numbers[index].item())
        return held

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
        values = decode(np.frombuffer(data, code_dtype(stored)), stored)
        return cls(dtype, values.view(dtype.carrier).reshape(shape))

    def to_bits(self) -> bytes:
        """Return the row-major little-endian storage codes, NaN as its one canonical code."""
        stored = self.dtype.component if self.dtype.kind == "complex" else self.dtype
        flat = np.ascontiguousarray(self.values).reshape(-1)
        return encode(flat.view(stored.carrier), stored).tobytes()


def _alike(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Whether each pair of numbers is equal, exactly, as Python compares, or both NaN."""
    equal = np.asarray(a.astype(object) == b.astype(object), bool)
    return np.asarray(equal | ((a != a) & (b != b)))
