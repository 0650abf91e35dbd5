"""PyTorch on the CPU behind the protocol: `--impl=py:conformance.adapters.torch_adapter:make`.

All-reduce is gloo's, over eight process groups inside one process.
"""

from __future__ import annotations

import atexit
import datetime
import threading
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.distributed as distributed
from conformance.adapters.exchange import NUMPY_TYPES, UNARY, array_of, hello, refuse_trees, result_type, tensor_of

from tessera_conformance.adapter import NotSupported
from tessera_conformance.tensors import Tensor

RANKS = 8
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64}
REDUCTIONS = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}


class TorchAdapter:
    """Single operations, as PyTorch computes them on one thread."""

    def __init__(self) -> None:
        torch.set_num_threads(1)

    def hello(self) -> dict[str, Any]:
        """Identity."""
        return hello("torch", torch.__version__)

    def numerics_evaluate(
        self, *, operation: str, inputs: list[Tensor], attributes: dict[str, Any], level: str = "fast", **rest: Any
    ) -> dict[str, Any]:
        """One operation; what is not in this file is unsupported."""
        refuse_trees(attributes)
        arrays = [_given(tensor) for tensor in inputs]
        return {"outputs": [_taken(_evaluated(operation, arrays, attributes, inputs[0].dtype))]}

    def collectives_all_reduce(
        self, *, inputs: list[Tensor], op: str, level: str = "fast", **rest: Any
    ) -> dict[str, Any]:
        """The sum over eight gloo ranks."""
        if op != "sum" or len(inputs) != RANKS:
            raise NotSupported(f"all_reduce {op} over {len(inputs)} ranks")
        buffers = [_given(tensor).clone() for tensor in inputs]
        works = [group.allreduce([buffer]) for group, buffer in zip(_groups(), buffers, strict=True)]
        for work in works:
            work.wait()
        return {"outputs": [_taken(buffer) for buffer in buffers]}


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


def _given(tensor: Tensor) -> Any:
    words = array_of(tensor)
    if tensor.dtype == "bf16":
        return torch.from_numpy(words.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(words.copy())


def _taken(result: Any) -> Tensor:
    if result.dtype == torch.bfloat16:
        return tensor_of(result.contiguous().view(torch.int16).numpy().view(NUMPY_TYPES["bf16"]))
    return tensor_of(result.contiguous().numpy())


@cache
def _groups() -> list[Any]:
    """Eight ranks that find each other through a store in memory."""
    store, groups = distributed.HashStore(), [None] * RANKS
    limit = datetime.timedelta(seconds=20)

    def join(rank: int) -> None:
        groups[rank] = distributed.ProcessGroupGloo(store, rank, RANKS, limit)

    threads = [threading.Thread(target=join, args=(rank,), daemon=True) for rank in range(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    atexit.register(_groups.cache_clear)  # the groups' own threads must end before the interpreter does
    return groups


def make() -> TorchAdapter:
    """The adapter."""
    return TorchAdapter()
