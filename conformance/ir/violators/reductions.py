"""Reductions in another order, arithmetic or accumulator than the reference's (language spec, 10; AMB-RT-24)."""

from fractions import Fraction
from math import fsum

import numpy as np

from tessera_reference.graph import reductions as graph
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.elementary import exp, log
from tessera_reference.numerics.formats import DTYPES, dtype
from tessera_reference.numerics.node_arithmetic import NodeArithmetic
from tessera_reference.numerics.rounding import cast, round_exact, round_to
from tessera_reference.numerics.trees import PAIRWISE, fold, pairwise

from ..variants.declared_arithmetic import DeclaredArithmetic
from .changes import around, changed
from .misrounding import flushed, half_away, toward_zero, unsaturated
from .products import rounded


def ordered(name, description, order, clause):
    """Return a violation with another order of sums, products, means, softmax and log-sum-exp; rows come first."""

    def over_tree(usual, values, axis, tree, model, node, neutral):
        if values.shape[axis] < 2 or tree not in (None, PAIRWISE):
            return usual(values, axis, tree, model, node, neutral)
        return order(np.moveaxis(values, axis, 0), node, neutral)

    return changed(clause, name, description, ("numerics.reductions._over_tree", around(over_tree)))


def halves(rows, node, neutral):
    while (n := len(rows)) > 1:
        half = (n + 1) // 2
        rows = np.concatenate([node([rows[: n - half], rows[half:]]), rows[n - half : half]])
    return rows[0, ...]


def largest_power(rows, node, neutral):
    """Add a full tree over the largest power of two, then one over the rest."""
    power = 1 << (len(rows).bit_length() - 1)
    whole = pairwise(rows[:power], 0, lambda a, b: node([a, b]))
    return whole if power == len(rows) else node([whole, halves_of(rows[power:], node)])


def halves_of(rows, node):
    if len(rows) == 1:
        return rows[0, ...]
    middle = len(rows) // 2
    return node([halves_of(rows[:middle], node), halves_of(rows[middle:], node)])


def four_lanes(rows, node, neutral):
    lanes = [fold(rows[lane::4], 0, lambda a, b: node([a, b])) for lane in range(min(4, len(rows)))]
    return pairwise(np.stack(lanes), 0, lambda a, b: node([a, b]))


