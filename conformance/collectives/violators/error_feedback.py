"""Residuals that are dropped, of the wrong sign or step, and gradients sent without them (2.5 and 6)."""

import numpy as np

from tessera_reference.collectives.compression import Compression, Step, compress, feed_back
from tessera_reference.numerics.arithmetic import add, subtract
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import cast

from ...ir.violators.changes import changed, nothing


def stepping(clause, name, description, rule):
    """Return a violation with another step."""

    def steps(function, gradients, given):
        feed_back(function, gradients, given)
        residual = _zeros(gradients[0])
        found = []
        for gradient in gradients:
            sent, residual = rule(gradient, residual, lambda x: compress(function, x, given).restored)
            found.append(Step(sent, residual))
        return found

    return changed(clause, name, description, ("adapter.collectives.feed_back", steps))


def in_bf16(g, r, q):
    whole = add(g, r)
    return q(whole), cast(cast(subtract(whole, q(whole)), DTYPES["bf16"]), g.dtype)


def by_tensor(function, x, given):
    return compress(function, x, given if given.block is None else Compression(given.wire, max(x.values.size, 1)))


def _zeros(like):
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
