"""Enclosures of softmax and of the logarithm of a sum of exponentials, in steps or in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tessera_conformance.oracle.bounds.elementwise import composed, composed_along, points
from tessera_conformance.oracle.bounds.intervals import (
    FUNCTION_ULPS,
    INFINITE,
    POINT_ZERO,
    QUOTIENT,
    ZERO,
    Enclosures,
    Interval,
    Steps,
    accumulator_of,
)
from tessera_conformance.oracle.fields import along
from tessera_conformance.oracle.formats import FloatFormat, float_format
from tessera_conformance.oracle.reductions import Tree
from tessera_conformance.tensors import Tensor

Row: TypeAlias = list[Interval]

EXPONENT_UNITS = 3
"""Units of roundoff in an exponent: the difference itself, and one scaled to base 2 by a rounded constant."""
WEIGHT_UNITS = 2 * FUNCTION_ULPS + 1
"""Units of roundoff that one rescaling of a weight costs, an exponential and a product."""


def _softmax(x: Tensor, axis: int = -1, *, tree: Tree = "pairwise", known_order: bool = False) -> Enclosures:
    count = x.shape[axis]
    rule = f"softmax of {count}: differences, exponentials within {FUNCTION_ULPS} ulp, any order"
    return composed_along(softmax, x, axis, rule)


def softmax(steps: Steps, inner: FloatFormat, row: Row) -> Row:
    """Weights over their sum; in one pass over the row too, where each new maximum rescales the weights so far."""
    weights, total = _weights(steps, row, inner)
    most = steps.relative(Interval.around(1), len(row) + QUOTIENT, inner).high
    return [steps.quotient(weight, total, inner).clipped(ZERO, most) for weight in weights]


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


RULES: Mapping[str, Callable[..., Enclosures]] = {"softmax": _softmax, "logsumexp": _logsumexp}
"""The rule of each function."""
