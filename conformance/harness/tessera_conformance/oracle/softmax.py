"""Softmax as the canon composes it: subtract the maximum, exponentiate, sum along the tree, divide.

Language spec 5.2, 10 and 15 (LANG-05.2-03, LANG-10-03, LANG-15-07 to LANG-15-09); AMB-LANG-75: in the accumulator type,
a rounding after each step, and one final rounding to the operand's type.
"""

from __future__ import annotations

import numpy as np

from tessera_conformance.oracle.exact import ZERO, Value, divide, subtract
from tessera_conformance.oracle.formats import ACCUMULATORS, FloatFormat, float_format, tensor_of, values_of
from tessera_conformance.oracle.functions import exp
from tessera_conformance.oracle.reductions import fold_sum, greatest, pairwise_sum
from tessera_conformance.tensors import Tensor


def softmax(x: Tensor, axis: int = -1, *, folded: bool = False) -> Tensor:
    """Softmax along `axis`; `folded` departs from the canon on request and sums from the left."""
    format_ = float_format(ACCUMULATORS[x.dtype])
    values = values_of(x)
    lines = np.moveaxis(np.arange(x.size).reshape(x.shape), axis, -1)
    results: list[Value] = [ZERO] * x.size
    for line in lines.reshape(-1, x.shape[axis]).tolist():
        for place, value in zip(line, _row([values[place] for place in line], format_, folded), strict=True):
            results[place] = value
    return tensor_of(x.dtype, x.shape, results)


def _row(values: list[Value], format_: FloatFormat, folded: bool) -> list[Value]:
    largest = greatest(values)
    shifted = [format_.round(subtract(value, largest)) for value in values]
    powers = [exp(value, format_) for value in shifted]
    total = fold_sum(powers, format_) if folded else pairwise_sum(powers, format_)
    return [format_.round(divide(power, total)) for power in powers]
