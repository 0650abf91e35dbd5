"""Intervals whose ends are rounded outward, the steps of which results are composed, and the errors of sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, TypeAlias

import gmpy2

from tessera_conformance.oracle.elementwise import OPERATIONS, Context, Number, contexts
from tessera_conformance.oracle.exact import (
    ACCUMULATORS,
    FloatFormat,
    Value,
    component_format,
    finite,
    fraction,
    is_finite,
)
from tessera_conformance.oracle.trees import START, Order, Tree

# Intervals whose ends are rounded outward, and enclosures of results made from them.


PRECISION = 128
"""Bits of precision, more than in a product of two fp64 significands."""
DOWN, UP = contexts(PRECISION)
"""Contexts that round outward, used for signs and magnitudes too: gmpy2's own `-x` and `abs(x)` round to a double."""
ZERO: Number = gmpy2.mpfr(0)
INFINITE: Number = gmpy2.mpfr("inf")

Real: TypeAlias = Fraction | int


class Unpromised(Exception):
    """A result without promised bounds: its enclosure has no ends."""


@dataclass(frozen=True)
class Enclosure:
    """The interval of a result: within `error` of `exact`; `rule` names the rule that allows it."""

    exact: Fraction
    error: Fraction
    rule: str = ""

    def holds(self, value: Value) -> bool:
        """True if a result is acceptable."""
        return is_finite(value) and abs(finite(value) - self.exact) <= self.error


Enclosures: TypeAlias = list[Enclosure | None]
"""The enclosure of each element; None if nothing is promised."""


@dataclass(frozen=True)
class Interval:
    """All numbers from `low` to `high`, either of which may be infinite."""

    low: Number
    high: Number

    @classmethod
    def around(cls, centre: Real, radius: Real = 0) -> Interval:
        """The interval of a number and the allowed distance of others."""
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
        """Return the interval with both ends moved outward."""
        return Interval(DOWN.sub(self.low, radius), UP.add(self.high, radius))

    def clipped(self, low: Number, high: Number) -> Interval:
        """Return the part between two numbers; without such a part each end moves to the nearer number."""
        return Interval(min(max(self.low, low), high), max(min(self.high, high), low))


POINT_ZERO = Interval(ZERO, ZERO)


def enclosure(ideal: Interval, actual: Interval, rule: str) -> Enclosure:
    """Return the enclosure of a result, from an interval of the exact result and one of all acceptable results.

    Raises `Unpromised`: an end is infinite.
    """
    if not all(map(gmpy2.is_finite, (ideal.low, ideal.high, actual.low, actual.high))):
        raise Unpromised("some order may overflow")
    exact = (gmpy2.mpq(ideal.low) + gmpy2.mpq(ideal.high)) / 2
    low, high = min(ideal.low, actual.low), max(ideal.high, actual.high)
    return Enclosure(fraction(exact), fraction(max(exact - gmpy2.mpq(low), gmpy2.mpq(high) - exact)), rule)


def promised(compute: Callable[..., Enclosure], *arguments: Any) -> Enclosure | None:
    """Return the enclosure that a function computes; None if it raises `Unpromised`."""
    try:
        return compute(*arguments)
    except Unpromised:
        return None


def number(value: Value) -> Fraction:
    """Return the number of a value. Raises `Unpromised`: it is NaN or infinite."""
    if not is_finite(value):
        raise Unpromised("an operand that is not finite")
    return finite(value)


def point(value: Value) -> Interval:
    """Return the interval of one number. Raises `Unpromised`: it is NaN or infinite."""
    return Interval.around(number(value))


def total(terms: Sequence[Interval]) -> Interval:
    """Return the sum, without errors except those of the ends."""
    low, high = ZERO, ZERO
    for term in terms:
        low, high = DOWN.add(low, term.low), UP.add(high, term.high)
    return Interval(low, high)


def _directed(number: Real, context: Context) -> Number:
    return context.div(gmpy2.mpz(number.numerator), gmpy2.mpz(number.denominator))


