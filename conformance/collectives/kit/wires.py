"""The dtypes of wires, and bounds of the errors of blockwise quantization (AMB-COLL-07, -26, -38)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import prod

from tessera_conformance.oracle.exact import (
    INFINITY,
    NAN,
    NEGATIVE_INFINITY,
    NEGATIVE_ZERO,
    FloatFormat,
    Value,
    exponent_of,
    finite,
    float_format,
)
from tessera_conformance.tensors import Tensor

WIRES = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8_e4m3", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2"}
"""Values of the attribute `dtype`, and the dtype on the wire for each."""

SINGLE = float_format("fp32")

UNIT = Fraction(1, 1 << 24)
"""The relative error of one rounding to fp32, except for subnormals."""


def half_a_step(m: Fraction, wire: str) -> Fraction:
    """Return the largest error of an element in a block of largest magnitude m."""
    target = float_format(wire)
    if m == 0:
        return Fraction(0)
    if wire == "bf16":
        return max(Fraction(2) ** (exponent_of(m) - 8), target.smallest / 2) + m / (1 << 21)
    step = Fraction(2) ** (exponent_of(target.largest) - target.fraction_bits)
    subnormal = m < target.largest * SINGLE.smallest_normal
    scale = target.largest * SINGLE.smallest / 2 if subnormal else Fraction(0)
    return m * step / target.largest / 2 + m / (1 << 21) + scale + SINGLE.smallest


WHOLE = (slice(None),)
"""A flat tensor whose blocks begin anew nowhere."""


def half_steps(data: Sequence[Fraction], wire: str, block: int, parts: Sequence[slice] = WHOLE) -> list[Fraction]:
    """Return the bound of each element of a flat tensor in blocks, which begin anew in each of its parts."""
    bounds: list[Fraction] = []
    for values in map(data.__getitem__, parts):
        starts = range(0, len(values), block)
        largest = [max(abs(value) for value in values[start : start + block]) for start in starts]
        bounds += [half_a_step(m, wire) for m in largest for _ in range(block)][: len(values)]
    return bounds


def rows_of(shape: Sequence[int]) -> list[slice]:
    """Return the rows of a tensor, as parts of the flat one; a tensor of one axis or none is one row."""
    columns = shape[-1] if shape else 1
    return [slice(first, first + columns) for first in range(0, prod(shape), max(columns, 1))]


def of_values(dtype: str, values: Sequence[Value], shape: Sequence[int] | None = None) -> Tensor:
    """Return a tensor of values, each rounded to the dtype; flat unless a shape is given."""
    words = [float_format(dtype).encode(value, nonfinite=True) for value in values]
    return Tensor.from_words(dtype, (len(words),) if shape is None else shape, words)


def telling(target: FloatFormat) -> Iterator[Value]:
    """Yield values that distinguish roundings to a format: midpoints of neighbours, and values around them."""
    codes = [0, 1, 2, (1 << target.fraction_bits) - 1, target.encode(Fraction(1)), target.largest_code - 2]
    near = Fraction(1, 1 << 40)
    for code in codes:
        for low, high in pairwise(finite(target.decode(neighbour)) for neighbour in (code, code + 1, code + 2)):
            middle = (low + high) / 2
            for value in (low, middle * (1 - near), middle, middle * (1 + near)):
                yield from (value, -value)
    beyond = target.largest + (target.largest - finite(target.decode(target.largest_code - 1))) / 2
    for value in (target.largest, beyond * (1 - near), beyond, beyond * 2):
        yield from (value, -value)
    yield from (NEGATIVE_ZERO, INFINITY, NEGATIVE_INFINITY, NAN)
