"""Implementations that differ from the reference arithmetic in one respect (language specification, 10 and 15)."""

import numpy as np

from tessera_reference.numerics.arithmetic import larger
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.elementary import exp
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.rounding import cast, round_to
from tessera_reference.numerics.trees import fold, pairwise

from .changes import around, changed
from .misrounding import as_tf32, half_away, toward_zero, unsaturated, without_subnormals

NARROW = ("fp16", "bf16", "fp8_e4m3", "fp8_e5m2")


def terms(a, b):
    left, right = a.values.astype(np.float64), b.values.astype(np.float64)
    return left[..., :, None, :] * np.moveaxis(right, -1, -2)[..., None, :, :]


def accumulating(accumulator, dtypes):
    """Return a left fold that rounds every step to `accumulator`, for operands of some dtypes."""

    def execute(usual, self, a, b, env):
        if a.dtype.name not in dtypes or a.shape[-1] == 0:
            return usual(self, a, b, env)
        kind = dtype(accumulator)
        products = round_to(terms(a, b), kind)
        total = fold(products, -1, lambda x, y: round_to(x.astype(np.float64) + y.astype(np.float64), kind))
        return cast(Array(kind, total), self.out or a.dtype)

    return around(execute)


def fused_product(usual, self, a, b, env):
    if a.dtype.name != "fp32" or a.shape[-1] == 0:
        return usual(self, a, b, env)
    total = fold(terms(a, b), -1, lambda x, y: (x + y).astype(np.float32).astype(np.float64))
    return Array(a.dtype, total.astype(np.float32))


def product(clause, name, description, execute):
    """Return a violation of matmul."""
    return changed(clause, name, description, ("graph.reductions.MatMul.execute", execute))


PRODUCTS = [
    product("LANG-15-06", "e4m3_accumulator", "sums e4m3 products in e4m3", accumulating("fp8_e4m3", ["fp8_e4m3"])),
    product("LANG-15-14", "e5m2_accumulator", "sums e5m2 products in e5m2", accumulating("fp8_e5m2", ["fp8_e5m2"])),
    product("LANG-10-02", "wide_accumulator", "sums narrow products in fp64", accumulating("fp64", NARROW)),
    product("LANG-10-01", "fused_product", "does not round fp32 products before adding them", around(fused_product)),
]


def softmax_with(shift=None, total=None, exponential=exp):
    """Return a softmax along the last axis of a float tensor with another shift, total or exponential."""

    def execute(self, x, env):
        values = np.moveaxis(x.values, self.axis, -1)
        shifted = values - (shift or largest)(values)
        powers = exponential(shifted, x.dtype.accumulator)
        result = round_to(powers / (total or tree_sum)(powers), x.dtype)
        return Array(x.dtype, np.moveaxis(result, -1, self.axis))

    return execute


def of_narrow_exponentials(self, x, env):
    kind = x.dtype.accumulator
    values = np.moveaxis(x.values, self.axis, -1).astype(kind.carrier)
    powers = round_to(exp(np.asarray(values - largest(values)), kind), x.dtype)
    result = round_to(np.asarray(powers / tree_sum(powers)), x.dtype)
    return Array(x.dtype, np.moveaxis(result, -1, self.axis))


def largest(values):
    return pairwise(values, -1, larger)[..., None]


def tree_sum(values):
    return pairwise(values, -1)[..., None]


def one_ulp_off(values, kind):
    exact = exp(values, kind)
    return np.where(np.abs(exact) % 2.0**-4 < 2.0**-6, np.nextafter(exact, exact.dtype.type(0)), exact)


def softmax(clause, name, description, execute):
    """Return a violation of softmax."""
    return changed(clause, name, description, ("graph.reductions.Softmax.execute", execute))


def rounding(clause, name, description, rule):
    """Return a violation of the operators on narrow types."""

    def narrowing(kind, overflow="saturate"):
        return lambda values: rule(np.asarray(values), kind)

    return changed(clause, name, description, ("numerics.arithmetic.narrowing", narrowing))


ROUNDINGS = [
    rounding("LANG-02.3-61", "half_away", "rounds ties away from zero", half_away),
    rounding("LANG-02.3-64", "no_saturation", "lets fp8 overflow to infinity or NaN", unsaturated),
]


def in_fp32(clause, name, description, rule):
    """Return a violation with operators that compute fp32 in fp64 and round the result."""

    def rounded_once(usual, operator, a, b):
        if a.dtype.name != "fp32":
            return usual(operator, a, b)
        return Array(a.dtype, rule(operator(a.values.astype(np.float64), b.values.astype(np.float64)), a.dtype))

    return changed(clause, name, description, ("numerics.arithmetic._rounded_once", around(rounded_once)))


def flushed(x):
    """Return an array with zeros in place of subnormals."""
    return Array(x.dtype, without_subnormals(x.values, x.dtype)) if x.dtype.kind == "float" else x


VIOLATIONS = [
    softmax("LANG-05.4-03", "maximum_of_a_block", "subtracts the maximum of the first 1,024 elements",
        softmax_with(lambda x: largest(x[..., :1024]))),
    softmax("LANG-15-08", "first_element", "subtracts the first element", softmax_with(lambda x: x[..., :1])),
    softmax("LANG-15-09", "forgetful_total", "leaves the first element out of the sum",
        softmax_with(total=lambda x: tree_sum(x) - x[..., :1] if x.shape[-1] > 1 else tree_sum(x))),
    softmax("LANG-10-06", "folded_softmax", "sums from left to right",
        softmax_with(total=lambda x: fold(x, -1)[..., None])),
    softmax("LANG-15-07", "approximate_exponential", "takes an exponential that is now and then one unit off",
        softmax_with(exponential=one_ulp_off)),
    softmax("LANG-15-07", "narrow_exponentials", "rounds exponentials to the operand's type",
        of_narrow_exponentials),
    changed("LANG-03.2-02", "one_for_nothing", "makes one element of a scalar and none",
        ("numerics.arithmetic._rounded_once", around(lambda usual, operator, a, b:
            Array(a.dtype, np.zeros(1, a.dtype.carrier))
            if 0 in (a.values.size, b.values.size) and () in (a.shape, b.shape) else usual(operator, a, b)))),
    in_fp32("LANG-02.3-61", "half_away_fp32", "rounds ties of fp32 away from zero", half_away),
    in_fp32("LANG-02.3-62", "truncated_fp32", "truncates fp32", toward_zero),
    in_fp32("LANG-02.3-63", "tf32_for_fp32", "keeps ten fraction bits of fp32", as_tf32),
    changed("LANG-02.3-61", "flushed_operands", "takes subnormal operands for zero",
        ("numerics.arithmetic._rounded_once", around(lambda usual, operator, a, b:
            usual(operator, flushed(a), flushed(b))))),
]  # fmt: skip
