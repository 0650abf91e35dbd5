"""Checks of arguments: what is not as the prototype has it is TESS_ERR_INVALID_VALUE (runtime spec 7).

The failures name no function: the table of functions adds the name of the one that was called.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from ..abi.status import Failure, Status, within
from ..numerics.errors import shown

__all__ = ["INT", "SIZE", "UNSIGNED", "integer", "invalid", "named", "of_type", "one_of", "reported_by", "required"]

Given = TypeVar("Given")

INT = (-(1 << 31), (1 << 31) - 1)
UNSIGNED = (0, (1 << 32) - 1)
SIZE = (0, (1 << 64) - 1)


def invalid(given: str, allowed: str) -> Failure:
    """A failure with TESS_ERR_INVALID_VALUE."""
    return Failure(Status.TESS_ERR_INVALID_VALUE, "", given, allowed)


@contextmanager
def reported_by(function: str) -> Iterator[None]:
    """Failures that name no function are those of this one."""
    try:
        yield
    except Failure as failure:
        raise within(failure, function) from None


def integer(name: str, value: Any, bounds: tuple[int, int]) -> int:
    """A whole number in these bounds. Raises `Failure`."""
    if type(value) is not int or not bounds[0] <= value <= bounds[1]:
        raise invalid(f"{name} is {shown(value)}", f"a whole number from {bounds[0]} to {bounds[1]}")
    return value


def one_of(name: str, value: Any, allowed: Collection[int], names: str) -> int:
    """One of an enumeration's numbers. Raises `Failure`."""
    if type(value) is not int or value not in allowed:
        raise invalid(f"{name} is {shown(value)}", names)
    return value


def named(name: str, value: Any, allowed: Sequence[str]) -> str:
    """One of these names. Raises `Failure`."""
    if value not in allowed:
        raise invalid(f"{name} is {shown(value)}", " or ".join(allowed))
    return str(value)


def of_type(name: str, value: Any, type_: type[Given]) -> Given:
    """A value of one of the API's own types. Raises `Failure`."""
    if not isinstance(value, type_):
        raise invalid(f"{name} is {shown(value)}", f"a {type_.__name__}")
    return value


def required(name: str, value: Any) -> Any:
    """A pointer that is not NULL. Raises `Failure`."""
    if value is None or (type(value) is int and value == 0):
        raise invalid(f"{name} is NULL", "a pointer that is not NULL")
    return value
