"""numpy behind the protocol: `--impl=py:conformance.adapters.numpy_adapter:make`."""

from __future__ import annotations

from typing import Any

import numpy as np
from conformance.adapters.exchange import UNARY, array_of, hello, refuse_trees, result_type, tensor_of

from tessera_conformance.adapter import NotSupported
from tessera_conformance.tensors import Tensor

REDUCTIONS = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "max": np.max, "min": np.min}


class NumpyAdapter:
    """Single operations, as numpy computes them."""

    def hello(self) -> dict[str, Any]:
        """Identity."""
        return hello("numpy", np.__version__)

    def numerics_evaluate(
        self, *, operation: str, inputs: list[Tensor], attributes: dict[str, Any], level: str = "fast", **rest: Any
    ) -> dict[str, Any]:
        """One operation; what numpy lacks under that name is unsupported."""
        refuse_trees(attributes)
        arrays = [array_of(tensor) for tensor in inputs]
        return {"outputs": [tensor_of(_evaluated(operation, arrays, attributes, inputs[0].dtype))]}


def _evaluated(operation: str, arrays: list[Any], attributes: dict[str, Any], dtype: str) -> Any:
    with np.errstate(all="ignore"):
        if operation == "matmul" and len(arrays) == 2:
            return np.matmul(*arrays).astype(result_type(attributes, dtype), copy=False)
        if operation in REDUCTIONS:
            axis, keepdims = attributes["axis"], attributes.get("keepdims", False)
            return REDUCTIONS[operation](arrays[0], axis=axis, keepdims=keepdims)
        if operation in UNARY:
            return getattr(np, operation)(arrays[0])
        if operation == "pow":
            return np.power(*arrays)
    raise NotSupported(f"numerics.evaluate {operation}")


def make() -> NumpyAdapter:
    """The adapter."""
    return NumpyAdapter()
