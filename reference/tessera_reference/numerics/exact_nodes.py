"""Sums and products of any number of terms, exact until their one rounding; element by element, on whole numbers.

This is the plain definition of a fused node. Every finite float is a whole multiple of 2**-1074, and every product of
two is one of 2**-2148, so that a sum of such terms is a sum of Python integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .formats import DType
from .limits import broadcast_shape
from .rounding_modes import Rounding, infinity, round_multiple

__all__ = ["Product", "Term", "exact_product", "exact_sum"]

Values: TypeAlias = npt.NDArray[Any]


class Product(NamedTuple):
    """The exact products a * b of two arrays, which broadcast; not yet rounded."""

    a: Values
    b: Values


Term: TypeAlias = Values | Product
Factors: TypeAlias = tuple[float, float]

_UNIT = -2148
"""Sums are counted in 2**_UNIT."""


def exact_sum(terms: Sequence[Term], dtype: DType, rounding: Rounding, alignment_bits: int | None = None) -> Values:
    """Add the terms element by element and round once; in `dtype.carrier`.

    With `alignment_bits`, each term is first truncated toward zero to a multiple of 2**(e - alignment_bits), e being
    the exponent of the largest, as a tensor core's adder does.
    """
    pairs = [term if isinstance(term, Product) else Product(term, np.ones((), term.dtype)) for term in terms]
    return _each(pairs, dtype, lambda numbers: _sum(numbers, dtype, rounding, alignment_bits))


def exact_product(factors: Sequence[Values], dtype: DType, rounding: Rounding) -> Values:
    """Multiply the factors element by element and round once; in `dtype.carrier`."""
    pairs = [Product(factor, np.ones((), factor.dtype)) for factor in factors]
    return _each(pairs, dtype, lambda numbers: _product([x for x, _ in numbers], dtype, rounding))


def _each(terms: Sequence[Product], dtype: DType, node: Callable[[tuple[Factors, ...]], float]) -> Values:
    """Apply `node` to the numbers at each place of the terms, which broadcast."""
    shape = broadcast_shape("exact node", *(factor.shape for term in terms for factor in term))
    columns = [zip(_listed(term.a, shape), _listed(term.b, shape), strict=True) for term in terms]
    return np.array([node(numbers) for numbers in zip(*columns, strict=True)], dtype.carrier).reshape(shape)


def _listed(values: Values, shape: tuple[int, ...]) -> list[float]:
    numbers: list[float] = np.broadcast_to(values, shape).reshape(-1).tolist()
    return numbers


def _sum(terms: Iterable[Factors], dtype: DType, rounding: Rounding, alignment_bits: int | None) -> float:
    finite: list[int] = []
    special: list[float] = []  # zeros, infinities, NaN
    for a, b in terms:
        if a != 0 and b != 0 and math.isfinite(a) and math.isfinite(b):
            finite.append(_in_units(a) * _in_units(b))
        else:
            special.append(a * b)
    if not all(math.isfinite(x) for x in special):
        return _held(sum(special), dtype)
    if alignment_bits is not None and finite:
        grid = max(abs(term).bit_length() for term in finite) - 1 - alignment_bits
        finite = [_truncated(term, grid) for term in finite]
    total = sum(finite)
    if total != 0:
        return round_multiple(total, _UNIT, dtype, rounding)
    if rounding == "down":  # IEEE 754-2019, 6.3: a zero sum is -0, unless every term is +0
        return -0.0 if finite or any(math.copysign(1, x) < 0 for x in special) else 0.0
    return 0.0 if finite or any(math.copysign(1, x) > 0 for x in special) else -0.0


def _product(factors: Sequence[float], dtype: DType, rounding: Rounding) -> float:
    if all(x != 0 and math.isfinite(x) for x in factors):
        return round_multiple(prod(map(_in_units, factors)), len(factors) * _UNIT // 2, dtype, rounding)
    return _held(prod(x if x == 0 or not math.isfinite(x) else math.copysign(1, x) for x in factors), dtype)


def _held(special: float, dtype: DType) -> float:
    return math.copysign(infinity(dtype), special) if math.isinf(special) else special


def _in_units(x: float) -> int:
    """Return a finite float as a multiple of 2**-1074."""
    numerator, denominator = x.as_integer_ratio()
    return numerator << (-_UNIT // 2 - denominator.bit_length() + 1)


def _truncated(term: int, grid: int) -> int:
    """Drop, toward zero, the bits of less weight than 2**`grid`, if any are."""
    size = abs(term) >> max(grid, 0) << max(grid, 0)
    return -size if term < 0 else size
