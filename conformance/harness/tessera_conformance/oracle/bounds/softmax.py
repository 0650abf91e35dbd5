"""Enclosures of softmax, the logarithm of a sum of exponentials and attention, in steps or in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from tessera_conformance.oracle.axes import along
from tessera_conformance.oracle.bounds import sums
from tessera_conformance.oracle.bounds.dots import inner_products
from tessera_conformance.oracle.bounds.elementwise import composed, point, points
from tessera_conformance.oracle.bounds.intervals import (
    INFINITE,
    POINT_ZERO,
    ZERO,
    Enclosures,
    Interval,
    Unpromised,
    enclosure,
)
from tessera_conformance.oracle.bounds.steps import EXACT, FAST, FUNCTION_ULPS, QUOTIENT, Steps
from tessera_conformance.oracle.bounds.sums import accumulator_of
from tessera_conformance.oracle.formats import (
    TF32_OPERAND,
    FloatFormat,
    float_format,
)
from tessera_conformance.oracle.products import operands
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.tensors import Tensor

Row: TypeAlias = list[Interval]

EXPONENT_UNITS = 3
"""Units of roundoff in an exponent: the difference itself, and one scaled to base 2 by a rounded constant."""
WEIGHT_UNITS = 2 * FUNCTION_ULPS + 1
"""Units of roundoff that one rescaling of a weight costs, an exponential and a product."""


def _softmax(x: Tensor, axis: int = -1, *, tree: Tree = "pairwise", known_order: bool = False) -> Enclosures:
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
            ideal, actual = (attended(steps, terms, literal, values, columns, dtype) for steps in (EXACT, FAST))
        except Unpromised:
            found += [None] * columns
            continue
        rule = f"attention over {inner_too} keys, its steps rounded to {dtype} in any order"
        found += [enclosure(x, y, rule) for x, y in zip(ideal, actual, strict=True)]
    return found


def attended(
    steps: Steps,
    terms: Sequence[sums.Terms | None],
    factor: Interval,
    values: Sequence[Interval | None],
    columns: int,
    dtype: str,
    *,
    wide_scores: bool = False,
) -> Row:
    """One row of the result; Unpromised where an operand is not finite. Scores are rounded to the dtype unless wide."""
    result, inner = float_format(dtype), accumulator_of(dtype)
    score = inner if wide_scores else result
    scores = []
    for term in terms:
        if term is None:
            raise Unpromised("an operand that is not finite")
        error = Fraction(0) if steps is EXACT else sums.any_order(term, inner, products=True)
        product = steps.rounded(Interval.around(term.exact, error), score)
        scores.append(steps.rounded(product * steps.rounded(factor, score), score))
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


RULES: Mapping[str, Callable[..., Enclosures]] = {
    "softmax": _softmax,
    "logsumexp": _logsumexp,
    "attention": _attention,
}
"""The rule of each function."""
