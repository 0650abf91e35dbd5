"""Status codes (runtime spec 4.1, 7, Appendix A) and how a call fails."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Failure", "Status", "invalid", "within"]


class Status(IntEnum):
    """tessStatus_t: the codes in the order in which the specification declares them (RT-04.1-03 to -14)."""

    TESS_OK = 0
    TESS_ERR_INVALID_VALUE = 1
    TESS_ERR_OUT_OF_MEMORY = 2
    TESS_ERR_NOT_INITIALIZED = 3
    TESS_ERR_LAUNCH_FAILED = 4
    TESS_ERR_ARCH_MISMATCH = 5
    TESS_ERR_UNSUPPORTED = 6
    TESS_ERR_COLLECTIVE_MISMATCH = 7
    TESS_ERR_DETERMINISM_VIOLATION = 8
    TESS_ERR_TIMEOUT = 9
    TESS_ERR_ABI_VERSION_MISMATCH = 10
    TESS_ERR_CACHE_CORRUPT = 11


class Failure(Exception):
    """A call that reports `status`: which function, what it was given, and what it takes."""

    def __init__(self, status: Status, function: str, given: str, allowed: str) -> None:
        super().__init__(status, function, given, allowed)
        self.status = status
        self.function = function
        self.given = given
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.function}: {self.given}; expected {self.allowed}"


def invalid(function: str, given: str, allowed: str) -> Failure:
    """A failure with TESS_ERR_INVALID_VALUE."""
    return Failure(Status.TESS_ERR_INVALID_VALUE, function, given, allowed)


def within(failure: Failure, function: str) -> Failure:
    """A failure of something that has no name in the API, as one of the function that came upon it."""
    if failure.function.startswith("tess"):
        return failure
    return Failure(failure.status, function, failure.given, failure.allowed)
