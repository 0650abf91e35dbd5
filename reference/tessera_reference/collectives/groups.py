"""What each rank of a group has after a collective (runtime spec 4.6; AMB-RT-02, AMB-RT-04, AMB-RT-57)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..abi.descriptor import Descriptor
from ..abi.policy import NumericsPolicy
from ..numerics.array import Array
from .all_reduce import all_reduce

__all__ = ["combine", "share_of"]


def combine(
    collective: str,
    buffers: Sequence[Array],
    *,
    op: Any = None,
    root: int | None = None,
    policy: NumericsPolicy | None = None,
    descriptor: Descriptor | None = None,
) -> list[Array]:
    """The flat buffers of all ranks of a group afterwards, in order of the axis coordinate. Raises `Failure`."""
    if collective == "broadcast":
        assert root is not None, "a broadcast has a root"
        return [buffers[root] for _ in buffers]
    if collective == "all_gather":
        whole = [_share(buffer, rank, len(buffers)) for rank, buffer in enumerate(buffers)]
        gathered = Array(buffers[0].dtype, np.concatenate([each.values for each in whole]))
        return [gathered for _ in buffers]
    descriptors = None if descriptor is None else [descriptor] * len(buffers)
    reduced = all_reduce(buffers, op, policy=policy, descriptors=descriptors)
    if collective == "all_reduce":
        return [reduced for _ in buffers]
    return [_with_share(buffer, reduced, rank, len(buffers)) for rank, buffer in enumerate(buffers)]


def share_of(count: int, rank: int, ranks: int) -> slice:
    """Which of so many elements the rank at a place in its group owns (AMB-RT-04)."""
    return slice(rank * count // ranks, (rank + 1) * count // ranks)


def _share(buffer: Array, rank: int, ranks: int) -> Array:
    """The elements that a rank owns."""
    return Array(buffer.dtype, buffer.values[share_of(buffer.values.size, rank, ranks)])


def _with_share(buffer: Array, reduced: Array, rank: int, ranks: int) -> Array:
    """A buffer in which the own share is that of the reduction; the rest stays as it was."""
    own = share_of(buffer.values.size, rank, ranks)
    values = buffer.values.copy()
    values[own] = reduced.values[own]
    return Array(buffer.dtype, values)
