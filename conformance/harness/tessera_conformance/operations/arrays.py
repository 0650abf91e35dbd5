"""Tensors of the protocol as numpy arrays, and back; `ml_dtypes` is imported for bf16 and fp8 alone."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tessera_conformance.adapter import NotSupported
from tessera_conformance.operations.names import DTYPES
from tessera_conformance.tensors import Tensor

Array = np.ndarray[Any, np.dtype[Any]]
NARROW = "ml_dtypes."


class NoArray(Exception):
    """A callable returned something other than an array of a dtype of the language; the message names it."""


@cache
def numpy_type(dtype: str) -> np.dtype[Any]:
    """The numpy dtype in which elements of a dtype are handed over; tf32 is stored as fp32.

    Raises:
        NotSupported: it needs ml_dtypes, which is not installed.
    """
    name = "float32" if dtype == "tf32" else DTYPES[dtype]["numpy"]
    if not name.startswith(NARROW):
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise NotSupported(f"{dtype} without ml_dtypes: pip install ml_dtypes") from None
    narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name.removeprefix(NARROW)))
    return narrow


def array_of(tensor: Tensor) -> Array:
    """A fresh array of a tensor's elements, which may be written to."""
    return np.frombuffer(tensor.data, numpy_type(tensor.dtype)).reshape(tensor.shape).copy()


def tensor_of(result: Any, tf32: bool = False) -> Tensor:
    """The tensor of what a callable gave: an array, a scalar of numpy, or what makes an array of itself.

    With `tf32`, fp32 stands for tf32.

    Raises:
        NoArray: it is none, or of a dtype that the language lacks.
    """
    if not isinstance(result, np.ndarray | np.generic) and not hasattr(result, "__array__"):
        raise NoArray(f"a {type(result).__name__}, expected a numpy array")
    array = np.asarray(result)
    dtype = _dtype_of(array.dtype)
    data = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).tobytes()
    return Tensor("tf32" if tf32 and dtype == "fp32" else dtype, array.shape, data)


@cache
def _dtype_of(kind: np.dtype[Any]) -> str:
    for dtype, names in DTYPES.items():
        name = names.get("numpy", "").removeprefix(NARROW)
        if name and kind.name == name:
            return dtype
    known = ", ".join(names["numpy"] for names in DTYPES.values() if "numpy" in names)
    raise NoArray(f"an array of {kind.name}, which is no dtype of the language; expected one of {known}")
