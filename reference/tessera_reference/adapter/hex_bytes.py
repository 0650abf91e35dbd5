"""Reading the bytes of the protocol: lower-case hexadecimal digits, two a byte, in order of address."""

from __future__ import annotations

from typing import Any

from ..numerics.attributes import text
from ..numerics.errors import InvalidArgument

__all__ = ["data", "memory"]


def data(operation: str, name: str, value: Any) -> bytes:
    """Read bytes."""
    try:
        found = bytes.fromhex(text(operation, name, value))
    except ValueError:
        found = None
    if found is None or found.hex() != value:
        raise InvalidArgument(operation, name, value, "lower-case hexadecimal digits, two a byte")
    return found


def memory(operation: str, name: str, value: Any) -> bytes | int | None:
    """Read bytes, or the address where they are; None is NULL."""
    if value is None or type(value) is int:
        return value
    return data(operation, name, value)
