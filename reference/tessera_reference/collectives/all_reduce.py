"""All-reduce: every rank contributes a buffer, and every rank gets their combination, with the same bits.

Contributions are combined in the accumulator type over the canonical tree, in order of the axis coordinate, and rounded
once (AMB-LANG-109, AMB-RT-57), so that the result is the same on every run and on every rank (RT-06-03, RT-06-04,
RT-13-01, LANG-15-10, LANG-15-16).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from ..abi.descriptor import Descriptor
from ..abi.policy import NumericsPolicy
from ..abi.status import Failure, Status
from ..graph.collective_hints import holds
from ..numerics import reductions
from ..numerics.array import Array
from ..numerics.errors import shown
from ..numerics.formats import DTYPES, DType

__all__ = ["Operator", "all_reduce", "require_operator"]

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
        raise Failure(Status.TESS_ERR_INVALID_VALUE, _NAME, f"unknown dtype {shown(wire)} as wire", ", ".join(DTYPES))
    dtype = buffers[0].dtype
    lossy = wire is not None and not holds(DTYPES[wire], dtype)
    if lossy and (policy or NumericsPolicy()).deterministic:
        given = f"wire {wire} of {dtype} under a deterministic policy"
        allowed = f"no wire, one that holds every {dtype}, or deterministic = 0"
        raise Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, _NAME, given, allowed)
    require_operator(op, dtype)
    shape = buffers[0].shape
    # Flat, since numpy takes no more axes than it takes of a buffer.
    stacked = Array(dtype, np.stack([buffer.values.reshape(-1) for buffer in buffers]))
    tree = descriptors[0].reduction_order if descriptors else None
    if tree is not None:
        tree.over(len(buffers))  # refuses a tree over another number of ranks
    combined = reductions.sum(stacked, 0, tree=tree) if op == "sum" else reductions.extreme(op, stacked)
    return Array(dtype, combined.values.reshape(shape))


def require_operator(op: str, dtype: DType, function: str = _NAME) -> None:
    """Raise `Failure` with TESS_ERR_UNSUPPORTED for an operator that a dtype does not have (AMB-RT-28, AMB-RT-57)."""
    if op == "sum" and dtype.kind == "bool":
        raise Failure(Status.TESS_ERR_UNSUPPORTED, function, "sum of bool", "max (or) or min (and)")
    if op != "sum" and dtype.kind == "complex":
        allowed = "sum, since complex numbers have no order"
        raise Failure(Status.TESS_ERR_UNSUPPORTED, function, f"{op} of {dtype}", allowed)


def _require_agreement(buffers: Sequence[Array], op: str, descriptors: Sequence[Descriptor] | None) -> None:
    if op not in get_args(Operator):
        allowed = " or ".join(get_args(Operator))
        raise Failure(Status.TESS_ERR_INVALID_VALUE, _NAME, f"operator {shown(op)}", allowed)
    if not buffers:
        raise Failure(Status.TESS_ERR_INVALID_VALUE, _NAME, "no rank takes part", "one buffer of each rank")
    for rank, buffer in enumerate(buffers):
        if (buffer.dtype, buffer.shape) != (buffers[0].dtype, buffers[0].shape):
            given = f"rank {rank} brings {buffer.dtype}{list(buffer.shape)}"
            expected = f"{buffers[0].dtype}{list(buffers[0].shape)}, as rank 0 does"
            raise Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, _NAME, given, expected)
    if descriptors is None:
        return
    if len(descriptors) != len(buffers):
        given = f"{len(descriptors)} descriptors of {len(buffers)} ranks"
        raise Failure(Status.TESS_ERR_INVALID_VALUE, _NAME, given, "one of each rank")
    for rank, descriptor in enumerate(descriptors):
        if descriptor != descriptors[0]:
            given = f"rank {rank} brings another determinism descriptor than rank 0"
            raise Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, _NAME, given, "the same descriptor on every rank")
