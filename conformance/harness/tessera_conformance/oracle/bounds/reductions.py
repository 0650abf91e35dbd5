"""Enclosures of reductions, matrix products and what is composed of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product as pairs_of
from math import prod as product_of
from typing import Any, TypeAlias

from tessera_conformance.oracle import reductions
from tessera_conformance.oracle.axes import along
from tessera_conformance.oracle.bounds import sums
from tessera_conformance.oracle.bounds.dots import inner_products
from tessera_conformance.oracle.bounds.elementwise import composed, point, points, unchanged
from tessera_conformance.oracle.bounds.intervals import (
    INFINITE,
    POINT_ZERO,
    ZERO,
    Enclosure,
    Interval,
    Unpromised,
    enclosure,
)
from tessera_conformance.oracle.bounds.steps import (
    EXACT,
    FAST,
    FUNCTION_ULPS,
    QUOTIENT,
    Steps,
    gamma,
    underflow,
)
from tessera_conformance.oracle.directed import fraction
from tessera_conformance.oracle.elementwise import paired
from tessera_conformance.oracle.exact import Value, finite
from tessera_conformance.oracle.exact_sum import exact_sum
from tessera_conformance.oracle.fields import elements_of
from tessera_conformance.oracle.formats import (
    ACCUMULATORS,
    COMPONENTS,
    TF32_OPERAND,
    FloatFormat,
    component_format,
    float_format,
    values_of,
)
from tessera_conformance.oracle.products import operands
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.tensors import Tensor

Enclosures: TypeAlias = list[Enclosure | None]
Row: TypeAlias = list[Interval]

MANY_TERMS = 512
"""From so many terms on, exact sums are taken in windows of integers."""
EXPONENT_UNITS = 3
"""Units of roundoff in an exponent: the difference itself, and one scaled to base 2 by a rounded constant."""
WEIGHT_UNITS = 2 * FUNCTION_ULPS + 1
"""Units of roundoff that one rescaling of a weight costs, an exponential and a product."""


def accumulator_of(dtype: str, accumulator: str | None = None) -> FloatFormat:
    """The format that floats, or the parts of complex numbers, are accumulated in."""
    return component_format(accumulator or ACCUMULATORS.get(dtype, dtype))


def matmul(
    a: Tensor,
    b: Tensor,
    addend: Tensor | None = None,
    out: str | None = None,
    *,
    order: str = "fold",
    tree: Tree | None = None,
    fused: bool = False,
    accumulator: str | None = None,
    known_order: bool = False,
) -> Enclosures:
    """An enclosure for each element of a product, row-major.

    None where nothing is promised: an operand is not finite, or some order may overflow.
    """
    inner, result = accumulator_of(a.dtype, accumulator), component_format(out or a.dtype)
    starts: list[Value] | None = None if addend is None else values_of(addend)
    if known_order and a.dtype not in COMPONENTS:
        return _matmul_along(order if tree is None else tree, a, b, starts, inner, result)
    found: Enclosures = []
    for place, terms in enumerate(inner_products(a, b)):
        start = None if starts is None else starts[place]
        found.append(_inner_product(terms, start, inner, result))
    return found


def _inner_product(
    terms: sums.Terms | None, start: Value | None, inner: FloatFormat, result: FloatFormat
) -> Enclosure | None:
    if terms is None or (start is not None and point(start) is None):
        return None
    if start is not None:
        number = finite(start)
        terms = sums.Terms(terms.exact + number, terms.magnitude + abs(number), terms.count + 1, terms.flushed)
    rule = f"any order of {terms.count} products, gamma({terms.count})"
    try:
        error = sums.any_order(terms, inner, products=True) if terms.count else Fraction(0)
    except Unpromised:
        return None
    return sums.finished(terms, error, inner, result, rule)


def _matmul_along(
    tree: Tree, a: Tensor, b: Tensor, starts: Sequence[Value] | None, inner: FloatFormat, result: FloatFormat
) -> Enclosures:
    """Of real products along a known tree."""
    *batch, rows, depth = a.shape
    columns = b.shape[-1]
    lefts, rights = operands(a), operands(b)
    found: Enclosures = []
    for which, row, column in pairs_of(range(product_of(batch)), range(rows), range(columns)):
        left = lefts[(which * rows + row) * depth :][:depth]
        right = rights[which * depth * columns + column : (which + 1) * depth * columns : columns]
        factors = [(point(x), point(y)) for x, y in zip(left, right, strict=True)]
        start = Fraction(0) if starts is None else starts[len(found)]
        if any(None in pair for pair in factors) or point(start) is None:
            found.append(None)
            continue
        products = [finite(x) * finite(y) for x, y in zip(left, right, strict=True)]
        terms = sums.terms_of([*products, finite(start)], inner)
        error = sums.along_tree(tree, products, inner, products=True, start=finite(start)) + terms.flushed
        found.append(sums.finished(terms, error, inner, result, "a known tree of products, depth-weighted"))
    return found


def _add_to_product(a: Tensor, b: Tensor, c: Tensor) -> Enclosures:
    """The product is rounded before c is added, or c starts the accumulator."""
    format_, inner = float_format(a.dtype), accumulator_of(a.dtype)
    found: Enclosures = []
    places = paired(
        c, Tensor(c.dtype, (a.shape[-2], b.shape[-1]), bytes(a.shape[-2] * b.shape[-1] * c.format.word_bytes))
    )[1]
    for terms, (start, _) in zip(inner_products(a, b), places, strict=True):
        apart = _inner_product(terms, None, inner, format_)
        together = _inner_product(terms, start, inner, format_)
        if apart is None or together is None:
            found.append(None)
            continue
        rounded = FAST.rounded(Interval.around(apart.exact, apart.error) + Interval.around(finite(start)), format_)
        whole = rounded.hull(Interval.around(together.exact, together.error))
        found.append(enclosure(Interval.around(together.exact), whole, f"{apart.rule}, and a sum rounded once"))
    return found


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
    return [_sum_of(row, inner, result, chosen) for row in _rows(x, axis)]


def sums_along(x: Tensor, axis: int, inner: FloatFormat) -> Enclosures:
    """Sums in any order, every node rounded to a format."""
    return [_sum_of(row, inner, component_format(x.dtype), None) for row in _rows(x, axis)]


def _large_sums(x: Tensor, axis: int, inner: FloatFormat, result: FloatFormat) -> Enclosures:
    """Any order of many terms, each of which may be subnormal and flushed."""
    count = x.shape[axis]
    flushed = count * fraction(underflow(inner))
    totals, sizes = exact_sum(x, axis).fractions(), exact_sum(x, axis, magnitudes=True).fractions()
    found: Enclosures = []
    for total, size in zip(totals, sizes, strict=True):
        if total is None or size is None:
            found.append(None)
            continue
        terms = sums.Terms(total, size, count, flushed)
        rule = f"any order of {count} terms, gamma({count - 1})"
        try:
            found.append(sums.finished(terms, sums.any_order(terms, inner), inner, result, rule))
        except Unpromised:
            found.append(None)
    return found


def _sum_of(row: list[Value], inner: FloatFormat, result: FloatFormat, order: Tree | None) -> Enclosure | None:
    if any(point(value) is None for value in row):
        return None
    values = [finite(value) for value in row]
    terms = sums.terms_of(values, inner)
    try:
        error, rule = _sum_error(values, terms, inner, order)
    except Unpromised:
        return None
    return sums.finished(terms, error, inner, result, rule)


def _sum_error(
    values: list[Fraction], terms: sums.Terms, inner: FloatFormat, order: Tree | None
) -> tuple[Fraction, str]:
    if order is None:
        return sums.any_order(terms, inner), f"any order of {terms.count} terms, gamma({max(terms.count - 1, 0)})"
    flushed = terms.flushed + terms.count * fraction(underflow(inner))
    if order == reductions.KAHAN:
        return sums.kahan(terms, inner) + flushed, f"Kahan's sum of {terms.count} terms, 2u + 8nu^2"
    if order == "pairwise":
        depth = max(terms.count - 1, 0).bit_length()
        return sums.pairwise(terms, inner) + flushed, f"pairwise over {terms.count} terms, gamma({depth})"
    return sums.along_tree(order, values, inner) + flushed, f"a known tree of {terms.count} terms, depth-weighted"


def _mean(x: Tensor, axis: int = -1, *, keepdims: bool = False, known_order: bool = False, **order: Any) -> Enclosures:
    inner, result = accumulator_of(x.dtype), component_format(x.dtype)
    chosen = order.get("order", order.get("tree", "pairwise")) if known_order else None
    found: Enclosures = []
    for row in _rows(x, axis):
        terms = _sum_of(row, inner, inner, chosen) if row else None
        if terms is None:
            found.append(None)
            continue
        count = Interval.around(len(row))
        ideal = Interval.around(terms.exact / len(row))
        actual = FAST.quotient(Interval.around(terms.exact, terms.error), FAST.rounded(count, inner), inner)
        actual = actual if result == inner else FAST.rounded(actual, result)
        found.append(enclosure(ideal, actual, f"{terms.rule}, and a quotient"))
    return found


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
    found: Enclosures = []
    for places in along(x.shape, axis).places:
        factors = [elements[place] for place in places]
        if any(point(part) is None for factor in factors for part in factor):
            found += [None, None]
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
            found += [None, None]
            continue
        rule = f"any order of {len(factors)} complex factors, gamma({4 * len(factors)})"
        found += [Enclosure(part, error, rule) for part in (real, imaginary)]
    return found


def _extreme(function: Callable[..., Tensor]) -> Callable[..., Enclosures]:
    def enclosed(x: Tensor, axis: int = -1, *, keepdims: bool = False) -> Enclosures:
        return unchanged(values_of(function(x, axis, keepdims=keepdims)), float_format(x.dtype))

    return enclosed


def _softmax(
    x: Tensor, axis: int = -1, *, folded: bool = False, tree: Tree = "pairwise", known_order: bool = False
) -> Enclosures:
    inner, result = accumulator_of(x.dtype), float_format(x.dtype)
    elements = points(x)
    found: Enclosures = [None] * x.size
    for places in along(x.shape, axis).places:
        row = [elements[place] for place in places]
        known = [element for element in row if element is not None]
        if len(known) < len(row):
            continue
        try:
            ideal = softmax(EXACT, known, inner, result)
            actual = softmax(FAST, [FAST.operand(element, result) for element in known], inner, result)
        except Unpromised:
            continue
        rule = f"softmax of {len(row)}: differences, exponentials within {FUNCTION_ULPS} ulp, any order"
        for place, exact, found_there in zip(places, ideal, actual, strict=True):
            found[place] = enclosure(exact, found_there, rule)
    return found


def softmax(steps: Steps, row: Row, inner: FloatFormat, result: FloatFormat) -> Row:
    """Weights over their sum; in one pass over the row too, where each new maximum rescales the weights so far."""
    weights, total = _weights(steps, row, inner)
    most = steps.relative(Interval.around(1), len(row) + QUOTIENT, inner).high
    found = [steps.quotient(weight, total, inner).clipped(ZERO, most) for weight in weights]
    return found if result == inner else [steps.rounded(weight, result) for weight in found]


def _weights(steps: Steps, row: Row, inner: FloatFormat) -> tuple[Row, Interval]:
    """The exponentials of the differences from the maximum and their sum, which is at least that of the maximum."""
    top = Interval(max(x.low for x in row), max(x.high for x in row))
    weights = [_weight(steps, x - top, len(row), inner) for x in row]
    total = steps.sum(weights, inner)
    least = _weight(steps, POINT_ZERO, len(row), inner).low
    return weights, total.clipped(least, INFINITE)


def _weight(steps: Steps, difference: Interval, count: int, inner: FloatFormat) -> Interval:
    exponent = steps.relative(difference.clipped(-INFINITE, ZERO), EXPONENT_UNITS, inner)
    power = steps.function("exp", inner, exponent.clipped(-INFINITE, ZERO))
    return steps.relative(power, WEIGHT_UNITS * (count - 1), inner).clipped(ZERO, INFINITE)


def _logsumexp(
    x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Tree = "pairwise", known_order: bool = False
) -> Enclosures:
    inner, result = accumulator_of(x.dtype), float_format(x.dtype)

    def composition(steps: Steps, format_: FloatFormat, *row: Interval) -> Interval:
        top = Interval(max(x.low for x in row), max(x.high for x in row))
        _, total = _weights(steps, list(row), format_)
        return steps.rounded(steps.function("log", format_, total) + top, format_)

    elements = points(x)
    rule = f"logsumexp: exponentials and logarithm within {FUNCTION_ULPS} ulp, any order"
    return [
        composed(composition, [elements[place] for place in places], result, inner, result, rule)
        for places in along(x.shape, axis).places
    ]


def _attention(q: Tensor, k: Tensor, v: Tensor, *, factor: str) -> Enclosures:
    """Every result of a step is rounded to the operands' type, or kept wider."""
    dtype, (columns, inner_too) = q.dtype, (v.shape[-1], v.shape[-2])
    keys = Tensor(k.dtype, k.shape[::-1], k.words().reshape(k.shape).T.tobytes())
    products = inner_products(q, keys)
    values = [point(value) for value in operands(v)]
    literal = Interval.around(Fraction(factor))
    found: Enclosures = []
    for row in range(q.shape[0]):
        terms = products[row * inner_too : (row + 1) * inner_too]
        try:
            ideal, actual = (_attended(steps, terms, literal, values, columns, dtype) for steps in (EXACT, FAST))
        except Unpromised:
            found += [None] * columns
            continue
        rule = f"attention over {inner_too} keys, its steps rounded to {dtype} in any order"
        found += [enclosure(x, y, rule) for x, y in zip(ideal, actual, strict=True)]
    return found


