"""The results of a collective on every rank of a group, and the sums behind them.

Runtime spec 4.6; collectives spec 4.4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

from ..abi.policy import Descriptor, NumericsPolicy
from ..abi.status import Failure, Status, invalid, mismatch, unsupported
from ..graph.futures import holds
from ..numerics.array import Array
from ..numerics.collectives import all_gather, alternative, broadcast, reduced, share_of
from ..numerics.formats import DTYPES, DType, shown
from ..numerics.trees import PAIRWISE, Tree

# All-reduce: every rank contributes a buffer, and every rank gets their combination, with the same bits.
#
# Contributions are combined in the accumulator type over the canonical tree, in order of the axis coordinate, and
# rounded once (AMB-LANG-109, AMB-RT-57), so that the result is the same on every run and on every rank (RT-06-03,
# RT-06-04, RT-13-01, LANG-15-10, LANG-15-16).


Operator: TypeAlias = Literal["sum", "max", "min"]

_NAME = "tessAllReduce"


def all_reduce(
    buffers: Sequence[Array],
    op: Operator,
    *,
    policy: NumericsPolicy | None = None,
    wire: str | None = None,
    descriptors: Sequence[Descriptor] | None = None,
) -> Array:
    """Combine the buffers of all ranks, in order of the axis coordinate; every rank is given the result.

    This machine never quantizes on the wire: where `policy` permits it, it is allowed, not demanded (RT-13-09).

    Raises `Failure`: TESS_ERR_INVALID_VALUE for an unknown operator or wire, or no rank, TESS_ERR_COLLECTIVE_MISMATCH
    where ranks differ in count or dtype, TESS_ERR_DETERMINISM_VIOLATION where they differ in descriptor or a wire that
    lacks values of the data is asked for under a deterministic policy (AMB-RT-13, AMB-RT-27, AMB-COLL-54),
    TESS_ERR_UNSUPPORTED where `op` is not defined.
    """
    _require_agreement(buffers, op, descriptors)
    if wire is not None and (not isinstance(wire, str) or wire not in DTYPES):
        raise invalid(_NAME, f"unknown dtype {shown(wire)} as wire", ", ".join(DTYPES))
    dtype = buffers[0].dtype
    lossy = wire is not None and not holds(DTYPES[wire], dtype)
    if lossy and (policy or NumericsPolicy()).deterministic:
        actual = f"wire {wire} of {dtype} under a deterministic policy"
        allowed = f"no wire, one that holds every {dtype}, or deterministic = 0"
        raise Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, _NAME, actual, allowed)
    require_operator(op, dtype, _NAME)
    tree = descriptors[0].reduction_order if descriptors else None
    if tree is not None:
        tree.require_leaves(len(buffers))
    return reduced(op, buffers, None if tree is None else [(tree, slice(None))])


def require_operator(op: str, dtype: DType, function: str) -> None:
    """Raise `Failure` with TESS_ERR_UNSUPPORTED for an operator that a dtype does not have (AMB-RT-28, AMB-RT-57)."""
    if (instead := alternative(op, dtype)) is not None:
        raise unsupported(function, f"{op} of {dtype}", instead)


def _require_agreement(buffers: Sequence[Array], op: str, descriptors: Sequence[Descriptor] | None) -> None:
    if op not in get_args(Operator):
        allowed = " or ".join(get_args(Operator))
        raise invalid(_NAME, f"operator {shown(op)}", allowed)
    if not buffers:
        raise invalid(_NAME, "no rank takes part", "one buffer of each rank")
    for rank, buffer in enumerate(buffers):
        if (buffer.dtype, buffer.shape) != (buffers[0].dtype, buffers[0].shape):
            actual = f"rank {rank} brings {buffer.dtype}{list(buffer.shape)}"
            expected = f"{buffers[0].dtype}{list(buffers[0].shape)}, as rank 0 does"
            raise mismatch(_NAME, actual, expected)
    if descriptors is None:
        return
    if len(descriptors) != len(buffers):
        actual = f"{len(descriptors)} descriptors of {len(buffers)} ranks"
        raise invalid(_NAME, actual, "one of each rank")
    for rank, descriptor in enumerate(descriptors):
        if descriptor != descriptors[0]:
            actual = f"rank {rank} brings another determinism descriptor than rank 0"
            raise Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, _NAME, actual, "the same descriptor on every rank")


# What each rank of a group has after a collective (runtime spec 4.6; AMB-RT-02, AMB-RT-04, AMB-RT-57).


def combine(
    collective: str,
    buffers: Sequence[Array],
    *,
    op: Any = None,
    root: int | None = None,
    policy: NumericsPolicy | None = None,
    descriptor: Descriptor | None = None,
) -> list[Array]:
    """The flat buffers of all ranks of a group afterwards, in order of the axis coordinate. Raises `Failure`.

    A reduce-scatter gives each the whole combination, of which its own share counts.
    """
    ranks, count = len(buffers), buffers[0].values.size
    if collective == "broadcast":
        assert root is not None, "a broadcast has a root"
        return broadcast(buffers, root)
    if collective == "all_gather":
        return all_gather([Array(x.dtype, x.values[share_of(count, rank, ranks)]) for rank, x in enumerate(buffers)])
    descriptors = None if descriptor is None else [descriptor] * ranks
    return [all_reduce(buffers, op, policy=policy, descriptors=descriptors)] * ranks


# Stage one of a hierarchical collective: partial values of warps and blocks of a device (COLL-04.4-01; AMB-COLL-66).
#
# A device brings a partial value of each warp of each block. Under deterministic the warps of a block are combined
# first, then the blocks of a device, each along adjacent pairs; then devices, as the algorithm has it. Under strict
# the order is the canonical tree over all partial values. Nothing is rounded between stages, and stage one sends
# nothing.


ALGORITHM = "hierarchical"


def require_stage_one(operation: str, name: str, partials: Sequence[int], travels: bool) -> None:
    """Raise `Failure` where there is no stage one.

    TESS_ERR_INVALID_VALUE for an operation that combines nothing and for other than two numbers from 1 on;
    TESS_ERR_UNSUPPORTED for another algorithm, and where data travel compressed or in a seeded order (`travels`).
    """
    if operation not in ("all_reduce", "reduce_scatter"):
        raise invalid(operation, "partial values", "all_reduce or reduce_scatter")
    if len(partials) != 2 or min(partials) < 1:
        expected = "blocks of a device and warps of a block, 1 or more"
        raise invalid(operation, f"partials {shown(list(partials))}", expected)
    if name != ALGORITHM:
        actual = f"partial values with algorithm {name!r}"
        raise unsupported(operation, actual, f"algorithm {ALGORITHM!r}")
    if travels:
        raise unsupported(operation, "partial values over a wire or by a seed", "neither")


def partial_values(operation: str, buffers: Sequence[Array], partials: Sequence[int]) -> list[Array]:
    """The partial values of all devices, in order of device, block and warp.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a buffer that does not begin with axes of blocks and warps.
    """
    blocks, warps = partials
    for rank, buffer in enumerate(buffers):
        if buffer.shape[:2] != (blocks, warps):
            actual = f"rank {rank} brings {buffer.dtype}{list(buffer.shape)}"
            expected = f"[{blocks}, {warps}, ...], a partial value of each warp of each block"
            raise invalid(operation, actual, expected)
    places = [(block, warp) for block in range(blocks) for warp in range(warps)]
    return [Array(part.dtype, part.values[place]) for part in buffers for place in places]


def through_devices(tree: Tree, ranks: int, partials: Sequence[int]) -> Tree:
    """The tree over all partial values, whose innermost levels are warps and blocks, from one over devices."""
    blocks, warps = partials

    def block(number: int) -> str:
        return _written(PAIRWISE, warps, lambda warp: str(number * warps + warp))

    def device(rank: int) -> str:
        return _written(PAIRWISE, blocks, lambda number: block(rank * blocks + number))

    return Tree.parse(_written(tree, ranks, device))


def _written(tree: Tree, count: int, leaf: Callable[[int], str]) -> str:
    """The text of a tree over so many leaves, each of which may be a tree."""
    return tree.over(count).evaluate(leaf, lambda children: f"({' '.join(children)})", "c")
