"""Reading the attributes of an operation from JSON: one reader for each kind of value.

A reader takes the operation, the name of the argument and the actual value, and returns the value as the arithmetic
takes it. All raise `InvalidArgument`, which names these three and the allowed values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from .errors import MOST_AXES, InvalidArgument, MalformedTree
from .formats import DTYPES, DType
from .trees import Tree

Reader: TypeAlias = Callable[[str, str, Any], Any]


def text(operation: str, name: str, value: Any) -> str:
    """Read a string."""
    if not isinstance(value, str):
        raise InvalidArgument(operation, name, value, "text")
    return value


def one_of(*allowed: str) -> Reader:
    """Return a reader of one of the strings `allowed`."""

    def read(operation: str, name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise InvalidArgument(operation, name, value, "one of " + ", ".join(allowed))
        return value

    return read


def whole(lowest: int, highest: int) -> Reader:
    """Return a reader of a whole number from `lowest` to `highest`; neither 1.0 nor true is allowed."""

    def read(operation: str, name: str, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise InvalidArgument(operation, name, value, f"a whole number from {lowest} to {highest}")
        return value

    return read


def real(operation: str, name: str, value: Any) -> float:
    """Read a number that is finite in fp64."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= DTYPES["fp64"].max_finite:
        return float(value)
    raise InvalidArgument(operation, name, value, "a finite number")


def switch(operation: str, name: str, value: Any) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise InvalidArgument(operation, name, value, "true or false")
    return value


def extents(operation: str, name: str, value: Any) -> tuple[int, ...]:
    """Read a shape: whole numbers that are not negative."""
    if not isinstance(value, list | tuple) or len(value) > MOST_AXES:
        raise InvalidArgument(operation, name, value, f"a list of at most {MOST_AXES} extents")
    extent = whole(0, (1 << 63) - 1)
    return tuple(extent(operation, f"{name}[{i}]", bound) for i, bound in enumerate(value))


def dtype_name(operation: str, name: str, value: Any) -> DType:
    """Read a dtype by its name."""
    if not isinstance(value, str) or value not in DTYPES:
        raise InvalidArgument(operation, name, value, "a dtype: one of " + ", ".join(DTYPES))
    return DTYPES[value]


def tree(operation: str, name: str, value: Any) -> Tree:
    """Read the order of a reduction: its name, or a nesting in its text or JSON form."""
    try:
        return Tree.from_json(value)
    except MalformedTree as problem:
        reason = str(problem)
        raise InvalidArgument(operation, name, value, f"a tree ({reason[:200]})") from None