def _product(x: Number, y: Number, context: Context) -> Number:
    """Return the product of two ends; zero times an infinite end, which stands for numbers of any size, is zero."""
    return ZERO if x == 0 or y == 0 else context.mul(x, y)


# The steps of which results are composed: exact, and with the errors that the level fast allows each.


FUNCTION_ULPS = 4
"""The units in the last place of its type by which an elementary function may be wrong at the level fast."""

QUOTIENT = 2 * FUNCTION_ULPS + 1
"""Units of roundoff in a quotient that is computed as a product with a reciprocal."""

_NOT_NEGATIVE = ("exp", "exp2", "sqrt", "rsqrt", "cosh")


@dataclass(frozen=True)
class Steps:
    """The steps of a composition over intervals, with the errors that the level fast allows, or `exact`.

    A function may be off by `ulps` units in the last place, and may flush where it `flushes`; other steps always may.
    """

    ulps: float = FUNCTION_ULPS
    flushes: bool = True
    exact: bool = False

    def operand(self, x: Interval, format_: FloatFormat) -> Interval:
        """Return the values as which an operand may be read: with zero if it may be subnormal and flushed."""
        return flushed(x, format_) if self.flushes else x

    def rounded(self, x: Interval, format_: FloatFormat) -> Interval:
        """Return a result of +, -, * or a conversion after one rounding to nearest; zero is exact."""
        if self.exact or x.low == x.high == 0:
            return x
        low = DOWN.sub(x.low, max(UP.mul(UP.abs(x.low), unit(format_)), _least_loss(format_)))
        high = UP.add(x.high, max(UP.mul(UP.abs(x.high), unit(format_)), _least_loss(format_)))
        return _in_range(flushed(Interval(low, high), format_), format_)

    def stored(self, x: Interval, inner: FloatFormat, result: FloatFormat) -> Interval:
        """Return a number of the accumulator's type in the result's: rounded once more if they differ."""
        return x if result == inner else self.rounded(x, result)

    def quotient(self, x: Interval, y: Interval, format_: FloatFormat) -> Interval:
        """Return a division, or a multiplication by a reciprocal."""
        return self.relative(x / y, QUOTIENT, format_)

    def function(self, name: str, format_: FloatFormat, *operands: Interval) -> Interval:
        """Return an elementary function that is monotonic in its operands: the hull of the values at the corners.

        Its error is some units in the last place of the larger end.
        """
        result = image(name, *operands)
        if self.exact:
            return result
        off = result.widened(UP.mul(self.ulps, _ulp(result.magnitude, format_)))
        off = flushed(off, format_) if self.flushes else off
        if name in _NOT_NEGATIVE:
            off = Interval(max(off.low, ZERO), max(off.high, ZERO))
        return _in_range(off, format_)

    def sum(self, terms: Sequence[Interval], format_: FloatFormat, roundings: int = 0) -> Interval:
        """Return a sum in any order, of terms with `roundings` roundings each that their intervals do not include.

        Higham, 4.2: any order of n terms errs by at most gamma(n-1) times the sum of the magnitudes.
        """
        if self.exact:
            return total(terms)
        magnitude = ZERO
        for term in terms:
            magnitude = UP.add(magnitude, term.magnitude)
        count = max(len(terms) - 1, 0) + roundings
        radius = UP.mul(magnitude, gamma_number(count, format_))
        lost = UP.mul(len(terms) * (1 + roundings), underflow(format_)) if count else ZERO
        return _in_range(total(terms).widened(UP.add(radius, lost)), format_)

    def relative(self, x: Interval, units: int, format_: FloatFormat) -> Interval:
        """Return a number with gamma(units) of the magnitude of either end as its error, and as many underflows."""
        if self.exact:
            return x
        factor = gamma_number(units, format_)
        low = DOWN.sub(x.low, UP.mul(UP.abs(x.low), factor))
        high = UP.add(x.high, UP.mul(UP.abs(x.high), factor))
        lost = UP.mul(units, half_smallest(format_))
        return _in_range(flushed(Interval(low, high).widened(lost), format_), format_)


