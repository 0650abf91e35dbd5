"""A kernel library behind the Tessera conformance suite: add the operations that yours has.

    tessera-conformance smoke --impl=py:my_adapter:make --door=operations   asks for one addition
    tessera-conformance run --impl=py:my_adapter:make --door=operations     asks every golden vector by operations

The names and attributes of operations are those of the table under `numerics` in docs/protocol.md of the project. An
operation that is not here reads as unsupported, which is never a pass. Raise `Refusal` where yours refuses a request.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tessera_conformance.adapter import NotSupported
from tessera_conformance.server import serve
from tessera_conformance.tensors import Tensor

ELEMENTWISE: Mapping[str, Callable[[float, float], float]] = {"add": lambda a, b: a + b, "multiply": lambda a, b: a * b}


class MyAdapter:
    """Answers for an implementation."""

    def hello(self) -> Mapping[str, Any]:
        """Who answers, and what it claims: only what works."""
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "my-implementation", "version": "0.1"},
            "documents": ["language_ir"],
            "capabilities": {"operation-access": "enforced"},
            "arithmetic": {"level": "strict"},
        }

    def numerics_evaluate(
        self, *, operation: str, inputs: Sequence[Tensor], attributes: Mapping[str, Any], level: str = "strict"
    ) -> dict[str, Any]:
        """One operation. A tensor has `dtype`, `shape` and `data`: row-major, little-endian bytes."""
        if operation not in ELEMENTWISE:
            raise NotSupported(f"numerics.evaluate {operation}")
        a, b = inputs
        if a.dtype != "fp32" or b.dtype != "fp32" or a.shape != b.shape:
            raise NotSupported(f"{operation} of {a.dtype} {a.shape} and {b.dtype} {b.shape}")
        results = [ELEMENTWISE[operation](x, y) for x, y in zip(_floats(a), _floats(b), strict=True)]
        row = (ctypes.c_float * len(results))(*results)  # rounds once: a sum or product of two fp32 fits into a double
        return {"outputs": [Tensor("fp32", a.shape, bytes(row))]}


def _floats(tensor: Tensor) -> Sequence[float]:
    return list((ctypes.c_float * tensor.size).from_buffer_copy(tensor.data))


make = MyAdapter

if __name__ == "__main__":  # in a process of its own: --impl=rpc:"python my_adapter.py"
    serve(make())
