"""Softmax and the logarithm of a sum of exponentials, as the canon composes them.

Language spec 5.2, 10 and 15 (LANG-05.2-03, LANG-10-03, LANG-15-07 to LANG-15-09); AMB-LANG-75: subtract the maximum,
exponentiate, sum along the tree; in the accumulator type, a rounding after each step, and one final rounding.
"""

from __future__ import annotations

from fractions import Fraction

from tessera_conformance.oracle.axes import along
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.exact import ZERO, Value, add, divide, is_zero, subtract
from tessera_conformance.oracle.formats import ACCUMULATORS, FloatFormat, float_format, tensor_of, values_of
from tessera_conformance.oracle.functions import exp, log
from tessera_conformance.oracle.products import fold_sum
from tessera_conformance.oracle.reductions import greatest, tree_sum
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.tensors import Tensor


def softmax(x: Tensor, axis: int = -1, *, folded: bool = False, tree: Tree = "pairwise") -> Tensor:
    """Softmax along `axis`; `tree`, and `folded`, which sums from the left, depart from the canon on request."""
    format_ = _accumulator(x)
    values = values_of(x)
    results: list[Value] = [ZERO] * x.size
    for line in along(x.shape, axis).places:
        powers = _powers([values[place] for place in line], format_)
        total = fold_sum(powers, format_) if folded else tree_sum(powers, format_, tree)
        for place, power in zip(line, powers, strict=True):
            results[place] = format_.round(divide(power, total))
    return tensor_of(x.dtype, x.shape, results)


def logsumexp(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Tree = "pairwise") -> Tensor:
    """log(sum(exp(x - m))) + m along `axis`, where m is the maximum, or +0 where that is not finite."""
    format_ = _accumulator(x)
    values, lines = values_of(x), along(x.shape, axis)
    if not x.shape[axis]:
        raise BadArgument("axis", axis, "an axis of at least one element")
    results = []
    for line in lines.places:
        row = [values[place] for place in line]
        largest = greatest(row)
        shift = largest if isinstance(largest, Fraction) or is_zero(largest) else ZERO
        powers = [exp(format_.round(subtract(value, shift)), format_) for value in row]
        logarithm = log(tree_sum(powers, format_, tree), format_)
        results.append(format_.round(add(logarithm, shift)))
    return tensor_of(x.dtype, lines.shape(keepdims), results)


def _powers(row: list[Value], format_: FloatFormat) -> list[Value]:
    if not row:
        raise BadArgument("axis", "one without elements", "an axis of at least one element")
    largest = greatest(row)
    return [exp(format_.round(subtract(value, largest)), format_) for value in row]


def _accumulator(x: Tensor) -> FloatFormat:
    float_format(x.dtype)
    return float_format(ACCUMULATORS[x.dtype])