EXACT = Steps(flushes=False, exact=True)
FAST = Steps()


def enclosed(
    compute: Callable[[Steps, list[Interval]], Sequence[Interval]],
    values: Sequence[Value],
    count: int,
    rule: str,
    steps: Steps = FAST,
) -> Enclosures:
    """Return enclosures of `count` results, which are computed in exact steps and in `steps`; None if unpromised."""
    try:
        operands = list(map(point, values))
        pairs = zip(compute(EXACT, operands), compute(steps, operands), strict=True)
        return [promised(enclosure, ideal, actual, rule) for ideal, actual in pairs]
    except Unpromised:
        return [None] * count


def image(name: str, *operands: Interval) -> Interval:
    """The values of a function that is monotonic in each operand over its interval: those at the corners bound them.

    Raises `Unpromised`: the function has no value somewhere.
    """
    corners = list(product(*(dict.fromkeys((operand.low, operand.high)) for operand in operands)))
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

    Raises `Unpromised`: so many roundings may err without limit.
    """
    product = Fraction(count, 2 << format_.fraction_bits)
    if product >= 1:
        raise Unpromised(f"{count} roundings of {format_.fraction_bits + 1} bits")
    return product / (1 - product)


@cache
def gamma_number(count: int, format_: FloatFormat) -> Number:
    """Return `gamma`, rounded up."""
    return Interval.around(gamma(count, format_)).high


@cache
def half_smallest(format_: FloatFormat) -> Number:
    """Return the greatest loss of a rounding to a multiple of the smallest positive value."""
    return gmpy2.exp2(format_.smallest_exponent - 1)


@cache
def _least_loss(format_: FloatFormat) -> Number:
    """Return the greatest loss of a rounding to subnormal numbers, also through a wider type."""
    return UP.mul(half_smallest(format_), UP.add(1, unit(format_)))


@cache
def underflow(format_: FloatFormat) -> Number:
    """Return the greatest loss of one underflow: all below the smallest normal number if they may be flushed."""
    return _flushing(format_) if may_flush(format_) else half_smallest(format_)


def may_flush(format_: FloatFormat) -> bool:
    """True if subnormals may be flushed; fp8 has too few numbers for that."""
    return format_.exponent_bits + format_.fraction_bits >= 15


def flushed(x: Interval, format_: FloatFormat) -> Interval:
    """Return the interval, with zero if some of its numbers are subnormal and may be flushed."""
    bound = _flushing(format_)
    if x.low >= bound or x.high <= -bound:
        return x
    return x.hull(POINT_ZERO)


def _in_range(x: Interval, format_: FloatFormat) -> Interval:
    """Return the interval, with infinity in place of an end beyond the largest number, which means overflow."""
    largest = _largest(format_)
    if -largest <= x.low and x.high <= largest:
        return x
    return Interval(-INFINITE if x.low < -largest else x.low, INFINITE if x.high > largest else x.high)


@cache
def _largest(format_: FloatFormat) -> Number:
    return gmpy2.mpfr(gmpy2.mpq(format_.largest), format_.fraction_bits + 1)


@cache
def _flushing(format_: FloatFormat) -> Number:
    """Return the bound below which numbers may be flushed."""
    return gmpy2.mpfr(gmpy2.mpq(format_.smallest_normal)) if may_flush(format_) else -INFINITE


def _ulp(magnitude: Number, format_: FloatFormat) -> Number:
    """The unit in the last place of a number of that magnitude."""
    if magnitude == 0:
        return gmpy2.exp2(format_.smallest_exponent)
    if not gmpy2.is_finite(magnitude):
        return INFINITE
    return gmpy2.exp2(max(gmpy2.get_exp(magnitude) - 1 - format_.fraction_bits, format_.smallest_exponent))


# The distance of a sum or an inner product from the exact one.
#
# Higham, Accuracy and Stability of Numerical Algorithms, 3.1 and 4.2 to 4.3, for roundings to nearest with unit
# roundoff u: in any order n terms err by at most gamma(n-1) times the sum of their magnitudes, where gamma(n) = nu / (1
# - nu); along a known tree each term errs by (1 + u)**d - 1 with d the number of nodes above it. Products add one
# rounding each, unless fused. An underflow adds half the smallest positive value, or the whole smallest normal one if
# it may be flushed.


def accumulator_of(dtype: str) -> FloatFormat:
    """Return the format in which floats, or the parts of complex numbers, are accumulated."""
    return component_format(ACCUMULATORS.get(dtype, dtype))


@dataclass(frozen=True)
class Terms:
    """A sum's terms: the exact sum, the sum of magnitudes, their number, and the loss of flushed subnormals."""

    exact: Fraction
    magnitude: Fraction
    count: int
    flushed: Fraction = Fraction(0)


