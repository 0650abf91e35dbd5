"""The records of a profiler: one for each piece of work that ran on a rank (runtime spec 4.8, 17).

Times are those of the simulated machine, in whole picoseconds. `trace` makes a trace of the records;
work adds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["PICOSECONDS_PER_SECOND", "Profiler", "Record", "RecordKind"]

PICOSECONDS_PER_SECOND = 1_000_000_000_000

RecordKind: TypeAlias = Literal["kernel", "copy", "collective", "event", "wait", "host"]


@dataclass(frozen=True, slots=True)
class Record:
    """One piece of work of a stream on one rank: enqueued, started and stopped at these picoseconds (RT-17-01).

    `link` names the link that carried a copy or a part of a collective, `algorithm` that of a collective. `flow_out`
    numbers the recording of an event, `flow_in` is the number of the recording that a wait waited for; each recording
    has a number of its own, which its records on the several ranks share. `rank` and `device` mean nothing where `kind`
    is "host".
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
        """Bytes a second; None for what moved nothing, or took no time."""
        if not self.bytes or self.stop <= self.start:
            return None
        return self.bytes * PICOSECONDS_PER_SECOND / (self.stop - self.start)


class Profiler:
    """The records since tessProfilerStart, in the order in which they were added."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        """Add a record, after those that it followed: in its stream, and the recording of the event it waited for."""
        self.records.append(record)
