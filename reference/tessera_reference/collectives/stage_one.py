"""Stage one of a hierarchical collective: partial values of warps and blocks of a device (COLL-04.4-01; AMB-COLL-66).

A device brings a partial value of each warp of each block. Under deterministic the warps of a block are combined first,
then the blocks of a device, each along adjacent pairs; then devices, as the algorithm has it. Under strict the order is
the canonical tree over all partial values. Nothing is rounded between stages, and stage one sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..abi.status import Failure, Status
from ..numerics.array import Array
from ..numerics.errors import shown
from ..numerics.trees import PAIRWISE, Tree

__all__ = ["partial_values", "require_stage_one", "through_devices"]

ALGORITHM = "hierarchical"


def require_stage_one(operation: str, name: str, partials: Sequence[int], travels: bool) -> None:
    """Raise `Failure` where there is no stage one.

    TESS_ERR_INVALID_VALUE for an operation that combines nothing and for other than two numbers from 1 on;
    TESS_ERR_UNSUPPORTED for another algorithm, and where data travel compressed or in a seeded order (`travels`).
    """
    if operation not in ("all_reduce", "reduce_scatter"):
        raise Failure(Status.TESS_ERR_INVALID_VALUE, operation, "partial values", "all_reduce or reduce_scatter")
    if len(partials) != 2 or min(partials) < 1:
        expected = "blocks of a device and warps of a block, 1 or more"
        raise Failure(Status.TESS_ERR_INVALID_VALUE, operation, f"partials {shown(list(partials))}", expected)
    if name != ALGORITHM:
        given = f"partial values with algorithm {name!r}"
        raise Failure(Status.TESS_ERR_UNSUPPORTED, operation, given, f"algorithm {ALGORITHM!r}")
    if travels:
        raise Failure(Status.TESS_ERR_UNSUPPORTED, operation, "partial values over a wire or by a seed", "neither")


def partial_values(operation: str, buffers: Sequence[Array], partials: Sequence[int]) -> list[Array]:
    """The partial values of all devices, in order of device, block and warp.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a buffer that does not begin with axes of blocks and warps.
    """
    blocks, warps = partials
    for rank, buffer in enumerate(buffers):
        if buffer.shape[:2] != (blocks, warps):
            given = f"rank {rank} brings {buffer.dtype}{list(buffer.shape)}"
            expected = f"[{blocks}, {warps}, ...], a partial value of each warp of each block"
            raise Failure(Status.TESS_ERR_INVALID_VALUE, operation, given, expected)
    places = [(block, warp) for block in range(blocks) for warp in range(warps)]
    return [Array(each.dtype, each.values[place]) for each in buffers for place in places]


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
