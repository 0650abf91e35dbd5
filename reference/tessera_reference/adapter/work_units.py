"""Reading units of work in the protocol's messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..numerics.attributes import Reader, one_of, text
from ..numerics.errors import InvalidArgument
from .records import number
from .values import list_of, names_within

__all__ = ["COLLECTIVE", "work_unit"]

_names = list_of(str, "a list of texts")
_numbers = list_of(int, "a list of whole numbers")

MEMBERS: Mapping[str, Reader] = {
    "id": text,
    "queue": one_of("compute", "comm"),
    "after": _names,
    "ranks": _numbers,
    "priority": number,
}
COMPUTE: Mapping[str, Reader] = {**MEMBERS, "picoseconds": number}
COLLECTIVE: Mapping[str, Reader] = {
    "operation": text,
    "algorithm": text,
    "bytes": number,
    "chunk_bytes": number,
    "root": number,
}
REQUIRED = {
    "compute": ("id", "picoseconds"),
    "comm": ("id", "collective"),
    "collective": ("operation", "algorithm", "bytes", "chunk_bytes"),
}


def work_unit(operation: str, name: str, value: Any) -> Mapping[str, Any]:
    """Read the members of a unit; `ranks` is left out where all are meant."""
    both = {**COMM, **COMPUTE}
    queue = both["queue"](operation, f"{name}.queue", names_within(operation, name, value, both).get("queue"))
    return _read(operation, name, value, COMPUTE if queue == "compute" else COMM, REQUIRED[queue])


def _read(
    operation: str, name: str, value: Any, readers: Mapping[str, Reader], required: Sequence[str]
) -> dict[str, Any]:
    found = names_within(operation, name, value, readers)
    for each in required:
        if each not in found:
            raise InvalidArgument(operation, f"{name}.{each}", None, "a value, since it has no default")
    return {each: readers[each](operation, f"{name}.{each}", found[each]) for each in found}


def _collective(operation: str, name: str, value: Any) -> dict[str, Any]:
    return _read(operation, name, value, COLLECTIVE, REQUIRED["collective"])


COMM: Mapping[str, Reader] = {**MEMBERS, "collective": _collective, "qos": text, "fused": _names}
