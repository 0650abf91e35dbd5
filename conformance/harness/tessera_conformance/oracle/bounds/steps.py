"""The steps that results are composed of, exact, and with the error that each may have at the level fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import gmpy2

from tessera_conformance.oracle.bounds.intervals import (
    DOWN,
    INFINITE,
    POINT_ZERO,
    UP,
    ZERO,
    Interval,
    Unpromised,
    total,
)
from tessera_conformance.oracle.directed import Number
from tessera_conformance.oracle.formats import FloatFormat
from tessera_conformance.oracle.functions import OPERATIONS

FUNCTION_ULPS = 4
"""How many units in the last place of its type an elementary function may be off at the level fast."""

QUOTIENT = 2 * FUNCTION_ULPS + 1
"""Units of roundoff in a quotient that is taken as a product with a reciprocal."""

_NOT_NEGATIVE = ("exp", "exp2", "sqrt", "rsqrt", "cosh")


@dataclass(frozen=True)
class Steps:
    """How a composition is evaluated over intervals: exactly, where a subclass does not say how its steps err."""

    def operand(self, x: Interval, format_: FloatFormat) -> Interval:
        """What an operand may be taken for."""
        return x

    def rounded(self, x: Interval, format_: FloatFormat) -> Interval:
        """A result of +, -, * or a conversion, rounded."""
        return x

    def quotient(self, x: Interval, y: Interval, format_: FloatFormat) -> Interval:
        """A quotient."""
        return x / y

    def function(self, name: str, format_: FloatFormat, *operands: Interval) -> Interval:
        """An elementary function that is monotonic over its operands: the hull of the values at the corners."""
        return image(name, *operands)

    def cosine(self, angle: Interval, format_: FloatFormat) -> Interval:
        """The cosine over a short interval: it changes no faster than its argument."""
        width = UP.sub(angle.high, angle.low)
        return image("cos", Interval(angle.low, angle.low)).widened(width)

    def sum(self, terms: Sequence[Interval], format_: FloatFormat, roundings: int = 0) -> Interval:
        """A sum in any order, of terms each of which has had `roundings` roundings that its interval leaves out."""
        return total(terms)

    def relative(self, x: Interval, units: int, format_: FloatFormat) -> Interval:
        """A number that is off by so many relative units of roundoff, and as many underflows."""
        return x


@dataclass(frozen=True)
class Fast(Steps):
    """Every step errs as much as the level fast allows, functions by `ulps` units in the last place."""

    ulps: float = FUNCTION_ULPS
    flushes: bool = True
    """Whether functions may flush; other steps always may."""

    def operand(self, x: Interval, format_: FloatFormat) -> Interval:
        """Subnormal operands may be taken for zero."""
        return flushed(x, format_) if self.flushes else x

    def rounded(self, x: Interval, format_: FloatFormat) -> Interval:
        """One rounding to nearest; exact only where the result is zero."""
        if x.low == x.high == 0:
            return x
        low = DOWN.sub(x.low, max(UP.mul(UP.abs(x.low), unit(format_)), _least_loss(format_)))
        high = UP.add(x.high, max(UP.mul(UP.abs(x.high), unit(format_)), _least_loss(format_)))
        return _in_range(flushed(Interval(low, high), format_), format_)

    def quotient(self, x: Interval, y: Interval, format_: FloatFormat) -> Interval:
        """Divided, or multiplied by a reciprocal."""
        return self.relative(x / y, QUOTIENT, format_)

    def function(self, name: str, format_: FloatFormat, *operands: Interval) -> Interval:
        """Off by some units in the last place of the larger end."""
        found = image(name, *operands)
        off = found.widened(UP.mul(self.ulps, _ulp(found.magnitude, format_)))
        return _in_range(_possible(name, flushed(off, format_) if self.flushes else off), format_)

    def cosine(self, angle: Interval, format_: FloatFormat) -> Interval:
        """Off by units in the last place of 1, since the interval may hold an extreme."""
        found = super().cosine(angle, format_)
        return flushed(found.widened(UP.mul(FUNCTION_ULPS, _ulp(found.magnitude, format_))), format_)

    def sum(self, terms: Sequence[Interval], format_: FloatFormat, roundings: int = 0) -> Interval:
        """Higham, 4.2: any order of n terms errs by at most gamma(n-1) times the sum of the magnitudes."""
        magnitude = ZERO
        for term in terms:
            magnitude = UP.add(magnitude, term.magnitude)
        count = max(len(terms) - 1, 0) + roundings
        radius = UP.mul(magnitude, gamma_number(count, format_))
        lost = UP.mul(len(terms) * (1 + roundings), underflow(format_)) if count else ZERO
        return _in_range(total(terms).widened(UP.add(radius, lost)), format_)

    def relative(self, x: Interval, units: int, format_: FloatFormat) -> Interval:
        """gamma(units) of the magnitude of either end, and the underflows."""
        factor = gamma_number(units, format_)
        low = DOWN.sub(x.low, UP.mul(UP.abs(x.low), factor))
        high = UP.add(x.high, UP.mul(UP.abs(x.high), factor))
        lost = UP.mul(units, half_smallest(format_))
        return _in_range(flushed(Interval(low, high).widened(lost), format_), format_)


EXACT, FAST = Steps(), Fast()


def image(name: str, *operands: Interval) -> Interval:
    """The values of a function that is monotonic in each operand over its interval: those at the corners bound them.

    Raises:
        Unpromised: the function has no value somewhere.
    """
    corners: list[tuple[Number, ...]] = [()]
    for operand in operands:
        ends = (operand.low,) if operand.low == operand.high else (operand.low, operand.high)
        corners = [(*corner, end) for corner in corners for end in ends]
    lows = [OPERATIONS[name](DOWN, *corner) for corner in corners]
    highs = [OPERATIONS[name](UP, *corner) for corner in corners]
    if any(map(gmpy2.is_nan, (*lows, *highs))):
        raise Unpromised(f"{name} has no value there")
    return Interval(min(lows), max(highs))


@cache
def unit(format_: FloatFormat) -> Number:
    """The unit roundoff, half the distance from 1 to the next larger value."""
    return gmpy2.exp2(-format_.fraction_bits - 1)


def gamma(count: int, format_: FloatFormat) -> Fraction:
    """Higham, 3.1: n u / (1 - n u), more than the relative error of n roundings.

    Raises:
        Unpromised: so many roundings may err without limit.
    """
    product = Fraction(count, 2 << format_.fraction_bits)
    if product >= 1:
        raise Unpromised(f"{count} roundings of {format_.fraction_bits + 1} bits")
    return product / (1 - product)


@cache
def gamma_number(count: int, format_: FloatFormat) -> Number:
    """`gamma`, rounded up."""
    return Interval.around(gamma(count, format_)).high


@cache
def half_smallest(format_: FloatFormat) -> Number:
    """What rounding to a multiple of the smallest positive value may lose."""
    return gmpy2.exp2(format_.smallest_exponent - 1)


@cache
def _least_loss(format_: FloatFormat) -> Number:
    """What rounding to subnormal numbers may lose, by way of a wider type too."""
    return UP.mul(half_smallest(format_), UP.add(1, unit(format_)))


@cache
def underflow(format_: FloatFormat) -> Number:
    """What one underflow may lose: everything below the smallest normal number where subnormals may be flushed."""
    return _flushing(format_) if may_flush(format_) else half_smallest(format_)


def may_flush(format_: FloatFormat) -> bool:
    """fp8 has so few numbers that its subnormals are never given up."""
    return format_.exponent_bits + format_.fraction_bits >= 15


def flushed(x: Interval, format_: FloatFormat) -> Interval:
    """With zero, where some of the numbers are subnormal and may be flushed."""
    bound = _flushing(format_)
    if x.low >= bound or x.high <= -bound:
        return x
    return x.hull(POINT_ZERO)


def _in_range(x: Interval, format_: FloatFormat) -> Interval:
    """An end beyond the largest number stands for overflow."""
    largest = _largest(format_)
    if -largest <= x.low and x.high <= largest:
        return x
    return Interval(-INFINITE if x.low < -largest else x.low, INFINITE if x.high > largest else x.high)


@cache
def _largest(format_: FloatFormat) -> Number:
    return gmpy2.mpfr(gmpy2.mpq(format_.largest), format_.fraction_bits + 1)


@cache
def _flushing(format_: FloatFormat) -> Number:
    """Below it, numbers may be flushed."""
    return gmpy2.mpfr(gmpy2.mpq(format_.smallest_normal)) if may_flush(format_) else -INFINITE


def _possible(name: str, x: Interval) -> Interval:
    """A function that is never negative does not err to below zero."""
    return Interval(max(x.low, ZERO), max(x.high, ZERO)) if name in _NOT_NEGATIVE else x


def _ulp(magnitude: Number, format_: FloatFormat) -> Number:
    """The unit in the last place of a number of that magnitude."""
    if magnitude == 0:
        return gmpy2.exp2(format_.smallest_exponent)
    if not gmpy2.is_finite(magnitude):
        return INFINITE
    return gmpy2.exp2(max(gmpy2.get_exp(magnitude) - 1 - format_.fraction_bits, format_.smallest_exponent))
