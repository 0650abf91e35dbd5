"""One figure of a benchmark run: ours beside its peer, measured in turns in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Measurement:
    """`ours` and `peer` in seconds; `limit` bounds `figure`, which is what the project promises."""

    name: str
    ours: float
    peer_name: str
    peer: float
    figure: float
    unit: str
    limit: float

    @property
    def met(self) -> bool:
        """Whether the figure is within its limit."""
        return self.figure <= self.limit

    def row(self) -> str:
        """A line of the table."""
        ratio = f"{self.ours / self.peer:8.2f}x {self.peer_name} ({self.peer * 1e3:.3f} ms)"
        state = "met" if self.met else "MISSED"
        return f"{self.name:34s} {self.figure:9.3f} {self.unit:6s} limit {self.limit:<7g} {state:6s} {ratio}"


def in_turns(ours: Callable[[], object], peer: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median seconds of each, run alternately so that both see the same machine."""
    times: tuple[list[float], list[float]] = ([], [])
    ours(), peer()
    for _ in range(rounds):
        for action, kept in zip((ours, peer), times, strict=True):
            started = time.perf_counter()
            action()
            kept.append(time.perf_counter() - started)
    return median(times[0]), median(times[1])
