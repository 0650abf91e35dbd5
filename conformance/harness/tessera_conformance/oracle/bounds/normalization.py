"""Enclosures of normalizations along an axis: sums in any order, the variance from centred elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeAlias

from tessera_conformance.oracle.bounds.elementwise import composed_along
from tessera_conformance.oracle.bounds.intervals import FUNCTION_ULPS, INFINITE, ZERO, Enclosures, Interval, Steps
from tessera_conformance.oracle.formats import FloatFormat
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
    """The mean of terms, each of which has been rounded so many times."""
    count = steps.rounded(Interval.around(len(row)), format_)
    return steps.quotient(steps.sum(row, format_, roundings), count, format_)


def _along(x: Tensor, axis: int, composition: Callable[..., Row], *vectors: Tensor) -> Enclosures:
    rule = f"{x.shape[axis]} elements normalized: any order, a root within {FUNCTION_ULPS} ulp"
    return composed_along(composition, x, axis, rule, *vectors)


RULES: Mapping[str, Callable[..., Enclosures]] = {"layer_norm": _layer_norm, "rms_norm": _rms_norm}
"""The rule of each function."""
