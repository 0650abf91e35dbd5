"""Vector clocks, and a log of accesses that finds two which nothing orders (runtime spec 12; design, section 6).

The n-th operation of a stream has the stream's time n. An operation comes after another if its clock has the other's
time. It gets that time through its own stream, an event that it waited for, or the host. Times count operations, not
picoseconds: unordered accesses are found on every run and under every schedule.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import NamedTuple


class VectorClock(dict[int, int]):
    """The last operation of each stream that is known to be over; a stream that it does not hold is at 0."""

    def tick(self, stream: int) -> int:
        """The stream's next time."""
        time = self[stream] = self.get(stream, 0) + 1
        return time

    def join(self, other: Mapping[int, int]) -> None:
        """Take the later time of each stream from another clock."""
        for stream, time in other.items():
            if time > self.get(stream, 0):
                self[stream] = time

    def copy(self) -> VectorClock:
        """A clock with the same times."""
        return VectorClock(self)


class Access(NamedTuple):
    """Bytes from start to before stop, read or written by an operation: its stream, the time there, its name.

    A named tuple, because one is made for every operation queued.
    """

    start: int
    stop: int
    write: bool
    stream: int
    time: int
    name: str

    def __str__(self) -> str:
        verb = "writes" if self.write else "reads"
        return f"{self.name or f'operation {self.time}'} on stream {self.stream} {verb} [{self.start}, {self.stop})"


class _Segment:
    """Bytes that have the same last writer and the same readers since."""

    __slots__ = ("readers", "start", "stop", "writer")

    def __init__(self, start: int, stop: int, writer: Access | None, readers: dict[int, Access]) -> None:
        self.start = start
        self.stop = stop
        self.writer = writer
        self.readers = readers
        """The last one of each stream."""

    def unordered_with(self, access: Access, clock: Mapping[int, int]) -> Access | None:
        """An earlier access that the clock of this one does not hold; two reads need no order."""
        writer = self.writer
        if writer is not None and writer.time > clock.get(writer.stream, 0):
            return writer
        if access.write:
            for stream, reader in self.readers.items():
                if reader.time > clock.get(stream, 0):
                    return reader
        return None


class AccessLog:
    """The last accesses to the bytes of each rank's copy of each allocation; a whole buffer is one step."""

    def __init__(self) -> None:
        self._logs: dict[int, dict[int, list[_Segment]]] = {}

    def note(
        self,
        allocation: int,
        rank: int,
        start: int,
        stop: int,
        write: bool,
        stream: int,
        clock: Mapping[int, int],
        name: str = "",
    ) -> Access | None:
        """Log an access of an operation whose clock holds its own stream's time.

        Returns an earlier access to some of the same bytes that nothing orders before it, where at least one of the
        two is a write: of several the one at the lowest bytes. None where there is no such access.
        """
        if start >= stop:
            return None
        access = Access(start, stop, write, stream, clock.get(stream, 0), name)
        ranks = self._logs.get(allocation)
        if ranks is None:
            ranks = self._logs[allocation] = {}
        segments = ranks.get(rank)
        if segments is None:
            segments = ranks[rank] = []
        first, last = _cut(segments, start, stop)
        conflict = None
        for segment in segments[first:last]:
            conflict = segment.unordered_with(access, clock)
            if conflict is not None:
                break
        if write:
            segments[first:last] = [_Segment(start, stop, access, {})]
        else:
            _read(segments, first, last, access)
        return conflict

    def forget(self, allocation: int) -> None:
        """Remove the accesses to an allocation that was freed."""
        self._logs.pop(allocation, None)


def _cut(segments: list[_Segment], start: int, stop: int) -> tuple[int, int]:
    """Cut segments so that some of them, from the first to before the last given, lie just within the range."""
    if len(segments) == 1 and segments[0].start == start and segments[0].stop == stop:  # mostly whole buffers
        return 0, 1
    _split(segments, start)
    _split(segments, stop)
    return _first_from(segments, start), _first_from(segments, stop)


def _first_from(segments: list[_Segment], at: int) -> int:
    """Return the position of the first segment that starts at `at` or later."""
    return bisect_left(segments, at, key=lambda segment: segment.start)


def _split(segments: list[_Segment], at: int) -> None:
    """Cut the segment that a position lies inside of, if one does."""
    position = _first_from(segments, at) - 1  # the last that starts before
    if position >= 0 and segments[position].stop > at:
        whole = segments[position]
        segments.insert(position + 1, _Segment(at, whole.stop, whole.writer, dict(whole.readers)))
        whole.stop = at


def _read(segments: list[_Segment], first: int, last: int, access: Access) -> None:
    """Add a reader to the segments, and to the bytes between them that nobody accessed before."""
    if last - first == 1 and segments[first].start == access.start and segments[first].stop == access.stop:
        segments[first].readers[access.stream] = access
        return
    segments[first:last] = list(_read_segments(segments[first:last], access))


def _read_segments(within: list[_Segment], access: Access) -> Iterator[_Segment]:
    reached = access.start
    for segment in within:
        if reached < segment.start:
            yield _Segment(reached, segment.start, None, {access.stream: access})
        segment.readers[access.stream] = access
        yield segment
        reached = segment.stop
    if reached < access.stop:
        yield _Segment(reached, access.stop, None, {access.stream: access})
