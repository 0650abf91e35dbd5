"""Random numbers: Philox4x32-10, uniform and normal numbers of every float type, dropout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tessera_conformance.oracle.compositions import word
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import FLOATS, Question, Topic, counted, float_edges
from tessera_conformance.vectors.files import Call, Check

topic = Topic(__doc__)

LARGE = (1 << 64) - 1


CLAUSES = ("RT-04.7-04", "RT-11-03", "RT-11-04")
FEATURES = ("operation-access", "descriptor-access", "philox", "random-numbers")


def operation(name: str, inputs: Sequence[Tensor], attributes: Mapping[str, Any]) -> Question:
    """`numerics.evaluate` (AMB-RT-73); the oracle function of that name takes the same attributes."""
    call = Call("numerics.evaluate", {"operation": name, "inputs": list(inputs), "attributes": dict(attributes)})
    check = Check(f"oracle.{name}", tuple(map(str, range(len(inputs)))), dict(attributes))
    return Question(call, check, CLAUSES, FEATURES)


def drawn(distribution: str, dtype: str, seed: int, stream: int, shape: list[int], offset: int = 0) -> Question:
    """Numbers of a distribution."""
    attributes = {"dtype": dtype, "shape": shape, "seed": seed, "stream": stream, "offset": offset}
    return operation(distribution, [], attributes)


def dropped(x: Tensor, rate: float) -> Question:
    """Dropout of a tensor that begins at element 3 of its stream."""
    return operation("dropout", [x], {"rate": rate, "seed": 11, "stream": 2, "offset": 3})


@topic.vector("{dtype}/{distribution}/first", dtype=FLOATS, distribution=["uniform", "normal"])
def first(dtype: str, distribution: str) -> Question:
    """The first 64 numbers of seed 0, stream 0."""
    return drawn(distribution, dtype, 0, 0, [8, 8])


@topic.vector("{dtype}/{distribution}/seeded", dtype=FLOATS, distribution=["uniform", "normal"])
def seeded(dtype: str, distribution: str) -> Question:
    """A seed and a stream that use all of their 64 bits."""
    return drawn(distribution, dtype, 0x0123456789ABCDEF, 0xFEDCBA9876543210, [33])


@topic.vector("{dtype}/{distribution}/far", dtype=["bf16", "fp32", "fp64"], distribution=["uniform", "normal"])
def far(dtype: str, distribution: str) -> Question:
    """Elements so far in that their block number needs its high word, with the largest seed and stream."""
    return drawn(distribution, dtype, LARGE, LARGE, [17], (1 << 40) + 3)


@topic.vector("{dtype}/{distribution}/shard", dtype=["bf16", "fp32", "fp64"], distribution=["uniform", "normal"])
def shard(dtype: str, distribution: str) -> Question:
    """Numbers 5 to 21 of a stream, as the shard of a tensor draws them."""
    return drawn(distribution, dtype, 7, 1, [17], 5)


@topic.vector("{dtype}/dropout/rate-{rate}", dtype=FLOATS, rate=["0.0", "0.1", "0.5", "0.9375"])
def dropout(dtype: str, rate: str) -> Question:
    """An element is kept where its word is at least the rate times 2**32, and divided by 1 - rate."""
    return dropped(counted(dtype, (64,), seed=251), float(rate))


@topic.vector("fp32/dropout/threshold-{beside}", beside=["below", "at", "above"])
def threshold(beside: str) -> Question:
    """The rate is half a word below, at and half a word above the word of an element: kept, kept and dropped."""
    limit = word(11, 2, 3 + 5) + {"below": Fraction(-1, 2), "at": 0, "above": Fraction(1, 2)}[beside]
    return dropped(counted("fp32", (64,), seed=251), float(limit / (1 << 32)))


@topic.vector("{dtype}/dropout/edges", dtype=FLOATS)
def dropped_edges(dtype: str) -> Question:
    """Dropped infinities, NaN and negative numbers are +0, not what they are times zero; kept ones stay or overflow."""
    return dropped(float_edges(dtype), 0.5)
