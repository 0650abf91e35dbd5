"""All-reduce: what every rank holds afterwards.

Canon of arithmetic: contributions are combined in the accumulator type over the canonical tree in the order of the
ranks, and rounded once (LANG-15-10, RT-13-01).
"""

from __future__ import annotations

from collections.abc import Callable

from tessera_conformance.oracle.axes import stacked
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.reductions import max_, min_, sum_
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.tensors import Tensor

_EXTREMES: dict[str, Callable[[Tensor, int], Tensor]] = {"max": max_, "min": min_}


def all_reduce(
    *inputs: Tensor, op: str = "sum", tree: Tree = "pairwise", algorithm: str | None = None
) -> tuple[Tensor, ...]:
    """The same tensor for each rank; `op` is sum, max or min, and only the sum follows a tree.

    `algorithm` says how it travels, which changes nothing (LANG-09-06).
    """
    stack = stacked(inputs)
    if op not in ("sum", *_EXTREMES):
        raise BadArgument("op", op, "sum, max or min")
    result = sum_(stack, 0, tree=tree) if op == "sum" else _EXTREMES[op](stack, 0)
    return (result,) * len(inputs)
