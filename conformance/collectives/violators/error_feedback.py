"""Residuals that are dropped, of the wrong sign or step, and gradients sent without them (2.5 and 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from tessera_conformance.strength import Violation
from tessera_reference.collectives.compression import Compressed, Compression, Step, compress, feed_back
from tessera_reference.numerics.arithmetic import add, subtract
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import cast

from ...ir.violators.changes import changed, nothing

Arrays: TypeAlias = Sequence[Array]
Rule: TypeAlias = Callable[[Array, Array, Callable[[Array], Array]], tuple[Array, Array]]
"""Maps a gradient, the residual and the compression to the sent values and the next residual."""


def stepping(clause: str, name: str, description: str, rule: Rule) -> Violation:
    """Return a violation with another step."""

    def steps(function: str, gradients: Arrays, given: Compression) -> list[Step]:
        feed_back(function, gradients, given)
        residual = _zeros(gradients[0])
        found = []
        for gradient in gradients:
            sent, residual = rule(gradient, residual, lambda x: compress(function, x, given).restored)
            found.append(Step(sent, residual))
        return found

    return changed(clause, name, description, ("adapter.collectives.feed_back", steps))


def reported(clause: str, name: str, description: str, change: Callable[[list[Step]], list[Step]]) -> Violation:
    """Return a violation that reports the steps differently."""

    def steps(function: str, gradients: Arrays, given: Compression) -> list[Step]:
        return change(feed_back(function, gradients, given))

    return changed(clause, name, description, ("adapter.collectives.feed_back", steps))


def forgotten(g: Array, r: Array, q: Callable[[Array], Array]) -> tuple[Array, Array]:
    return q(g), _zeros(g)


def in_bf16(g: Array, r: Array, q: Callable[[Array], Array]) -> tuple[Array, Array]:
    whole = add(g, r)
    return q(whole), cast(cast(subtract(whole, q(whole)), DTYPES["bf16"]), g.dtype)


def by_tensor(function: str, x: Array, given: Compression) -> Compressed:
    return compress(function, x, given if given.block is None else Compression(given.wire, max(x.values.size, 1)))


def _zeros(like: Array) -> Array:
    return Array(like.dtype, np.zeros_like(like.values))


STEPS = [
    stepping("COLL-06-07", "residual_in_bf16", "keeps the residual in bf16", in_bf16),
    changed("COLL-02.5-04", "block_ignored", "scales the tensor as one block",
        ("collectives.compression.compress", by_tensor)),
    changed("COLL-02.5-04", "not_finite_kept", "keeps what is not finite",
        ("collectives.compression.require_finite", nothing)),
    changed("COLL-02.5-04", "any_data", "takes data of other dtypes",
        ("collectives.compression.require_fp32", nothing)),
]  # fmt: skip
