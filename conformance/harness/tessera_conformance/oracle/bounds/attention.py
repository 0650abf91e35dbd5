"""Enclosures of attention as one operation: in one pass over the keys too, weights as narrow as the operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from tessera_conformance.oracle.bounds.dots import inner_products
from tessera_conformance.oracle.bounds.elementwise import point
from tessera_conformance.oracle.bounds.intervals import Enclosures, Interval, Unpromised, enclosure
from tessera_conformance.oracle.bounds.softmax import attended
from tessera_conformance.oracle.bounds.steps import EXACT, FAST, image
from tessera_conformance.oracle.compositions import matrices
from tessera_conformance.oracle.movement import transpose
from tessera_conformance.oracle.products import operands
from tessera_conformance.tensors import Tensor


def _flash_attention(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None, causal: bool = False, block: int | None = None
) -> Enclosures:
    factor = image("rsqrt", Interval.around(q.shape[-1])) if scale is None else Interval.around(Fraction(scale))
    found: Enclosures = []
    for queries, keys, values in zip(*map(matrices, (q, k, v)), strict=True):
        found += _of_matrix(queries, keys, values, factor, causal, q.dtype)
    return found


def _of_matrix(q: Tensor, k: Tensor, v: Tensor, factor: Interval, causal: bool, dtype: str) -> Enclosures:
    count, columns = k.shape[-2], v.shape[-1]
    products, elements = inner_products(q, transpose(k)), [point(value) for value in operands(v)]
    found: Enclosures = []
    for row in range(q.shape[-2]):
        taken = row + 1 if causal else count
        terms = products[row * count : row * count + taken]
        try:
            ideal, actual = (
                attended(steps, terms, factor, elements[: taken * columns], columns, dtype, wide_scores=True)
                for steps in (EXACT, FAST)
            )
        except Unpromised:
            found += [None] * columns
            continue
        rule = f"attention over {taken} keys, weights rounded to {dtype}, in any order"
        found += [enclosure(x, y, rule) for x, y in zip(ideal, actual, strict=True)]
    return found


RULES: Mapping[str, Callable[..., Enclosures]] = {"flash_attention": _flash_attention}
"""The rule of each function."""
