"""Reading the objects that the methods of the endpoint take: machines, places, buffers of the host."""

from __future__ import annotations

from typing import Any

from ..host_io.machine import MachineSize, Place
from ..numerics.attributes import text
from ..numerics.errors import InvalidArgument
from .records import members_of, number
from .values import data, names_within

__all__ = ["host_buffer", "machine_size", "place"]

machine_size = members_of(lambda: MachineSize)


def place(operation: str, name: str, value: Any) -> Place:
    """Read SIP, cube and PE."""
    found = _members(operation, name, value, Place._fields)
    return Place(*(number(operation, f"{name}.{each}", found[each]) for each in Place._fields))


def host_buffer(operation: str, name: str, value: Any) -> dict[str, Any]:
    """Read the ids of a request and its bytes."""
    readers = {"correlation_id": text, "request_id": text, "data": data}
    found = _members(operation, name, value, tuple(readers))
    return {each: read(operation, f"{name}.{each}", found[each]) for each, read in readers.items()}


def _members(operation: str, name: str, value: Any, wanted: tuple[str, ...]) -> dict[str, Any]:
    """Read an object with exactly these members."""
    found = names_within(operation, name, value, wanted)
    for each in wanted:
        if each not in found:
            raise InvalidArgument(operation, f"{name}.{each}", None, "a value, since it has no default")
    return dict(found)
