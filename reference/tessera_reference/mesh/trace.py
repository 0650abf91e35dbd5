"""The records of a profiler, and the Chrome trace made of them (runtime spec 4.8, 17)."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from ..abi.cache import path_named
from ..abi.status import invalid
from ..numerics.formats import shown
from .topology import PICOSECONDS

# The records of a profiler: one for each piece of work that ran on a rank (runtime spec 4.8, 17).
#
# Times are those of the simulated machine, in whole picoseconds. Work adds the records, and `trace` makes a trace of
# them.


RecordKind: TypeAlias = Literal["kernel", "copy", "collective", "event", "wait", "host"]


@dataclass(frozen=True, slots=True)
class Record:
    """One piece of work of a stream on one rank: enqueued, started and stopped at these picoseconds (RT-17-01).

    `link` names the link that carried a copy or a part of a collective, `algorithm` that of a collective. `flow_out`
    numbers the recording of an event, `flow_in` is the number of the recording that a wait waited for; each recording
    has its own number, which its records on the several ranks share. `rank` and `device` mean nothing where `kind` is
    "host".
    """

    kind: RecordKind
    name: str
    stream: int
    rank: int
    device: int
    enqueued: int
    start: int
    stop: int
    bytes: int = 0
    occupancy: float | None = None
    link: str | None = None
    flow_out: int | None = None
    flow_in: int | None = None
    algorithm: str | None = None

    @property
    def bandwidth(self) -> float | None:
        """The bytes a second; None for a record that moved nothing, or took no time."""
        if not self.bytes or self.stop <= self.start:
            return None
        return self.bytes * PICOSECONDS / (self.stop - self.start)


class Profiler:
    """The records since tessProfilerStart, in the order in which they were added."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        """Add a record, after its predecessors: those of its stream, and the recording that it waited for."""
        self.records.append(record)


# The rows of a trace: the process and thread of the Chrome format that shows a record (runtime spec 17).
#
# A process for each device, with a row for each stream; one for the links, with a row for each link; one for the host.
# Slices of one row must not overlap: records that do, such as transfers that share a link, are spread over several
# *lanes*, rows of the same name.


FIRST_SPECIAL_PROCESS = 1_000_000
"""The host's process, unless a device has that number; the links follow."""


@dataclass(frozen=True)
class Names:
    """The names of devices and streams; those without one go by their number."""

    devices: Mapping[int, str] = field(default_factory=dict)
    streams: Mapping[int, str] = field(default_factory=dict)

    def device(self, device: int) -> str:
        """Return the title of a device's process."""
        return self.devices.get(device, f"device {device}")

    def stream(self, stream: int) -> str:
        """Return the title of a stream's row."""
        return self.streams.get(stream, f"stream {stream}")


@dataclass(frozen=True, slots=True)
class Row:
    """The row of a slice: process and thread of the Chrome format."""

    process: int
    thread: int


@dataclass
class _Group:
    """A stream on a device, a link, or a stream of the host: its title, and the threads of its lanes."""

    title: str
    process: int
    threads: list[int] = field(default_factory=list)
    _taken: list[tuple[int, int]] = field(default_factory=list)
    """The lanes in use, each with the time at which it is free again."""
    _free: list[int] = field(default_factory=list)

    def lane(self, start: int, stop: int) -> int:
        """Return the first lane that is free from `start` on, or a new one. Slices come in order of their start."""
        while self._taken and self._taken[0][0] <= start:
            heapq.heappush(self._free, heapq.heappop(self._taken)[1])
        lane = heapq.heappop(self._free) if self._free else len(self.threads)
        heapq.heappush(self._taken, (stop, lane))
        return lane


class Rows:
    """The rows of one trace, for its `records` in order of their start."""

    def __init__(self, records: Iterable[Record], names: Names) -> None:
        records = list(records)
        devices = sorted({record.device for record in records if record.kind != "host"} | set(names.devices))
        self.host = max([FIRST_SPECIAL_PROCESS, *(device + 1 for device in devices)])
        self.links = self.host + 1
        self._processes = {device: names.device(device) for device in devices}
        self._groups: dict[tuple[int, int | str], _Group] = {}
        self._last_thread = max((record.stream for record in records), default=0)
        for process, stream in sorted({(self._process(record), record.stream) for record in records}):
            self._groups[process, stream] = _Group(names.stream(stream), process)
        for link in sorted({record.link for record in records if record.link is not None}):
            self._groups[self.links, link] = _Group(link, self.links)

    def stream_row(self, record: Record) -> Row:
        """Return the row of the stream that ran a record."""
        return self._place(self._groups[self._process(record), record.stream], record)

    def link_row(self, record: Record, link: str) -> Row:
        """Return the row of the link that transferred a record."""
        return self._place(self._groups[self.links, link], record)

    def processes(self) -> Iterator[tuple[int, str]]:
        """Yield every process with its title, devices first."""
        yield from self._processes.items()
        used = {process for process, _ in self._groups}
        yield from (
            (process, title) for process, title in ((self.host, "host"), (self.links, "links")) if process in used
        )

    def threads(self) -> Iterator[tuple[Row, str]]:
        """Yield every row with its title, in order of process and stream, or link."""
        for group in self._groups.values():
            for lane, thread in enumerate(group.threads):
                yield Row(group.process, thread), group.title if lane == 0 else f"{group.title} ({lane + 1})"

    def _process(self, record: Record) -> int:
        return self.host if record.kind == "host" else record.device

    def _place(self, group: _Group, record: Record) -> Row:
        lane = group.lane(record.start, record.stop)
        if lane == len(group.threads):
            group.threads.append(self._thread(group, lane, record.stream))
        return Row(group.process, group.threads[lane])

    def _thread(self, group: _Group, lane: int, stream: int) -> int:
        """Return the stream's own number for its first lane; other rows have numbers beyond all streams."""
        if lane == 0 and group.process != self.links:
            return stream
        self._last_thread += 1
        return self._last_thread


