"""How far a matrix product may lie from the exact one, whatever its order: how the levels below strict are judged.

Higham, Accuracy and Stability of Numerical Algorithms, 3.1: with products and sums rounded to nearest in any order, the
error of an inner product of length K is at most gamma(K) times the sum of |a||b| with gamma(K) = K u / (1 - K u); each
product that underflows adds at most half of the smallest positive value. The final rounding adds its own share.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tessera_conformance.oracle.exact import Value, finite, is_zero
from tessera_conformance.oracle.formats import ACCUMULATORS, TF32_OPERAND, FloatFormat, float_format, values_of
from tessera_conformance.tensors import Tensor


@dataclass(frozen=True)
class Enclosure:
    """Where a result may lie: within `error` of `exact`."""

    exact: Fraction
    error: Fraction

    def holds(self, value: Value) -> bool:
        """Whether a result is acceptable."""
        return (isinstance(value, Fraction) or is_zero(value)) and abs(finite(value) - self.exact) <= self.error


def matmul(a: Tensor, b: Tensor, out: str | None = None) -> list[Enclosure | None]:
    """An enclosure for each element of a two-dimensional product, row-major.

    None where nothing is promised: an operand is not finite, or some order may overflow.
    """
    (rows, inner), (_, columns) = a.shape, b.shape
    accumulator = float_format(ACCUMULATORS[a.dtype])
    result = float_format(out or a.dtype)
    lefts, rights = _operands(a), _operands(b)
    return [
        _inner_product(lefts[row * inner : (row + 1) * inner], rights[column::columns], accumulator, result)
        for row in range(rows)
        for column in range(columns)
    ]


def _inner_product(
    lefts: list[Fraction | None], rights: list[Fraction | None], accumulator: FloatFormat, result: FloatFormat
) -> Enclosure | None:
    products = [None if x is None or y is None else x * y for x, y in zip(lefts, rights, strict=True)]
    finite = [term for term in products if term is not None]
    if len(finite) < len(products):
        return None
    magnitude = sum(map(abs, finite), Fraction(0))
    unit = _unit_roundoff(accumulator)
    count = len(finite)
    gamma = count * unit / (1 - count * unit)
    accumulated = gamma * magnitude + (1 + gamma) * count * _half_smallest(accumulator)
    if magnitude + accumulated > min(accumulator.largest, result.largest):
        return None
    exact = sum(finite, Fraction(0))
    final = _unit_roundoff(result) * (abs(exact) + accumulated) + _half_smallest(result)
    return Enclosure(exact, accumulated + final)


def _operands(tensor: Tensor) -> list[Fraction | None]:
    """The exact values of the factors, tf32 rounded as matmul does; None for what is not finite."""
    values = values_of(tensor)
    rounded = [TF32_OPERAND.round(value) for value in values] if tensor.dtype == "tf32" else values
    return [finite(value) if isinstance(value, Fraction) or is_zero(value) else None for value in rounded]


def _unit_roundoff(format_: FloatFormat) -> Fraction:
    return Fraction(1, 2 << format_.fraction_bits)


def _half_smallest(format_: FloatFormat) -> Fraction:
    return Fraction(2) ** (format_.smallest_exponent - 1)
