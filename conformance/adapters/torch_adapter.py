"""PyTorch on the CPU behind the protocol: `--impl=py:conformance.adapters.torch_adapter:make`.

Collectives are gloo's, between eight processes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from conformance.adapters.collective_requests import COMBINING, Request, all_reduce_of, kind_of, request_of
from conformance.adapters.exchange import (
    NUMPY_TYPES,
    UNARY,
    array_of,
    hello_of_engine,
    rank_array,
    rank_outputs,
    refuse_trees,
    result_type,
    tensor_of,
)
from conformance.adapters.gloo_ranks import RANKS, GlooRanks, given, taken
from conformance.adapters.orders import declared

from tessera_conformance.adapter import NotSupported
from tessera_conformance.tensors import Tensor

REDUCTIONS = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}


class TorchAdapter:
    """Single operations, as PyTorch computes them on one thread."""

    def __init__(self) -> None:
        torch.set_num_threads(1)

    def hello(self) -> dict[str, Any]:
        """Identity."""
        return hello_of_engine("gloo", torch.__version__, ("all-to-all", "subgroups"), name="torch")

    def numerics_evaluate(
        self, *, operation: str, inputs: list[Tensor], attributes: dict[str, Any], level: str = "fast", **rest: Any
    ) -> dict[str, Any]:
        """One operation; what is not in this file is unsupported."""
        refuse_trees(attributes)
        arrays = [given(array_of(tensor)) for tensor in inputs]
        return {"outputs": [tensor_of(taken(_evaluated(operation, arrays, attributes, inputs[0].dtype)))]}

    def numerics_declared(self, *, operation: str, **question: Any) -> dict[str, Any]:
        """The order of a sum over ranks, as it was found."""
        return declared("gloo", torch.__version__, operation, **question)

    def collectives_all_reduce(
        self, *, inputs: list[Tensor], op: str, level: str = "deterministic", **rest: Any
    ) -> dict[str, Any]:
        """The allreduce of gloo over as many ranks as there are inputs."""
        return _carried_out(all_reduce_of(inputs, op, RANKS, level, rest), inputs)

    def collectives_run(self, *, operation: str, inputs: list[Tensor], **arguments: Any) -> dict[str, Any]:
        """One collective among the ranks of each group."""
        return _carried_out(request_of(operation, inputs, RANKS, **arguments), inputs)


def _carried_out(request: Request, inputs: list[Tensor]) -> dict[str, Any]:
    combining, dtype = request.operation in COMBINING, inputs[0].dtype
    if combining and (dtype == "int16" or (kind_of(dtype) == "complex" and request.op not in ("sum", "mean"))):
        raise NotSupported(f"{request.op} of {dtype} in gloo")
    arrays = [rank_array(tensor, combining) for tensor in inputs]
    return rank_outputs(request, inputs, _ranks().carry_out(request, arrays))


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
