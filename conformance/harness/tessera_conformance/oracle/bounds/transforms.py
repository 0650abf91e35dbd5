"""Enclosures of Fourier transforms, by any common algorithm.

Let G be the factor by which the sum of the moduli of a row bounds the error of an element, in units of roundoff. A root
of unity, correctly rounded, errs by 1, a complex product by less than 3 (Higham, 3.6) and a complex sum by 1; so the
definition in any order takes n + 4, and mixed radices p + 4 for each prime factor p of n (Higham, 24.1). Bluestein's
algorithm, which libraries use for large prime factors, takes three transforms of a power of two of at least 2n - 1; the
2-norm of the chirp, which is below the square root of 2n, multiplies their error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from math import isqrt

from tessera_conformance.oracle.bounds.elementwise import point
from tessera_conformance.oracle.bounds.intervals import (
    DOWN,
    FAST,
    POINT_ZERO,
    UP,
    ZERO,
    Enclosures,
    Interval,
    Unpromised,
    enclosure,
    gamma_number,
    total,
    underflow,
)
from tessera_conformance.oracle.complex_operands import complex_operand
from tessera_conformance.oracle.compositions import rows_of, scale_factor
from tessera_conformance.oracle.exact import finite
from tessera_conformance.oracle.fields import Complex, elements_of
from tessera_conformance.oracle.formats import FloatFormat, component_format
from tessera_conformance.oracle.functions import Context, Number
from tessera_conformance.tensors import Tensor

LARGEST_RADIX = 13
"""The largest prime factor that is transformed directly; larger ones go by Bluestein's algorithm."""
SCALING_UNITS = 2
"""The factor and the product with it."""


def error_units(n: int) -> int:
    """G: units of roundoff of the sum of the moduli, whatever the algorithm."""
    factors = _prime_factors(n)
    units = max(n + 4, sum(factor + 4 for factor in factors))
    if factors and factors[-1] > LARGEST_RADIX:
        stages = (2 * n).bit_length() + 1
        units = max(units, 3 * 5 * stages * (isqrt(2 * n) + 1))
    return units


def _transform(inverse: bool, x: Tensor, *, norm: str = "ortho") -> Enclosures:
    x = complex_operand(x)
    rows, n = rows_of(x), x.shape[-1]
    format_ = component_format(x.dtype)
    scaled = scale_factor(n, norm, inverse, format_) is not None
    factor = _factor(n, norm) if scaled else Interval.around(1)
    turns = [_turn(m if inverse else -m, n) for m in range(n)]
    elements = elements_of(x)
    found: Enclosures = []
    for places in rows:
        row = [elements[place] for place in places]
        try:
            found += _row(row, turns, factor, format_)
        except Unpromised:
            found += [None] * (2 * n)
    return found


def _row(
    row: list[Complex], turns: list[tuple[Interval, Interval]], factor: Interval, format_: FloatFormat
) -> Enclosures:
    n = len(row)
    if any(point(part) is None for element in row for part in element):
        raise Unpromised("an operand that is not finite")
    parts = [tuple(Interval.around(finite(part)) for part in element) for element in row]
    moduli = ZERO
    for real, imaginary in parts:
        moduli = UP.add(moduli, UP.hypot(real.low, imaginary.low))
    units = error_units(n)
    radius = UP.add(UP.mul(moduli, gamma_number(units, format_)), UP.mul(units + n, underflow(format_)))
    if UP.add(moduli, radius) > format_.largest:
        raise Unpromised("some order may overflow")
    rule = f"a transform of {n} by any algorithm, gamma({units})"
    found: Enclosures = []
    for k in range(n):
        pairs = [(x, turns[j * k % n]) for j, x in enumerate(parts)]
        for exact in (
            total([part for (a, b), (c, s) in pairs for part in (a * c, -(b * s))]),
            total([part for (a, b), (c, s) in pairs for part in (a * s, b * c)]),
        ):
            actual = FAST.relative(exact.widened(radius) * factor, SCALING_UNITS, format_)
            found.append(enclosure(exact * factor, actual, rule))
    return found


def _factor(n: int, norm: str) -> Interval:
    if norm == "ortho":
        return Interval(DOWN.rec_sqrt(Interval.around(n).low), UP.rec_sqrt(Interval.around(n).low))
    return Interval.around(Fraction(1, n))


def _turn(numerator: int, denominator: int) -> tuple[Interval, Interval]:
    """Cosine and sine of a part of a full turn."""
    part = Fraction(numerator, denominator) % 1
    return _cosine(part), _cosine((part - Fraction(1, 4)) % 1)


def _cosine(part: Fraction) -> Interval:
    part = min(part, 1 - part)
    if part == Fraction(1, 4):
        return POINT_ZERO
    if part > Fraction(1, 4):
        return -_cosine(Fraction(1, 2) - part)
    return Interval(DOWN.cos(_angle(part, UP)), UP.cos(_angle(part, DOWN)))


def _angle(part: Fraction, context: Context) -> Number:
    return context.div(context.mul(context.mul(2, context.const_pi()), part.numerator), part.denominator)


def _prime_factors(n: int) -> list[int]:
    factors, factor = [], 2
    while n > 1:
        while n % factor == 0:
            factors.append(factor)
            n //= factor
        factor += 1
    return factors


RULES: Mapping[str, Callable[..., Enclosures]] = {"fft": partial(_transform, False), "ifft": partial(_transform, True)}
"""The rule of each function."""
