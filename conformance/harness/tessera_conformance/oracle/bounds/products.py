"""Enclosures of matrix products: any order of the products, or the one that was followed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product as pairs_of
from math import prod as product_of

from tessera_conformance.oracle.bounds import sums
from tessera_conformance.oracle.bounds.dots import inner_products
from tessera_conformance.oracle.bounds.elementwise import point
from tessera_conformance.oracle.bounds.intervals import (
    Enclosure,
    Enclosures,
    Interval,
    Unpromised,
    enclosure,
)
from tessera_conformance.oracle.bounds.steps import FAST
from tessera_conformance.oracle.bounds.sums import accumulator_of
from tessera_conformance.oracle.elementwise import paired
from tessera_conformance.oracle.exact import Value, finite
from tessera_conformance.oracle.formats import (
    COMPONENTS,
    FloatFormat,
    component_format,
    float_format,
    values_of,
)
from tessera_conformance.oracle.products import operands
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.tensors import Tensor


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
    terms: sums.Terms | None, start: Value | None, inner: FloatFormat, result: FloatFormat
) -> Enclosure | None:
    if terms is None or (start is not None and point(start) is None):
        return None
    if start is not None:
        number = finite(start)
        terms = sums.Terms(terms.exact + number, terms.magnitude + abs(number), terms.count + 1, terms.flushed)
    rule = f"any order of {terms.count} products, gamma({terms.count})"
    try:
        error = sums.any_order(terms, inner, products=True) if terms.count else Fraction(0)
    except Unpromised:
        return None
    return sums.finished(terms, error, inner, result, rule)


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
        terms = sums.terms_of([*products, finite(start)], inner)
        error = sums.along_tree(tree, products, inner, products=True, start=finite(start)) + terms.flushed
        found.append(sums.finished(terms, error, inner, result, "a known tree of products, depth-weighted"))
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
