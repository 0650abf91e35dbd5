"""All-reduce: contributions combined in the accumulator type along the canonical tree of the ranks, rounded once."""

from __future__ import annotations

from math import inf, nan

from tessera_conformance.chapters.collectives.kit.questions import all_reduce
from tessera_conformance.oracle.exact import float_format
from tessera_conformance.vectors.building import COMPLEX, FLOATS, INTEGERS, Question, Topic, complex_of, counted, tensor

topic = Topic(__doc__)

ORDER = ("LANG-15-10", "LANG-15-16", "RT-13-01", "RT-06-04")


@topic.vector("{dtype}/sum/ranks-{ranks}", dtype=FLOATS, ranks=["1", "2", "3", "5", "6", "7", "8"])
def ranks(dtype: str, ranks: str) -> Question:
    """Groups around the powers of two: an odd rank is carried up unchanged, never padded."""
    inputs = [counted(dtype, (24,), seed=261 + rank, exponents=(-5, 5)) for rank in range(int(ranks))]
    return all_reduce(inputs, "sum", *ORDER)


@topic.vector("{dtype}/{op}/counted", dtype=[*FLOATS, *INTEGERS], op=["max", "min"])
def extremes(dtype: str, op: str) -> Question:
    """The largest and the smallest contribution of five ranks."""
    return all_reduce([counted(dtype, (24,), seed=271 + rank) for rank in range(5)], op, *ORDER)


@topic.vector("{dtype}/{op}/special", dtype=FLOATS, op=["sum", "max", "min"])
def special(dtype: str, op: str) -> Question:
    """Signed zeros, limits that overflow on the way, infinities and NaN."""
    top = float_format(dtype).largest
    infinite = [] if dtype == "fp8_e4m3" else [inf, inf]
    other = [] if dtype == "fp8_e4m3" else [1, -inf]
    rows = [[-0.0, 0, top, 1, *infinite], [-0.0, -0.0, top, nan, *other], [-0.0, -0.0, -top, 2, *([0] * len(other))]]
    return all_reduce([tensor(dtype, row) for row in rows], op, *ORDER)


@topic.vector("{dtype}/{op}/zeros", dtype=FLOATS, op=["max", "min"])
def zeros(dtype: str, op: str) -> Question:
    """-0 lies below +0, whichever rank brings it."""
    rows = [[-0.0, 0, -0.0, 0], [0, -0.0, 0, -0.0], [-0.0, -0.0, 0, 0]]
    return all_reduce([tensor(dtype, row) for row in rows], op, *ORDER)


@topic.vector("{dtype}/sum/wrapping", dtype=INTEGERS)
def wrapping(dtype: str) -> Question:
    """Integers are summed in their accumulator and wrap into their type."""
    return all_reduce([counted(dtype, (24,), seed=281 + rank) for rank in range(6)], "sum", *ORDER)


@topic.vector("bool/{op}", op=["max", "min"])
def logical(op: str) -> Question:
    """The maximum of bools is or, the minimum is and."""
    return all_reduce([tensor("bool", row) for row in ([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1])], op, *ORDER)


@topic.vector("{dtype}/sum/counted", dtype=list(COMPLEX))
def complex_numbers(dtype: str) -> Question:
    """Both parts are summed along the same tree."""
    parts = [
        (counted(COMPLEX[dtype], (8,), seed=291 + 2 * rank), counted(COMPLEX[dtype], (8,), seed=292 + 2 * rank))
        for rank in range(5)
    ]
    return all_reduce([complex_of(dtype, *pair) for pair in parts], "sum", *ORDER)
