"""Reductions along an axis, and matrix products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product as indices
from typing import TypeVar

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.elementwise import evaluate
from tessera_conformance.oracle.exact import NAN, ZERO, BadArgument, Complex, FloatFormat, Format, Value
from tessera_conformance.oracle.trees import START, Order, Tree
from tessera_conformance.tensors import Tensor

T = TypeVar("T")

# Reductions along an axis: sums, products and means along a tree, Kahan's sum, extremes, softmax.
#
# Reference arithmetic, "sums": the balanced tree over adjacent pairs with an odd tail carried, in the accumulator
# type, and one final rounding; integers wrap in the accumulator and then in the dtype. The empty sum is +0 and the
# empty product 1; extremes of nothing are an error. NaN propagates and -0 lies below +0.
#
# Softmax and the logarithm of a sum of exponentials (language spec 5.2, 10 and 15; AMB-LANG-75) subtract the maximum,
# exponentiate and sum along the tree, in the accumulator type with a rounding after each step, and round once more.


KAHAN = "kahan"


def sum_(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Order = "pairwise") -> Tensor:
    """The sum along an axis; the tree `kahan` compensates."""
    format_ = exact.accumulating(x.dtype)
    return _reduced(x, axis, keepdims, lambda terms: tree_sum(terms, format_, tree))


def mean(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Order = "pairwise") -> Tensor:
    """The sum divided by the number of terms, both rounded to the accumulator type; floats and complex numbers."""
    format_ = exact.accumulating(x.dtype)
    if not x.format.is_float:
        raise BadArgument("dtype", x.dtype, "a floating-point or complex dtype")
    return _reduced(x, axis, keepdims, lambda terms: average(terms, format_, tree))


def prod(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Order = "pairwise") -> Tensor:
    """The product along an axis; a node is exact over all its factors and rounded once, or of two complex factors."""
    format_, one = exact.accumulating(x.dtype), Fraction(1)

    def product(factors: Sequence[Value]) -> Value:
        return format_.round(reduce(exact.multiply, factors))

    if x.dtype not in exact.COMPONENTS:
        return _reduced(x, axis, keepdims, lambda terms: _along(tree, terms, one, product))

    def complex_product(factors: Sequence[Complex]) -> Complex:
        first, second = factors
        return exact.complex_product(first, second, format_)

    products = [_along(tree, row, (one, ZERO), complex_product) for row in exact.rows_of(x, axis)]
    shape = exact.without_axis(x.shape, axis, keepdims=keepdims)
    return exact.tensor_of(x.dtype, shape, [part for product in products for part in product])


def max_(x: Tensor, axis: int = -1, *, keepdims: bool = False) -> Tensor:
    """The largest along an axis."""
    return _extreme(x, axis, keepdims, exact.maximum)


def min_(x: Tensor, axis: int = -1, *, keepdims: bool = False) -> Tensor:
    """The smallest along an axis."""
    return _extreme(x, axis, keepdims, exact.minimum)


def argmax(x: Tensor, axis: int = -1, *, keepdims: bool = False) -> Tensor:
    """The int32 index along an axis of the first largest element, or of the first NaN where there is one."""
    rows = _ordered_rows(x, axis)
    positions = [row.index(NAN if NAN in row else greatest(row)) for row in rows]
    return Tensor.from_words("int32", exact.without_axis(x.shape, axis, keepdims=keepdims), positions)


def softmax(x: Tensor, axis: int = -1, *, tree: Order = "pairwise") -> Tensor:
    """Softmax along `axis`; another `tree` departs from the reference arithmetic."""
    format_ = exact.accumulator_format(x.dtype)

    def quotients(row: Sequence[Value]) -> list[Value]:
        if not row:
            raise BadArgument("axis", "one without elements", "an axis of at least one element")
        powers = _powers(row, greatest(row), format_)
        total = tree_sum(powers, format_, tree)
        return [format_.divide(power, total) for power in powers]

    return exact.from_rows(x, axis, map(quotients, exact.rows_of(x, axis)))


def logsumexp(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Order = "pairwise") -> Tensor:
    """log(sum(exp(x - m))) + m along `axis`, where m is the maximum, or +0 where that is not finite."""
    format_ = exact.accumulator_format(x.dtype)
    _ordered_rows(x, axis)

    def logarithm(row: Sequence[Value]) -> Value:
        largest = greatest(row)
        shift = largest if exact.is_finite(largest) else ZERO
        total = tree_sum(_powers(row, shift, format_), format_, tree)
        return format_.total([evaluate("log", format_, total), shift])

    return _reduced(x, axis, keepdims, logarithm)


def tree_sum(terms: Sequence[Value], format_: Format, tree: Order = "pairwise") -> Value:
    """Return the sum along a tree or by Kahan's method; the empty sum is +0.

    The canonical tree is y[i] = x[2i] + x[2i+1], an odd tail carried unchanged, repeated.
    """
    if tree == KAHAN and terms:
        return _compensated(terms, format_)
    return _along(tree, terms, ZERO, format_.total)


def average(terms: Sequence[Value], format_: Format, tree: Order = "pairwise") -> Value:
    """The sum divided by the number of terms."""
    return format_.divide(tree_sum(terms, format_, tree), format_.round(Fraction(len(terms))))


def greatest(values: Sequence[Value]) -> Value:
    """The maximum; NaN propagates and -0 is below +0."""
    return reduce(exact.maximum, values)


def _powers(row: Sequence[Value], shift: Value, format_: FloatFormat) -> list[Value]:
    return [evaluate("exp", format_, format_.subtract(value, shift)) for value in row]


def _along(tree: Order, terms: Sequence[T], start: T, combine: Callable[[list[T]], T]) -> T:
    """Return the terms combined along a tree, which may name a start value; of no terms it is the result."""
    if not terms:
        return start
    return Tree.from_json(tree).over(len(terms)).folded(lambda leaf: start if leaf == START else terms[leaf], combine)


def _compensated(terms: Sequence[Value], format_: Format) -> Value:
    """Return Kahan's sum: the loss of each addition is subtracted from the next term; an infinite sum loses none."""
    total, lost = terms[0], exact.zero(negative=False)
    for term in terms[1:]:
        corrected = format_.subtract(term, lost)
        following = format_.total([total, corrected])
        gained = format_.subtract(following, total)
        lost = format_.subtract(gained, corrected) if exact.is_finite(following) else ZERO
        total = following
    return total


