"""Selection of algorithms and chunk sizes (collectives spec 3, 5, 8).

Tables, hints, the environment, the autotuner."""

from __future__ import annotations

import re
import tomllib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import pairwise

from ..abi.status import Failure, invalid, unsupported
from ..graph.futures import ALL_TO_ALL_ALGORITHMS
from ..ir.attributes import UNITS
from ..mesh.memory import Intervals
from ..mesh.topology import PICOSECONDS, Topology, carrying
from ..numerics.formats import shown
from . import schedules
from .links import ALGORITHM_VARIABLE, PATHS, TABLE_VARIABLE, path_override, require_variables
from .schedules import require_known, require_within
from .travel import algorithms

# Tables from message size to algorithm, which are data (collectives spec 3.1, 8).
#
# COLL-03.1-01 to -04, COLL-08-12, COLL-08-17; AMB-COLL-44.


ALGORITHMS = tuple(schedules.ALGORITHMS)

SIZE = re.compile(r"([0-9]{1,18})(B|KiB|MiB|GiB|)")


@dataclass(frozen=True)
class Row:
    """The algorithm of messages up to a size in bytes, that size included; None for all that are larger."""

    up_to: int | None
    algorithm: str


def parse_table(text: str, where: str) -> tuple[Row, ...]:
    """The rows of a text such as `16KiB:direct,1MiB:tree,:ring`; sizes ascend, and the last row alone has none.

    Raises `Failure` with TESS_ERR_INVALID_VALUE naming `where` and the row.
    """
    rows = tuple(_row(word.strip(), where) for word in text.split(","))
    bounds = [row.up_to for row in rows if row.up_to is not None]
    if rows[-1].up_to is not None or len(bounds) < len(rows) - 1:
        raise invalid(where, shown(text), "sizes in every row but the last, which has none: 1MiB:tree,:ring")
    if any(a >= b for a, b in pairwise(bounds)):
        raise invalid(where, shown(text), "sizes that ascend")
    return rows


def row_of(table: Sequence[Row], size: int) -> Row:
    """The row of a message."""
    return next(row for row in table if row.up_to is None or size <= row.up_to)


@cache
def tables() -> Mapping[str, tuple[Row, ...]]:
    """The table of every collective, as the package has it."""
    text = files(__package__).joinpath("thresholds.toml").read_text(encoding="utf-8")
    return {collective: parse_table(rows, "thresholds.toml") for collective, rows in tomllib.loads(text).items()}


def _row(text: str, where: str) -> Row:
    size, colon, algorithm = text.partition(":")
    match = SIZE.fullmatch(size)
    if not colon or (size and not match):
        raise invalid(where, f"row {shown(text)}", "a size in bytes, KiB, MiB or GiB, a colon and an algorithm")
    require_known(where, "algorithm", algorithm, ALGORITHMS)
    return Row(int(match[1]) * UNITS[match[2] or "B"] if match else None, algorithm)


# By which algorithm a collective runs: a hint, the environment, the autotuner's result, or a table by size.
#
# Collectives spec 1, 3.1, 3.2, 8: COLL-01-03, COLL-03.1-01 to -04, COLL-03.2-04, -06, COLL-08-12, -17; runtime spec
# 13: RT-13-06 to -08; AMB-COLL-09, -13, -44, -45, AMB-RT-180. The one choice: `select` asks for it with the values of
# a call, the runtime with those of a context (`runtime.algorithms`).


ANY = tuple(algorithm for algorithm in ALGORITHMS if algorithm != "hierarchical")
"""The algorithms that run on ranks however they are joined."""

Tuner = Callable[[tuple[str, ...]], str | None]
"""A function to the autotuner's choice among some algorithms; called only where the choice decides."""


@dataclass(frozen=True)
class Selection:
    """The algorithm, why (hint, environment, autotuner or default), and the table by size that is in force."""

    algorithm: str
    source: str
    table: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Overrides:
    """Overrides of auto by the environment: an algorithm, a table by size, a path; None where it has none."""

    algorithm: str | None = None
    table: tuple[Row, ...] | None = None
    path: str = "auto"


