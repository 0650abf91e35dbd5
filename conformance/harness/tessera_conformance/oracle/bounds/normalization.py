"""Enclosures of normalizations along an axis: sums in any order, the variance from centred elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeAlias

from tessera_conformance.oracle.axes import along
from tessera_conformance.oracle.bounds.elementwise import points
from tessera_conformance.oracle.bounds.intervals import (
    INFINITE,
    ZERO,
    Enclosures,
    Interval,
    Unpromised,
    enclosure,
)
from tessera_conformance.oracle.bounds.steps import EXACT, FAST, FUNCTION_ULPS, Steps
from tessera_conformance.oracle.bounds.sums import accumulator_of
from tessera_conformance.oracle.formats import FloatFormat, float_format
from tessera_conformance.tensors import Tensor

Row: TypeAlias = list[Interval]


def _layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, *, axis: int = -1, eps: float = 1e-5) -> Enclosures:
    def composition(steps: Steps, format_: FloatFormat, row: Row, factors: Row, addends: Row) -> Row:
        middle = _mean(steps, row, 0, format_)
        centred = [steps.rounded(value - middle, format_) for value in row]
        scaled = _scaled(steps, centred, factors, eps, format_)
        return [steps.rounded(value + addend, format_) for value, addend in zip(scaled, addends, strict=True)]

    return _along(x, axis, composition, gamma, beta)


def _rms_norm(x: Tensor, gamma: Tensor, *, axis: int = -1, eps: float = 1e-6) -> Enclosures:
    def composition(steps: Steps, format_: FloatFormat, row: Row, factors: Row) -> Row:
        return _scaled(steps, row, factors, eps, format_)

    return _along(x, axis, composition, gamma)


def _scaled(steps: Steps, row: Row, factors: Row, eps: float, format_: FloatFormat) -> Row:
    """Each value over the root of their mean square, times its factor; Unpromised where that may vanish."""
    square = _mean(steps, [value * value for value in row], 1, format_).clipped(ZERO, INFINITE)
    term = steps.rounded(Interval.around(Fraction(eps)), format_)
    root = steps.function("rsqrt", format_, steps.rounded(square + term, format_))
    units = [steps.rounded(value * root, format_) for value in row]
    return [steps.rounded(unit * factor, format_) for unit, factor in zip(units, factors, strict=True)]


def _mean(steps: Steps, row: Row, roundings: int, format_: FloatFormat) -> Interval:
    """Of terms that have been through so many roundings."""
    count = steps.rounded(Interval.around(len(row)), format_)
    return steps.quotient(steps.sum(row, format_, roundings), count, format_)


def _along(x: Tensor, axis: int, composition: Callable[..., Row], *vectors: Tensor) -> Enclosures:
    """A composition over each row, with what stands beside it along the axis; None for a row that is not finite."""
    inner, result = accumulator_of(x.dtype), float_format(x.dtype)
    elements, beside = points(x), [points(vector) for vector in vectors]
    rule = f"{x.shape[axis]} elements normalized: any order, a root within {FUNCTION_ULPS} ulp"
    found: Enclosures = [None] * x.size
    for places in along(x.shape, axis).places:
        rows = [[elements[place] for place in places], *beside]
        known = [[value for value in row if value is not None] for row in rows]
        if not places or [len(row) for row in known] != [len(row) for row in rows]:
            continue
        try:
            ideal = composition(EXACT, inner, *known)
            taken = [[FAST.operand(value, result) for value in row] for row in known]
            actual = composition(FAST, inner, *taken)
        except Unpromised:
            continue
        for place, exact, reached in zip(places, ideal, actual, strict=True):
            found[place] = enclosure(exact, reached if result == inner else FAST.rounded(reached, result), rule)
    return found


RULES: Mapping[str, Callable[..., Enclosures]] = {"layer_norm": _layer_norm, "rms_norm": _rms_norm}
"""The rule of each function."""
