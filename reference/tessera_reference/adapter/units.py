"""Units of work as the two queues of a device hold them, from and to what messages have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..collectives.work import Collective, Compute, Unit
from .work_units import COLLECTIVE

__all__ = ["unit_of", "unit_told"]


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
