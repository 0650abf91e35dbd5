"""Matrix product and sums in the order the canon fixes, one rounding a step.

Canon of arithmetic, "matmul" and "sums": the product folds to the left over ascending k from +0, rounding the product
and then the sum in the accumulator type, and rounds once more at the end (LANG-10-02, LANG-10-06, LANG-15-04 to
LANG-15-06, LANG-15-14); a sum is the balanced tree over adjacent pairs with an odd tail carried. The other orders serve
to show that data tell them apart.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Literal, TypeAlias

from tessera_conformance.oracle.exact import ZERO, Value, add, maximum, multiply
from tessera_conformance.oracle.formats import ACCUMULATORS, FORMATS, TF32_OPERAND, Format, tensor_of, values_of
from tessera_conformance.tensors import Tensor

Order: TypeAlias = Literal["fold", "backward", "pairwise"]


def matmul(
    a: Tensor,
    b: Tensor,
    out: str | None = None,
    *,
    order: Order = "fold",
    fused: bool = False,
    accumulator: str | None = None,
) -> Tensor:
    """(..., M, K) x (..., K, N) -> (..., M, N) in dtype `out`, by default that of the operands.

    `order`, `fused` (products not rounded) and `accumulator` depart from the canon on request.
    """
    *batch, rows, inner = a.shape
    *other, inner_too, columns = b.shape
    if a.dtype != b.dtype or batch != other or inner != inner_too:
        raise ValueError(f"no product of {a.dtype} {list(a.shape)} and {b.dtype} {list(b.shape)}")
    format_ = FORMATS[accumulator or ACCUMULATORS[a.dtype]]
    lefts, rights = _operands(a), _operands(b)
    results: list[Value] = []
    batches = range(_product(batch))
    for which, row, column in product(batches, range(rows), range(columns)):
        left = (which * rows + row) * inner
        right = which * inner * columns + column
        products = [multiply(lefts[left + k], rights[right + k * columns]) for k in range(inner)]
        results.append(_accumulate(products, format_, order, fused))
    return tensor_of(out or a.dtype, (*batch, rows, columns), results)


def pairwise_sum(values: list[Value], format_: Format) -> Value:
    """The canonical tree: y[i] = x[2i] + x[2i+1], an odd tail carried unchanged, repeated; the empty sum is +0."""
    if not values:
        return ZERO
    while len(values) > 1:
        tail = values[len(values) & ~1 :]
        values = [format_.round(add(x, y)) for x, y in zip(values[::2], values[1::2], strict=False)] + tail
    return values[0]


def fold_sum(values: list[Value], format_: Format) -> Value:
    """From +0, ascending, a rounding after each addition."""
    total: Value = ZERO
    for value in values:
        total = format_.round(add(total, value))
    return total


def greatest(values: list[Value]) -> Value:
    """The maximum; NaN propagates and -0 lies below +0."""
    return reduce(maximum, values)


def _accumulate(products: list[Value], format_: Format, order: Order, fused: bool) -> Value:
    terms = products if fused else [format_.round(term) for term in products]
    if order == "pairwise":
        return pairwise_sum(terms, format_)
    return fold_sum(terms[::-1] if order == "backward" else terms, format_)


def _operands(tensor: Tensor) -> list[Value]:
    values = values_of(tensor)
    return [TF32_OPERAND.round(value) for value in values] if tensor.dtype == "tf32" else values


def _product(extents: list[int]) -> int:
    return reduce(lambda total, extent: total * extent, extents, 1)
