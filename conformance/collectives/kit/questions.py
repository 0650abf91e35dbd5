"""The questions of golden vectors of collectives, each with its oracle function."""

from __future__ import annotations

from collections.abc import Sequence

from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import Question
from tessera_conformance.vectors.files import Call, Check

ACCESS = "operation-access"
"""The feature of calls by name, without a program (AMB-RT-73)."""

OVER_RANKS = {
    "bf16": ("bf16-collectives",),
    "fp8_e4m3": ("fp8-collectives",),
    "fp8_e5m2": ("fp8-collectives",),
    "tf32": ("fp8-collectives",),
}
"""The features of the dtypes that a library of collectives may lack."""


def all_reduce(inputs: Sequence[Tensor], op: str, *clauses: str) -> Question:
    """`collectives.all_reduce` over one tensor of each rank."""
    call = Call("collectives.all_reduce", {"inputs": list(inputs), "op": op})
    check = Check("oracle.all_reduce", tuple(map(str, range(len(inputs)))), {"op": op})
    return Question(call, check, clauses, (ACCESS, *OVER_RANKS.get(inputs[0].dtype, ())))


def collective(
    name: str, algorithm: str, inputs: Sequence[Tensor], *clauses: str, op: str | None = None, feature: str = ""
) -> Question:
    """`collectives.run`: a collective by an algorithm of its own; the oracle function has its name."""
    options = {"algorithm": algorithm} if op is None else {"op": op, "algorithm": algorithm}
    call = Call("collectives.run", {"operation": name, "inputs": list(inputs), **options})
    check = Check(f"oracle.{name}", tuple(map(str, range(len(inputs)))), options)
    return Question(call, check, clauses, (ACCESS, "algorithm-control", *([feature] if feature else [])))


def compress(x: Tensor, wire: str, dtype: str, *clauses: str) -> Question:
    """`collectives.compress` to a wire of some name, which is a cast to `dtype`."""
    call = Call("collectives.compress", {"input": x, "dtype": wire})
    return Question(call, Check("oracle.cast", ("0",), {"dtype": dtype}), clauses, ("compression",))


def sparsify(x: Tensor, k: int, *clauses: str) -> Question:
    """`collectives.sparsify`: the values and indices of a top-k message."""
    call = Call("collectives.sparsify", {"input": x, "k": k})
    return Question(call, Check("oracle.top_k", ("0",), {"k": k}), clauses, ("topk-sparsity",))
