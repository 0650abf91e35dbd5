"""Enclosures of reductions along an axis, of collectives' payloads, and of data movement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from math import prod as product_of
from typing import Any

import gmpy2

from tessera_conformance.oracle import collectives, functions_of, movement, reductions
from tessera_conformance.oracle.bounds import intervals
from tessera_conformance.oracle.bounds.intervals import (
    DOWN,
    EXACT,
    FAST,
    ZERO,
    Enclosure,
    Enclosures,
    Interval,
    Steps,
    Unpromised,
    accumulator_of,
    enclosure,
    gamma,
    underflow,
)
from tessera_conformance.oracle.bounds.operations import ONE_ROUNDING, composed, point, points, rounded_once, unchanged
from tessera_conformance.oracle.collectives import SINGLE, all_reduce
from tessera_conformance.oracle.elementwise import fraction
from tessera_conformance.oracle.exact import (
    COMPONENTS,
    FloatFormat,
    Value,
    along,
    component_format,
    elements_of,
    finite,
    float_format,
    stacked,
    values_of,
)
from tessera_conformance.oracle.exact_sum import exact_sum
from tessera_conformance.oracle.reductions import Tree
from tessera_conformance.tensors import Tensor

# Enclosures of sums, means, products and extremes along an axis.


MANY_TERMS = 512
"""From so many terms on, exact sums are taken in windows of integers."""


def _sum(
    x: Tensor,
    axis: int = -1,
    *,
    keepdims: bool = False,
    tree: Tree = "pairwise",
    order: str | None = None,
    known_order: bool = False,
) -> Enclosures:
    inner, result = accumulator_of(x.dtype), component_format(x.dtype)
    chosen = (tree if order is None else order) if known_order else None
    if chosen is None and x.dtype not in COMPONENTS and x.shape[axis] >= MANY_TERMS:
        return _large_sums(x, axis, inner, result)
    return [sum_of(row, inner, result, chosen) for row in _rows(x, axis)]


def sums_along(x: Tensor, axis: int, inner: FloatFormat) -> Enclosures:
    """Sums in any order, every node rounded to a format."""
    return [sum_of(row, inner, component_format(x.dtype), None) for row in _rows(x, axis)]


def _large_sums(x: Tensor, axis: int, inner: FloatFormat, result: FloatFormat) -> Enclosures:
    """Any order of many terms, each of which may be subnormal and flushed."""
    count = x.shape[axis]
    flushed = count * fraction(underflow(inner))
    totals, sizes = exact_sum(x, axis).fractions(), exact_sum(x, axis, magnitudes=True).fractions()
    enclosures: Enclosures = []
    for total, size in zip(totals, sizes, strict=True):
        if total is None or size is None:
            enclosures.append(None)
            continue
        terms = intervals.Terms(total, size, count, flushed)
        rule = f"any order of {count} terms, gamma({count - 1})"
        try:
            enclosures.append(intervals.finished(terms, intervals.any_order(terms, inner), inner, result, rule))
        except Unpromised:
            enclosures.append(None)
    return enclosures


def sum_of(row: list[Value], inner: FloatFormat, result: FloatFormat, order: Tree | None = None) -> Enclosure | None:
    """A sum in a known order, or in any; none where a term is no number."""
    if any(point(value) is None for value in row):
        return None
    values = [finite(value) for value in row]
    terms = intervals.terms_of(values, inner)
    try:
        error, rule = _sum_error(values, terms, inner, order)
    except Unpromised:
        return None
    return intervals.finished(terms, error, inner, result, rule)


def _sum_error(
    values: list[Fraction], terms: intervals.Terms, inner: FloatFormat, order: Tree | None
) -> tuple[Fraction, str]:
    if order is None:
        return intervals.any_order(terms, inner), f"any order of {terms.count} terms, gamma({max(terms.count - 1, 0)})"
    flushed = terms.flushed + terms.count * fraction(underflow(inner))
    if order == reductions.KAHAN:
        return intervals.kahan(terms, inner) + flushed, f"Kahan's sum of {terms.count} terms, 2u + 8nu^2"
    if order == "pairwise":
        depth = max(terms.count - 1, 0).bit_length()
        return intervals.pairwise(terms, inner) + flushed, f"pairwise over {terms.count} terms, gamma({depth})"
    return intervals.along_tree(order, values, inner) + flushed, f"a known tree of {terms.count} terms, depth-weighted"


def _mean(x: Tensor, axis: int = -1, *, keepdims: bool = False, known_order: bool = False, **order: Any) -> Enclosures:
    inner, result = accumulator_of(x.dtype), component_format(x.dtype)
    chosen = order.get("order", order.get("tree", "pairwise")) if known_order else None
    enclosures: Enclosures = []
    for row in _rows(x, axis):
        terms = sum_of(row, inner, inner, chosen) if row else None
        if terms is None:
            enclosures.append(None)
            continue
        count = Interval.around(len(row))
        ideal = Interval.around(terms.exact / len(row))
        actual = FAST.quotient(Interval.around(terms.exact, terms.error), FAST.rounded(count, inner), inner)
        actual = actual if result == inner else FAST.rounded(actual, result)
        enclosures.append(enclosure(ideal, actual, f"{terms.rule}, and a quotient"))
    return enclosures


def _prod(x: Tensor, axis: int = -1, *, keepdims: bool = False, known_order: bool = False, **tree: Any) -> Enclosures:
    """In any order, provided that no order can leave the range of normal numbers."""
    if x.dtype in COMPONENTS:
        return _complex_prod(x, axis)
    inner, result = accumulator_of(x.dtype), component_format(x.dtype)
    return [_prod_of(row, inner, result) for row in _rows(x, axis)]


def _prod_of(row: list[Value], inner: FloatFormat, result: FloatFormat) -> Enclosure | None:
    if any(point(value) is None for value in row):
        return None
    values = [finite(value) for value in row]
    exact = product_of(values, start=Fraction(1))
    error, rule = gamma(max(len(values) - 1, 0), inner), f"any order of {len(values)} factors, gamma({len(values) - 1})"
    sizes = [abs(value) for value in values]
    one = Fraction(1)
    most = (1 + error) * product_of([size for size in sizes if size > one], start=one)
    least = (1 - error) * product_of([size for size in sizes if 0 < size < one], start=one)
    if most > inner.largest or least < inner.smallest_normal:
        return None
    actual = Interval.around(exact, abs(exact) * error)
    actual = actual if result == inner else FAST.rounded(actual, result)
    if abs(exact) * (1 + error) > result.largest:
        return None
    return enclosure(Interval.around(exact), actual, rule)


def _complex_prod(x: Tensor, axis: int) -> Enclosures:
    """Each complex product errs by less than 4 units of roundoff of its modulus (Higham, 3.6)."""
    format_ = component_format(x.dtype)
    elements = elements_of(x)
    enclosures: Enclosures = []
    for places in along(x.shape, axis).places:
        factors = [elements[place] for place in places]
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


def _extreme(function: Callable[..., Tensor]) -> Callable[..., Enclosures]:
    def enclosed(x: Tensor, axis: int = -1, *, keepdims: bool = False) -> Enclosures:
        return unchanged(values_of(function(x, axis, keepdims=keepdims)), float_format(x.dtype))

    return enclosed


def _rows(x: Tensor, axis: int) -> list[list[Value]]:
    """The values along an axis; of complex elements the real parts of a line, then the imaginary ones."""
    elements: list[Any] = elements_of(x)
    lines = [[elements[place] for place in places] for places in along(x.shape, axis).places]
    if x.dtype not in COMPONENTS:
        component_format(x.dtype)
        return lines
    return [[element[part] for element in line] for line in lines for part in (0, 1)]


# Enclosures of the results of all-reduce and of the payloads of compressed collectives.


def _quantize(x: Tensor, *, wire: str, block: int) -> Enclosures:
    return _blockwise(
        [x], wire, block, lambda steps, code, scale: code, f"a scale, a quotient and a rounding to {wire}"
    )


def _error_feedback(g: Tensor, residual: Tensor, *, wire: str, block: int) -> Enclosures:
    def sent(steps: Steps, code: Interval, scale: Interval) -> Interval:
        return steps.rounded(code * scale, SINGLE)

    return _blockwise([g, residual], wire, block, sent, f"a sum sent as {wire}, every step rounded")


def _blockwise(
    inputs: list[Tensor], wire: str, block: int, finish: Callable[[Steps, Interval, Interval], Interval], rule: str
) -> Enclosures:
    """Enclosures of what `finish` makes of the codes and scales of the sum of the inputs."""
    collectives.quantize(inputs[0], wire=wire, block=block)
    terms = [points(x) for x in inputs]
    enclosures: Enclosures = [None] * inputs[0].size
    for places in collectives.blocks(inputs[0].shape, block):
        rows = [[term[place] for place in places] for term in terms]
        try:
            ideal, actual = (_codes(steps, rows, wire, finish) for steps in (EXACT, FAST))
        except Unpromised:
            continue
        for place, exact, sent in zip(places, ideal, actual, strict=True):
            enclosures[place] = enclosure(exact, sent, rule)
    return enclosures


def _codes(
    steps: Steps, rows: list[list[Interval | None]], wire: str, finish: Callable[[Steps, Interval, Interval], Interval]
) -> list[Interval]:
    target = float_format(wire)
    whole = [_payloads_sum(steps, parts) for parts in zip(*rows, strict=True)]
    scale = _scale(steps, whole, wire, target)
    largest = gmpy2.mpfr(gmpy2.mpq(target.largest))
    codes = []
    for value in whole:
        quotient = steps.quotient(value, scale, SINGLE) if wire != "bf16" else value
        code = steps.rounded(quotient.clipped(-largest, largest), target).clipped(-largest, largest)
        codes.append(finish(steps, code, scale))
    return codes


def _payloads_sum(steps: Steps, parts: tuple[Interval | None, ...]) -> Interval:
    finite = [steps.operand(part, SINGLE) for part in parts if part is not None]
    if len(finite) < len(parts):
        raise Unpromised("an operand that is not finite")
    return finite[0] if len(finite) == 1 else steps.rounded(finite[0] + finite[1], SINGLE)


def _scale(steps: Steps, whole: list[Interval], wire: str, target: FloatFormat) -> Interval:
    one = Interval.around(1)
    if wire == "bf16":
        return one
    sizes = [value.hull(-value) for value in whole]
    lows = [ZERO if x.low <= 0 <= x.high else min(DOWN.abs(x.low), DOWN.abs(x.high)) for x in whole]
    largest = Interval(max(lows), max(size.high for size in sizes))
    if largest.high == 0:
        return one
    scale = steps.quotient(largest, Interval.around(target.largest), SINGLE)
    if scale.low < SINGLE.smallest_normal:
        raise Unpromised("a scale that may be flushed to zero")
    return scale


def _dequantize(codes: Tensor, scales: Tensor, *, block: int) -> Enclosures:
    elements, factors = points(codes), points(scales)
    enclosures: Enclosures = [None] * codes.size
    product = rounded_once(Interval.__mul__)
    for scale, places in zip(factors, collectives.blocks(codes.shape, block), strict=True):
        for place in places:
            operands = [elements[place], scale]
            enclosures[place] = composed(product, operands, SINGLE, SINGLE, SINGLE, ONE_ROUNDING)
    return enclosures


def _all_reduce(*inputs: Tensor, op: str = "sum", tree: Tree = "pairwise", algorithm: str | None = None) -> Enclosures:
    """In any order; a narrow sum may be rounded to its dtype at every rank, since that is what travels.

    Of products and means nothing is promised.
    """
    stack = stacked(inputs)
    if op in ("prod", "mean"):
        return [None] * inputs[0].size
    if op != "sum":
        return unchanged(values_of(all_reduce(*inputs, op=op)[0]), component_format(stack.dtype))
    return sums_along(stack, 0, component_format(stack.dtype))


def _top_k(x: Tensor, *, k: int) -> Enclosures:
    return unchanged(values_of(collectives.top_k(x, k=k)[0]), float_format(x.dtype))


# Enclosures of data movement: elements are copied exactly, and only scatter_add computes.


def _moved(function: Callable[..., Tensor], *inputs: Tensor, **arguments: Any) -> Enclosures:
    tensor = function(*inputs, **arguments)
    return unchanged(values_of(tensor), component_format(tensor.dtype))


def _scatter_add(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int) -> Enclosures:
    """For every element a sum in any order."""
    inner, result = accumulator_of(x.dtype), float_format(x.dtype)
    return [sum_of(row, inner, result) for row in movement.scattered(x, indices, updates, axis)]


MOVED: Mapping[str, Callable[..., Enclosures]] = {
    name: partial(_moved, function) for name, function in functions_of(movement).items() if name != "scatter_add"
}
"""The functions that move, choose or join elements."""

RULES: Mapping[str, Callable[..., Enclosures]] = {
    "sum": _sum,
    "mean": _mean,
    "prod": _prod,
    "max": _extreme(reductions.max_),
    "min": _extreme(reductions.min_),
    "quantize": _quantize,
    "dequantize": _dequantize,
    "error_feedback": _error_feedback,
    "all_reduce": _all_reduce,
    "top_k": _top_k,
    "scatter_add": _scatter_add,
    **MOVED,
}
"""The rule of each function."""