def _reduced(
    x: Tensor, axis: int, keepdims: bool, reduction: Callable[[list[Value]], Value], *, nonfinite: bool = False
) -> Tensor:
    """Return each line along an axis reduced; real and imaginary parts are reduced separately."""
    results = [reduction(terms) for terms in exact.parts_along(x, axis)]
    shape = exact.without_axis(x.shape, axis, keepdims=keepdims)
    return exact.tensor_of(x.dtype, shape, results, nonfinite=nonfinite)


def _extreme(x: Tensor, axis: int, keepdims: bool, better: Callable[[Value, Value], Value]) -> Tensor:
    _ordered_rows(x, axis)
    return _reduced(x, axis, keepdims, lambda terms: reduce(better, terms), nonfinite=True)


def _ordered_rows(x: Tensor, axis: int) -> list[list[Value]]:
    """Return the lines along an axis. Raises `BadArgument`: the elements have no order, or there are none."""
    if x.dtype not in exact.FORMATS:
        raise BadArgument("dtype", x.dtype, "a real dtype: complex numbers are not ordered")
    rows = exact.rows_of(x, axis)
    if x.shape[axis] == 0:
        raise BadArgument("axis", axis, "an axis of at least one element")
    return rows


# Matrix product in the order the reference arithmetic fixes, one rounding a step.
#
# Reference, "matmul": the product folds to the left over ascending k from +0. It rounds each product and then the sum
# in the accumulator type, and once more at the end (LANG-10-02, LANG-10-06, LANG-15-04 to LANG-15-06, LANG-15-14). An
# addend is the start value. The other orders serve implementations that declare them, and show that the data
# distinguish them.


def matmul(
    a: Tensor,
    b: Tensor,
    addend: Tensor | None = None,
    out: str | None = None,
    *,
    tree: Order = "fold",
    accumulator: str | None = None,
) -> Tensor:
    """(..., M, K) x (..., K, N) -> (..., M, N) in dtype `out`, by default that of the operands.

    `addend`, of the result's shape, is the start value instead of +0. `tree` (`backward` is the fold over descending k)
    and `accumulator` depart from the reference on request.
    """
    *batch, rows, inner = a.shape
    *other, inner_too, columns = b.shape
    if a.dtype != b.dtype or batch != other or inner != inner_too:
        raise ValueError(f"no product of {a.dtype} {list(a.shape)} and {b.dtype} {list(b.shape)}")
    shape = (*batch, rows, columns)
    if addend is not None and addend.shape != shape:
        raise BadArgument("addend", list(addend.shape), f"the shape of the result, {list(shape)}")
    format_ = exact.accumulating(a.dtype, accumulator)
    starts = [ZERO] * math.prod(shape) if addend is None else list(map(format_.round, exact.values_of(addend)))
    order = Tree.from_json("fold" if tree == "backward" else tree).with_start(inner)
    lefts, rights = operands(a), operands(b)
    results: list[Value] = []
    for which, row, column in indices(range(math.prod(batch)), range(rows), range(columns)):
        left = (which * rows + row) * inner
        right = which * inner * columns + column
        terms = [format_.multiply(lefts[left + k], rights[right + k * columns]) for k in range(inner)]
        terms = [*(terms[::-1] if tree == "backward" else terms), starts[len(results)]]
        results.append(order.folded(terms.__getitem__, format_.total))
    return exact.tensor_of(out or a.dtype, shape, results)


def operands(tensor: Tensor) -> list[Value]:
    """Return the exact values of the factors, tf32 rounded as matmul does."""
    values = exact.values_of(tensor)
    return list(map(exact.TF32_OPERAND.round, values)) if tensor.dtype == "tf32" else values
