"""Collectives: every rank's result, and the largest elements that a compressed one sends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.exact import BadArgument, Value
from tessera_conformance.oracle.reductions import max_, mean, min_, prod, sum_
from tessera_conformance.oracle.trees import Order
from tessera_conformance.tensors import Tensor


def top_k(x: Tensor, *, k: int) -> tuple[Tensor, Tensor]:
    """The k elements of a flat tensor largest in magnitude and their int32 indices, ascending; ties to the lower."""
    if len(x.shape) != 1:
        raise BadArgument("x", list(x.shape), "a tensor of one axis")
    if type(k) is not int or not 0 <= k <= x.size:
        raise BadArgument("k", k, f"an integer from 0 to {x.size}")
    values = exact.values_of(x)
    if exact.NAN in values:
        raise BadArgument("x", "NaN", "numbers and infinities")
    by_magnitude = sorted(range(x.size), key=lambda place: (-_rank(values[place], x), place))
    chosen = sorted(by_magnitude[:k])
    words = x.words()
    return Tensor.from_words(x.dtype, (k,), [int(words[place]) for place in chosen]), Tensor.from_words(
        "int32", (k,), chosen
    )


def _rank(value: Value, x: Tensor) -> Fraction:
    """Return the magnitude, with the infinities above every number of the type."""
    return 2 * exact.float_format(x.dtype).largest if exact.is_infinite(value) else abs(exact.finite(value))


# Collectives: the results of every rank.
#
# Reference arithmetic: contributions are combined in the accumulator type over the canonical tree in the order of the
# ranks, and rounded once (LANG-15-10, RT-13-01). `algorithm` names the route of the data, which changes nothing
# (LANG-09-06).


_ALONG_A_TREE: dict[str, Callable[..., Tensor]] = {"sum": sum_, "prod": prod, "mean": mean}
_EXTREMES: dict[str, Callable[[Tensor, int], Tensor]] = {"max": max_, "min": min_}


def all_reduce(
    *inputs: Tensor, op: str = "sum", tree: Order = "pairwise", algorithm: str | None = None
) -> tuple[Tensor, ...]:
    """The same tensor for each rank; a sum, product or mean follows a tree (AMB-COLL-31), an extreme none."""
    stack = exact.stacked(inputs)
    if op not in (*_ALONG_A_TREE, *_EXTREMES):
        raise BadArgument("op", op, "sum, prod, mean, max or min")
    result = _ALONG_A_TREE[op](stack, 0, tree=tree) if op in _ALONG_A_TREE else _EXTREMES[op](stack, 0)
    return (result,) * len(inputs)


def reduce_scatter(
    *inputs: Tensor, op: str = "sum", tree: Order = "pairwise", algorithm: str | None = None
) -> tuple[Tensor, ...]:
    """Rank r of n has the elements from r * count // n up to (r + 1) * count // n of the reduction (AMB-RT-04)."""
    whole, ranks = all_reduce(*inputs, op=op, tree=tree)[0], len(inputs)
    ends = [rank * whole.size // ranks for rank in range(ranks + 1)]
    return tuple(_run(whole, first, last) for first, last in pairwise(ends))


def all_gather(*inputs: Tensor, algorithm: str | None = None) -> tuple[Tensor, ...]:
    """Every rank has the contributions of all, in order."""
    return (_joined(inputs),) * len(inputs)


def all_to_all(*inputs: Tensor, algorithm: str | None = None) -> tuple[Tensor, ...]:
    """Block s of the input of rank r is block r of the output of rank s (AMB-COLL-10); blocks are of one size."""
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
