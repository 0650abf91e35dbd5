"""Collectives whose data travel in another dtype than their own (COLL-02.4-03, -05, COLL-02.5-03, RT-13-09).

Every contribution, a rank's own too, is rounded to the wire once; contributions are combined in the wider of fp32 and
the data's dtype; a result is rounded to the wire once and given back in the data's dtype (AMB-COLL-61). What only moves
is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..abi.status import Failure, Status, invalid
from ..graph.collective_hints import holds
from ..numerics.array import Array
from ..numerics.rounding import cast
from .compression import Compression, compress, read_compression, require_fp32

__all__ = ["over_wire", "read_wire"]


def read_wire(
    operation: str, buffers: Sequence[Array], wire: Any, qscheme: Any, block: Any, level: str
) -> Compression | None:
    """The compression of a collective, None where nothing is lost without asking for any (AMB-COLL-62).

    Raises `Failure`: TESS_ERR_INVALID_VALUE for an unknown wire or scheme, TESS_ERR_UNSUPPORTED for data that the wire
    does not take, TESS_ERR_DETERMINISM_VIOLATION where data would lose on the wire under another level than fast.
    """
    if wire is None:
        if qscheme is not None or block is not None:
            raise invalid(operation, "a qscheme or a block without a wire", "a wire, or neither")
        return None
    read = read_compression(operation, wire, qscheme, block)
    for buffer in buffers:
        if buffer.dtype.kind != "float":
            raise Failure(Status.TESS_ERR_UNSUPPORTED, operation, f"wire {wire} for {buffer.dtype}", "float data")
        if read.block is not None:
            require_fp32(operation, buffer)
    if read.block is None and all(holds(read.wire, buffer.dtype) for buffer in buffers):
        return None
    if level != "fast":
        given = f"wire {wire} under {level}"
        allowed = f"level fast, no wire, or one that holds every {buffers[0].dtype}"
        raise Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, operation, given, allowed)
    return read


def over_wire(
    operation: str,
    brought: Sequence[Array],
    compression: Compression,
    collective: Callable[[Sequence[Array]], Sequence[Array]],
) -> Sequence[Array]:
    """What the ranks of a group get from a collective over a wire; `collective` is the one of whole accumulators.

    Raises `NonFinite` for a NaN or an infinity that would need a scale.
    """
    dtype = brought[0].dtype
    wide = [cast(each, dtype.accumulator) for each in brought]
    results = collective([_rounded(operation, each, compression) for each in wide])
    if operation in ("all_reduce", "reduce_scatter"):
        results = [_rounded(operation, each, compression) for each in results]
    return [cast(each, dtype) for each in results]


def _rounded(operation: str, x: Array, compression: Compression) -> Array:
    """What of a tensor arrives at the other end of the wire, in its own dtype."""
    return compress(operation, x, compression).restored
