"""Traces that are incomplete or wrong (runtime spec 17; AMB-RT-164)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import make
from tessera_reference.mesh import trace
from tessera_reference.mesh.trace import Profiler, Record
from tessera_reference.runtime.contexts import Context
from tessera_reference.runtime.streams import Work

PROFILE = Work.profile

Event = dict[str, Any]
SLICE, FLOW, ADD, WRITE = trace._slice, trace._flow, Profiler.add, trace.write_trace


def sliced(clause: str, name: str, description: str, change: Callable[[Event], Event]) -> Violation:
    """Return a violation that changes slices."""
    return replaced(clause, description, make, ("mesh.trace._slice", lambda *of: change(SLICE(*of))), name=name)


def argued(clause: str, name: str, description: str, change: Callable[[Event], Event]) -> Violation:
    """Return a violation that changes `args` of slices."""
    return sliced(clause, name, description, lambda event: event | {"args": change(event["args"])})


def noted(clause: str, name: str, description: str, change: Callable[[Record], Record | None]) -> Violation:
    """Return a violation that changes or drops records."""

    def add(self: Profiler, record: Record) -> None:
        changed = change(record)
        if changed is not None:
            ADD(self, changed)

    return replaced(clause, description, make, ("mesh.trace.Profiler.add", add), name=name)


def written(name: str, description: str, change: Callable[[Any], Any]) -> Violation:
    """Return a violation that writes the file differently."""

    def write(records: Any, path: str, *of: Any) -> None:
        WRITE(records, path, *of)
        file = Path(path)
        file.write_text(json.dumps(change(json.loads(file.read_text()))))

    return replaced("RT-17-02", description, make, ("runtime.calls.write_trace", write), name=name)


def without(name: str) -> Callable[[Event], Event]:
    """Return a change that leaves a member out."""
    return lambda entry: {key: value for key, value in entry.items() if key != name}


def flow(phase: str, number: int, *of: Any) -> Event:
    return FLOW(phase, number if phase == "s" else number + 1000, *of)


def with_events(change: Callable[[Event], Event]) -> Callable[[Any], Any]:
    """Return a change of a document's events one by one."""
    return lambda document: document | {"traceEvents": [change(traceevent) for traceevent in document["traceEvents"]]}


FORM = [
    written("no_durations", "writes slices without durations",
        with_events(lambda event: without("dur")(event) if event["ph"] == "X" else event)),
    replaced("RT-17-02", "gives each end of a flow an id of its own", make, ("mesh.trace._flow", flow),
        name="flow_ids"),
]  # fmt: skip

TIMES = [
    noted("RT-17-01", "enqueue_forgotten", "enqueues half of the work at the beginning",
        lambda record: replace(record, enqueued=0 if record.enqueued // 1_000_000 % 2 else record.enqueued)),
    argued("RT-17-05", "stop_as_start", "tells of the stop when work starts",
        lambda args: args | {"stop": args["start"]}),
    noted("RT-17-05", "stop_late", "tells of the stop later than it was",
        lambda record: replace(record, stop=record.stop + 100_000_000)),
]  # fmt: skip

ARGUMENTS = [
    noted("RT-17-06", "bandwidth_of_h2d", "tells the bandwidth of copies to the device alone", lambda record:
          record if record.kind != "copy" or record.name == "h2d" else replace(record, bytes=0)),
    argued("RT-17-07", "occupancy_in_percent", "tells occupancy in percent",
        lambda args: args | {name: 1000 * value for name, value in args.items() if name == "occupancy"}),
    argued("RT-17-07", "constant_occupancy", "tells an occupancy of 1",
        lambda args: args | {name: 1 for name in args if name == "occupancy"}),
]  # fmt: skip


FIRST_MESH: WeakKeyDictionary[Context, int] = WeakKeyDictionary()
"""The mesh whose work was the first to be profiled, by context."""


def of_the_first_mesh(self: Work, rank: int, start: int, *others: Any, **more: Any) -> None:
    mesh = self.stream.mesh
    if mesh.context.profilers and FIRST_MESH.setdefault(mesh.context, mesh.handle) == mesh.handle:
        PROFILE(self, rank, start, *others, **more)


MEANWHILE = [
    replaced("RT-17-01", "records the first mesh of a context alone", make,
        ("runtime.streams.Work.profile", of_the_first_mesh), name="of_the_first_mesh"),
]  # fmt: skip
