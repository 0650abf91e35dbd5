"""How long a chunk takes, and how well compute and communication overlap (collectives spec 5.2).

COLL-05.2-01, -02 and -03; AMB-COLL-28, -47, -48. Times are whole picoseconds, bandwidths bytes a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from ..abi.status import Failure, Status
from ..mesh.costs import carrying
from ..mesh.intervals import Intervals
from ..numerics.errors import shown

__all__ = ["estimate", "overlap_score"]


def estimate(alpha: int, hops: int, bytes: int, bandwidth: int) -> int:
    """`alpha * hops` and the time of the bytes at the effective bandwidth, rounded up to a picosecond.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a negative number, and for no bandwidth.
    """
    for name, given, least in (
        ("alpha", alpha, 0),
        ("hops", hops, 0),
        ("bytes", bytes, 0),
        ("bandwidth", bandwidth, 1),
    ):
        if given < least:
            expected = f"{least} or more"
            raise Failure(Status.TESS_ERR_INVALID_VALUE, "estimate", f"{name} {shown(given)}", expected)
    return alpha * hops + carrying(bytes, bandwidth)


def overlap_score(compute: Iterable[Sequence[int]], communication: Iterable[Sequence[int]]) -> Fraction:
    """The time in which both queues are busy, as a part of the time in which one is; 1 where neither ever is.

    Every picosecond in which one queue idles while the other is busy lowers it. `compute` and `communication` are
    intervals [start, end] of work, in any order, which may overlap. Raises `Failure` with TESS_ERR_INVALID_VALUE for
    an interval that ends before it starts.
    """
    one, other = _busy("compute", compute), _busy("communication", communication)
    either = Intervals()
    for start, stop in (*one, *other):
        either.add(start, stop)
    total = _length(either)
    return Fraction(_length(one) + _length(other) - total, total) if total else Fraction(1)


def _busy(queue: str, intervals: Iterable[Sequence[int]]) -> Intervals:
    busy = Intervals()
    for at, (start, end) in enumerate(intervals):
        if end < start:
            given = f"{queue}[{at}] is {shown([start, end])}"
            raise Failure(Status.TESS_ERR_INVALID_VALUE, "overlap_score", given, "an end not before the start")
        busy.add(start, end)
    return busy


def _length(intervals: Intervals) -> int:
    return sum(stop - start for start, stop in intervals)
