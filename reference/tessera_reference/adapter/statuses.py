"""Failures as rejections with a status of the runtime."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tessera_conformance.adapter import Refusal

from ..abi.status import Failure
from ..numerics.errors import NumericsFailure

__all__ = ["statuses"]


@contextmanager
def statuses() -> Iterator[None]:
    """Turn failures of the runtime and of the arithmetic into rejections with a status."""
    try:
        yield
    except Failure as failure:
        raise Refusal(failure.status.name, "call", str(failure)) from None
    except NumericsFailure as failure:
        raise Refusal("TESS_ERR_INVALID_VALUE", "call", str(failure)) from None
