"""Collectives: what every rank holds afterwards.

Canon of arithmetic: contributions are combined in the accumulator type over the canonical tree in the order of the
ranks, and rounded once (LANG-15-10, RT-13-01). `algorithm` says how they travel, which changes nothing (LANG-09-06).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from tessera_conformance.oracle.axes import stacked
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.reductions import max_, mean, min_, prod, sum_
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.tensors import Tensor

_ALONG_A_TREE: dict[str, Callable[..., Tensor]] = {"sum": sum_, "prod": prod, "mean": mean}
_EXTREMES: dict[str, Callable[[Tensor, int], Tensor]] = {"max": max_, "min": min_}


def all_reduce(
    *inputs: Tensor, op: str = "sum", tree: Tree = "pairwise", algorithm: str | None = None
) -> tuple[Tensor, ...]:
    """The same tensor for each rank; a sum, product or mean follows a tree (AMB-COLL-31), an extreme none."""
    stack = stacked(inputs)
    if op not in (*_ALONG_A_TREE, *_EXTREMES):
        raise BadArgument("op", op, "sum, prod, mean, max or min")
    result = _ALONG_A_TREE[op](stack, 0, tree=tree) if op in _ALONG_A_TREE else _EXTREMES[op](stack, 0)
    return (result,) * len(inputs)


def reduce_scatter(
    *inputs: Tensor, op: str = "sum", tree: Tree = "pairwise", algorithm: str | None = None
) -> tuple[Tensor, ...]:
    """Rank r of n has the elements from r * count // n up to (r + 1) * count // n of the reduction (AMB-RT-04)."""
    whole, ranks = all_reduce(*inputs, op=op, tree=tree)[0], len(inputs)
    ends = [rank * whole.size // ranks for rank in range(ranks + 1)]
    return tuple(_run(whole, first, last) for first, last in pairwise(ends))


def all_gather(*inputs: Tensor, algorithm: str | None = None) -> tuple[Tensor, ...]:
    """Every rank has what all bring, in order."""
    return (_joined(inputs),) * len(inputs)


def all_to_all(*inputs: Tensor, algorithm: str | None = None) -> tuple[Tensor, ...]:
    """Block s of what rank r brings is block r of what rank s has (AMB-COLL-10); blocks are of one size."""
    ranks, count = len(inputs), inputs[0].size
    if count % ranks:
        raise BadArgument("inputs", count, f"a multiple of {ranks} elements each")
    block = count // ranks
    return tuple(_joined([_run(x, rank * block, (rank + 1) * block) for x in inputs]) for rank in range(ranks))


def _run(x: Tensor, first: int, last: int) -> Tensor:
    """Consecutive elements of a flat tensor."""
    size = len(x.data) // max(x.size, 1)
    return Tensor(x.dtype, (last - first,), x.data[first * size : last * size])


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """Flat tensors one after the other."""
    return Tensor(parts[0].dtype, (sum(part.size for part in parts),), b"".join(part.data for part in parts))
