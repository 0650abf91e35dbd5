"""Dtypes of the ABI and what numpy, ml_dtypes and torch call them (runtime spec 5, Appendix B).

numpy itself has neither bf16 nor fp8. Where ml_dtypes is installed its types stand for them, otherwise unsigned
integers that hold the storage codes.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ..numerics.errors import UnknownDType, shown
from ..numerics.formats import DTYPES, DType
from ..numerics.formats import dtype as dtype_called
from .errors import invalid

__all__ = ["NUMPY_NAMES", "abi_dtype", "dtype_of", "numpy_dtype"]

NUMPY_NAMES = {
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    **{name: name for name in ("int8", "int16", "int32", "int64", "bool", "complex64", "complex128")},
}
"""The dtype of the ABI for each that numpy, ml_dtypes and, after `torch.`, torch know by this name."""

ML_DTYPES = {"fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2", "bf16": "bfloat16"}


def abi_dtype(dtype: Any, function: str) -> DType:
    """The dtype of the ABI for a numpy dtype. Raises `TesseraError` with what to do for one that has none."""
    name = getattr(dtype, "name", None)
    if name not in NUMPY_NAMES:
        raise invalid(function, f"an array of {dtype}", _supported(str(name)))
    if dtype.byteorder == ">":
        raise invalid(
            function, f"an array of big-endian {name}", "little-endian: array.astype(array.dtype.newbyteorder('<'))"
        )
    return DTYPES[NUMPY_NAMES[name]]


def dtype_of(named: Any, function: str) -> DType:
    """A dtype given as a name of the ABI ("bf16"), or as anything that numpy takes for one. Raises `TesseraError`."""
    if isinstance(named, str) and named in DTYPES:
        return dtype_called(named).storage
    if named is None:  # which numpy takes for a default
        raise invalid(function, "no dtype", _supported("None"))
    try:
        name = named if isinstance(named, str) else np.dtype(named).name
        return dtype_called(NUMPY_NAMES.get(name, name))
    except (TypeError, ValueError, UnknownDType):
        raise invalid(function, f"dtype {shown(named)}", _supported(str(named))) from None


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The numpy dtype in which arrays of the caller hold a dtype."""
    if dtype.name in ML_DTYPES:
        try:
            types: Any = importlib.import_module("ml_dtypes")
        except ImportError:
            return np.dtype(np.uint8 if dtype.storage_bytes == 1 else np.uint16)
        held: np.dtype[Any] = np.dtype(getattr(types, ML_DTYPES[dtype.name]))
        return held
    return np.dtype(np.float16) if dtype.name == "fp16" else dtype.carrier


def _supported(name: str) -> str:
    names = ", ".join(dict.fromkeys(NUMPY_NAMES.values()))
    remedy = f"; the bytes of {name} can be passed as array.view({name[1:]})" if name in UNSIGNED else ""
    return f"one of {names}{remedy or '; convert it with array.astype'}"


UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
