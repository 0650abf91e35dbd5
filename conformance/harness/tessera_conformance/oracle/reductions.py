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
from tessera_conformance.oracle.exact import (
    COMPONENTS,
    FORMATS,
    NAN,
    TF32_OPERAND,
    ZERO,
    BadArgument,
    Complex,
    FloatFormat,
    Format,
    RealField,
    Value,
    accumulating,
    accumulator_format,
    along,
    complex_product,
    elements_of,
    tensor_of,
    values_of,
)
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
    field = accumulating(x.dtype)
    return _reduced(x, axis, keepdims, lambda terms: _sum(terms, field, tree))


def mean(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Order = "pairwise") -> Tensor:
    """The sum divided by the number of terms, both rounded to the accumulator type; floats and complex numbers."""
    field = accumulating(x.dtype)
    if not x.format.is_float:
        raise BadArgument("dtype", x.dtype, "a floating-point or complex dtype")
    return _reduced(
        x, axis, keepdims, lambda terms: field.divide(_sum(terms, field, tree), field.round(Fraction(len(terms))))
    )


def prod(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Order = "pairwise") -> Tensor:
    """The product along an axis; a node is exact over all its factors and rounded once, or of two complex factors."""
    field = accumulating(x.dtype)
    if x.dtype not in COMPONENTS:

        def product(terms: list[Value]) -> Value:
            return _along(tree, terms, Fraction(1), lambda factors: field.round(reduce(exact.multiply, factors)))

        return _reduced(x, axis, keepdims, lambda terms: product(terms) if terms else Fraction(1))

    def multiplied(factors: list[Complex]) -> Complex:
        first, second = factors
        return complex_product(first, second, field)

    lines, elements, one = along(x.shape, axis), elements_of(x), (Fraction(1), ZERO)
    rows = ([elements[place] for place in line] for line in lines.places)
    products = [_along(tree, row, one, multiplied) if row else one for row in rows]
    return tensor_of(x.dtype, lines.shape(keepdims), [part for product in products for part in product])


def max_(x: Tensor, axis: int = -1, *, keepdims: bool = False) -> Tensor:
    """The largest along an axis."""
    return _extreme(x, axis, keepdims, exact.maximum)


def min_(x: Tensor, axis: int = -1, *, keepdims: bool = False) -> Tensor:
    """The smallest along an axis."""
    return _extreme(x, axis, keepdims, exact.minimum)


def argmax(x: Tensor, axis: int = -1, *, keepdims: bool = False) -> Tensor:
    """The int32 index along an axis of the first largest element, or of the first NaN where there is one."""
    _require_real(x)
    lines = along(x.shape, axis)
    _require_terms(x, axis)
    values = values_of(x)
    positions = [_first_largest([values[place] for place in line]) for line in lines.places]
    return Tensor.from_words("int32", lines.shape(keepdims), positions)


def softmax(x: Tensor, axis: int = -1, *, tree: Order = "pairwise") -> Tensor:
    """Softmax along `axis`; another `tree` departs from the reference arithmetic."""
    format_ = accumulator_format(x.dtype)
    values = values_of(x)
    results: list[Value] = [ZERO] * x.size
    for line in along(x.shape, axis).places:
        powers = _powers([values[place] for place in line], format_)
        total = tree_sum(powers, format_, tree)
        for place, power in zip(line, powers, strict=True):
            results[place] = format_.round(exact.divide(power, total))
    return tensor_of(x.dtype, x.shape, results)


def logsumexp(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Order = "pairwise") -> Tensor:
    """log(sum(exp(x - m))) + m along `axis`, where m is the maximum, or +0 where that is not finite."""
    format_ = accumulator_format(x.dtype)
    values, lines = values_of(x), along(x.shape, axis)
    _require_terms(x, axis)
    results = []
    for line in lines.places:
        row = [values[place] for place in line]
        largest = greatest(row)
        shift = largest if isinstance(largest, Fraction) or exact.is_zero(largest) else ZERO
        powers = [evaluate("exp", format_, format_.round(exact.subtract(value, shift))) for value in row]
        logarithm = evaluate("log", format_, tree_sum(powers, format_, tree))
        results.append(format_.round(exact.add(logarithm, shift)))
    return tensor_of(x.dtype, lines.shape(keepdims), results)


