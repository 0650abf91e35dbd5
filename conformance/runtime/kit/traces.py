"""Traces in the Chrome format: read from a profiler's file, and their slices (runtime spec, 4.8, 17).

The format counts microseconds and has no fields for enqueueing, bandwidth or occupancy: those are in the `args` of a
slice, as `enqueue`, `start` and `stop` in nanoseconds, `bandwidth_bytes_per_second` and `occupancy` (AMB-RT-164).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tessera_conformance.check import Check

from .mesh_session import MeshSession

Event: TypeAlias = Mapping[str, Any]

PHASES = set("BEXiICbnesftPNODMVvRc(),")
"""The phases of the format."""


def started(session: MeshSession) -> int:
    """Return a profiler of the session's context."""
    return int(session.ask("tessProfilerStart", context=session.context)["profiler"])


def stopped(session: MeshSession, profiler: int, path: Path) -> list[Event]:
    """Stop a profiler; return the events of its trace, which is an array or an object with `traceEvents`."""
    session.ask("tessProfilerStop", profiler=profiler, outJsonPath=str(path))
    return events_of(session.check, path)


def events_of(check: Check, path: Path) -> list[Event]:
    """Return the events in the file of a trace."""
    document = json.loads(path.read_text(encoding="utf-8"))
    events = document.get("traceEvents") if isinstance(document, dict) else document
    listed = isinstance(events, list) and all(isinstance(event, dict) for event in events)
    check.true(listed, "the trace is a list of objects, or has one as traceEvents")
    return list(events or ())


def slices(events: Iterable[Event], text: str = "") -> list[Event]:
    """Return the complete events, by time, whose name or category contains a text."""
    found = [event for event in events if event.get("ph") == "X"]
    named = [event for event in found if text in str(event.get("name")) or text in str(event.get("cat"))]
    return sorted(named, key=lambda event: float(event["ts"]))


def number(check: Check, args: Mapping[str, Any], name: str) -> float:
    """Return a number of the `args` of a slice; check that it is one."""
    value = args.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    check.true(is_number, f"args has a number {name}", sorted(args))
    return float(value or 0)


def overlapping(check: Check, events: Sequence[Event]) -> list[tuple[str, str]]:
    """Return the pairs of slices of one track that overlap without one containing the other, in whole picoseconds."""
    found = []
    tracks: dict[tuple[Any, Any], list[Event]] = {}
    for part in slices(events):
        tracks.setdefault((part["pid"], part["tid"]), []).append(part)
    for track in tracks.values():
        open_ends: list[tuple[int, str]] = []
        for part in sorted(track, key=lambda one: (_start(one), -_stop(one))):
            while open_ends and open_ends[-1][0] <= _start(part) + 1:
                open_ends.pop()
            if open_ends and _stop(part) > open_ends[-1][0] + 1:
                found.append((open_ends[-1][1], str(part["name"])))
            open_ends.append((_stop(part), str(part["name"])))
    check.true(bool(tracks), "the trace has slices")
    return found


def _start(event: Event) -> int:
    return round(float(event["ts"]) * 1_000_000)


def _stop(event: Event) -> int:
    return round((float(event["ts"]) + float(event["dur"])) * 1_000_000)
