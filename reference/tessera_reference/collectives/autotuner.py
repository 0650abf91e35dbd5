"""The autotuner: chunk size and chunks in flight from moving percentiles of measurements (collectives spec 5.1, 5.3).

COLL-05.1-01 to -06, COLL-05.3-01, -02, -03, COLL-08-18; AMB-COLL-04, AMB-COLL-49. Whole numbers alone: the same
measurements give the same knobs everywhere. What is adapted is how data travel, never what is computed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..abi.status import Failure, Status
from ..numerics.errors import shown
from .argument_checks import require_known, require_within
from .thresholds import ALGORITHMS
from .transports import PATHS

__all__ = ["COMPRESSIONS", "DEPTHS", "Autotuner", "Knobs", "Limits", "Measurement", "Step", "percentile", "tune"]

WINDOW = 16
"""The measurements that percentiles are taken of: the last ones."""

SHARE = 4
"""A chunk takes this many times as long on the link as the link's latency."""

STEADY = 4
"""Measurements are stable where their tenth and ninetieth percentile differ by at most this part of the median."""

COMPRESSIONS = ("none", "bf16", "fp16", "fp8", "blockwise", "topk")
DEPTHS = (1, 8)

_SECOND = 10**12


@dataclass(frozen=True)
class Measurement:
    """A chunk that arrived: its first byte after `latency`, its last after `picoseconds`."""

    bytes: int
    latency: int
    picoseconds: int

    def __post_init__(self) -> None:
        given = f"a measurement of {self.bytes} bytes, {self.latency} to the first and {self.picoseconds} to the last"
        if not (self.bytes >= 1 and 0 <= self.latency < self.picoseconds):
            expected = "bytes of 1 or more, 0 <= latency < picoseconds"
            raise Failure(Status.TESS_ERR_INVALID_VALUE, "tune", given, expected)

    @property
    def bandwidth(self) -> int:
        """Bytes a second once they flow."""
        return self.bytes * _SECOND // (self.picoseconds - self.latency)


@dataclass(frozen=True)
class Knobs:
    """What can be tuned (COLL-05.1-01 to -06)."""

    chunk_bytes: int
    max_inflight: int
    algo: str = "auto"
    path: str = "auto"
    pipeline_depth: int = 2
    compress: str = "none"


@dataclass(frozen=True)
class Limits:
    """The least and the most of the knobs that are adapted, for instance those of a topology (`chunk_limits`)."""

    chunk_bytes: tuple[int, int] = (4096, 16 << 20)
    max_inflight: tuple[int, int] = (1, 64)

    def __post_init__(self) -> None:
        for name in ("chunk_bytes", "max_inflight"):
            least, most = getattr(self, name)
            if not 1 <= least <= most:
                expected = "a least of 1 or more, and a most not below it"
                raise Failure(Status.TESS_ERR_INVALID_VALUE, "tune", f"limits {name} {shown([least, most])}", expected)


@dataclass(frozen=True)
class Step:
    """The knobs after a measurement, and whether they are pinned."""

    knobs: Knobs
    pinned: bool


class Autotuner:
    """Takes measurements one by one and moves the knobs towards their targets, until they are pinned."""

    def __init__(self, knobs: Knobs, limits: Limits | None = None) -> None:
        """Raises `Failure` with TESS_ERR_INVALID_VALUE for a knob out of its range."""
        self.knobs, self.limits, self.pinned = knobs, limits or Limits(), False
        self._window: deque[Measurement] = deque(maxlen=WINDOW)
        require_within("tune", "chunk_bytes", knobs.chunk_bytes, *self.limits.chunk_bytes)
        require_within("tune", "max_inflight", knobs.max_inflight, *self.limits.max_inflight)
        require_within("tune", "pipeline_depth", knobs.pipeline_depth, *DEPTHS)
        require_known("tune", "algo", knobs.algo, ("auto", *ALGORITHMS))
        require_known("tune", "path", knobs.path, ("auto", *PATHS))
        require_known("tune", "compress", knobs.compress, COMPRESSIONS)

    def observe(self, measurement: Measurement) -> Step:
        """The knobs after another measurement. Pinned knobs stay: a new tuner starts anew."""
        self._window.append(measurement)
        if not self.pinned:
            before = self.knobs
            self._adapt()
            self.pinned = self.knobs == before and self._stable()
        return Step(self.knobs, self.pinned)

    def _adapt(self) -> None:
        """Move each knob by one step.

        Chunks follow the median latency; the chunks in flight bridge the ninetieth percentile, that of slow ones.
        """
        latencies = [each.latency for each in self._window]
        bandwidth = percentile([each.bandwidth for each in self._window], 50)
        filling = bandwidth * percentile(latencies, 50) // _SECOND
        chunk = _step(self.knobs.chunk_bytes, _power_of_two(SHARE * filling), self.limits.chunk_bytes)
        slow = bandwidth * percentile(latencies, 90)
        inflight = _step(self.knobs.max_inflight, 1 + -(-slow // (_SECOND * chunk)), self.limits.max_inflight)
        self.knobs = replace(self.knobs, chunk_bytes=chunk, max_inflight=inflight)

    def _stable(self) -> bool:
        every = ([each.latency for each in self._window], [each.bandwidth for each in self._window])
        return len(self._window) == WINDOW and all(
            STEADY * (percentile(values, 90) - percentile(values, 10)) <= percentile(values, 50) for values in every
        )


def tune(measurements: Iterable[Measurement], knobs: Knobs, limits: Limits | None = None) -> list[Step]:
    """The knobs after each measurement. Raises `Failure` with TESS_ERR_INVALID_VALUE for knobs out of range."""
    tuner = Autotuner(knobs, limits)
    return [tuner.observe(each) for each in measurements]


def percentile(values: Sequence[int], percent: int) -> int:
    """By nearest rank: the least value that so many percent of the values do not exceed."""
    return sorted(values)[max(1, -(-percent * len(values) // 100)) - 1]


def _power_of_two(value: int) -> int:
    """The least power of two that is not below a value."""
    return 1 << max(0, value - 1).bit_length()


def _step(value: int, target: int, limits: tuple[int, int]) -> int:
    """A step towards a target within limits: to at most twice and at least half the value."""
    allowed = min(max(target, limits[0]), limits[1])
    return min(2 * value, allowed) if allowed > value else max(value // 2, allowed)
