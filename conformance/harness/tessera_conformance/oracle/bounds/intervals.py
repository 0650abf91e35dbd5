"""Intervals whose ends are rounded outward, and enclosures of results made from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import gmpy2

from tessera_conformance.oracle.directed import Context, Number, contexts
from tessera_conformance.oracle.exact import Value, finite, is_zero

PRECISION = 128
"""More than a product of two fp64 significands."""
DOWN, UP = contexts(PRECISION)
"""Contexts that round outward, used for signs and magnitudes too: gmpy2's own `-x` and `abs(x)` round to a double."""
ZERO: Number = gmpy2.mpfr(0)
INFINITE: Number = gmpy2.mpfr("inf")

Real: TypeAlias = Fraction | int


class Unpromised(Exception):
    """Nothing can be said about a result: its enclosure has no ends."""


@dataclass(frozen=True)
class Enclosure:
    """Where a result may lie: within `error` of `exact`; `rule` says by what right."""

    exact: Fraction
    error: Fraction
    rule: str = ""

    def holds(self, value: Value) -> bool:
        """Whether a result is acceptable."""
        return (isinstance(value, Fraction) or is_zero(value)) and abs(finite(value) - self.exact) <= self.error


Enclosures: TypeAlias = list[Enclosure | None]
"""Of each element; None where nothing is promised."""


@dataclass(frozen=True)
class Interval:
    """All numbers from `low` to `high`, either of which may be infinite."""

    low: Number
    high: Number

    @classmethod
    def around(cls, centre: Real, radius: Real = 0) -> Interval:
        """The interval of a number and how far others may lie from it."""
        if not radius:
            return cls(_directed(centre, DOWN), _directed(centre, UP))
        return cls(_directed(centre - radius, DOWN), _directed(centre + radius, UP))

    def __add__(self, other: Interval) -> Interval:
        return Interval(DOWN.add(self.low, other.low), UP.add(self.high, other.high))

    def __sub__(self, other: Interval) -> Interval:
        return Interval(DOWN.sub(self.low, other.high), UP.sub(self.high, other.low))

    def __neg__(self) -> Interval:
        return Interval(DOWN.minus(self.high), UP.minus(self.low))

    def __mul__(self, other: Interval) -> Interval:
        if self.low >= 0 and other.low >= 0:
            return Interval(_product(self.low, other.low, DOWN), _product(self.high, other.high, UP))
        pairs = [(x, y) for x in (self.low, self.high) for y in (other.low, other.high)]
        return Interval(min(_product(x, y, DOWN) for x, y in pairs), max(_product(x, y, UP) for x, y in pairs))

    def __truediv__(self, other: Interval) -> Interval:
        """The quotient; Unpromised where the divisor may be zero."""
        if other.low <= 0 <= other.high:
            raise Unpromised("a divisor that may be zero")
        return self * Interval(DOWN.div(1, other.high), UP.div(1, other.low))

    @property
    def magnitude(self) -> Number:
        """The largest absolute value."""
        return max(UP.abs(self.low), UP.abs(self.high))

    def hull(self, *others: Interval) -> Interval:
        """The smallest interval that holds this one and others."""
        return Interval(min(self.low, *(o.low for o in others)), max(self.high, *(o.high for o in others)))

    def widened(self, radius: Number) -> Interval:
        """Both ends moved outward."""
        return Interval(DOWN.sub(self.low, radius), UP.add(self.high, radius))

    def clipped(self, low: Number, high: Number) -> Interval:
        """What lies between two numbers; each end is moved to the nearer one where nothing does."""
        return Interval(min(max(self.low, low), high), max(min(self.high, high), low))


POINT_ZERO = Interval(ZERO, ZERO)


def enclosure(ideal: Interval, actual: Interval, rule: str) -> Enclosure | None:
    """The enclosure of a result, from an interval of the exact result and one of all acceptable results."""
    if not all(map(gmpy2.is_finite, (ideal.low, ideal.high, actual.low, actual.high))):
        return None
    exact = (gmpy2.mpq(ideal.low) + gmpy2.mpq(ideal.high)) / 2
    low, high = min(ideal.low, actual.low), max(ideal.high, actual.high)
    return Enclosure(_fraction(exact), _fraction(max(exact - gmpy2.mpq(low), gmpy2.mpq(high) - exact)), rule)


def total(terms: Sequence[Interval]) -> Interval:
    """The sum, with no error but that of the ends."""
    low, high = ZERO, ZERO
    for term in terms:
        low, high = DOWN.add(low, term.low), UP.add(high, term.high)
    return Interval(low, high)


def _fraction(rational: Number) -> Fraction:
    return Fraction(int(rational.numerator), int(rational.denominator))


def _directed(number: Real, context: Context) -> Number:
    return context.div(gmpy2.mpz(number.numerator), gmpy2.mpz(number.denominator))


def _product(x: Number, y: Number, context: Context) -> Number:
    """Zero times an end at infinity is zero: the infinite end stands for numbers, however large."""
    return ZERO if x == 0 or y == 0 else context.mul(x, y)
