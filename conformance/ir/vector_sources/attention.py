"""Attention: softmax(Q K' * factor) V as a program of four statements, every step rounded to the operands' type."""

from __future__ import annotations

from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.vectors.building import Question, Topic, counted

topic = Topic(__doc__)


@topic.vector("{dtype}/l-{length}", dtype=["fp32", "bf16", "fp16"], length=["8", "16"])
def heads(dtype: str, length: str) -> Question:
    """One head of width 8, scaled by an eighth, which is exact."""
    shape = (int(length), 8)
    q, k, v = (counted(dtype, shape, seed) for seed in (81, 82, 83))
    return questions.attention(q, k, v, "0.125")


@topic.vector("{dtype}/rectangular", dtype=["fp32", "bf16", "fp64"])
def rectangular(dtype: str) -> Question:
    """Five queries, seven keys, values of another width, and a factor that is rounded to the type."""
    q, k, v = counted(dtype, (5, 6), seed=84), counted(dtype, (7, 6), seed=85), counted(dtype, (7, 3), seed=86)
    return questions.attention(q, k, v, "0.408248290463863")
