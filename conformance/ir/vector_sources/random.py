"""Random operations in programs: draws and dropout of a stream that is told."""

from __future__ import annotations

from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.vectors.building import FLOATS, Question, Topic, counted, float_edges

topic = Topic(__doc__)

DISTRIBUTIONS = ["uniform", "normal"]
LARGE = (1 << 63) - 1
"""The largest integer that an attribute holds in every front end."""


@topic.vector("{dtype}/{distribution}/first", "RT-11-03", dtype=FLOATS, distribution=DISTRIBUTIONS)
def first(dtype: str, distribution: str) -> Question:
    """The first numbers of stream 0, by a call that leaves the seed to its default, 0."""
    return questions.drawn(distribution, (3, 5), dtype, stream=0)


@topic.vector("{dtype}/{distribution}/seeded", "RT-11-03", "RT-11-04", dtype=FLOATS, distribution=DISTRIBUTIONS)
def seeded(dtype: str, distribution: str) -> Question:
    """A seed and a stream that use their upper words."""
    return questions.drawn(distribution, (17,), dtype, seed=0x0123456789ABCDEF, stream=LARGE)


@topic.vector("{dtype}/{distribution}/shard", dtype=["bf16", "fp32", "fp64"], distribution=DISTRIBUTIONS)
def shard(dtype: str, distribution: str) -> Question:
    """A part of a larger tensor, which begins at its element 1,000,003."""
    return questions.drawn(distribution, (2, 7), dtype, seed=7, stream=1, offset=1000003)


@topic.vector("{dtype}/{distribution}/scalar", dtype=["bf16", "fp32"], distribution=DISTRIBUTIONS)
def scalar(dtype: str, distribution: str) -> Question:
    """No dimensions: one number."""
    return questions.drawn(distribution, (), dtype, seed=3, stream=4)


@topic.vector("{dtype}/dropout/rate-{rate}", dtype=FLOATS, rate=["0.0", "0.1", "0.5", "0.9375"])
def dropout(dtype: str, rate: str) -> Question:
    """An element is kept where its word is at least the rate times 2**32, and divided by 1 - rate."""
    return questions.dropout(counted(dtype, (4, 16), seed=431), rate=float(rate), seed=11, stream=2, offset=3)


@topic.vector("{dtype}/dropout/edges", dtype=FLOATS)
def dropped_edges(dtype: str) -> Question:
    """Dropped infinities, NaN and negative numbers are +0; kept ones stay or overflow."""
    return questions.dropout(float_edges(dtype), rate=0.5, seed=11, stream=2)
