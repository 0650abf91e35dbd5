"""Residuals that are dropped, of the wrong sign or step, and gradients sent without them (2.5 and 6)."""

from dataclasses import replace

import numpy as np

from tessera_reference.collectives.compression import Step, compress
from tessera_reference.numerics.arithmetic import add, subtract
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import cast

from ...ir.violators.changes import changed, nothing
from .changes import at


def in_bf16(usual, function, gradients, given):
    usual(function, gradients, given)
    residual, steps = Array(gradients[0].dtype, np.zeros_like(gradients[0].values)), []
    for gradient in gradients:
        whole = add(gradient, residual)
        sent = compress(function, whole, given).restored
        residual = cast(cast(subtract(whole, sent), DTYPES["bf16"]), gradient.dtype)
        steps.append(Step(sent, residual))
    return steps


STEPS = [
    at("adapter.collectives.feed_back")("COLL-06-07", "residual_in_bf16", "keeps the residual in bf16", in_bf16),
    at("collectives.compression.compress")("COLL-02.5-04", "block_ignored", "scales the tensor as one block",
        lambda usual, function, x, given: usual(
            function, x, given if given.block is None else replace(given, block=max(x.values.size, 1)))),
    changed("COLL-02.5-04", "not_finite_kept", "keeps what is not finite",
        ("collectives.compression.require_finite", nothing)),
    changed("COLL-02.5-04", "any_data", "takes data of other dtypes",
        ("collectives.compression.require_fp32", nothing)),
]  # fmt: skip
