"""A set of byte positions, kept as separate ranges in ascending order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

__all__ = ["Intervals"]


class Intervals:
    """Half-open ranges that neither touch nor overlap: a range that is added is merged with those that it touches."""

    __slots__ = ("_starts", "_stops")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, self._stops, strict=True)

    def add(self, start: int, stop: int) -> None:
        """Take the positions from start to before stop."""
        if start >= stop:
            return
        first = bisect_left(self._stops, start)
        last = bisect_right(self._starts, stop)
        if first < last:
            start = min(start, self._starts[first])
            stop = max(stop, self._stops[last - 1])
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]

    def covers(self, start: int, stop: int) -> bool:
        """Whether every position from start to before stop is in the set."""
        if start >= stop:
            return True
        at = bisect_right(self._starts, start) - 1
        return at >= 0 and stop <= self._stops[at]

    def gaps(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The ranges from start to before stop that are not in the set, ascending."""
        at = bisect_right(self._stops, start)
        while start < stop:
            until = self._starts[at] if at < len(self._starts) else stop
            if start < until:
                yield start, min(until, stop)
            if at == len(self._starts):
                return
            start = self._stops[at]
            at += 1