def _attended(
    steps: Steps,
    terms: Sequence[sums.Terms | None],
    factor: Interval,
    values: Sequence[Interval | None],
    columns: int,
    dtype: str,
) -> Row:
    """One row of the result; Unpromised where an operand is not finite."""
    result, inner = float_format(dtype), accumulator_of(dtype)
    scores = []
    for term in terms:
        if term is None:
            raise Unpromised("an operand that is not finite")
        error = Fraction(0) if steps is EXACT else sums.any_order(term, inner, products=True)
        product = steps.rounded(Interval.around(term.exact, error), result)
        scores.append(steps.rounded(product * steps.rounded(factor, result), result))
    weights = softmax(steps, scores, inner, result)
    if dtype == "tf32":
        weights = [steps.rounded(weight, TF32_OPERAND) for weight in weights]
    found = []
    for column in range(columns):
        known = [value for value in values[column::columns] if value is not None]
        if len(known) < len(weights):
            raise Unpromised("a value that is not finite")
        parts = [weight * steps.operand(value, result) for weight, value in zip(weights, known, strict=True)]
        found.append(steps.rounded(steps.sum(parts, inner, 1), result))
    return found


def _rows(x: Tensor, axis: int) -> list[list[Value]]:
    """The values along an axis; of complex elements the real parts of a line, then the imaginary ones."""
    elements: list[Any] = elements_of(x)
    lines = [[elements[place] for place in places] for places in along(x.shape, axis).places]
    if x.dtype not in COMPONENTS:
        component_format(x.dtype)
        return lines
    return [[element[part] for element in line] for line in lines for part in (0, 1)]


ORDERED = ("matmul", "sum", "mean", "prod", "softmax", "logsumexp")
"""The functions that take an order."""

RULES: Mapping[str, Callable[..., Enclosures]] = {
    "matmul": matmul,
    "add_to_product": _add_to_product,
    "sum": _sum,
    "mean": _mean,
    "prod": _prod,
    "max": _extreme(reductions.max_),
    "min": _extreme(reductions.min_),
    "softmax": _softmax,
    "logsumexp": _logsumexp,
    "attention": _attention,
}
"""The rule of each function."""
