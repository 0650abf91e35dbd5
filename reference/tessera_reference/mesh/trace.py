"""The trace of a profiler in the Chrome format, which Perfetto and Nsight read (runtime spec 4.8, 17).

Slices (`X`) on the rows of streams and links, a flow (`s`, `f`) from the recording of an event to each wait for it, a
counter (`C`) of each device's occupancy and counters of links; `schemas/trace.schema.json` describes them. The format
counts microseconds: a time is the quotient of whole picoseconds by a million, so that rounding it back to picoseconds
gives the engine's own number for the first 18 minutes. Not produced: Perfetto's protobuf format, and times of the
host's clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from ..abi.status import Failure, Status
from ..numerics.errors import shown
from .profiler import Record
from .trace_tracks import Names, Row, Rows

__all__ = ["LinkCounter", "chrome_trace", "trace_text", "write_trace"]

Event: TypeAlias = dict[str, Any]
Timed: TypeAlias = tuple[tuple[int, int], Event]
"""An event with its time, and its turn among those of the same time."""
Numbered: TypeAlias = tuple[int, Record]
"""A record with its place among those added."""

PICOSECONDS_PER_MICROSECOND = 1_000_000
PICOSECONDS_PER_NANOSECOND = 1_000


@dataclass(frozen=True)
class LinkCounter:
    """What a counter of a link says from a time on, in picoseconds."""

    name: str
    time: int
    quantity: str
    value: int


def chrome_trace(
    records: Iterable[Record], names: Names | None = None, counters: Iterable[LinkCounter] = ()
) -> dict[str, Any]:
    """The trace as a JSON object: metadata first, then all events in order of time (RT-17-01, -02, -04 to -07)."""
    numbered = sorted(enumerate(records), key=lambda each: each[1].start)
    rows = Rows((record for _, record in numbered), names or Names())
    timed = [*_occupancy(record for _, record in numbered), *_slices(numbered, rows), *_counted(counters, rows)]
    timed.sort(key=lambda each: each[0])
    return {
        "displayTimeUnit": "ns",
        "otherData": {"clock": "virtual time of the simulated machine"},
        "traceEvents": [*_metadata(rows), *(event for _, event in timed)],
    }


def trace_text(trace: dict[str, Any]) -> str:
    """The trace as JSON text, one event a line; equal traces have equal text."""
    encode = json.JSONEncoder(allow_nan=False, separators=(",", ":"), sort_keys=True).encode
    head = encode({key: value for key, value in trace.items() if key != "traceEvents"})[1:-1]
    events = ",\n".join(encode(event) for event in trace["traceEvents"])
    return f'{{{head},"traceEvents":[\n{events}\n]}}\n'


def write_trace(records: Iterable[Record], path: str, names: Names | None = None) -> None:
    """tessProfilerStop's file (RT-04.8-04). Raises `Failure` with TESS_ERR_INVALID_VALUE for a path that cannot be
    written (AMB-RT-66)."""
    text = trace_text(chrome_trace(records, names))
    try:
        Path(path).write_text(text, encoding="ascii", newline="\n")
    except (OSError, ValueError, TypeError) as error:  # ValueError: a NUL in the path; TypeError: no path at all
        given = f"outJsonPath {shown(path)} ({getattr(error, 'strerror', None) or error})"
        allowed = "a file that can be written, in a directory that exists"
        raise Failure(Status.TESS_ERR_INVALID_VALUE, "tessProfilerStop", given, allowed) from None


def _metadata(rows: Rows) -> Iterator[Event]:
    """The titles and the order of processes and threads."""
    for index, (process, title) in enumerate(rows.processes()):
        yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": title}}
        yield {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": index}}
    for index, (row, title) in enumerate(rows.threads()):
        place = {"ph": "M", "pid": row.process, "tid": row.thread}
        yield {**place, "name": "thread_name", "args": {"name": title}}
        yield {**place, "name": "thread_sort_index", "args": {"sort_index": index}}


def _slices(numbered: Sequence[Numbered], rows: Rows) -> Iterator[Timed]:
    """Slices and the ends of flows, each with its time and its order among those of the same time.

    A reader of the format ties an end of a flow to the slice that began last on its row, and wants the beginning of
    a flow before its end. The order in which the records were added gives both: what follows was added later.
    """
    starts, ends = _flows(numbered)
    for index, record in numbered:
        row = rows.stream_row(record)
        yield (record.start, index), _slice(record, row)
        if record.link is not None:
            yield (record.start, index), _slice(record, rows.link_row(record, record.link))
        for flow in starts.get(index, ()):
            yield (record.stop, index), _flow("s", flow, record, row)
        if index in ends:
            yield (record.stop, index), {**_flow("f", ends[index], record, row), "bp": "e"}


def _slice(record: Record, row: Row) -> Event:
    arguments: Event = {
        "enqueue": record.enqueued / PICOSECONDS_PER_NANOSECOND,
        "start": record.start / PICOSECONDS_PER_NANOSECOND,
        "stop": record.stop / PICOSECONDS_PER_NANOSECOND,
        "stream": record.stream,
    }
    if record.kind != "host":
        arguments["rank"] = record.rank
    optional = {
        "bytes": record.bytes or None,
        "bandwidth_bytes_per_second": record.bandwidth,
        "occupancy": record.occupancy,
        "link": record.link,
        "algorithm": record.algorithm,
    }
    arguments.update((name, value) for name, value in optional.items() if value is not None)
    return {
        "ph": "X",
        "pid": row.process,
        "tid": row.thread,
        "name": record.name,
        "cat": record.kind,
        "ts": record.start / PICOSECONDS_PER_MICROSECOND,
        "dur": (record.stop - record.start) / PICOSECONDS_PER_MICROSECOND,
        "args": arguments,
    }


def _flow(phase: str, flow: int, record: Record, row: Row) -> Event:
    time = record.stop / PICOSECONDS_PER_MICROSECOND
    return {"ph": phase, "id": flow, "pid": row.process, "tid": row.thread, "name": "event", "cat": "flow", "ts": time}


def _flows(numbered: Sequence[Numbered]) -> tuple[dict[int, list[int]], dict[int, int]]:
    """The flows that begin at each record, and the one that ends there, by the number of the record.

    A wait is tied to the recording on its own device, else to the last recording on another. A wait whose recording was
    before the profiler started has no flow.
    """
    recordings: dict[tuple[int, int | None], Numbered] = {}
    for index, record in numbered:
        if record.flow_out is not None:
            recordings[record.flow_out, record.device] = index, record
            last = recordings.get((record.flow_out, None))
            if last is None or last[1].stop <= record.stop:
                recordings[record.flow_out, None] = index, record
    starts: dict[int, list[int]] = {}
    ends: dict[int, int] = {}
    for index, record in numbered:
        if record.flow_in is None:
            continue
        source = recordings.get((record.flow_in, record.device), recordings.get((record.flow_in, None)))
        if source is not None and source[1].stop <= record.stop:
            ends[index] = len(ends) + 1
            starts.setdefault(source[0], []).append(ends[index])
    return starts, ends


def _counted(counters: Iterable[LinkCounter], rows: Rows) -> Iterator[Timed]:
    for each in counters:
        event = {"ph": "C", "pid": rows.links, "name": each.name, "ts": each.time / PICOSECONDS_PER_MICROSECOND}
        yield (each.time, -1), {**event, "args": {each.quantity: each.value}}


def _occupancy(records: Iterable[Record]) -> Iterator[Timed]:
    """The share of each device that its running kernels occupy together, at every change; summed exactly."""
    changes: dict[int, dict[int, Fraction]] = {}
    for record in records:
        if record.occupancy is not None and record.stop > record.start:
            at = changes.setdefault(record.device, {})
            at[record.start] = at.get(record.start, Fraction(0)) + Fraction(record.occupancy)
            at[record.stop] = at.get(record.stop, Fraction(0)) - Fraction(record.occupancy)
    for device in sorted(changes):
        level = Fraction(0)
        for time, change in sorted(changes[device].items()):
            level += change
            value = {"occupancy": float(level)}
            event = {"ph": "C", "pid": device, "name": "occupancy", "ts": time / PICOSECONDS_PER_MICROSECOND}
            yield (time, -1), {**event, "args": value}
