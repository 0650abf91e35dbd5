"""Units of work in the protocol's messages: read into what the two queues hold, and written from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..collectives.work import Collective, Compute, Unit
from ..numerics.attributes import Reader, one_of, text
from ..numerics.errors import InvalidArgument
from .records import number
from .values import list_of, names_within

__all__ = ["unit_of", "unit_told", "work_unit"]

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


def unit_of(members: Mapping[str, Any], ranks: int) -> Unit:
    """The unit of these members, on all of so many ranks unless it names some."""
    given: dict[str, Any] = {n: tuple(each) if isinstance(each, list | tuple) else each for n, each in members.items()}
    given.setdefault("ranks", tuple(range(ranks)))
    if given.pop("queue") == "compute":
        return Compute(**given)
    return Collective(**given.pop("collective"), **given)


def unit_told(unit: Unit) -> dict[str, Any]:
    """A unit as the protocol has it."""
    told: dict[str, Any] = {
        "id": unit.id,
        "ranks": list(unit.ranks),
        "after": list(unit.after),
        "priority": unit.priority,
    }
    if isinstance(unit, Compute):
        return {**told, "queue": "compute", "picoseconds": unit.picoseconds}
    qos = {} if unit.qos is None else {"qos": unit.qos}
    collective = {name: getattr(unit, name) for name in COLLECTIVE}
    return {**told, "queue": "comm", "collective": collective, "fused": list(unit.fused), **qos}


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
