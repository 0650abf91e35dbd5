"""The rows of a trace: which process and which thread of the Chrome format a record is drawn on (runtime spec 17).

A process for each device, with a row for each stream; one for the links, with a row for each link; one for the host.
Slices of one row must not overlap: records that do, such as transfers that share a link, are spread over several
*lanes*, rows of the same name.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from .profiler import Record

__all__ = ["Names", "Row", "Rows"]

FIRST_SPECIAL_PROCESS = 1_000_000
"""The host's process, unless a device has that number; the links follow."""


@dataclass(frozen=True)
class Names:
    """The names of devices and streams; those without one are called by their number."""

    devices: Mapping[int, str] = field(default_factory=dict)
    streams: Mapping[int, str] = field(default_factory=dict)

    def device(self, device: int) -> str:
        """The title of a device's process."""
        return self.devices.get(device, f"device {device}")

    def stream(self, stream: int) -> str:
        """The title of a stream's row."""
        return self.streams.get(stream, f"stream {stream}")


@dataclass(frozen=True, slots=True)
class Row:
    """Where a slice is drawn: process and thread of the Chrome format."""

    process: int
    thread: int


class _Lanes:
    """The lanes of one stream or link: which are taken, and until when."""

    def __init__(self) -> None:
        self.count = 0
        self._taken: list[tuple[int, int]] = []  # (until, lane)
        self._free: list[int] = []

    def place(self, start: int, stop: int) -> int:
        """The first lane that is free from `start` on. Slices come in order of their start."""
        while self._taken and self._taken[0][0] <= start:
            heapq.heappush(self._free, heapq.heappop(self._taken)[1])
        if self._free:
            lane = heapq.heappop(self._free)
        else:
            lane, self.count = self.count, self.count + 1
        heapq.heappush(self._taken, (stop, lane))
        return lane


@dataclass
class _Group:
    """A stream on a device, a link, or a stream of the host: its title, its lanes, and their threads."""

    title: str
    process: int
    lanes: _Lanes = field(default_factory=_Lanes)
    threads: list[int] = field(default_factory=list)


class Rows:
    """The rows of one trace, for its `records` in order of their start."""

    def __init__(self, records: Iterable[Record], names: Names) -> None:
        records = list(records)
        self._names = names
        devices = sorted({record.device for record in records if record.kind != "host"} | set(names.devices))
        self.host = max([FIRST_SPECIAL_PROCESS, *(device + 1 for device in devices)])
        self.links = self.host + 1
        self._processes = {device: names.device(device) for device in devices}
        self._groups: dict[tuple[int, int | str], _Group] = {}
        self._last_thread = max((record.stream for record in records), default=0)
        for process, stream in sorted({(self._process(record), record.stream) for record in records}):
            self._open(process, stream, names.stream(stream))
        for link in sorted({record.link for record in records if record.link is not None}):
            self._open(self.links, link, link)

    def stream_row(self, record: Record) -> Row:
        """The row of the stream that ran a record."""
        return self._place(self._groups[self._process(record), record.stream], record)

    def link_row(self, record: Record, link: str) -> Row:
        """The row of the link that transferred a record."""
        return self._place(self._groups[self.links, link], record)

    def processes(self) -> Iterator[tuple[int, str]]:
        """Every process with its title, devices first."""
        yield from self._processes.items()
        used = {process for process, _ in self._groups}
        yield from (
            (process, title) for process, title in ((self.host, "host"), (self.links, "links")) if process in used
        )

    def threads(self) -> Iterator[tuple[Row, str]]:
        """Every row with its title, in order of process and stream, or link."""
        for group in self._groups.values():
            for lane, thread in enumerate(group.threads):
                yield Row(group.process, thread), group.title if lane == 0 else f"{group.title} ({lane + 1})"

    def _process(self, record: Record) -> int:
        return self.host if record.kind == "host" else record.device

    def _open(self, process: int, key: int | str, title: str) -> None:
        self._groups[process, key] = _Group(title, process)

    def _place(self, group: _Group, record: Record) -> Row:
        lane = group.lanes.place(record.start, record.stop)
        if lane == len(group.threads):
            group.threads.append(self._thread(group, lane, record.stream))
        return Row(group.process, group.threads[lane])

    def _thread(self, group: _Group, lane: int, stream: int) -> int:
        """The stream's own number for its first lane; other rows are numbered beyond all streams."""
        if lane == 0 and group.process != self.links:
            return stream
        self._last_thread += 1
        return self._last_thread
