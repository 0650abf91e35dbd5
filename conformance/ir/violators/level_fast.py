"""Implementations that claim the level fast and break it in one respect (language specification, section 10).

Permitted differences are no violation and absent here: another order, fused products, flushed subnormals, rounding ties
away from zero, functions within 4 units in the last place.
"""

from functools import partial

import numpy as np

from tessera_reference.numerics import elementary, reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.rounding import round_operand, round_to

from .levels import LONG, MATMUL, breaking, flushing_multiply, function, in_own_type, long_sums, products, steps_off

fast = partial(breaking, "fast")


def shortened(a):
    """Return fp32 operands with ten fraction bits."""
    return Array(a.dtype, round_operand(a.values)) if a.dtype.name == "fp32" else a


def tf32_product(least, a, b, out):
    """Return a product in tf32 instead of fp32, for at least so many terms."""
    return MATMUL(shortened(a), shortened(b), out) if a.shape[-1] >= least else MATMUL(a, b, out)


def without_tail(a, b, out):
    used = a.shape[-1] - (1 if a.shape[-1] % 4 else 0)
    return MATMUL(Array(a.dtype, a.values[..., :used]), Array(b.dtype, b.values[..., :used, :]), out)


def unshifted_softmax(self, x, env):
    with np.errstate(all="ignore"):
        values = np.moveaxis(x.values, self.axis, -1)
        powers = elementary.exp(values, x.dtype.accumulator)
        result = round_to(powers / reductions.add_up(powers, -1, None, x.dtype.accumulator)[..., None], x.dtype)
        return Array(x.dtype, np.moveaxis(result, -1, self.axis))


QUICK = [
    fast("LANG-05.2-02", "tf32", "multiplies in tf32 where fp32 was asked for", products(partial(tf32_product, 0))),
    fast("LANG-10-08", "tf32_in_long_products",
        "multiplies in tf32 where terms are many, which only the statistics of the errors show",
        products(partial(tf32_product, LONG))),
    fast("LANG-15-05", "bf16_accumulator", "sums bf16 products in bf16", products(partial(in_own_type, "bf16"))),
    fast("LANG-15-04", "fp16_accumulator", "sums fp16 products in fp16", products(partial(in_own_type, "fp16"))),
    fast("LANG-10-03", "unstable_softmax", "forgets to subtract the maximum",
        lambda: [("graph.reductions.Softmax.execute", unshifted_softmax)]),
    fast("LANG-10-08", "truncated_sums",
        "truncates every addition of long sums, which only the variance of the errors shows", long_sums("toward_zero")),
    fast("LANG-10-08", "far_off", "has an exponential that is 64 units off",
        function(lambda x, found, kind: steps_off(64, found, kind)), functions={}),
    fast("LANG-02.3-63", "flushed_fp8", "flushes subnormal products of fp8 too", flushing_multiply),
]  # fmt: skip
