"""How far a sum or an inner product may lie from the exact one.

Higham, Accuracy and Stability of Numerical Algorithms, 3.1 and 4.2 to 4.3, for roundings to nearest with unit roundoff
u: in any order n terms err by at most gamma(n-1) times the sum of their magnitudes, where gamma(n) = nu / (1 - nu);
along a known tree each term errs by (1 + u)**d - 1 with d the number of nodes above it; with the computed nodes at
hand, by u times the sum of their magnitudes. Products add one rounding each, unless fused, and half the smallest
positive value where they underflow, or all of the smallest normal one where they may be flushed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from tessera_conformance.oracle.bounds.intervals import UP, Enclosure, Interval, Unpromised, enclosure
from tessera_conformance.oracle.bounds.steps import FAST, gamma, underflow, unit
from tessera_conformance.oracle.directed import fraction
from tessera_conformance.oracle.formats import ACCUMULATORS, FloatFormat, component_format
from tessera_conformance.oracle.trees import Node, Tree, grown


def accumulator_of(dtype: str, accumulator: str | None = None) -> FloatFormat:
    """The format that floats, or the parts of complex numbers, are accumulated in."""
    return component_format(accumulator or ACCUMULATORS.get(dtype, dtype))


@dataclass(frozen=True)
class Terms:
    """What is added: the exact sum, the sum of magnitudes, how many, and what taking subnormals for zero may lose."""

    exact: Fraction
    magnitude: Fraction
    count: int
    flushed: Fraction = Fraction(0)


def terms_of(values: Sequence[Fraction], format_: FloatFormat) -> Terms:
    """Of single numbers."""
    subnormal = [abs(value) for value in values if abs(value) < format_.smallest_normal]
    flushed = sum(subnormal, Fraction(0)) if fraction(underflow(format_)) == format_.smallest_normal else Fraction(0)
    return Terms(sum(values, Fraction(0)), sum(map(abs, values), Fraction(0)), len(values), flushed)


def any_order(terms: Terms, format_: FloatFormat, *, products: bool = False) -> Fraction:
    """The error of any order: gamma(n-1), and one more rounding for products that are not fused."""
    roundings = max(terms.count - 1, 0) + products
    operations = max(terms.count - 1, 0) + (terms.count if products else 0)
    grown_by = 1 + gamma(roundings, format_)
    return gamma(roundings, format_) * terms.magnitude + grown_by * (
        operations * fraction(underflow(format_)) + terms.flushed
    )


def pairwise(terms: Terms, format_: FloatFormat) -> Fraction:
    """The error along the canonical tree: gamma(ceil(log2 n))."""
    return gamma(max(terms.count - 1, 0).bit_length(), format_) * terms.magnitude


def kahan(terms: Terms, format_: FloatFormat) -> Fraction:
    """The error of Kahan's sum (Higham, 4.8): (2u + 8nu**2), and two roundings where the terms are products."""
    unit = Fraction(1, 2 << format_.fraction_bits)
    if 8 * terms.count * unit >= 1:
        raise Unpromised(f"{terms.count} terms, compensated")
    return (2 * unit + 8 * terms.count * unit * unit) * terms.magnitude


def along_tree(
    tree: Tree,
    values: Sequence[Fraction],
    format_: FloatFormat,
    *,
    products: bool = False,
    start: Fraction | None = None,
) -> Fraction:
    """The error along a known tree: each term grows by one rounding for every node above it, products by one more."""
    if not values:
        return Fraction(0)
    error, lost = Fraction(0), fraction(underflow(format_)) if products else Fraction(0)
    for leaf, depth in depths(grown(tree, len(values), start=start is not None)):
        value = (start or Fraction(0)) if isinstance(leaf, str) else values[leaf]
        roundings = depth if isinstance(leaf, str) else depth + products
        error += _growth(roundings, format_) * abs(value) + (1 + _growth(depth, format_)) * lost
    return error


@cache
def _growth(roundings: int, format_: FloatFormat) -> Fraction:
    """(1 + u)**roundings - 1, rounded up."""
    return fraction(UP.sub(UP.pow(UP.add(1, unit(format_)), roundings), 1))


def running(nodes: Iterable[Fraction], format_: FloatFormat) -> Fraction:
    """The error of a sum whose computed nodes are known: each errs by at most u times what it came out as."""
    return sum((abs(node) for node in nodes), Fraction(0)) / (2 << format_.fraction_bits)


def depths(node: Node) -> Iterable[tuple[int | str, int]]:
    """Every leaf and the number of nodes above it."""
    work: list[tuple[Node, int]] = [(node, 0)]
    while work:
        item, depth = work.pop()
        if isinstance(item, int | str):
            yield item, depth
        else:
            work.extend((child, depth + 1) for child in item)


def finished(
    terms: Terms, error: Fraction, accumulator: FloatFormat, result: FloatFormat, rule: str
) -> Enclosure | None:
    """The enclosure of a sum: None where some order may overflow, and the final rounding where the types differ."""
    if terms.magnitude + error > accumulator.largest:
        return None
    found = Interval.around(terms.exact, error)
    if result != accumulator:
        found = FAST.rounded(found, result)
    if abs(terms.exact) + error > result.largest:
        return None
    answer = enclosure(Interval.around(terms.exact), found, rule)
    return answer and Enclosure(terms.exact, max(answer.error, error), rule)