def terms_of(values: Sequence[Fraction], format_: FloatFormat) -> Terms:
    """Return the terms of single numbers."""
    subnormal = [abs(value) for value in values if abs(value) < format_.smallest_normal]
    flushed = sum(subnormal, Fraction(0)) if fraction(underflow(format_)) == format_.smallest_normal else Fraction(0)
    return Terms(sum(values, Fraction(0)), sum(map(abs, values), Fraction(0)), len(values), flushed)


def any_order(terms: Terms, format_: FloatFormat, *, products: bool = False) -> Fraction:
    """Return the error of any order: gamma(n-1), and one more rounding for products that are not fused."""
    roundings = max(terms.count - 1, 0) + products
    operations = max(terms.count - 1, 0) + (terms.count if products else 0)
    grown_by = 1 + gamma(roundings, format_)
    return gamma(roundings, format_) * terms.magnitude + grown_by * (
        operations * fraction(underflow(format_)) + terms.flushed
    )


def along_tree(tree: Order, values: Sequence[Fraction], format_: FloatFormat) -> Fraction:
    """Return the error along a known tree: each term grows by one rounding for every node above it."""

    def leaf(index: int) -> list[tuple[int, int]]:
        return [(index, 0)] if index != START else []

    def node(children: list[list[tuple[int, int]]]) -> list[tuple[int, int]]:
        return [(index, depth + 1) for child in children for index, depth in child]

    leaves = Tree.from_json(tree).over(len(values)).folded(leaf, node)
    return sum((_growth(depth, format_) * abs(values[index]) for index, depth in leaves), Fraction(0))


@cache
def _growth(roundings: int, format_: FloatFormat) -> Fraction:
    """(1 + u)**roundings - 1, rounded up."""
    return fraction(UP.sub(UP.pow(UP.add(1, unit(format_)), roundings), 1))


def in_any_order(terms: Terms, inner: FloatFormat, result: FloatFormat, *, products: bool = False) -> Enclosure:
    """Return the enclosure of a sum of terms, or of products, in any order."""
    kind, roundings = ("products", terms.count) if products else ("terms", max(terms.count - 1, 0))
    rule = f"any order of {terms.count} {kind}, gamma({roundings})"
    return finished(terms, any_order(terms, inner, products=products), inner, result, rule)


def finished(terms: Terms, error: Fraction, accumulator: FloatFormat, result: FloatFormat, rule: str) -> Enclosure:
    """Return the enclosure of a sum, with a final rounding if the types differ.

    Raises `Unpromised`: some order may overflow.
    """
    if terms.magnitude + error > accumulator.largest or abs(terms.exact) + error > result.largest:
        raise Unpromised("some order may overflow")
    reached = FAST.stored(Interval.around(terms.exact, error), accumulator, result)
    answer = enclosure(Interval.around(terms.exact), reached, rule)
    return Enclosure(terms.exact, max(answer.error, error), rule)
