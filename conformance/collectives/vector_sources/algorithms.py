"""All-reduce by every algorithm: under strict the bits of the canonical tree, under deterministic those declared."""

from __future__ import annotations

from tessera_conformance.chapters.collectives.kit.questions import collective
from tessera_conformance.vectors.building import Question, Topic, counted

topic = Topic(__doc__)

ALGORITHMS = ["ring", "tree", "halving_doubling", "hierarchical", "direct"]


@topic.vector("{dtype}/sum/{algorithm}", dtype=["fp32", "bf16", "fp16", "int16"], algorithm=ALGORITHMS)
def sums(dtype: str, algorithm: str) -> Question:
    """Seven ranks and shares of two sizes; floats of both signs and many binades, integers that wrap."""
    given = {} if dtype == "int16" else {"exponents": (-9, 9)}
    inputs = [counted(dtype, (15,), seed=1500 + rank, **given) for rank in range(7)]
    return collective("all_reduce", algorithm, inputs, "LANG-09-05", "LANG-09-06", "RT-13-01", op="sum")


@topic.vector("{dtype}/max/{algorithm}", dtype=["fp8_e5m2"], algorithm=ALGORITHMS)
def largest(dtype: str, algorithm: str) -> Question:
    """No algorithm changes which contribution is the largest."""
    inputs = [counted(dtype, (15,), seed=1510 + rank) for rank in range(5)]
    return collective("all_reduce", algorithm, inputs, "LANG-09-06", "RT-13-01", op="max")