def read_overrides(function: str, environment: Mapping[str, str]) -> Overrides:
    """The overrides of these variables; a variable that is empty is not set (AMB-COLL-45).

    Raises `Failure` with TESS_ERR_INVALID_VALUE, naming the variable, for one that is misspelled, an unknown name and a
    malformed table.
    """
    require_variables(function, environment)
    override = environment.get(ALGORITHM_VARIABLE) or "auto"
    require_known(function, f"{ALGORITHM_VARIABLE} =", override, ("auto", *ALGORITHMS))
    text = environment.get(TABLE_VARIABLE)
    try:
        table = parse_table(text, TABLE_VARIABLE) if text else None
    except Failure as wrong:
        raise Failure(wrong.status, function, f"{TABLE_VARIABLE}: {wrong.given}", wrong.allowed) from None
    return Overrides(None if override == "auto" else override, table, path_override(function, environment))


def select(
    collective: str,
    size: int,
    ranks: int,
    topology: Topology | None = None,
    algorithm: str = "auto",
    tuned: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Selection:
    """The algorithm for a full buffer of a size, over the first `ranks` devices of the topology.

    Raises `Failure`: TESS_ERR_INVALID_VALUE for unknown names, a malformed table and more ranks than devices;
    TESS_ERR_UNSUPPORTED for a hint that these ranks cannot follow. Others that they cannot follow are passed over.
    """
    require_known("select", "collective", collective, tuple(tables()))
    require_known("select", "algorithm", algorithm, ("auto", *ALGORITHMS))
    if tuned is not None:
        require_known("select", "tuned", tuned, ALGORITHMS)
    overrides = read_overrides("select", environment or {})
    groups: tuple[tuple[int, ...], ...] = ()
    if topology is not None:
        require_within("select", "ranks", ranks, 1, len(topology.devices))
        groups = (tuple(device.id for device in topology.devices[:ranks]),)
    possible = followed(collective, topology, groups)
    hint = None if algorithm == "auto" else algorithm
    if hint is not None:
        group = f"{ranks} ranks" + (f" of {topology.name}" if topology else "")
        require_followed("select", hint, possible, f"{collective} of {group}")
    return choose(collective, size, topology, groups, hint, overrides, lambda _: tuned)


def choose(
    collective: str,
    size: int,
    topology: Topology | None,
    groups: Sequence[Sequence[int]],
    hint: str | None,
    overrides: Overrides,
    tuned: Tuner,
) -> Selection:
    """The algorithm for a full buffer of a size in each of these groups of devices.

    A hint goes first, then the environment's algorithm, its table, the autotuner's result and the usual table
    (AMB-COLL-13, AMB-COLL-45). What one of the groups cannot follow is passed over.
    """
    possible = followed(collective, topology, groups)
    spanning = topology is not None and all(spans_nodes(topology, group) for group in groups)
    usual = tables()[collective]
    if spanning and usual[-1].algorithm == "ring":
        usual = (*usual[:-1], replace(usual[-1], algorithm="hierarchical"))
    table = overrides.table or usual
    if hint in possible:
        return Selection(hint, "hint", table)
    for wish in (overrides.algorithm, row_of(overrides.table, size).algorithm if overrides.table else None):
        if wish in possible:
            return Selection(wish, "environment", table)
    choice = tuned(possible)
    if choice in possible:
        return Selection(choice, "autotuner", table)
    return Selection(row_of(usual, size).algorithm, "default", table)


def followed(collective: str, topology: Topology | None, groups: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """The algorithms that each of these groups of devices can run; without a topology, those that any ranks can."""
    names_per_group = [ANY] if topology is None else [algorithms(topology, group) for group in groups]
    if collective == "all_to_all":
        names_per_group.append(ALL_TO_ALL_ALGORITHMS)
    return tuple(name for name in ALGORITHMS if all(name in names for names in names_per_group))


def require_followed(function: str, algorithm: str, possible: Sequence[str], group: str) -> None:
    """Raises `Failure` with TESS_ERR_UNSUPPORTED for an algorithm asked for that a group cannot run (AMB-COLL-45)."""
    if algorithm not in possible:
        actual = f"algorithm {algorithm} for {group}"
        raise unsupported(function, actual, f"auto or one of {', '.join(possible)}")


def spans_nodes(topology: Topology, devices: Sequence[int]) -> bool:
    """True if devices are on several nodes, equally many and at least two on each (AMB-COLL-44)."""
    nodes = topology.by_node(devices)
    return len(nodes) > 1 and {len(node) for node in nodes} == {len(nodes[0])} and len(nodes[0]) > 1


# The autotuner: chunk size and chunks in flight from moving percentiles of measurements (collectives spec 5.1, 5.3).
#
# COLL-05.1-01 to -06, COLL-05.3-01, -02, -03, COLL-08-18; AMB-COLL-04, AMB-COLL-49. Whole numbers alone: the same
# measurements give the same knobs everywhere. What is adapted is how data travel, never what is computed.


WINDOW = 16
"""The measurements that percentiles are taken of: the last ones."""

SHARE = 4
"""A chunk takes this many times as long on the link as the link's latency."""

STEADY = 4
"""Measurements are stable where their tenth and ninetieth percentile differ by at most this part of the median."""

COMPRESSIONS = ("none", "bf16", "fp16", "fp8", "blockwise", "topk")
DEPTHS = (1, 8)


@dataclass(frozen=True)
class Measurement:
    """A chunk that arrived: its first byte after `latency`, its last after `picoseconds`."""

    bytes: int
    latency: int
    picoseconds: int

    def __post_init__(self) -> None:
        if not (self.bytes >= 1 and 0 <= self.latency < self.picoseconds):
            times = f"{self.latency} to the first and {self.picoseconds} to the last"
            expected = "bytes of 1 or more, 0 <= latency < picoseconds"
            raise invalid("tune", f"a measurement of {self.bytes} bytes, {times}", expected)

    @property
    def bandwidth(self) -> int:
        """Bytes a second once they flow."""
        return self.bytes * PICOSECONDS // (self.picoseconds - self.latency)


@dataclass(frozen=True)
class Knobs:
    """The settings that can be tuned (COLL-05.1-01 to -06)."""

    chunk_bytes: int
    max_inflight: int
    algo: str = "auto"
    path: str = "auto"
    pipeline_depth: int = 2
    compress: str = "none"


@dataclass(frozen=True)
class Limits:
    """The least and the most of the knobs that are adapted."""

    chunk_bytes: tuple[int, int] = (4096, 16 << 20)
    max_inflight: tuple[int, int] = (1, 64)

    def __post_init__(self) -> None:
        for name in ("chunk_bytes", "max_inflight"):
            least, most = getattr(self, name)
            if not 1 <= least <= most:
                expected = "a least of 1 or more, and a most not below it"
                raise invalid("tune", f"limits {name} {shown([least, most])}", expected)


def check_chunks(topology: Topology, chunk_bytes: int, max_inflight: int) -> Limits:
    """Return the limits of a topology: chunks in flight have a credit of every link, and fit together on every device.

    COLL-03.3-04, -05. Raises `Failure` with TESS_ERR_INVALID_VALUE, naming the allowed range (AMB-COLL-46).
    """
    inflight = min((link.credits for link in topology.links), default=1)
    require_within("check_chunks", "max_inflight", max_inflight, 1, inflight)
    largest = min(device.memory_bytes for device in topology.devices) // max_inflight
    require_within("check_chunks", "chunk_bytes", chunk_bytes, 1, largest)
    return Limits((1, largest), (1, inflight))


@dataclass(frozen=True)
class Step:
    """The knobs after a measurement, and whether they are pinned."""

    knobs: Knobs
    pinned: bool


def tune(measurements: Iterable[Measurement], knobs: Knobs, limits: Limits | None = None) -> list[Step]:
    """Return the knobs after each measurement, which move towards their targets until they are pinned.

    Pinned knobs stay. Raises `Failure` with TESS_ERR_INVALID_VALUE for a knob out of its range.
    """
    limits = limits or Limits()
    require_within("tune", "chunk_bytes", knobs.chunk_bytes, *limits.chunk_bytes)
    require_within("tune", "max_inflight", knobs.max_inflight, *limits.max_inflight)
    require_within("tune", "pipeline_depth", knobs.pipeline_depth, *DEPTHS)
    require_known("tune", "algo", knobs.algo, ("auto", *ALGORITHMS))
    require_known("tune", "path", knobs.path, ("auto", *PATHS))
    require_known("tune", "compress", knobs.compress, COMPRESSIONS)
    window = deque[Measurement](maxlen=WINDOW)
    steps, pinned = list[Step](), False
    for measurement in measurements:
        window.append(measurement)
        if not pinned:
            before, knobs = knobs, _adapted(knobs, limits, window)
            pinned = knobs == before and _stable(window)
        steps.append(Step(knobs, pinned))
    return steps


def _adapted(knobs: Knobs, limits: Limits, window: Iterable[Measurement]) -> Knobs:
    """Return the knobs after one step each.

    Chunks follow the median latency; the chunks in flight bridge the ninetieth percentile, that of slow ones.
    """
    latencies, bandwidths = _measured(window)
    bandwidth = percentile(bandwidths, 50)
    filling = SHARE * (bandwidth * percentile(latencies, 50) // PICOSECONDS)
    least_power = 1 << max(0, filling - 1).bit_length()
    chunk = _step(knobs.chunk_bytes, least_power, limits.chunk_bytes)
    slow = bandwidth * percentile(latencies, 90)
    inflight = _step(knobs.max_inflight, 1 + -(-slow // (PICOSECONDS * chunk)), limits.max_inflight)
    return replace(knobs, chunk_bytes=chunk, max_inflight=inflight)


def _stable(window: Collection[Measurement]) -> bool:
    return len(window) == WINDOW and all(
        STEADY * (percentile(values, 90) - percentile(values, 10)) <= percentile(values, 50)
        for values in _measured(window)
    )


def _measured(window: Iterable[Measurement]) -> tuple[list[int], list[int]]:
    """Return the latencies and the bandwidths."""
    return [chunk.latency for chunk in window], [chunk.bandwidth for chunk in window]


def percentile(values: Sequence[int], percent: int) -> int:
    """By nearest rank: the least value that so many percent of the values do not exceed."""
    return sorted(values)[max(1, -(-percent * len(values) // 100)) - 1]


def _step(value: int, target: int, limits: tuple[int, int]) -> int:
    """A step towards a target within limits: to at most twice and at least half the value."""
    allowed = min(max(target, limits[0]), limits[1])
    return min(2 * value, allowed) if allowed > value else max(value // 2, allowed)


# How long a chunk takes, and how well compute and communication overlap (collectives spec 5.2).
#
# COLL-05.2-01, -02 and -03; AMB-COLL-28, -47, -48. Times are whole picoseconds, bandwidths bytes a second.


def estimate(alpha: int, hops: int, size: int, bandwidth: int) -> int:
    """`alpha * hops` and the time of the bytes at the effective bandwidth, rounded up to a picosecond.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a negative number, and for no bandwidth.
    """
    for name, value, least in (("alpha", alpha, 0), ("hops", hops, 0), ("bytes", size, 0), ("bandwidth", bandwidth, 1)):
        if value < least:
            raise invalid("estimate", f"{name} {shown(value)}", f"{least} or more")
    return alpha * hops + carrying(size, bandwidth)


def overlap_score(compute: Iterable[Sequence[int]], communication: Iterable[Sequence[int]]) -> Fraction:
    """The time in which both queues are busy, as a part of the time in which one is; 1 where neither ever is.

    Every picosecond in which one queue idles while the other is busy lowers it. `compute` and `communication` are
    intervals [start, end] of work, in any order, which may overlap. Raises `Failure` with TESS_ERR_INVALID_VALUE for
    an interval that ends before it starts.
    """
    busy = [Intervals(), Intervals(), Intervals()]  # of computations, of communication, of either
    for queue, name, intervals in ((0, "compute", compute), (1, "communication", communication)):
        for at, (start, end) in enumerate(intervals):
            if end < start:
                raise invalid("overlap_score", f"{name}[{at}] is {shown([start, end])}", "an end not before the start")
            busy[queue].add(start, end)
            busy[2].add(start, end)
    one, other, either = (intervals.total for intervals in busy)
    return Fraction(one + other - either, either) if either else Fraction(1)
