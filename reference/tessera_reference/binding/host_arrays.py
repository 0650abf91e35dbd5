"""Arrays of the caller, of any library, seen in place (runtime spec 5: zero-copy when possible; RT-05-08).

numpy, torch and JAX arrays on the host, and whatever else speaks DLPack, the array interface or the buffer protocol.
Nothing is ever copied here: what cannot be seen in place is refused with what to do about it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..numerics.formats import DTYPES, DType
from .element_types import NUMPY_NAMES, abi_dtype, numpy_dtype
from .errors import invalid

__all__ = ["HostArray", "host_array", "is_array"]


@dataclass(frozen=True, eq=False)
class HostArray:
    """Contiguous host memory with a dtype and a shape. `values` is a view of it, of some type of the right width."""

    dtype: DType
    values: npt.NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each dimension."""
        return self.values.shape

    @property
    def writable(self) -> bool:
        """Whether the owner allows writing; arrays of JAX are never written."""
        return self.values.flags.writeable

    @property
    def memory(self) -> memoryview:
        """The bytes themselves."""
        return self.values.reshape(-1).view(np.uint8).data

    @property
    def place(self) -> tuple[int, int, bool]:
        """What distinguishes this memory from other memory, for as long as it lives."""
        return self.values.__array_interface__["data"][0], self.values.nbytes, self.writable


def is_array(given: Any) -> bool:
    """Whether something is an array rather than a number."""
    if isinstance(given, np.generic | bool | int | float | complex):
        return False
    if any(hasattr(given, name) for name in ("__dlpack__", "__array_interface__", "__array__")):
        return True
    try:
        return memoryview(given).nbytes >= 0
    except TypeError:
        return False


def host_array(given: Any, function: str, codes_of: DType | None = None) -> HostArray:
    """See an array in place; integers may be the storage codes of a dtype for which numpy has no type here.

    Raises `TesseraError` for a dtype that the ABI lacks, an array that is scattered, and one that is not on the host.
    """
    values, dtype = _values(given, function)
    if not values.flags.c_contiguous:
        allowed = "contiguous memory in row-major order: np.ascontiguousarray(array), or array.contiguous() of torch"
        raise invalid(function, f"an array of shape {values.shape} and strides {values.strides}", allowed)
    if codes_of is not None and values.dtype == numpy_dtype(codes_of):
        dtype = codes_of
    return HostArray(dtype or abi_dtype(values.dtype, function), values)


def _values(given: Any, function: str) -> tuple[npt.NDArray[Any], DType | None]:
    """A view of the memory and, where numpy does not know it, the dtype."""
    if isinstance(given, np.ndarray):
        return given, None
    refused: list[str] = []
    for view in (_codes_of_torch, np.from_dlpack, np.asarray) if is_array(given) else ():
        try:
            values = view(given)
        except Exception as error:  # whatever the owner of the array raises
            refused.append(str(error))
            continue
        if isinstance(values, np.ndarray) and values.dtype.kind != "O":
            name = NUMPY_NAMES.get(_torch_name(given)) if view is _codes_of_torch else None
            return _writable_twin(given, values), DTYPES[name] if name else None
    reasons = f" ({'; '.join(refused)})" if refused else ""
    allowed = "an array of numpy, torch or JAX on the host, a ts.DeviceArray, or np.asarray(...) of it"
    raise invalid(function, f"a value of type {type(given).__name__}{reasons}", allowed)


def _writable_twin(given: Any, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """DLPack may show writable memory as read-only, for want of a flag in its first version: ask the owner again."""
    if values.flags.writeable or not hasattr(given, "__array__"):
        return values
    again = np.asarray(given)
    same = again.__array_interface__["data"][0] == values.__array_interface__["data"][0]
    return again if same and again.dtype == values.dtype and again.shape == values.shape else values


_CODES_OF_TORCH = {"bfloat16": "int16", "float8_e4m3fn": "int8", "float8_e5m2": "int8"}
"""Dtypes that torch cannot show to numpy, each with the integers that hold its codes."""


def _torch_name(given: Any) -> str:
    return str(getattr(given, "dtype", "")).removeprefix("torch.") if "torch" in sys.modules else ""


def _codes_of_torch(tensor: Any) -> npt.NDArray[Any] | None:
    """The storage codes of a tensor of torch that numpy has no type for; None for any other array."""
    torch = sys.modules.get("torch")
    name = _torch_name(tensor)
    if torch is None or not isinstance(tensor, torch.Tensor) or name not in _CODES_OF_TORCH:
        return None
    if tensor.requires_grad:
        raise ValueError("a tensor that requires gradients; use tensor.detach()")
    return np.asarray(tensor.view(getattr(torch, _CODES_OF_TORCH[name])))
