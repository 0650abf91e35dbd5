"""The helpers of the adapters in this folder: tensors as numpy arrays and back, names of elementary functions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from conformance.adapters.collective_requests import Request
from conformance.adapters.orders import are_known

from tessera_conformance.adapter import NotSupported
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

NUMPY_TYPES: dict[str, Any] = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp32": np.float32,
    "fp64": np.float64,
}
RANK_TYPES: dict[str, Any] = NUMPY_TYPES | {
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "bool": np.bool_,
    "complex64": np.complex64,
    "complex128": np.complex128,
}
"""The dtypes whose contributions are combined over ranks."""
NAMES = {np.dtype(kind): name for name, kind in NUMPY_TYPES.items()}

UNARY = ("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt")
"""Elementary functions that numpy, JAX and PyTorch all have under the name of the protocol."""


def array_of(tensor: Tensor) -> np.ndarray[Any, np.dtype[Any]]:
    """A tensor's numbers, read-only.

    Raises:
        NotSupported: the dtype is none of `NUMPY_TYPES`.
    """
    if tensor.dtype not in NUMPY_TYPES:
        raise NotSupported(f"dtype {tensor.dtype}")
    return np.frombuffer(tensor.data, NUMPY_TYPES[tensor.dtype]).reshape(tensor.shape)


def tensor_of(array: Any) -> Tensor:
    """The tensor of a numpy array or scalar."""
    whole = np.asarray(array)
    return Tensor(NAMES[whole.dtype], whole.shape, np.ascontiguousarray(whole).tobytes())


def rank_array(tensor: Tensor, combining: bool) -> np.ndarray[Any, np.dtype[Any]]:
    """The flat contribution of a rank: numbers where they are combined, else elements of so many bytes.

    Raises:
        NotSupported: the dtype is none of `RANK_TYPES`, and they are combined.
    """
    element = ELEMENT_FORMATS[tensor.dtype]
    if combining and tensor.dtype not in RANK_TYPES:
        raise NotSupported(f"dtype {tensor.dtype}")
    kind = RANK_TYPES[tensor.dtype] if combining else f"V{element.word_bytes * element.words}"
    return np.frombuffer(tensor.data, kind)


def rank_outputs(request: Request, inputs: list[Tensor], outputs: list[Any]) -> dict[str, Any]:
    """The answer of a collective: flat arrays in the shapes of the inputs, where the number of elements stays."""
    keeps = request.operation not in ("all_gather", "reduce_scatter")
    shapes = [tensor.shape if keeps else output.shape for tensor, output in zip(inputs, outputs, strict=True)]
    parts = zip(inputs, shapes, outputs, strict=True)
    return {"outputs": [Tensor(tensor.dtype, shape, output.tobytes()) for tensor, shape, output in parts]}


def result_type(attributes: dict[str, Any], dtype: str) -> Any:
    """The numpy type of a product's result.

    Raises:
        NotSupported: the attribute `out` names a dtype that is none of `NUMPY_TYPES`.
    """
    out = attributes.get("out", dtype)
    if out not in NUMPY_TYPES:
        raise NotSupported(f"dtype {out}")
    return NUMPY_TYPES[out]


def hello(name: str, version: str) -> dict[str, Any]:
    """Identity; the level is fast, since no order is promised."""
    return {
        "protocol": {"minimum": 1, "maximum": 1},
        "implementation": {"name": name, "version": version},
        "documents": [],
        "capabilities": {},
        "arithmetic": {"level": "fast"},
    }


def hello_of_engine(engine: str, version: str, features: tuple[str, ...], name: str = "") -> dict[str, Any]:
    """Identity and claims of one that carries out collectives: the documents that speak of what these compute.

    Of these documents it answers the chapter `conformance/collectives` alone. The level is deterministic where the
    orders of this very version were found, and fast where they are unknown. `name` is that of the implementation,
    where it is not the engine's.
    """
    level = "deterministic" if are_known(engine, version) else "fast"
    return hello(name or engine, version) | {
        "documents": ["runtime_abi", "language_ir", "collectives"],
        "capabilities": dict.fromkeys(("operation-access", *features), "enforced"),
        "arithmetic": {"level": level},
    }
