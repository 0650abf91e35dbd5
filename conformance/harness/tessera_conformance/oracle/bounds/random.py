"""Enclosures of random numbers and dropout: the generator's words are exact, what is computed from them is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import prod

from tessera_conformance.oracle import compositions
from tessera_conformance.oracle.bounds.elementwise import SINGLE_ONE, composed, points, unchanged
from tessera_conformance.oracle.bounds.intervals import (
    DOWN,
    FUNCTION_ULPS,
    INFINITE,
    UP,
    ZERO,
    Enclosure,
    Enclosures,
    Interval,
    Steps,
)
from tessera_conformance.oracle.formats import ACCUMULATORS, FloatFormat, float_format, values_of
from tessera_conformance.tensors import Tensor

MINUS_TWO = Interval.around(-2)
TWO_PI = Interval(DOWN.mul(2, DOWN.const_pi()), UP.mul(2, UP.const_pi()))


def _uniform(**arguments: object) -> Enclosures:
    drawn = compositions.uniform(**arguments)  # type: ignore[arg-type]
    return unchanged(values_of(drawn), float_format(drawn.dtype))


def _normal(*, seed: int, stream: int = 0, shape: tuple[int, ...], dtype: str = "fp32", offset: int = 0) -> Enclosures:
    """In the accumulator type or wider; the smaller -2 log(u1), the more the rounding of u1 shows."""
    inner, result = float_format(ACCUMULATORS[dtype]), float_format(dtype)
    rule = f"normal: logarithm, root and cosine within {FUNCTION_ULPS} ulp"
    found: Enclosures = []
    for place in range(prod(shape)):
        sources = [Interval.around(part) for part in compositions.normal_sources(seed, stream, offset + place)]
        found.append(composed(_box_muller, sources, inner, inner, result, rule))
    return found


def _box_muller(steps: Steps, format_: FloatFormat, first: Interval, second: Interval) -> Interval:
    radius = steps.function("log", format_, steps.rounded(first, format_).clipped(ZERO, SINGLE_ONE.high))
    doubled = steps.rounded(MINUS_TWO * radius, format_).clipped(ZERO, INFINITE)
    angle = steps.rounded(steps.rounded(TWO_PI, format_) * steps.rounded(second, format_), format_)
    root = steps.function("sqrt", format_, doubled)
    return steps.rounded(root * steps.cosine(angle, format_), format_)


def _dropout(x: Tensor, *, rate: float, seed: int, stream: int = 0, offset: int = 0) -> Enclosures:
    """What is dropped is zero; 1 - rate may be taken from a rounded rate."""
    inner, result = float_format(ACCUMULATORS[x.dtype]), float_format(x.dtype)
    chance = Interval.around(compositions.exact_rate(rate))

    def kept(steps: Steps, format_: FloatFormat, value: Interval) -> Interval:
        remaining = steps.rounded(SINGLE_ONE - steps.rounded(chance, format_), format_)
        return steps.quotient(value, remaining, format_)

    rule = "dropout: a difference and a quotient"
    keeps = compositions.keeps(rate, seed, stream, offset, x.size)
    return [
        composed(kept, [value], result, inner, result, rule) if keep else Enclosure(Fraction(0), Fraction(0), "dropped")
        for value, keep in zip(points(x), keeps, strict=True)
    ]


RULES: Mapping[str, Callable[..., Enclosures]] = {"uniform": _uniform, "normal": _normal, "dropout": _dropout}
"""The rule of each function."""
