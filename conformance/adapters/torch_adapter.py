"""PyTorch on the CPU behind the protocol: `--impl=py:conformance.adapters.torch_adapter:make`.

Collectives are gloo's, between eight processes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from conformance.adapters.collective_requests import COMBINING, Request, kind_of
from conformance.adapters.engine_adapter import EngineAdapter
from conformance.adapters.exchange import (
    NUMPY_TYPES,
    UNARY,
    array_of,
    refuse_trees,
    result_type,
    tensor_of,
)
from conformance.adapters.gloo_ranks import RANKS, GlooRanks, given, taken

from tessera_conformance.adapter import NotSupported
from tessera_conformance.tensors import Tensor

REDUCTIONS = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}


class TorchAdapter(EngineAdapter):
    """Single operations, as PyTorch computes them on one thread, and collectives of gloo."""

    def __init__(self) -> None:
        super().__init__("gloo", torch.__version__, RANKS, name="torch")
        torch.set_num_threads(1)

    def numerics_evaluate(
        self, *, operation: str, inputs: list[Tensor], attributes: dict[str, Any], level: str = "fast", **rest: Any
    ) -> dict[str, Any]:
        """One operation; what is not in this file is unsupported."""
        refuse_trees(attributes)
        arrays = [given(array_of(tensor)) for tensor in inputs]
        return {"outputs": [tensor_of(taken(_evaluated(operation, arrays, attributes, inputs[0].dtype)))]}

    def require(self, request: Request, dtype: str) -> None:
        """The dtypes that gloo combines."""
        combining = request.operation in COMBINING
        if combining and (dtype == "int16" or (kind_of(dtype) == "complex" and request.op not in ("sum", "mean"))):
            raise NotSupported(f"{request.op} of {dtype} in gloo")

    def carry_out(self, request: Request, arrays: list[Any]) -> list[Any]:
        """By gloo, over as many ranks as there are inputs."""
        return list(_ranks().carry_out(request, arrays))


def _evaluated(operation: str, arrays: list[Any], attributes: dict[str, Any], dtype: str) -> Any:
    if operation == "matmul" and len(arrays) == 2:
        if np.dtype(result_type(attributes, dtype)) != np.dtype(NUMPY_TYPES[dtype]):
            raise NotSupported("matmul with another result type")
        return torch.matmul(*arrays)
    if operation in REDUCTIONS:
        return REDUCTIONS[operation](arrays[0], dim=attributes["axis"], keepdim=attributes.get("keepdims", False))
    if operation in (*UNARY, "erf", "rsqrt", "reciprocal", "pow"):
        return getattr(torch, operation)(*arrays)
    raise NotSupported(f"numerics.evaluate {operation}")


@cache
def _ranks() -> GlooRanks:
    return GlooRanks()


def make() -> TorchAdapter:
    """The adapter."""
    return TorchAdapter()
