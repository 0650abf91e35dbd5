"""Reduce-scatter, all-gather and all-to-all by every algorithm: prime numbers of ranks, shares of two sizes, none."""

from __future__ import annotations

from math import inf, nan

from tessera_conformance.chapters.collectives.kit.questions import collective
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import COMPLEX, Question, Topic, complex_of, counted, tensor

topic = Topic(__doc__)

ALGORITHMS = ["ring", "tree", "halving_doubling", "hierarchical", "direct"]
EXCHANGING = ["ring", "direct"]
"""The algorithms of all-to-all (AMB-COLL-34)."""
ORDER = ("LANG-09-06", "RT-13-01", "COLL-02.1-04")


@topic.vector("reduce_scatter/{dtype}/sum/{algorithm}", dtype=["fp32", "bf16", "int16"], algorithm=ALGORITHMS)
def sums(dtype: str, algorithm: str) -> Question:
    """Seven ranks and 17 elements, shares of two and three; floats of many binades, integers that wrap."""
    given = {} if dtype == "int16" else {"exponents": (-9, 9)}
    inputs = [counted(dtype, (17,), seed=1800 + rank, **given) for rank in range(7)]
    return collective("reduce_scatter", algorithm, inputs, *ORDER, op="sum")


@topic.vector("reduce_scatter/{dtype}/{op}/{algorithm}", dtype=["fp16"], op=["prod", "mean"], algorithm=ALGORITHMS)
def products_and_means(dtype: str, op: str, algorithm: str) -> Question:
    """Five ranks and 13 elements, rounded once from the accumulator."""
    inputs = [counted(dtype, (13,), seed=1810 + rank, exponents=(-3, 3)) for rank in range(5)]
    return collective("reduce_scatter", algorithm, inputs, *ORDER, op=op)


@topic.vector("reduce_scatter/complex64/{op}/{algorithm}", op=["sum", "prod"], algorithm=ALGORITHMS)
def complex_numbers(op: str, algorithm: str) -> Question:
    """Three ranks and 7 complex elements, over the same tree."""
    part = COMPLEX["complex64"]
    seeds = [(1820 + 2 * rank, 1821 + 2 * rank) for rank in range(3)]
    pairs = [[counted(part, (7,), seed=seed, exponents=(-3, 3)) for seed in both] for both in seeds]
    return collective("reduce_scatter", algorithm, [complex_of("complex64", *pair) for pair in pairs], *ORDER, op=op)


@topic.vector("reduce_scatter/int32/max/few/{algorithm}", algorithm=ALGORITHMS)
def few_elements(algorithm: str) -> Question:
    """Three elements for five ranks: two of them have none."""
    inputs = [counted("int32", (3,), seed=1830 + rank) for rank in range(5)]
    return collective("reduce_scatter", algorithm, inputs, *ORDER, op="max")


def shares(dtype: str, count: int, ranks: int) -> list[Tensor]:
    """The shares of so many elements, of two sizes where the ranks do not divide them (AMB-RT-04)."""
    sizes = [(rank + 1) * count // ranks - rank * count // ranks for rank in range(ranks)]
    return [counted(dtype, (size,), seed=1840 + rank) for rank, size in enumerate(sizes)]


@topic.vector("all_gather/{dtype}/{algorithm}", dtype=["fp8_e4m3", "int64", "bool"], algorithm=ALGORITHMS)
def gathered(dtype: str, algorithm: str) -> Question:
    """Seven shares of 17 elements, in the order of the ranks."""
    return collective("all_gather", algorithm, shares(dtype, 17, 7), "RT-13-05", "RT-13-01")


@topic.vector("all_gather/fp32/special/{algorithm}", algorithm=ALGORITHMS)
def gathered_special(algorithm: str) -> Question:
    """Signed zeros, subnormals, infinities and NaN arrive as they are."""
    rows = [[-0.0, 2.0**-149], [0.0, -(2.0**-149)], [inf, nan], [-inf, -1.0], [3.0, 2.0**-127]]
    return collective("all_gather", algorithm, [tensor("fp32", row) for row in rows], "RT-13-05", "RT-13-01")


@topic.vector("all_to_all/{dtype}/{algorithm}", dtype=["bf16", "int32", "bool"], algorithm=EXCHANGING)
def exchanged(dtype: str, algorithm: str) -> Question:
    """Five ranks with five blocks of three."""
    inputs = [counted(dtype, (15,), seed=1850 + rank) for rank in range(5)]
    return collective("all_to_all", algorithm, inputs, "COLL-07.2-02", feature="all-to-all")


@topic.vector("all_to_all/int8/prime/{algorithm}", algorithm=EXCHANGING)
def exchanged_among_seven(algorithm: str) -> Question:
    """Seven ranks with blocks of one element."""
    inputs = [counted("int8", (7,), seed=1860 + rank) for rank in range(7)]
    return collective("all_to_all", algorithm, inputs, "COLL-07.2-02", feature="all-to-all")
