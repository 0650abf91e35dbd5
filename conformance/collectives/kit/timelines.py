"""Units of work for the two queues, and properties of their timelines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import nan
from typing import Any

Slot = Mapping[str, Any]
MIB = 1 << 20
MICROSECOND = 10**6


def compute(name: str, picoseconds: int, after: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """Return a computation."""
    return {"id": name, "queue": "compute", "picoseconds": picoseconds, "after": list(after), **more}


def comm(
    name: str,
    size: int,
    chunk_bytes: int,
    after: Sequence[str] = (),
    operation: str = "all_reduce",
    algorithm: str = "ring",
    root: int = 0,
    **more: Any,
) -> dict[str, Any]:
    """Return a collective."""
    collective = {"operation": operation, "algorithm": algorithm, "bytes": size, "chunk_bytes": chunk_bytes}
    if operation == "broadcast":
        collective["root"] = root
    return {"id": name, "queue": "comm", "collective": collective, "after": list(after), **more}


def of(timeline: Iterable[Slot], name: str | None = None, queue: str | None = None, device: int | None = None) -> Any:
    """Return the slots of a unit, a queue and a device, each if given, in order of start."""
    found = [
        slot
        for slot in timeline
        if name in (None, slot["id"]) and queue in (None, slot["queue"]) and device in (None, slot["device"])
    ]
    return sorted(found, key=lambda slot: (slot["start"], slot["end"]))


def span(slots: Sequence[Slot]) -> tuple[float, float]:
    """Return the first start and the last end; NaN, which equals no time, where there is no slot."""
    starts, ends = ([slot[side] for slot in slots] for side in ("start", "end"))
    return min(starts, default=nan), max(ends, default=nan)


def in_flight(slots: Sequence[Slot], time: int) -> int:
    """Return the number of slots that have started and not ended at a time."""
    return sum(slot["start"] <= time < slot["end"] for slot in slots)


def most_at_once(slots: Sequence[Slot]) -> int:
    """Return the largest number of simultaneous slots."""
    return max((in_flight(slots, slot["start"]) for slot in slots), default=0)


def shared(first: Sequence[Slot], second: Sequence[Slot]) -> int:
    """Return the time that slots of both lists share; those of each list do not overlap one another."""
    return sum(max(min(a["end"], b["end"]) - max(a["start"], b["start"]), 0) for a in first for b in second)


def covered(slots: Iterable[Slot]) -> int:
    """Return the time that at least one of these slots covers."""
    total = reached = 0
    for slot in sorted(slots, key=lambda interval: interval["start"]):
        total += max(slot["end"] - max(slot["start"], reached), 0)
        reached = max(reached, slot["end"])
    return total


def distinct(slices: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return one slice of a trace for each name and time: the row of a link repeats those of devices."""
    return list({(part["name"], part["ts"]): part for part in slices}.values())
