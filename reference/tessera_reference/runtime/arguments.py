"""Checks of arguments: what is not as the prototype has it is TESS_ERR_INVALID_VALUE (runtime spec 7)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

from ..abi.status import Failure, Status
from ..numerics.errors import shown

__all__ = ["INT", "SIZE", "UNSIGNED", "integer", "invalid", "of_type", "one_of", "required"]

Given = TypeVar("Given")

INT = (-(1 << 31), (1 << 31) - 1)
UNSIGNED = (0, (1 << 32) - 1)
SIZE = (0, (1 << 64) - 1)


def invalid(function: str, given: str, allowed: str) -> Failure:
    """A failure with TESS_ERR_INVALID_VALUE."""
    return Failure(Status.TESS_ERR_INVALID_VALUE, function, given, allowed)


def integer(function: str, name: str, value: Any, bounds: tuple[int, int]) -> int:
    """A whole number in these bounds. Raises `Failure`."""
    if type(value) is not int or not bounds[0] <= value <= bounds[1]:
        raise invalid(function, f"{name} is {shown(value)}", f"a whole number from {bounds[0]} to {bounds[1]}")
    return value


def one_of(function: str, name: str, value: Any, allowed: Collection[int], names: str) -> int:
    """One of an enumeration's numbers. Raises `Failure`."""
    if type(value) is not int or value not in allowed:
        raise invalid(function, f"{name} is {shown(value)}", names)
    return value


def of_type(function: str, name: str, value: Any, type_: type[Given]) -> Given:
    """A value of the API's own making. Raises `Failure`."""
    if not isinstance(value, type_):
        raise invalid(function, f"{name} is {shown(value)}", f"a {type_.__name__}")
    return value


def required(function: str, name: str, value: Any) -> Any:
    """What is not NULL. Raises `Failure`."""
    if value is None or (type(value) is int and value == 0):
        raise invalid(function, f"{name} is NULL", "a pointer that is not NULL")
    return value
