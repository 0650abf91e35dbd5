"""Inner products of many rows and columns, exactly: as integers that stand for multiples of one power of two."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import prod

from tessera_conformance.oracle.bounds.steps import may_flush
from tessera_conformance.oracle.bounds.sums import Terms
from tessera_conformance.oracle.exact import Value, finite, is_zero, negate
from tessera_conformance.oracle.fields import Complex
from tessera_conformance.oracle.formats import COMPONENTS, FloatFormat, component_format
from tessera_conformance.oracle.products import operands
from tessera_conformance.tensors import Tensor


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
