"""The error that the binding raises where the runtime returns a status other than TESS_OK (runtime spec 5, 7)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..abi.status import Failure, Status

__all__ = ["TesseraError", "failures_raised", "invalid", "require"]


class TesseraError(Exception):
    """A call that failed: its `status`, and a `message` that says what was given and what is expected."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message

    def __str__(self) -> str:
        return f"{self.status.name}: {self.message}"


def invalid(function: str, given: str, allowed: str) -> TesseraError:
    """The error for an argument that a function does not take."""
    return _error(Failure(Status.TESS_ERR_INVALID_VALUE, function, given, allowed))


def require(function: str, name: str, given: Any, *types: type) -> None:
    """Refuse an argument that is of none of these types. Raises `TesseraError`."""
    if not isinstance(given, types):
        allowed = " or ".join(each.__name__ for each in types)
        raise invalid(function, f"{name} of type {type(given).__name__}", allowed)


@contextmanager
def failures_raised() -> Iterator[None]:
    """Raise as `TesseraError` what the values of the ABI refuse."""
    try:
        yield
    except Failure as failure:
        raise _error(failure) from None


def _error(failure: Failure) -> TesseraError:
    return TesseraError(failure.status, str(failure))
