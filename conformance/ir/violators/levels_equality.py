"""Lower levels whose bits are not those of Graph IR (section 8.2), and levels that are not reported (section 12)."""

import re

import numpy as np

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import replaced, violates
from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.numerics.array import Array
from tessera_reference.tile import fragments

FRACTIONS = {"fp64": 52, "fp32": 23, "bf16": 7, "fp16": 10, "fp8_e4m3": 3, "fp8_e5m2": 2}
"""Bits of the fraction of some dtypes."""


class Differing(ReferenceAdapter):
    """The reference with changed results at some levels."""

    def __init__(self, levels, change, when):
        super().__init__()
        self._levels = levels
        self._change = change
        self._when = when

    def language_execute(self, **request):
        """Return the results, changed at these levels."""
        answer = super().language_execute(**request)
        if request.get("at", "graph") not in self._levels or not self._when(request):
            return answer
        return {"outputs": [self._change(output) for output in answer["outputs"]]}


def differing(name, description, levels, change, when=lambda request: True):
    """Return a violation whose levels give other bits."""
    return replaced("LANG-08.2-01", description, lambda: Differing(levels, change, when), name=name)


def _words(given, change):
    """Return a float tensor with changed words; `change` gets them, their sign bit and their largest subnormal."""
    if given.dtype not in FRACTIONS:
        return given
    words = given.words()
    sign, largest = 1 << (8 * given.format.word_bytes - 1), (1 << FRACTIONS[given.dtype]) - 1
    return Tensor.from_words(given.dtype, given.shape, [int(word) for word in change(words, sign, largest)])


def _flushed(given):
    return _words(
        given,
        lambda words, sign, largest: np.where(
            (words & (sign - 1)) <= largest, words & np.asarray(sign, words.dtype), words
        ),
    )


def _cleared(given):
    """Zero the last element of an odd number of them."""
    words = given.words().tolist()
    if given.size % 2 == 1 and given.format.words == 1:
        words[-1] = 0
    return Tensor.from_words(given.dtype, given.shape, words)


_CALLED_BRANCH = re.compile(r"if \([^{]*\{ return \w+\(")
"""A branch that returns what another function gives."""


DIFFERENCES = [
    differing("unsigned_zeros", "loses the sign of zeros at Tile IR", ("tile",),
        lambda given: _words(given, lambda words, sign, _: np.where(words == sign, 0, words))),
    differing("flushed", "flushes subnormals at Target IR", ("target",), _flushed),
    differing("one_vendor", "flushes subnormals for one vendor", ("tile", "target"), _flushed,
        lambda request: request.get("target") == "gfx942"),
    differing("indexed_updates", "loses the last element after a write at an index at Schedule IR", ("schedule",),
        _cleared, lambda request: "[p, q] = " in request["source"]),
    differing("called_branches", "loses the last gradient through a branch of a callee below Graph IR",
        ("schedule", "tile", "target"), _cleared,
        lambda request: "op.grad" in request["source"] and bool(_CALLED_BRANCH.search(request["source"]))),
]  # fmt: skip


def _fused_multiply(self, block, a, b, c):
    last = Array(a.dtype, a.values[..., ::-1].copy()), Array(b.dtype, b.values[..., ::-1, :].copy())
    return _mma(self, block, *last, c)


_mma = fragments.MmaSync.run

UNITS = [
    replaced("LANG-08.2-01", "adds the terms of a matrix instruction in descending order", make,
        ("tile.fragments.MmaSync.run", _fused_multiply), name="descending_units"),
]  # fmt: skip


@violates("LANG-08.2-01", "lets a division by zero pass at Tile IR")
class Lenient(ReferenceAdapter):
    def language_execute(self, **request):
        try:
            return super().language_execute(**request)
        except Refusal:
            if request.get("at") != "tile":
                raise
            return {"outputs": []}


@violates("LANG-12-04", "shows Graph IR whatever level is asked for")
class Veiled(ReferenceAdapter):
    def language_lower(self, **request):
        shown = super().language_lower(source=request["source"], to="graph")["text"]
        return super().language_lower(**request) | {"text": shown}
