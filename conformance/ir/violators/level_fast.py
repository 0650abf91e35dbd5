"""Implementations that claim the level fast and break it in one respect (language specification, section 10).

Permitted differences are no violation and absent here: another order, fused products, flushed subnormals, rounding ties
away from zero, functions within 4 units in the last place.
"""

from functools import partial

import numpy as np

from tessera_reference.numerics import elementary, reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.rounding import round_operand, round_to
from tessera_reference.numerics.trees import FOLD

from ..variants.declared_arithmetic import DeclaredArithmetic
from .changes import around
from .levels import EXP, MATMUL, SUMS, breaking, exponential, flushing_multiply, products, steps_off

fast = partial(breaking, "fast")

LONG = 256
"""So many terms that the bound of any order no longer tells one rounding from another."""


def in_tf32(least):
    """Return products in tf32 instead of fp32, for at least so many terms."""

    def product(usual, a, b, out):
        if a.dtype.name == "fp32" and a.shape[-1] >= least:
            a, b = (Array(x.dtype, round_operand(x.values)) for x in (a, b))
        return usual(a, b, out)

    return products(product)


def in_own_type(name):
    """Return products of one dtype that accumulate in it."""
    return products(lambda usual, a, b, out: usual(a, b, out, accumulator=a.dtype if a.dtype.name == name else None))


@np.errstate(all="ignore")
def unshifted_softmax(self, x, env):
    values = np.moveaxis(x.values, self.axis, -1)
    powers = elementary.exp(values, x.dtype.accumulator)
    result = round_to(powers / reductions.add_up(powers, -1, None, x.dtype.accumulator)[..., None], x.dtype)
    return Array(x.dtype, np.moveaxis(result, -1, self.axis))


def long_sums(rounding):
    """Return sums that add 256 terms or more from left to right, every addition rounded in one direction."""

    def over_tree(usual, values, axis, tree, model, node, neutral):
        if tree is None and node == model.add and values.shape[axis] >= LONG and model.accumulator.kind == "float":
            tree, model = FOLD, DeclaredArithmetic(model.accumulator, rounding=rounding)
            node = model.add
        return usual(values, axis, tree, model, node, neutral)

    return around(over_tree)


QUICK = [
    fast("LANG-05.2-02", "tf32", "multiplies in tf32 where fp32 was asked for", MATMUL, in_tf32(0)),
    fast("LANG-10-08", "tf32_in_long_products",
        "multiplies in tf32 where terms are many, which only the statistics of the errors show", MATMUL, in_tf32(LONG)),
    fast("LANG-15-05", "bf16_accumulator", "sums bf16 products in bf16", MATMUL, in_own_type("bf16")),
    fast("LANG-15-04", "fp16_accumulator", "sums fp16 products in fp16", MATMUL, in_own_type("fp16")),
    fast("LANG-10-03", "unstable_softmax", "forgets to subtract the maximum", "graph.reductions.Softmax.execute",
        unshifted_softmax),
    fast("LANG-10-08", "truncated_sums",
        "truncates every addition of long sums, which only the variance of the errors shows", SUMS,
        long_sums("toward_zero")),
    fast("LANG-10-08", "sums_rounded_down",
        "rounds every addition of long sums down, which only the bias of the errors shows", SUMS, long_sums("down")),
    fast("LANG-10-08", "far_off", "has an exponential that is 64 units off", EXP,
        exponential(lambda x, found, kind: steps_off(64, found, kind)), {}),
    fast("LANG-02-04", "nan_of_a_number", "has NaN for the exponential of numbers below -1", EXP,
        exponential(lambda x, found, kind: np.where(np.isfinite(x) & (x < -1), np.nan, found).astype(found.dtype)), {}),
    fast("LANG-02.3-63", "flushed_fp8", "flushes subnormal products of fp8 too", "graph.elementwise.Multiply.compute",
        staticmethod(flushing_multiply)),
]  # fmt: skip