def without_tail(rows, node, neutral):
    while len(rows) > 1:
        rows = node([rows[0 : len(rows) // 2 * 2 : 2], rows[1::2]])
    return rows[0, ...]


ORDERS = [
    ("fold", "reduces from left to right", lambda rows, node, neutral: fold(rows, 0, lambda a, b: node([a, b]))),
    ("tail_first", "leaves an odd element at the front",
        lambda rows, node, neutral: pairwise(rows[::-1], 0, lambda a, b: node([b, a]))),
    ("strided_halves", "reduces the first half against the second", halves),
    ("power_and_rest", "reduces what exceeds a power of two for itself", largest_power),
    ("split_in_the_middle", "splits elements in the middle", lambda rows, node, neutral: halves_of(rows, node)),
    ("four_lanes", "keeps four partial results", four_lanes),
]  # fmt: skip

STRICT = [ordered(name, description, order, "LANG-10-06") for name, description, order in ORDERS]
DETERMINISTIC = [
    ordered(f"{name}_deterministic", f"{description}, though the order is declared", order, "LANG-10-05")
    for name, description, order in ORDERS[:2]
]


def reduced(name, description, operation, compute, kind="float"):
    """Return a violation with another reduction of a kind; `compute` takes an array, an axis from 0 and keepdims."""
    usual = operation.compute

    def execute(x, axis, keepdims=False):
        return compute(x, axis % x.rank, keepdims) if x.dtype.kind == kind else usual(x, axis, keepdims)

    return changed("LANG-10-01", name, description, (operation, "compute", staticmethod(execute)))


def accumulated(accumulator, combine):
    """Return a sum or product over the canonical tree in another accumulator."""
    return lambda x, axis, keepdims: combine(x, axis, keepdims, arithmetic=NodeArithmetic(accumulator(x.dtype)))


def exact_sum(x, axis, keepdims):
    if not np.isfinite(x.values).all():
        return reductions.sum(x, axis, keepdims)
    total = np.apply_along_axis(fsum, axis, x.values.astype(np.float64)) if x.shape[axis] else np.zeros(1)
    result = round_to(np.asarray(total), x.dtype)
    return Array(x.dtype, np.expand_dims(result, axis) if keepdims else result)


def saturating(operator):
    """Return a reduction whose integers saturate."""

    def compute(x, axis, keepdims):
        exact = operator.reduce(x.values.astype(object), axis=axis, keepdims=keepdims)
        return Array(x.dtype, np.asarray(np.clip(exact, x.dtype.int_min, x.dtype.int_max), x.dtype.carrier))

    return compute


def mean_by_reciprocal(x, axis, keepdims):
    kind = x.dtype.accumulator
    total = reductions.sum(Array(kind, x.values.astype(kind.carrier)), axis, keepdims).values
    factor = kind.carrier.type(round_exact(Fraction(1, x.shape[axis]), kind))
    return Array(x.dtype, round_to(np.asarray(total * factor), x.dtype))


def mean_of_rounded(x, axis, keepdims):
    total = reductions.sum(x, axis, keepdims).values
    return Array(x.dtype, round_to(np.asarray(total / total.dtype.type(x.shape[axis])), x.dtype))


def mean_of_quotients(x, axis, keepdims):
    kind = x.dtype.accumulator
    quotients = x.values.astype(kind.carrier) / kind.carrier.type(x.shape[axis])
    return cast(reductions.sum(Array(kind, quotients), axis, keepdims), x.dtype)


# log-sum-exp


def log_sum_exp(shift, kind):
    """Return log(sum(exp(x - shift))) + shift, computed in some type."""

    def compute(x, axis, keepdims):
        inner = kind(x.dtype)
        values = np.moveaxis(x.values.astype(inner.carrier), axis, -1)
        shifted = shift(values).astype(inner.carrier)
        total = pairwise(exp(values - shifted, inner), -1)
        result = round_to(np.asarray(log(total, inner) + shifted[..., 0]), x.dtype)
        return Array(x.dtype, np.expand_dims(result, axis) if keepdims else result)

    return compute


def finite_maximum(values, least=-np.inf):
    largest = np.max(values, -1, keepdims=True)
    return np.where(np.isfinite(largest) & (largest > least), largest, np.zeros_like(largest))


VIOLATIONS = [
    ordered("lost_terms", "drops an odd tail of a stable sum", without_tail, "RT-04.7-02"),
    reduced("narrow_product", "multiplies in the operand's own type", graph.Prod,
        accumulated(lambda kind: kind.storage, reductions.prod)),
    reduced("wide_narrow_sum", "sums narrow types in fp64", graph.Sum,
        accumulated(lambda kind: DTYPES["fp64"] if kind.is_narrow else kind.accumulator, reductions.sum)),
    reduced("wide_product", "multiplies in fp64", graph.Prod,
        accumulated(lambda kind: DTYPES["fp64"], reductions.prod)),
    reduced("half_sum", "sums fp8 in fp16", graph.Sum,
        accumulated(lambda kind: DTYPES["fp16"] if kind.bits == 8 else kind.accumulator, reductions.sum)),
    reduced("exact_sum", "rounds the exact sum once", graph.Sum, exact_sum),
    reduced("compensated_sum", "sums with Kahan's compensation unasked", graph.Sum,
        lambda x, axis, keepdims: reductions.sum(x, axis, keepdims, order="kahan")),
    reduced("saturating_sum", "saturates sums of integers", graph.Sum, saturating(np.add), "int"),
    reduced("saturating_product", "saturates products of integers", graph.Prod, saturating(np.multiply), "int"),
    rounded("LANG-10-01", "half_away", "rounds ties of reductions away from zero", "reductions", half_away),
    rounded("LANG-10-01", "truncation", "truncates reductions", "reductions", toward_zero),
    rounded("LANG-10-01", "flushed_results", "flushes subnormal reductions to zero", "reductions", flushed),
    rounded("LANG-10-01", "no_saturation", "lets fp8 reductions overflow to infinity or NaN", "reductions",
        unsaturated),
    changed("LANG-10-01", "flushed_operands", "takes subnormal operands of sums and products for zero",
        ("numerics.reductions._model", lambda operation, x, arithmetic, *kinds:
            DeclaredArithmetic(x.dtype.accumulator, subnormals="flushed"))),
    reduced("mean_by_reciprocal", "multiplies the sum by 1 / n", graph.Mean, mean_by_reciprocal),
    reduced("mean_of_rounded", "rounds the sum of a mean to a narrow type", graph.Mean, mean_of_rounded),
    reduced("mean_of_quotients", "divides before it adds", graph.Mean, mean_of_quotients),
    changed("LANG-02-04", "kept_behind", "keeps the axis of a reduction of rank 4 as the last one",
        ("numerics.reductions._result", around(lambda usual, reduced, axis, keepdims:
            usual(reduced, reduced.rank if reduced.rank > 2 else axis, keepdims)))),
    changed("LANG-02-04", "argmax_in_fp64", "compares int64 in fp64", ("graph.reductions.ArgMax.compute",
            staticmethod(lambda x, axis, keepdims=False: reductions.argmax(Array(dtype("fp64"),
            x.values.astype(np.float64)) if x.dtype.name == "int64" else x, axis, keepdims)))),
    reduced("shift_above", "subtracts no maximum below -80", graph.LogSumExp,
        log_sum_exp(lambda values: finite_maximum(values, -80), lambda kind: kind.accumulator)),
    reduced("log_sum_exp_in_fp64", "computes log-sum-exp in fp64", graph.LogSumExp,
        log_sum_exp(finite_maximum, lambda kind: dtype("fp64"))),
]  # fmt: skip