# The trace of a profiler in the Chrome format, which Perfetto and Nsight read (runtime spec 4.8, 17).
#
# Slices (`X`) on the rows of streams and links, a flow (`s`, `f`) from the recording of an event to each wait for it,
# a counter (`C`) of each device's occupancy and counters of links; `schemas/trace.schema.json` describes them. The
# format counts microseconds: a time is the quotient of whole picoseconds by a million, so that rounding it back to
# picoseconds gives the engine's own number for the first 18 minutes. Not produced: Perfetto's protobuf format, and
# times of the host's clock.


Event: TypeAlias = dict[str, Any]
Timed: TypeAlias = tuple[tuple[int, int], Event]
"""An event with its time, and its place among those of the same time."""
Numbered: TypeAlias = tuple[int, Record]
"""A record with its place in the order of addition."""

PICOSECONDS_PER_MICROSECOND = 1_000_000
PICOSECONDS_PER_NANOSECOND = 1_000


@dataclass(frozen=True)
class LinkCounter:
    """The value of a link's counter from a time on, in picoseconds."""

    name: str
    time: int
    quantity: str
    value: int


def chrome_trace(
    records: Iterable[Record], names: Names | None = None, counters: Iterable[LinkCounter] = ()
) -> dict[str, Any]:
    """Return the trace as a JSON object: metadata, then all events in order of time (RT-17-01, -02, -04 to -07)."""
    numbered = sorted(enumerate(records), key=lambda event: event[1].start)
    rows = Rows((record for _, record in numbered), names or Names())
    timed = [*_occupancy(record for _, record in numbered), *_slices(numbered, rows), *_counted(counters, rows)]
    timed.sort(key=lambda event: event[0])
    return {
        "displayTimeUnit": "ns",
        "otherData": {"clock": "virtual time of the simulated machine"},
        "traceEvents": [*_metadata(rows), *(event for _, event in timed)],
    }


def trace_text(trace: dict[str, Any]) -> str:
    """Return the trace as JSON text, one event a line; equal traces have equal text."""
    encode = json.JSONEncoder(allow_nan=False, separators=(",", ":"), sort_keys=True).encode
    head = encode({key: value for key, value in trace.items() if key != "traceEvents"})[1:-1]
    events = ",\n".join(encode(event) for event in trace["traceEvents"])
    return f'{{{head},"traceEvents":[\n{events}\n]}}\n'


def write_trace(records: Iterable[Record], path: str, names: Names | None = None) -> None:
    """Write tessProfilerStop's file (RT-04.8-04). Raises `Failure` with TESS_ERR_INVALID_VALUE for a path that cannot
    be written (AMB-RT-66)."""
    text = trace_text(chrome_trace(records, names))
    try:
        path_named(path).write_text(text, encoding="ascii", newline="\n")
    except (OSError, ValueError, TypeError) as error:  # ValueError: a NUL or half a character; TypeError: no text
        subject = f"outJsonPath {shown(path)} ({getattr(error, 'strerror', None) or error})"
        raise invalid("tessProfilerStop", subject, "a file that can be written, in a directory that exists") from None


def _metadata(rows: Rows) -> Iterator[Event]:
    """Yield the titles and the order of processes and threads."""
    for index, (process, title) in enumerate(rows.processes()):
        yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": title}}
        yield {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": index}}
    for index, (row, title) in enumerate(rows.threads()):
        place = {"ph": "M", "pid": row.process, "tid": row.thread}
        yield {**place, "name": "thread_name", "args": {"name": title}}
        yield {**place, "name": "thread_sort_index", "args": {"sort_index": index}}


def _slices(numbered: Sequence[Numbered], rows: Rows) -> Iterator[Timed]:
    """Yield slices and the ends of flows, each with its time and its order among those of the same time.

    A reader of the format ties an end of a flow to the slice that began last on its row, and expects the beginning of a
    flow before its end. The order of addition gives both: a follower is added after its predecessor.
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
    """Return the flows that begin at each record, and the one that ends there, by the number of the record.

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
    for counter in counters:
        event = {"ph": "C", "pid": rows.links, "name": counter.name, "ts": counter.time / PICOSECONDS_PER_MICROSECOND}
        yield (counter.time, -1), {**event, "args": {counter.quantity: counter.value}}


def _occupancy(records: Iterable[Record]) -> Iterator[Timed]:
    """Yield the share of each device that its running kernels occupy together, at every change; summed exactly."""
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