def pairwise_sum(values: list[Value], format_: Format) -> Value:
    """The canonical tree: y[i] = x[2i] + x[2i+1], an odd tail carried unchanged, repeated; the empty sum is +0."""
    return tree_sum(values, format_, "pairwise")


def tree_sum(values: list[Value], format_: Format, tree: Order) -> Value:
    """Along any tree, or by Kahan's method."""
    return _sum(values, RealField(format_), tree)


def greatest(values: list[Value]) -> Value:
    """The maximum; NaN propagates and -0 is below +0."""
    return reduce(exact.maximum, values)


def _powers(row: list[Value], format_: FloatFormat) -> list[Value]:
    if not row:
        raise BadArgument("axis", "one without elements", "an axis of at least one element")
    largest = greatest(row)
    return [evaluate("exp", format_, format_.round(exact.subtract(value, largest))) for value in row]


def _sum(terms: list[Value], field: RealField, tree: Order) -> Value:
    if not terms:
        return field.zero
    return _compensated(terms, field) if tree == KAHAN else _along(tree, terms, field.zero, field.total)


def _along(tree: Order, terms: Sequence[T], start: T, combine: Callable[[list[T]], T]) -> T:
    """Return the terms combined along a tree, which may name a start value."""
    return Tree.of(tree).over(len(terms)).folded(lambda leaf: start if leaf == START else terms[leaf], combine)


def _compensated(terms: list[Value], field: RealField) -> Value:
    """Return Kahan's sum: the loss of each addition is subtracted from the next term; an infinite sum loses none."""
    total, lost = terms[0], field.zero
    for term in terms[1:]:
        corrected = field.total([term, exact.negate(lost)])
        following = field.total([total, corrected])
        gained = field.total([following, exact.negate(total)])
        lost = field.total([gained, exact.negate(corrected)]) if field.is_finite(following) else field.zero
        total = following
    return total


def _reduced(x: Tensor, axis: int, keepdims: bool, reduction: Callable[[list[Value]], Value]) -> Tensor:
    """Return each line along an axis reduced; real and imaginary parts are reduced separately."""
    lines, values, parts = along(x.shape, axis), values_of(x), x.format.words
    results = [
        reduction([values[parts * place + part] for place in line]) for line in lines.places for part in range(parts)
    ]
    return tensor_of(x.dtype, lines.shape(keepdims), results)


def _extreme(x: Tensor, axis: int, keepdims: bool, better: Callable[[Value, Value], Value]) -> Tensor:
    _require_real(x)
    lines = along(x.shape, axis)
    _require_terms(x, axis)
    values = values_of(x)
    results = [reduce(better, (values[place] for place in line)) for line in lines.places]
    return tensor_of(x.dtype, lines.shape(keepdims), results, nonfinite=True)


def _first_largest(values: list[Value]) -> int:
    if NAN in values:
        return values.index(NAN)
    return values.index(greatest(values))


def _require_real(x: Tensor) -> None:
    if x.dtype not in FORMATS:
        raise BadArgument("dtype", x.dtype, "a real dtype: complex numbers are not ordered")


def _require_terms(x: Tensor, axis: int) -> None:
    if x.shape[axis] == 0:
        raise BadArgument("axis", axis, "an axis of at least one element")


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
    field = accumulating(a.dtype, accumulator)
    starts = [field.zero] * math.prod(shape) if addend is None else [field.round(value) for value in values_of(addend)]
    order = Tree.of("fold" if tree == "backward" else tree).with_start(inner)
    lefts, rights = operands(a), operands(b)
    results: list[Value] = []
    for which, row, column in indices(range(math.prod(batch)), range(rows), range(columns)):
        left = (which * rows + row) * inner
        right = which * inner * columns + column
        terms = [field.multiply(lefts[left + k], rights[right + k * columns]) for k in range(inner)]
        terms = [*(terms[::-1] if tree == "backward" else terms), starts[len(results)]]
        results.append(order.folded(terms.__getitem__, field.total))
    return tensor_of(out or a.dtype, shape, results)


def operands(tensor: Tensor) -> list[Value]:
    """Return the exact values of the factors, tf32 rounded as matmul does."""
    values = values_of(tensor)
    return [TF32_OPERAND.round(value) for value in values] if tensor.dtype == "tf32" else values
