"""Reductions in another order, arithmetic or accumulator than the reference's (language spec, 10; AMB-RT-24)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import fsum
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.strength import Violation
from tessera_reference.graph import reductions as graph
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.elementary import exp, log
from tessera_reference.numerics.formats import DTYPES, DType, dtype
from tessera_reference.numerics.node_arithmetic import NodeArithmetic
from tessera_reference.numerics.rounding import cast, round_exact, round_to
from tessera_reference.numerics.trees import PAIRWISE, Tree, fold, pairwise

from ..variants.declared_arithmetic import DeclaredArithmetic
from .changes import changed
from .misrounding import flushed, half_away, toward_zero, unsaturated

Values: TypeAlias = Any
Node: TypeAlias = Callable[[list[Any]], Values]
OVER_TREE = reductions._over_tree


# Order


def ordered(name: str, description: str, order: Callable[[Values, Node, int], Values], clause: str) -> Violation:
    """Return a violation with another order of sums, products, means, softmax and log-sum-exp; rows come first."""

    def over_tree(
        values: Values, axis: int, tree: Tree | None, model: NodeArithmetic, node: Node, neutral: int
    ) -> Values:
        if values.shape[axis] < 2 or tree not in (None, PAIRWISE):
            return OVER_TREE(values, axis, tree, model, node, neutral)
        with np.errstate(all="ignore"):
            return order(np.moveaxis(values, axis, 0), node, neutral)

    return changed(clause, name, description, ("numerics.reductions._over_tree", over_tree))


def by(tree: Callable[[int], Tree]) -> Callable[[Values, Node, int], Values]:
    """Return the order of a tree that depends on the number of rows."""

    def order(rows: Values, node: Node, neutral: int) -> Values:
        start = np.full(rows.shape[1:], neutral, rows.dtype)
        return tree(len(rows)).over(len(rows)).evaluate(rows.__getitem__, node, start)

    return order


def tail_first(rows: Values, node: Node, neutral: int) -> Values:
    """Add pairs from the end, so that an odd row stays at the front."""
    return pairwise(rows[::-1], 0, lambda a, b: node([b, a]))


def halves(rows: Values, node: Node, neutral: int) -> Values:
    """Add the first half to the second, as in the shared memory of a block of threads; an odd row waits."""
    while (n := len(rows)) > 1:
        half = (n + 1) // 2
        rows = np.concatenate([node([rows[: n - half], rows[half:]]), rows[n - half : half]])
    return rows[0, ...]


def largest_power(rows: Values, node: Node, neutral: int) -> Values:
    """Add a full tree over the largest power of two, then one over the rest."""
    power = 1 << (len(rows).bit_length() - 1)
    whole = pairwise(rows[:power], 0, lambda a, b: node([a, b]))
    return whole if power == len(rows) else node([whole, halves_of(rows[power:], node)])


def halves_of(rows: Values, node: Node) -> Values:
    """Add by a tree that splits its rows in the middle."""
    if len(rows) == 1:
        return rows[0, ...]
    middle = len(rows) // 2
    return node([halves_of(rows[:middle], node), halves_of(rows[middle:], node)])


def split(rows: Values, node: Node, neutral: int) -> Values:
    """Add by recursion on the middle."""
    return halves_of(rows, node)


def lanes(rows: Values, node: Node, neutral: int) -> Values:
    """Add four partial results side by side, as vector units do."""
    partial = [fold(rows[lane::4], 0, lambda a, b: node([a, b])) for lane in range(min(4, len(rows)))]
    return pairwise(np.stack(partial), 0, lambda a, b: node([a, b]))


def padded(rows: Values, node: Node, neutral: int) -> Values:
    """Add by a full tree, padded with the neutral element."""
    missing = (1 << (len(rows) - 1).bit_length()) - len(rows)
    filled = np.concatenate([rows, np.full((missing, *rows.shape[1:]), neutral, rows.dtype)])
    return pairwise(filled, 0, lambda a, b: node([a, b]))


def started(rows: Values, node: Node, neutral: int) -> Values:
    """Return the canonical tree, its result combined with the neutral element."""
    start = np.full(rows.shape[1:], neutral, rows.dtype)
    return node([start, pairwise(rows, 0, lambda a, b: node([a, b]))])


def without_tail(rows: Values, node: Node, neutral: int) -> Values:
    """Add full pairs only, from the second level on too."""
    while len(rows) > 1:
        rows = node([rows[0 : len(rows) // 2 * 2 : 2], rows[1::2]])
    return rows[0, ...]


ORDERS: list[tuple[str, str, Callable[[Values, Node, int], Values]]] = [
    ("fold", "reduces from left to right", by(lambda n: Tree("fold"))),
    ("tail_first", "leaves an odd element at the front", tail_first),
    ("strided_halves", "reduces the first half against the second", halves),
    ("power_and_rest", "reduces what exceeds a power of two for itself", largest_power),
    ("split_in_the_middle", "splits elements in the middle", split),
    ("four_lanes", "keeps four partial results", lanes),
]

STRICT = [ordered(name, description, order, "LANG-10-06") for name, description, order in ORDERS]
DETERMINISTIC = [
    ordered(f"{name}_deterministic", f"{description}, though the order is declared", order, "LANG-10-05")
    for name, description, order in ORDERS[:2]
]
UNSTABLE = [
    ordered("lost_terms", "drops an odd tail of a stable sum", without_tail, "RT-04.7-02"),
]


# Accumulator and rounding


def reduced(name: str, description: str, operation: type[graph.Reduction], compute: Callable[..., Array]) -> Violation:
    """Return a violation with another reduction; `compute` takes an array, a non-negative axis and keepdims."""

    def execute(x: Array, axis: int, keepdims: bool = False) -> Array:
        axis %= x.rank
        with np.errstate(all="ignore"):
            return compute(x, axis, keepdims)

    return changed("LANG-10-01", name, description, (operation, "compute", staticmethod(execute)))


def accumulated(accumulator: Callable[[DType], DType], combine: str) -> Callable[..., Array]:
    """Return a float sum or product over the canonical tree in another accumulator; other dtypes are unchanged."""

    def compute(x: Array, axis: int, keepdims: bool) -> Array:
        compute_ = getattr(reductions, combine)
        if x.dtype.kind != "float":
            return compute_(x, axis, keepdims)  # type: ignore[no-any-return]
        return compute_(x, axis, keepdims, arithmetic=NodeArithmetic(accumulator(x.dtype)))  # type: ignore[no-any-return]

    return compute


def itself(kind: DType) -> DType:
    """Return the type of the operand."""
    return kind.storage


def double(kind: DType) -> DType:
    """Return fp64 for everything."""
    return DTYPES["fp64"]


def half(kind: DType) -> DType:
    """Return fp16 for fp8, as units with 16-bit accumulators use."""
    return DTYPES["fp16"] if kind.bits == 8 else kind.accumulator


def exact_sum(x: Array, axis: int, keepdims: bool) -> Array:
    if x.dtype.kind != "float" or not np.isfinite(x.values).all():
        return reductions.sum(x, axis, keepdims)
    total = np.apply_along_axis(fsum, axis, x.values.astype(np.float64)) if x.shape[axis] else np.zeros(1)
    result = round_to(np.asarray(total), x.dtype)
    return Array(x.dtype, np.expand_dims(result, axis) if keepdims else result)


def compensated(x: Array, axis: int, keepdims: bool) -> Array:
    return (
        reductions.sum(x, axis, keepdims, order="kahan")
        if x.dtype.kind == "float"
        else reductions.sum(x, axis, keepdims)
    )


def saturating(combine: str) -> Callable[..., Array]:
    """Return a reduction whose integers saturate."""

    def compute(x: Array, axis: int, keepdims: bool) -> Array:
        operator: Any = {"sum": np.add, "prod": np.multiply}[combine]
        if x.dtype.kind != "int" or x.shape[axis] == 0:
            return getattr(reductions, combine)(x, axis, keepdims)  # type: ignore[no-any-return]
        exact = operator.reduce(x.values.astype(object), axis=axis, keepdims=keepdims)
        return Array(x.dtype, np.asarray(np.clip(exact, x.dtype.int_min, x.dtype.int_max), x.dtype.carrier))

    return compute


def rounded_by(name: str, description: str, rule: Callable[..., Values]) -> Violation:
    """Return a violation with another final rounding of a sum, product or mean to a narrow type."""

    def to(x: Array, kind: DType) -> Array:
        return Array(kind, rule(x.values, kind)) if kind.is_narrow else cast(x, kind)

    return changed("LANG-10-01", name, description, ("numerics.reductions.cast", to))


def flushing(operation: str, x: Array, arithmetic: NodeArithmetic | None, *kinds: str) -> NodeArithmetic:
    return DeclaredArithmetic(x.dtype.accumulator, subnormals="flushed")


ACCUMULATORS = [
    reduced("narrow_product", "multiplies in the operand's own type", graph.Prod, accumulated(itself, "prod")),
    reduced("wide_narrow_sum", "sums narrow types in fp64", graph.Sum,
        accumulated(lambda kind: DTYPES["fp64"] if kind.is_narrow else kind.accumulator, "sum")),
    reduced("wide_product", "multiplies in fp64", graph.Prod, accumulated(double, "prod")),
    reduced("half_sum", "sums fp8 in fp16", graph.Sum, accumulated(half, "sum")),
    reduced("exact_sum", "rounds the exact sum once", graph.Sum, exact_sum),
    reduced("compensated_sum", "sums with Kahan's compensation unasked", graph.Sum, compensated),
    reduced("saturating_sum", "saturates sums of integers", graph.Sum, saturating("sum")),
    reduced("saturating_product", "saturates products of integers", graph.Prod, saturating("prod")),
    rounded_by("half_away", "rounds ties of reductions away from zero", half_away),
    rounded_by("truncation", "truncates reductions", toward_zero),
    rounded_by("flushed_results", "flushes subnormal reductions to zero", flushed),
    rounded_by("no_saturation", "lets fp8 reductions overflow to infinity or NaN", unsaturated),
    changed("LANG-10-01", "flushed_operands", "takes subnormal operands of sums and products for zero",
        ("numerics.reductions._model", flushing)),
]  # fmt: skip


# Means


def mean_by_reciprocal(x: Array, axis: int, keepdims: bool) -> Array:
    if x.dtype.kind != "float":
        return reductions.mean(x, axis, keepdims)
    kind = x.dtype.accumulator
    total = reductions.sum(Array(kind, x.values.astype(kind.carrier)), axis, keepdims).values
    factor = kind.carrier.type(round_exact(Fraction(1, x.shape[axis]), kind))
    return Array(x.dtype, round_to(np.asarray(total * factor), x.dtype))


def mean_of_rounded(x: Array, axis: int, keepdims: bool) -> Array:
    if x.dtype.kind != "float":
        return reductions.mean(x, axis, keepdims)
    total = reductions.sum(x, axis, keepdims).values
    return Array(x.dtype, round_to(np.asarray(total / total.dtype.type(x.shape[axis])), x.dtype))


def mean_of_quotients(x: Array, axis: int, keepdims: bool) -> Array:
    if x.dtype.kind != "float":
        return reductions.mean(x, axis, keepdims)
    kind = x.dtype.accumulator
    quotients = x.values.astype(kind.carrier) / kind.carrier.type(x.shape[axis])
    return cast(reductions.sum(Array(kind, quotients), axis, keepdims), x.dtype)


MEANS = [
    reduced("mean_by_reciprocal", "multiplies the sum by 1 / n", graph.Mean, mean_by_reciprocal),
    reduced("mean_of_rounded", "rounds the sum of a mean to a narrow type", graph.Mean, mean_of_rounded),
    reduced("mean_of_quotients", "divides before it adds", graph.Mean, mean_of_quotients),
]


# log-sum-exp


def log_sum_exp(shift: Callable[[Values], Values], kind: Callable[[DType], DType]) -> Callable[..., Array]:
    """Return log(sum(exp(x - shift))) + shift, computed in some type."""

    def compute(x: Array, axis: int, keepdims: bool) -> Array:
        inner = kind(x.dtype)
        values = np.moveaxis(x.values.astype(inner.carrier), axis, -1)
        shifted = shift(values).astype(inner.carrier)
        total = pairwise(exp(values - shifted, inner), -1)
        result = round_to(np.asarray(log(total, inner) + shifted[..., 0]), x.dtype)
        return Array(x.dtype, np.expand_dims(result, axis) if keepdims else result)

    return compute


def maximum(values: Values) -> Values:
    """Return the maximum, even where it is infinite."""
    return np.max(values, -1, keepdims=True)


def finite_maximum(values: Values) -> Values:
    """Return the maximum if it is finite, else zero, as in the reference arithmetic."""
    largest = maximum(values)
    return np.where(np.isfinite(largest), largest, np.zeros_like(largest))


def kept_behind(reduced: Array, axis: int, keepdims: bool) -> Array:
    return RESULT(reduced, reduced.rank if reduced.rank > 2 else axis, keepdims)


RESULT = reductions._result
KEPT_BEHIND = changed(
    "LANG-02-04",
    "kept_behind",
    "keeps the axis of a reduction of rank 4 as the last one",
    ("numerics.reductions._result", kept_behind),
)


def argmax_in_fp64(x: Array, axis: int, keepdims: bool = False) -> Array:
    if x.dtype.name == "int64":
        x = Array(dtype("fp64"), x.values.astype(np.float64))
    return ARGMAX(x, axis, keepdims)


def maximum_above(x: Any) -> Any:
    found = finite_maximum(x)
    return np.where(found > -80, found, np.zeros_like(found))


ARGMAX = reductions.argmax
ARGMAX_IN_FP64 = changed(
    "LANG-02-04",
    "argmax_in_fp64",
    "compares int64 in fp64",
    ("graph.reductions.ArgMax.compute", staticmethod(argmax_in_fp64)),
)
LOG_SUM_EXP = [
    reduced("shift_above", "subtracts no maximum below -80", graph.LogSumExp,
            log_sum_exp(maximum_above, lambda kind: kind.accumulator)),
    reduced("log_sum_exp_in_fp64", "computes log-sum-exp in fp64", graph.LogSumExp,
            log_sum_exp(finite_maximum, lambda kind: dtype("fp64"))),
]  # fmt: skip
