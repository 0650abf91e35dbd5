"""Enclosures of inner products and matrix products: any order of the terms, or the one that was followed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from itertools import product as pairs_of
from math import prod
from math import prod as product_of

from tessera_conformance.oracle.bounds import intervals
from tessera_conformance.oracle.bounds.elementwise import point
from tessera_conformance.oracle.bounds.intervals import (
    FAST,
    Enclosure,
    Enclosures,
    Interval,
    Terms,
    Unpromised,
    accumulator_of,
    enclosure,
    may_flush,
)
from tessera_conformance.oracle.elementwise import paired
from tessera_conformance.oracle.exact import Value, finite, is_zero, negate
from tessera_conformance.oracle.fields import Complex
from tessera_conformance.oracle.formats import COMPONENTS, FloatFormat, component_format, float_format, values_of
from tessera_conformance.oracle.products import operands
from tessera_conformance.oracle.reductions import Tree
from tessera_conformance.tensors import Tensor

# Inner products of many rows and columns, exactly: as integers that stand for multiples of one power of two.


def inner_products(a: Tensor, b: Tensor) -> list[Terms | None]:
    """The terms of each element of a product; a complex one has two, of twice as many terms. None: not all finite."""
    *batch, rows, inner = a.shape
    columns = b.shape[-1]
    format_ = component_format(a.dtype)
    lefts, rights = operands(a), operands(b)
    found: list[Terms | None] = []
    for which, row, column in product(range(prod(batch)), range(rows), range(columns)):
        left = lefts[(which * rows + row) * inner :][:inner]
        right = rights[which * inner * columns + column : (which + 1) * inner * columns : columns]
        if a.dtype in COMPONENTS:
            found.extend(_terms(*pair, format_) for pair in _parts(left, right))
        else:
            found.append(_terms(left, right, format_))
    return found


def _parts(left: Sequence[Complex], right: Sequence[Complex]) -> list[tuple[list[Value], list[Value]]]:
    """The real inner products that are the two parts of a complex one."""
    flat = [part for x in left for part in x]
    real = [part for x in right for part in (x[0], negate(x[1]))]
    imaginary = [part for x in right for part in (x[1], x[0])]
    return [(flat, real), (flat, imaginary)]


def _terms(left: Sequence[Value], right: Sequence[Value], format_: FloatFormat) -> Terms | None:
    if not all(isinstance(value, Fraction) or is_zero(value) for value in (*left, *right)):
        return None
    xs, x_scale = _integers(left)
    ys, y_scale = _integers(right)
    products = [x * y for x, y in zip(xs, ys, strict=True)]
    unit = x_scale * y_scale
    flushed = Fraction(0)
    if may_flush(format_):
        bounds = int(format_.smallest_normal / x_scale), int(format_.smallest_normal / y_scale)
        flushed = unit * sum(
            abs(x * y) for x, y in zip(xs, ys, strict=True) if abs(x) < bounds[0] or abs(y) < bounds[1]
        )
    return Terms(unit * sum(products), unit * sum(map(abs, products)), len(products), flushed)


def _integers(values: Sequence[Value]) -> tuple[list[int], Fraction]:
    """The values as multiples of the largest power of two of which all are."""
    numbers = [finite(value) for value in values]
    denominator = max((number.denominator for number in numbers), default=1)
    return [number.numerator * (denominator // number.denominator) for number in numbers], Fraction(1, denominator)


# Enclosures of matrix products: any order of the products, or the one that was followed.


def matmul(
    a: Tensor,
    b: Tensor,
    addend: Tensor | None = None,
    out: str | None = None,
    *,
    order: str = "fold",
    tree: Tree | None = None,
    fused: bool = False,
    accumulator: str | None = None,
    known_order: bool = False,
) -> Enclosures:
    """An enclosure for each element of a product, row-major.

    None where nothing is promised: an operand is not finite, or some order may overflow.
    """
    inner, result = accumulator_of(a.dtype, accumulator), component_format(out or a.dtype)
    starts: list[Value] | None = None if addend is None else values_of(addend)
    if known_order and a.dtype not in COMPONENTS:
        return _matmul_along(order if tree is None else tree, a, b, starts, inner, result)
    found: Enclosures = []
    for place, terms in enumerate(inner_products(a, b)):
        start = None if starts is None else starts[place]
        found.append(_inner_product(terms, start, inner, result))
    return found


def _inner_product(
    terms: intervals.Terms | None, start: Value | None, inner: FloatFormat, result: FloatFormat
) -> Enclosure | None:
    if terms is None or (start is not None and point(start) is None):
        return None
    if start is not None:
        number = finite(start)
        terms = intervals.Terms(terms.exact + number, terms.magnitude + abs(number), terms.count + 1, terms.flushed)
    rule = f"any order of {terms.count} products, gamma({terms.count})"
    try:
        error = intervals.any_order(terms, inner, products=True) if terms.count else Fraction(0)
    except Unpromised:
        return None
    return intervals.finished(terms, error, inner, result, rule)


def _matmul_along(
    tree: Tree, a: Tensor, b: Tensor, starts: Sequence[Value] | None, inner: FloatFormat, result: FloatFormat
) -> Enclosures:
    """Of real products along a known tree."""
    *batch, rows, depth = a.shape
    columns = b.shape[-1]
    lefts, rights = operands(a), operands(b)
    found: Enclosures = []
    for which, row, column in pairs_of(range(product_of(batch)), range(rows), range(columns)):
        left = lefts[(which * rows + row) * depth :][:depth]
        right = rights[which * depth * columns + column : (which + 1) * depth * columns : columns]
        factors = [(point(x), point(y)) for x, y in zip(left, right, strict=True)]
        start = Fraction(0) if starts is None else starts[len(found)]
        if any(None in pair for pair in factors) or point(start) is None:
            found.append(None)
            continue
        products = [finite(x) * finite(y) for x, y in zip(left, right, strict=True)]
        terms = intervals.terms_of([*products, finite(start)], inner)
        error = intervals.along_tree(tree, products, inner, products=True, start=finite(start)) + terms.flushed
        found.append(intervals.finished(terms, error, inner, result, "a known tree of products, depth-weighted"))
    return found


def _add_to_product(a: Tensor, b: Tensor, c: Tensor) -> Enclosures:
    """The product is rounded before c is added, or c starts the accumulator."""
    format_, inner = float_format(a.dtype), accumulator_of(a.dtype)
    found: Enclosures = []
    places = paired(
        c, Tensor(c.dtype, (a.shape[-2], b.shape[-1]), bytes(a.shape[-2] * b.shape[-1] * c.format.word_bytes))
    )[1]
    for terms, (start, _) in zip(inner_products(a, b), places, strict=True):
        apart = _inner_product(terms, None, inner, format_)
        together = _inner_product(terms, start, inner, format_)
        if apart is None or together is None:
            found.append(None)
            continue
        rounded = FAST.rounded(Interval.around(apart.exact, apart.error) + Interval.around(finite(start)), format_)
        whole = rounded.hull(Interval.around(together.exact, together.error))
        found.append(enclosure(Interval.around(together.exact), whole, f"{apart.rule}, and a sum rounded once"))
    return found


RULES: Mapping[str, Callable[..., Enclosures]] = {"matmul": matmul, "add_to_product": _add_to_product}
"""The rule of each function."""
