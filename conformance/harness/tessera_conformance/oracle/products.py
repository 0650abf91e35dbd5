"""Matrix product in the order the reference arithmetic fixes, one rounding a step.

Reference, "matmul": the product folds to the left over ascending k from +0. It rounds each product and then the sum in
the accumulator type, and once more at the end (LANG-10-02, LANG-10-06, LANG-15-04 to LANG-15-06, LANG-15-14). An addend
is the start value. The other orders serve implementations that declare them, and show that the data distinguish them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any, Literal, TypeAlias

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.exact import (
    TF32_OPERAND,
    BadArgument,
    Field,
    RealField,
    accumulating,
    elements_of,
    tensor_from,
)
from tessera_conformance.oracle.reductions import Tree, grown, reduced
from tessera_conformance.tensors import Tensor

Order: TypeAlias = Literal["fold", "backward", "pairwise"]


def matmul(
    a: Tensor,
    b: Tensor,
    addend: Tensor | None = None,
    out: str | None = None,
    *,
    order: Order = "fold",
    tree: Tree | None = None,
    fused: bool = False,
    accumulator: str | None = None,
) -> Tensor:
    """(..., M, K) x (..., K, N) -> (..., M, N) in dtype `out`, by default that of the operands.

    `addend`, of the result's shape, is the start value instead of +0. `order` or `tree`, `fused` (a product enters its
    node unrounded; of two that are added, the first is rounded) and `accumulator` depart from the reference on request.
    """
    *batch, rows, inner = a.shape
    *other, inner_too, columns = b.shape
    if a.dtype != b.dtype or batch != other or inner != inner_too:
        raise ValueError(f"no product of {a.dtype} {list(a.shape)} and {b.dtype} {list(b.shape)}")
    shape = (*batch, rows, columns)
    if addend is not None and addend.shape != shape:
        raise BadArgument("addend", list(addend.shape), f"the shape of the result, {list(shape)}")
    field = accumulating(a.dtype, accumulator)
    starts = [field.zero] * prod(shape) if addend is None else [field.round(element) for element in elements_of(addend)]
    accumulate = _accumulation(field, inner, order if tree is None else tree, fused)
    multiply = _multiplication(field, fused)
    lefts, rights = operands(a), operands(b)
    results: list[Any] = []
    for which, row, column in product(range(prod(batch)), range(rows), range(columns)):
        left = (which * rows + row) * inner
        right = which * inner * columns + column
        products = [multiply(lefts[left + k], rights[right + k * columns]) for k in range(inner)]
        results.append(accumulate(products, starts[len(results)]))
    return tensor_from(out or a.dtype, shape, results)


def operands(tensor: Tensor) -> list[Any]:
    """The exact values of the factors, tf32 rounded as matmul does."""
    values = elements_of(tensor)
    return [TF32_OPERAND.round(value) for value in values] if tensor.dtype == "tf32" else values


def _multiplication(field: Field[Any], fused: bool) -> Callable[[Any, Any], Any]:
    """Rounded products, or exact ones that wait to be rounded in their node."""
    if not fused:
        return field.multiply
    if not isinstance(field, RealField):
        raise BadArgument("fused", fused, "false for complex numbers, whose products are not single ones")
    return exact.multiply


def _accumulation(field: Field[Any], count: int, tree: Tree, fused: bool) -> Callable[[list[Any], Any], Any]:
    """Return the function that adds up one inner product, from its products and its start value."""
    if count == 0:
        return lambda products, start: field.round(start)
    backward = tree == "backward"
    node = grown("fold" if backward else tree, count, start=True)

    def combine(terms: list[tuple[Any, bool]]) -> tuple[Any, bool]:
        (first, unrounded), (_, both) = terms[0], terms[1]
        if len(terms) == 2 and unrounded and both:
            terms = [(field.round(first), False), terms[1]]
        return field.total([term for term, _ in terms]), False

    def accumulate(products: list[Any], start: Any) -> Any:
        terms = products[::-1] if backward else products
        total, _ = reduced(node, lambda index: (terms[index], fused), (start, False), combine)
        return field.round(total)

    return accumulate
