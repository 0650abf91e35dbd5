"""Enclosures of reductions along an axis and over ranks, and of data movement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from math import prod as product_of
from typing import Any

from tessera_conformance.oracle import collectives, exact, functions_of, movement, reductions
from tessera_conformance.oracle.bounds import intervals
from tessera_conformance.oracle.bounds.intervals import (
    FAST,
    Enclosure,
    Enclosures,
    Interval,
    Unpromised,
    accumulator_of,
    enclosure,
    gamma,
    underflow,
)
from tessera_conformance.oracle.bounds.operations import point, unchanged
from tessera_conformance.oracle.collectives import all_reduce
from tessera_conformance.oracle.elementwise import fraction
from tessera_conformance.oracle.exact import FloatFormat, Value, finite, float_format, values_of
from tessera_conformance.oracle.exact_sum import exact_sum
from tessera_conformance.oracle.trees import Order
from tessera_conformance.tensors import Tensor

# Enclosures of sums, means, products and extremes along an axis.


MANY_TERMS = 512
"""The least number of terms for which exact sums use windows of integers."""


def sums(x: Tensor, axis: int, tree: Order | None = None) -> Enclosures:
    """Return enclosures of the sums along an axis, in the order of a tree or, without one, in any order."""
    return _sums(x, axis, accumulator_of(x.dtype), tree)


def _sum(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Order = "pairwise") -> Enclosures:
    return sums(x, axis)


def _sums(x: Tensor, axis: int, inner: FloatFormat, tree: Order | None = None) -> Enclosures:
    """Return the sums along an axis, every node rounded to a format."""
    result = exact.component_format(x.dtype)
    if tree is None and x.dtype not in exact.COMPONENTS and x.shape[axis] >= MANY_TERMS:
        return [_in_any_order(terms, inner, result) for terms in _many_terms(x, axis, inner)]
    return [sum_of(row, inner, result, tree) for row in exact.parts_along(x, axis)]


def sum_of(row: list[Value], inner: FloatFormat, result: FloatFormat, tree: Order | None = None) -> Enclosure | None:
    """Return the enclosure of a sum in a known order, or in any; None if a term is infinite or NaN."""
    if any(point(value) is None for value in row):
        return None
    values = [finite(value) for value in row]
    terms = intervals.terms_of(values, inner)
    if tree is None:
        return _in_any_order(terms, inner, result)
    error = intervals.along_tree(tree, values, inner) + terms.flushed + terms.count * fraction(underflow(inner))
    return intervals.finished(terms, error, inner, result, f"a known tree of {terms.count} terms, depth-weighted")


def _in_any_order(terms: intervals.Terms | None, inner: FloatFormat, result: FloatFormat) -> Enclosure | None:
    if terms is None:
        return None
    try:
        error = intervals.any_order(terms, inner)
    except Unpromised:
        return None
    rule = f"any order of {terms.count} terms, gamma({max(terms.count - 1, 0)})"
    return intervals.finished(terms, error, inner, result, rule)


def _many_terms(x: Tensor, axis: int, inner: FloatFormat) -> list[intervals.Terms | None]:
    """The terms of the sums along an axis, each of which may be subnormal and flushed."""
    count = x.shape[axis]
    lost = count * fraction(underflow(inner))
    totals, sizes = (exact_sum(x, axis, magnitudes=magnitudes).fractions() for magnitudes in (False, True))
    return [
        None if total is None or size is None else intervals.Terms(total, size, count, lost)
        for total, size in zip(totals, sizes, strict=True)
    ]


def _mean(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Order = "pairwise") -> Enclosures:
    inner, result = accumulator_of(x.dtype), exact.component_format(x.dtype)
    enclosures: Enclosures = []
    for row in exact.parts_along(x, axis):
        terms = sum_of(row, inner, inner) if row else None
        if terms is None:
            enclosures.append(None)
            continue
        count = Interval.around(len(row))
        ideal = Interval.around(terms.exact / len(row))
        actual = FAST.quotient(Interval.around(terms.exact, terms.error), FAST.rounded(count, inner), inner)
        actual = actual if result == inner else FAST.rounded(actual, result)
        enclosures.append(enclosure(ideal, actual, f"{terms.rule}, and a quotient"))
    return enclosures


def _prod(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Order = "pairwise") -> Enclosures:
    """Return the enclosure in any order, if no order can leave the range of normal numbers."""
    if x.dtype in exact.COMPONENTS:
        return _complex_prod(x, axis)
    inner, result = accumulator_of(x.dtype), exact.component_format(x.dtype)
    return [_prod_of(row, inner, result) for row in exact.parts_along(x, axis)]


def _prod_of(row: list[Value], inner: FloatFormat, result: FloatFormat) -> Enclosure | None:
    if any(point(value) is None for value in row):
        return None
    values = [finite(value) for value in row]
    product = product_of(values, start=Fraction(1))
    error, rule = gamma(max(len(values) - 1, 0), inner), f"any order of {len(values)} factors, gamma({len(values) - 1})"
    sizes = [abs(value) for value in values]
    one = Fraction(1)
    most = (1 + error) * product_of([size for size in sizes if size > one], start=one)
    least = (1 - error) * product_of([size for size in sizes if 0 < size < one], start=one)
    if most > inner.largest or least < inner.smallest_normal:
        return None
    actual = Interval.around(product, abs(product) * error)
    actual = actual if result == inner else FAST.rounded(actual, result)
    if abs(product) * (1 + error) > result.largest:
        return None
    return enclosure(Interval.around(product), actual, rule)


def _complex_prod(x: Tensor, axis: int) -> Enclosures:
    """Each complex product errs by less than 4 units of roundoff of its modulus (Higham, 3.6)."""
    format_ = exact.component_format(x.dtype)
    enclosures: Enclosures = []
    for factors in exact.rows_of(x, axis):
        if any(point(part) is None for factor in factors for part in factor):
            enclosures += [None, None]
            continue
        real, imaginary = Fraction(1), Fraction(0)
        most = least = modulus = Fraction(1)
        for factor in factors:
            a, b = map(finite, factor)
            real, imaginary = real * a - imaginary * b, real * b + imaginary * a
            size = abs(a) + abs(b)
            modulus *= size
            most *= max(size, Fraction(1))
            least *= min(size, Fraction(1)) if size else 1
        error = gamma(4 * len(factors), format_) * modulus
        if 2 * most > format_.largest or least < 2 * format_.smallest_normal:
            enclosures += [None, None]
            continue
        rule = f"any order of {len(factors)} complex factors, gamma({4 * len(factors)})"
        enclosures += [Enclosure(part, error, rule) for part in (real, imaginary)]
    return enclosures


def _extreme(function: Callable[..., Tensor], x: Tensor, axis: int = -1, *, keepdims: bool = False) -> Enclosures:
    return unchanged(values_of(function(x, axis, keepdims=keepdims)), float_format(x.dtype))


# Enclosures of the results of all-reduce.


def _all_reduce(*inputs: Tensor, op: str = "sum", tree: Order = "pairwise", algorithm: str | None = None) -> Enclosures:
    """Return enclosures in any order; every rank may round a narrow sum to its dtype, the dtype of the transfer.

    Products and means have none.
    """
    stack = exact.stacked(inputs)
    if op in ("prod", "mean"):
        return [None] * inputs[0].size
    if op != "sum":
        return unchanged(values_of(all_reduce(*inputs, op=op)[0]), exact.component_format(stack.dtype))
    return _sums(stack, 0, exact.component_format(stack.dtype))


def _top_k(x: Tensor, *, k: int) -> Enclosures:
    return unchanged(values_of(collectives.top_k(x, k=k)[0]), float_format(x.dtype))


# Enclosures of data movement: elements are copied exactly, and only scatter_add computes.


def _moved(function: Callable[..., Tensor], *inputs: Tensor, **arguments: Any) -> Enclosures:
    tensor = function(*inputs, **arguments)
    return unchanged(values_of(tensor), exact.component_format(tensor.dtype))


def _scatter_add(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int) -> Enclosures:
    """Return the enclosure of a sum in any order for every element."""
    inner, result = accumulator_of(x.dtype), float_format(x.dtype)
    return [sum_of(row, inner, result) for row in movement.scattered(x, indices, updates, axis)]


MOVED: Mapping[str, Callable[..., Enclosures]] = {
    name: partial(_moved, function) for name, function in functions_of(movement).items() if name != "scatter_add"
}
"""The functions that move, select or join elements."""

RULES: Mapping[str, Callable[..., Enclosures]] = {
    "sum": _sum,
    "mean": _mean,
    "prod": _prod,
    "max": partial(_extreme, reductions.max_),
    "min": partial(_extreme, reductions.min_),
    "all_reduce": _all_reduce,
    "top_k": _top_k,
    "scatter_add": _scatter_add,
    **MOVED,
}
"""The rule of each function."""
