"""Finds accesses to memory that neither a stream, nor an event, nor the host orders (runtime spec 12; AMB-RT-83).

The happens-before order follows from the calls, so that a missing wait is found when work is queued, whatever the
schedule then does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ..mesh.allocations import Region
from ..mesh.clocks import AccessLog, VectorClock
from ..mesh.findings import Findings

__all__ = ["Access", "Order"]

Access: TypeAlias = tuple[Region, int, bool]
"""So many bytes of memory, and whether they are written."""

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
        """Of each stream, how many synchronizations of the host its clock has been joined with."""
        self._ahead: set[int] = set()
        """The streams whose clocks may hold what that of the host does not."""
        self._log = AccessLog()

    def note(self, name: str, stream: int, devices: Sequence[int], accesses: Sequence[Access]) -> None:
        """Work is queued on a stream: it comes after the stream's earlier work and after what the host waited for."""
        if not accesses:
            return
        clock = self._clock(stream)
        clock.tick(stream)
        self._ahead.add(stream)
        for region, size, write in accesses:
            number, start = region.allocation.number, region.offset
            for place in devices if region.allocation.devices else (HOST,):
                earlier = self._log.note(number, place, start, start + size, write, stream, clock, name)
                if earlier is not None:
                    text = f"{name} on stream {stream} and {earlier}: {region.allocation}, with nothing between them"
                    self._findings.add("unordered_access", text)

    def forget(self, allocation: int) -> None:
        """Memory was freed."""
        self._log.forget(allocation)

    def record(self, stream: int) -> VectorClock:
        """The clock of a recording on a stream: that of the stream."""
        return self._clock(stream).copy()

    def wait(self, recorded: VectorClock, stream: int) -> None:
        """A stream waits for a recording with this clock."""
        self._clock(stream).join(recorded)
        self._ahead.add(stream)

    def synchronize(self, stream: int) -> None:
        """The host has waited for a stream: all that is queued later comes after what the stream did."""
        if stream in self._ahead:
            self._ahead.remove(stream)
            self._host.join(self._clock(stream))
            self._synchronized += 1

    def _clock(self, stream: int) -> VectorClock:
        """The clock of a stream, joined with what the host has waited for until now."""
        clock = self._streams.setdefault(stream, VectorClock())
        if self._seen.get(stream) != self._synchronized:
            self._seen[stream] = self._synchronized
            clock.join(self._host)
        return clock
