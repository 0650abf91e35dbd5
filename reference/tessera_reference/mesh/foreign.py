"""Memory of the caller, seen as plain bytes without a copy (runtime spec 5: zero-copy where possible)."""

from __future__ import annotations

from ..abi.status import Failure, Status
from ..numerics.errors import shown

__all__ = ["BytesLike", "flat"]

BytesLike = bytes | bytearray | memoryview


def flat(memory: BytesLike, what: str) -> memoryview:
    """The bytes of an object in order. Raises `Failure` with TESS_ERR_INVALID_VALUE where they do not lie in a row."""
    try:
        view = memoryview(memory)
        if view.nbytes == 0:
            return memoryview(b"")
        return view.cast("B")
    except (TypeError, ValueError) as error:
        given = f"{what} of type {type(memory).__name__} ({shown(str(error))})"
        raise Failure(Status.TESS_ERR_INVALID_VALUE, "memory", given, "contiguous bytes") from None
