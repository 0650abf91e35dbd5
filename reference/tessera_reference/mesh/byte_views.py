"""An object of the caller as plain bytes, without a copy (runtime spec 5: zero-copy where possible)."""

from __future__ import annotations

from ..abi.status import Failure, Status
from ..numerics.errors import shown

__all__ = ["BytesLike", "byte_view"]

BytesLike = bytes | bytearray | memoryview


def byte_view(memory: BytesLike, what: str) -> memoryview:
    """The bytes of an object, in place. Raises `Failure` with TESS_ERR_INVALID_VALUE where they are not contiguous."""
    try:
        view = memoryview(memory)
        if view.nbytes == 0:
            return memoryview(b"")
        return view.cast("B")
    except (TypeError, ValueError) as error:
        given = f"{what} of type {type(memory).__name__} ({shown(str(error))})"
        raise Failure(Status.TESS_ERR_INVALID_VALUE, "memory", given, "contiguous bytes") from None
