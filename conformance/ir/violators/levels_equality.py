"""Lower levels whose bits are not those of Graph IR (section 8.2), and levels that are not reported (section 12)."""

import re

import numpy as np

from tessera_conformance.tensors import Tensor
from tessera_reference.numerics.array import Array

from .changes import instead, where_refused, wrapped

FRACTIONS = {"fp64": 52, "fp32": 23, "bf16": 7, "fp16": 10, "fp8_e4m3": 3, "fp8_e5m2": 2}
"""Bits of the fraction of some dtypes."""


def differing(name, description, levels, change, when=lambda request: True):
    """Return a violation whose results at some levels are changed, of requests that satisfy a condition."""

    def execute(usual, self, **request):
        outputs = usual(self, **request)["outputs"]
        changes = request.get("at", "graph") in levels and when(request)
        return {"outputs": [change(output) if changes else output for output in outputs]}

    return wrapped("LANG-08.2-01", name, description, "adapter.ReferenceAdapter.language_execute", execute)


def words_by(change):
    """Return a change of the words of float tensors; `change` gets them, their sign bit and their largest subnormal."""

    def changed(given):
        if given.dtype not in FRACTIONS:
            return given
        sign, largest = 1 << (8 * given.format.word_bytes - 1), (1 << FRACTIONS[given.dtype]) - 1
        return Tensor.from_words(given.dtype, given.shape, change(given.words(), sign, largest).tolist())

    return changed


flushed = words_by(
    lambda words, sign, largest: np.where((words & (sign - 1)) <= largest, words & np.asarray(sign, words.dtype), words)
)


def cleared(given):
    """Zero the last element of an odd number of them."""
    words = given.words().tolist()
    if given.size % 2 == 1 and given.format.words == 1:
        words[-1] = 0
    return Tensor.from_words(given.dtype, given.shape, words)


def descending(a, b):
    """Return operands of a product, of which it adds the terms in descending order."""
    return Array(a.dtype, a.values[..., ::-1].copy()), Array(b.dtype, b.values[..., ::-1, :].copy())


VIOLATIONS = [
    differing("unsigned_zeros", "loses the sign of zeros at Tile IR", ("tile",),
        words_by(lambda words, sign, _: np.where(words == sign, 0, words))),
    differing("flushed", "flushes subnormals at Target IR", ("target",), flushed),
    differing("one_vendor", "flushes subnormals for one vendor", ("tile", "target"), flushed,
        lambda request: request.get("target") == "gfx942"),
    differing("indexed_updates", "loses the last element after a write at an index at Schedule IR", ("schedule",),
        cleared, lambda request: "[p, q] = " in request["source"]),
    differing("called_branches", "loses the last gradient through a branch of a callee below Graph IR",
        ("schedule", "tile", "target"), cleared, lambda request:
            "op.grad" in request["source"] and bool(re.search(r"if \([^{]*\{ return \w+\(", request["source"]))),
    wrapped("LANG-08.2-01", "descending_units", "adds the terms of a matrix instruction in descending order",
        "tile.fragments.MmaSync.run", lambda usual, self, block, a, b, c: usual(self, block, *descending(a, b), c)),
    instead("LANG-08.2-01", "Lenient", "lets a division by zero pass at Tile IR",
        "adapter.ReferenceAdapter.language_execute", where_refused(lambda self, **request:
            {"outputs": []}, lambda refusal, self, **request: request.get("at") == "tile")),
    wrapped("LANG-08.2-01", "silu_of_bf16", "computes silu of bf16 as sigmoid at Target IR",
        "target_ir.lowering.scalars.symbol", lambda usual, function, dtype:
            usual("sigmoid" if (function, dtype.name) == ("silu", "bf16") else function, dtype)),
    wrapped("LANG-12-04", "Veiled", "shows Graph IR whatever level is asked for",
        "adapter.ReferenceAdapter.language_lower", lambda usual, self, **request: usual(self,
        **request) | {"text": usual(self, source=request["source"], to="graph")["text"]}),
]  # fmt: skip
