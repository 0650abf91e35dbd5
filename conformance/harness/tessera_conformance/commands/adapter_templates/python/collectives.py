"""A collectives library behind the Tessera conformance suite: fill in the methods that yours has.

    tessera-conformance smoke --impl=py:my_adapter:make                            asks for a sum over two ranks
    tessera-conformance run --impl=py:my_adapter:make -k "all_reduce and golden"   runs a part of the suite

What each method takes and returns is described in docs/protocol.md of the project. A method that is not here reads
as unsupported, which is never a pass. Raise `Refusal` where yours refuses a request.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.adapter import NotSupported
from tessera_conformance.server import serve
from tessera_conformance.tensors import Tensor


class MyAdapter:
    """Answers for an implementation."""

    def hello(self) -> Mapping[str, Any]:
        """Name the implementation and its claims. The clauses of an all-reduce are in three documents."""
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "my-implementation", "version": "0.1"},
            "documents": ["collectives", "language_ir", "runtime_abi"],
            "capabilities": {"operation-access": "enforced"},
            "arithmetic": {"level": "strict", "trees": {"all_reduce": "pairwise"}},
            "parallel": True,  # several processes may answer at once; take it away where they share a device
        }

    def collectives_all_reduce(self, *, inputs: Sequence[Tensor], op: str, level: str = "strict") -> dict[str, Any]:
        """The sum over ranks, one tensor a rank, by the balanced tree of neighbours."""
        if op != "sum" or any(operand.dtype != "fp32" for operand in inputs):
            raise NotSupported(f"collectives.all_reduce {op} of {inputs[0].dtype}")
        rows = [(ctypes.c_float * operand.size).from_buffer_copy(operand.data) for operand in inputs]
        while len(rows) > 1:
            pairs = [_sum(*pair) for pair in zip(rows[::2], rows[1::2], strict=False)]
            rows = [*pairs, *rows[len(pairs) * 2 :]]  # an odd one is carried on unchanged
        total = Tensor("fp32", inputs[0].shape, bytes(rows[0]))
        return {"outputs": [total] * len(inputs)}


def _sum(a: ctypes.Array[ctypes.c_float], b: ctypes.Array[ctypes.c_float]) -> ctypes.Array[ctypes.c_float]:
    return (ctypes.c_float * len(a))(*(x + y for x, y in zip(a, b, strict=True)))


make = MyAdapter

if __name__ == "__main__":  # in a process of its own: --impl=rpc:"python my_adapter.py"
    serve(make())
