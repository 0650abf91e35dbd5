"""Attention as one operation: scores and weights stay in the accumulator type, and only the result is rounded."""

from __future__ import annotations

from math import nan

from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.chapters.ir.kit.elements import require_different
from tessera_conformance.oracle import attention, flash_attention
from tessera_conformance.vectors.building import FLOATS, Question, Topic, counted, tensor

topic = Topic(__doc__)


@topic.vector("{dtype}/l-{length}", dtype=FLOATS, length=["1", "5", "16"])
def heads(dtype: str, length: str) -> Question:
    """One head of width 8, with the scale that follows from it, which is rounded."""
    shape = (int(length), 8)
    return questions.flash_attention(*(counted(dtype, shape, seed) for seed in (441, 442, 443)))


@topic.vector("{dtype}/rectangular", dtype=FLOATS)
def rectangular(dtype: str) -> Question:
    """Five queries, seven keys, values of another width, and a scale that is rounded."""
    q, k, v = counted(dtype, (5, 6), seed=444), counted(dtype, (7, 6), seed=445), counted(dtype, (7, 3), seed=446)
    return questions.flash_attention(q, k, v, scale=0.408248290463863)


@topic.vector("{dtype}/batch", dtype=["bf16", "fp32"])
def batch(dtype: str) -> Question:
    """Two by three heads, each for itself."""
    q, k, v = (counted(dtype, (2, 3, length, 4), seed) for length, seed in ((2, 447), (5, 448), (5, 449)))
    return questions.flash_attention(q, k, v)


@topic.vector("{dtype}/causal-{length}", dtype=FLOATS, length=["1", "2", "7"])
def causal(dtype: str, length: str) -> Question:
    """No query takes a key after it; the first takes one value as it is."""
    shape = (2, int(length), 4)
    return questions.flash_attention(*(counted(dtype, shape, seed) for seed in (450, 451, 452)), causal=True)


@topic.vector("{dtype}/causal-heads", dtype=["bf16", "fp32"])
def causal_heads(dtype: str) -> Question:
    """Two by three heads, masked and with a scale of their own."""
    q, k, v = (counted(dtype, (2, 3, 4, 4), seed) for seed in (460, 461, 462))
    return questions.flash_attention(q, k, v, scale=0.25, causal=True)


@topic.vector("{dtype}/block-{block}", dtype=["bf16", "fp32"], block=["1", "3", "128"])
def blocks(dtype: str, block: str) -> Question:
    """How many keys are handled at once changes no bit: 11 keys, in blocks that divide them, do not, or exceed them."""
    q, k, v = (counted(dtype, (11, 4), seed) for seed in (453, 454, 455))
    return questions.flash_attention(q, k, v, block=int(block))


@topic.vector("{dtype}/wide-scores", "LANG-10-02", dtype=["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"])
def wide_scores(dtype: str) -> Question:
    """Scores and weights that are rounded to the operands' type on the way give another result."""
    q, k, v = (counted(dtype, (6, 8), seed) for seed in (456, 457, 458))
    require_different(
        [flash_attention(q, k, v, scale=0.25), attention(q, k, v, factor="0.25")], "one rounding, and one for each step"
    )
    return questions.flash_attention(q, k, v, scale=0.25)


@topic.vector("{dtype}/large-scores", dtype=["bf16", "fp32", "fp64"])
def large_scores(dtype: str) -> Question:
    """Scores whose exponentials overflow without the maximum taken off first."""
    q = tensor(dtype, [[64, 64], [-64, 64], [64, -128]])
    k = tensor(dtype, [[32, 32], [64, 0], [-64, -32]])
    return questions.flash_attention(q, k, counted(dtype, (3, 4), seed=459), scale=1.0)


@topic.vector("{dtype}/nan", dtype=FLOATS)
def nan_query(dtype: str) -> Question:
    """A query with NaN gives a row of NaN; behind a mask, a key with NaN reaches only the queries after it."""
    q, k = tensor(dtype, [[1, 2], [nan, 1], [2, 1]]), tensor(dtype, [[1, 0], [0, 1], [1, nan]])
    return questions.flash_attention(q, k, tensor(dtype, [[1, 2], [3, 4], [5, 6]]), causal=True)
