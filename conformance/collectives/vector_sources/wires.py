"""What travels of fp32 data: casts to the wire dtypes, and top-k messages."""

from __future__ import annotations

from math import inf, nan

from tessera_conformance.chapters.collectives.kit.questions import compress, sparsify
from tessera_conformance.vectors.building import Question, Topic, codes, counted, tensor

topic = Topic(__doc__)

WIRES = {
    "bf16": ("bf16", "COLL-02.5-06"),
    "fp16": ("fp16", "COLL-02.5-07"),
    "fp8": ("fp8_e4m3", "COLL-02.5-08"),
    "fp8_e5m2": ("fp8_e5m2", "COLL-02.5-08"),
}
"""Names of wires, each with its dtype and the clause that names it."""


@topic.vector("cast/{wire}/counted", wire=list(WIRES))
def counted_numbers(wire: str) -> Question:
    """Numbers of a few binades, each rounded once, to nearest even."""
    return compress(counted("fp32", (24,), seed=1520, exponents=(-6, 6)), wire, *WIRES[wire])


@topic.vector("cast/{wire}/special", wire=list(WIRES))
def special_numbers(wire: str) -> Question:
    """Ties of every wire, subnormals, overflow, zeros, infinities and NaN."""
    ties = [1 + 2.0**-exponent for exponent in (3, 4, 8, 11)] + [3 * 2.0**-10, 2.0**-17, 3 * 2.0**-18, 2.0**-25]
    limits = [464.0, 465.0, 61440.0, 65519.0, 65520.0, 2.0**127, (2 - 2.0**-23) * 2.0**127]
    return compress(tensor("fp32", [*ties, *limits, 0.0, -0.0, inf, -inf, nan]), wire, *WIRES[wire])


TOP_K = ("COLL-02.5-05", "COLL-02.5-09")


@topic.vector("top-k/{dtype}/{k}-of-20", dtype=["fp32", "bf16", "int32"], k=["0", "1", "7", "20"])
def largest_magnitudes(dtype: str, k: str) -> Question:
    """None, some and all; indices ascend, not magnitudes."""
    return sparsify(counted(dtype, (20,), seed=1530), int(k), *TOP_K)


@topic.vector("top-k/fp32/ties-{k}", k=["1", "2", "3", "4", "5", "6"])
def equal_magnitudes(k: str) -> Question:
    """Of equal magnitudes the lower index, whatever the sign; zeros of both signs are equal, infinities the largest."""
    return sparsify(tensor("fp32", [-0.0, 2.0, -inf, -2.0, 0.0, inf, 2.0]), int(k), *TOP_K)


@topic.vector("top-k/int16/least")
def least_integer() -> Question:
    """The least integer has the largest magnitude of all."""
    return sparsify(codes("int16", (4,), [0x7FFF, 0x8000, 0x8001, 0]), 1, *TOP_K)
