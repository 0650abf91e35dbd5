"""Finds accesses to memory that neither a stream, nor an event, nor the host orders (runtime spec 12; AMB-RT-83).

What happens before what is known when work is queued, so that a missing wait is found on every run, also where the
schedule happened to hide it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..mesh.allocations import Region
from ..mesh.clocks import AccessLog, VectorClock
from ..mesh.findings import Findings

if TYPE_CHECKING:
    from .events import Recording
    from .work import Work

__all__ = ["Order"]

HOST = -1
"""Where memory of the host is accessed: there is one copy of it."""


class Order:
    """The clock of each stream and of the host, and the last accesses."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._streams: dict[int, VectorClock] = {}
        self._host = VectorClock()
        self._synchronized = 0
        self._seen: dict[int, int] = {}
        """Of each stream, after how many synchronizations it last asked the host."""
        self._log = AccessLog()

    def note(self, work: Work) -> None:
        """Work is queued, which knows of its stream's earlier work and of what the host waited for."""
        accesses = work.accesses()
        if not accesses:
            return
        stream = work.stream.handle
        clock = self._clock(stream)
        clock.tick(stream)
        devices = [work.stream.mesh.devices[rank] for rank in work.ranks()]
        for region, size, write in accesses:
            for place in devices if region.allocation.devices else (HOST,):
                self._note(work, region, place, size, write, clock)

    def _note(self, work: Work, region: Region, place: int, size: int, write: bool, clock: VectorClock) -> None:
        """Take down an access on a device, or of the host's memory."""
        stream, number, start = work.stream.handle, region.allocation.number, region.offset
        earlier = self._log.note(number, place, start, start + size, write, stream, clock, work.name)
        if earlier is not None:
            text = f"{work.name} on stream {stream} and {earlier}: {region.allocation}, with nothing between them"
            self._findings.add("unordered_access", text)

    def forget(self, allocation: int) -> None:
        """Memory was freed."""
        self._log.forget(allocation)

    def record(self, recording: Recording, stream: int) -> None:
        """A recording knows what its stream knows."""
        recording.clock = self._clock(stream).copy()

    def wait(self, recording: Recording, stream: int) -> None:
        """A stream knows what a recording knew."""
        self._clock(stream).join(recording.clock)

    def synchronize(self, stream: int) -> None:
        """The host knows what a stream did, and so does all that is queued later."""
        self._host.join(self._clock(stream))
        self._synchronized += 1

    def _clock(self, stream: int) -> VectorClock:
        """The clock of a stream, which knows of what the host has waited for until now."""
        clock = self._streams.setdefault(stream, VectorClock())
        if self._seen.get(stream) != self._synchronized:
            self._seen[stream] = self._synchronized
            clock.join(self._host)
        return clock
