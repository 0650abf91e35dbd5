"""The time of a run, the events that are due later, and the processes that can go on now."""

from __future__ import annotations

import random
from collections.abc import Sequence
from heapq import heappop, heappush

from ..errors import RunError
from .states import ProcessState

__all__ = ["CLOSE_SEEN", "KERNEL_ENDS", "PROCESS_GOES_ON", "TOKEN_SEEN", "Agenda"]

KERNEL_ENDS, TOKEN_SEEN, CLOSE_SEEN, PROCESS_GOES_ON = range(4)
"""The kinds of events, in the order in which those of one instant happen."""
LAST_TIME = (1 << 63) - 1


class Agenda:
    """A seed shuffles what the host has collected, before it is put in order; it changes no result."""

    def __init__(self, seed: int | None = None) -> None:
        self.now = 0
        self.events: list[tuple[int, int, int]] = []
        self._random = None if seed is None else random.Random(seed)
        self._runnable: list[int] = []
        self._next_sweep: list[int] = []
        self._current = -1

    def after(self, cycles: int, kind: int, number: int) -> None:
        """An event of a kind, for a task, channel or process, `cycles` from now. Raises `RunError`."""
        heappush(self.events, (self.time_after(cycles), kind, number))

    def time_after(self, cycles: int) -> int:
        """The time `cycles` from now. Raises `RunError`."""
        time = self.now + cycles
        if time > LAST_TIME:
            raise RunError("TIME_OVERFLOW", f"{cycles} cycles after {self.now} lie beyond {LAST_TIME}")
        return time

    def due(self) -> Sequence[tuple[int, int]]:
        """The kinds and numbers of the events of this instant, in order."""
        events, now = self.events, self.now
        found = []
        while events and events[0][0] == now:
            found.append(heappop(events)[1:])
        if self._random is not None and len(found) > 1:
            self._random.shuffle(found)
            found.sort()
        return found

    def make_runnable(self, process: ProcessState) -> None:
        """In this sweep, if its turn is yet to come, else in the next."""
        if not process.queued and not process.done:
            process.queued = True
            heappush(self._runnable if process.index > self._current else self._next_sweep, process.index)

    def next_runnable(self) -> int:
        """The index of the process whose turn is next in this sweep; -1 ends it."""
        if self._runnable:
            self._current = heappop(self._runnable)
        else:
            self._runnable, self._next_sweep, self._current = self._next_sweep, self._runnable, -1
        return self._current

    def has_runnable(self) -> bool:
        """Whether a process can go on at this instant."""
        return bool(self._runnable)

    def is_settled(self) -> bool:
        """Whether nothing is left to do at this instant."""
        return not self._runnable and not (self.events and self.events[0][0] == self.now)
