"""PyTorch on the CPU: operations as `ops:conformance.adapters.torch_adapter:TABLE`, collectives as `py:...:make`.

Operations run on one thread. Collectives are gloo's, between eight processes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import numpy as np
import torch
from conformance.adapters.collective_requests import COMBINING, Request, kind_of
from conformance.adapters.engine_adapter import EngineAdapter
from conformance.adapters.gloo_ranks import RANKS, GlooRanks
from torch.nn import functional

from tessera_conformance.adapter import NotSupported
from tessera_conformance.operations import DTYPES as NAMES
from tessera_conformance.operations import calls
from tessera_conformance.operations.table_adapter import numpy_type

NAME, VERSION = "torch", torch.__version__
torch.set_num_threads(1)
torch.set_grad_enabled(False)

TORCH_TYPES = {numpy_type(name): getattr(torch, row["torch"]) for name, row in NAMES.items() if "torch" in row}
NUMPY_TYPES = {kind: dtype for dtype, kind in TORCH_TYPES.items()}
WORDS = {1: (np.uint8, torch.uint8), 2: (np.int16, torch.int16)}
LACKING = ("not implemented for", "Unsupported dtype", "not supported for", "step must be greater than zero")
"""In the message of an error: PyTorch has no kernel of this dtype, or no negative steps."""


def given(array: Any) -> torch.Tensor:
    """A tensor of an array's elements; what numpy does not know itself travels as words."""
    if array.dtype.isbuiltin == 1:
        return torch.from_numpy(array)
    numpy_words, _ = WORDS[array.dtype.itemsize]
    return torch.from_numpy(array.view(numpy_words)).view(TORCH_TYPES[array.dtype])


def taken(tensor: torch.Tensor) -> Any:
    """The array of a tensor's elements."""
    whole = tensor.contiguous()
    dtype = NUMPY_TYPES[whole.dtype]
    if dtype.isbuiltin == 1:
        return whole.resolve_conj().numpy()
    return whole.view(WORDS[dtype.itemsize][1]).numpy().view(dtype)


def on_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors as one of arrays."""

    @wraps(function)
    def called(*arrays: Any, **attributes: Any) -> Any:
        named = {name: TORCH_TYPES[v] if isinstance(v, np.dtype) else v for name, v in attributes.items()}
        try:
            result = function(*map(given, arrays), **named)
        except (RuntimeError, ValueError) as error:
            if any(words in str(error) for words in LACKING):
                raise NotImplementedError(str(error)) from None
            raise
        return tuple(map(taken, result)) if isinstance(result, tuple) else taken(result)

    return called


TABLE = calls("torch", {"torch": torch, "F": functional, "np": np}, on_arrays)


class TorchAdapter(EngineAdapter):
    """Collectives of gloo, and the operations of the table."""

    features = ("bf16-collectives",)

    def __init__(self) -> None:
        super().__init__("gloo", torch.__version__, RANKS, name="torch", operations=sys.modules[__name__])

    def require(self, request: Request, dtype: str) -> None:
        """The dtypes that gloo combines."""
        if request.op == "mean":
            raise NotSupported("mean in gloo")
        combining = request.operation in COMBINING
        if combining and (dtype == "int16" or (kind_of(dtype) == "complex" and request.op not in ("sum", "mean"))):
            raise NotSupported(f"{request.op} of {dtype} in gloo")

    def carry_out(self, request: Request, arrays: list[Any]) -> list[Any]:
        """By gloo, over as many ranks as there are inputs."""
        return list(_ranks().carry_out(request, arrays))


@cache
def _ranks() -> GlooRanks:
    return GlooRanks()


def make() -> TorchAdapter:
    """The adapter."""
    return TorchAdapter()
