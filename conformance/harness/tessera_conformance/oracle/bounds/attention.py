"""Enclosures of attention: as separate steps, and as one operation, which may take the keys in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from tessera_conformance.oracle.bounds import intervals
from tessera_conformance.oracle.bounds.elementwise import point
from tessera_conformance.oracle.bounds.intervals import (
    EXACT,
    FAST,
    Enclosures,
    Interval,
    Steps,
    Unpromised,
    accumulator_of,
    enclosure,
    image,
)
from tessera_conformance.oracle.bounds.products import inner_products
from tessera_conformance.oracle.bounds.softmax import Row, softmax
from tessera_conformance.oracle.compositions import matrices
from tessera_conformance.oracle.formats import TF32_OPERAND, float_format
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


def _attention(q: Tensor, k: Tensor, v: Tensor, *, factor: str) -> Enclosures:
    """Every result of a step is rounded to the operands' type, or kept wider."""
    return _of_matrix(q, k, v, Interval.around(Fraction(factor)), False, q.dtype, wide_scores=False)


def _of_matrix(
    q: Tensor, k: Tensor, v: Tensor, factor: Interval, causal: bool, dtype: str, *, wide_scores: bool = True
) -> Enclosures:
    count, columns = k.shape[-2], v.shape[-1]
    products, elements = inner_products(q, transpose(k)), [point(value) for value in operands(v)]
    rounded = f"weights rounded to {dtype}," if wide_scores else f"its steps rounded to {dtype}"
    found: Enclosures = []
    for row in range(q.shape[-2]):
        taken = row + 1 if causal else count
        terms, values = products[row * count : row * count + taken], elements[: taken * columns]
        try:
            ideal, actual = (
                _attended(steps, terms, factor, values, columns, dtype, wide_scores) for steps in (EXACT, FAST)
            )
        except Unpromised:
            found += [None] * columns
            continue
        rule = f"attention over {taken} keys, {rounded} in any order"
        found += [enclosure(x, y, rule) for x, y in zip(ideal, actual, strict=True)]
    return found


def _attended(
    steps: Steps,
    terms: Sequence[intervals.Terms | None],
    factor: Interval,
    values: Sequence[Interval | None],
    columns: int,
    dtype: str,
    wide_scores: bool,
) -> Row:
    """One row of the result; Unpromised where an operand is not finite. Scores are rounded to the dtype unless wide."""
    result, inner = float_format(dtype), accumulator_of(dtype)
    score = inner if wide_scores else result
    scores = []
    for term in terms:
        if term is None:
            raise Unpromised("an operand that is not finite")
        error = Fraction(0) if steps is EXACT else intervals.any_order(term, inner, products=True)
        product = steps.rounded(Interval.around(term.exact, error), score)
        scores.append(steps.rounded(product * steps.rounded(factor, score), score))
    weights = softmax(steps, inner, scores)
    weights = weights if result == inner else [steps.rounded(weight, result) for weight in weights]
    if dtype == "tf32":
        weights = [steps.rounded(weight, TF32_OPERAND) for weight in weights]
    found = []
    for column in range(columns):
        known = [value for value in values[column::columns] if value is not None]
        if len(known) < len(weights):
            raise Unpromised("a value that is not finite")
        parts = [weight * steps.operand(value, result) for weight, value in zip(weights, known, strict=True)]
        found.append(steps.rounded(steps.sum(parts, inner, 1), result))
    return found


RULES: Mapping[str, Callable[..., Enclosures]] = {"attention": _attention, "flash_attention": _flash_attention}
"""The rule of each function."""
