"""The numbers that reductions work on, exact sums of many of them, and lines of elements along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import prod
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.exact import ZERO, BadArgument, Value
from tessera_conformance.oracle.formats import (
    ACCUMULATORS,
    COMPONENTS,
    FORMATS,
    FloatFormat,
    Format,
    component_format,
    tensor_of,
    values_of,
)
from tessera_conformance.tensors import ElementFormat, Tensor

# The numbers that reductions work on: real ones, integers, and pairs that are complex.
#
# Everything here rounds as the canon does: a real sum or product once, a complex product at every step of (ac - bd,
# ad + bc), a sum of complex numbers in each component.


Complex: TypeAlias = tuple[Value, Value]
E = TypeVar("E")


class Field(Protocol[E]):
    """Numbers of one kind, rounded to one format."""

    @property
    def zero(self) -> E:
        """+0."""

    @property
    def one(self) -> E:
        """1."""

    def round(self, x: E) -> E:
        """Rounded."""

    def total(self, terms: Sequence[E]) -> E:
        """The exact sum, rounded once."""

    def negate(self, x: E) -> E:
        """-x."""

    def multiply(self, x: E, y: E) -> E:
        """The product as the canon rounds it."""

    def divide(self, x: E, divisor: Value) -> E:
        """Divided by a real number and rounded."""

    def is_finite(self, x: E) -> bool:
        """Whether no part is infinite or NaN."""


@dataclass(frozen=True)
class RealField:
    """Real numbers of a format; integers wrap."""

    format: Format

    zero: Value = ZERO
    one: Value = Fraction(1)

    def round(self, x: Value) -> Value:
        """Rounded."""
        return self.format.round(x)

    def total(self, terms: Sequence[Value]) -> Value:
        """The exact sum, rounded once; -0 only where every term is."""
        return self.format.round(reduce(exact.add, terms))

    def negate(self, x: Value) -> Value:
        """-x."""
        return exact.negate(x)

    def multiply(self, x: Value, y: Value) -> Value:
        """The product, rounded once."""
        return self.format.round(exact.multiply(x, y))

    def divide(self, x: Value, divisor: Value) -> Value:
        """The quotient, rounded once."""
        return self.format.round(exact.divide(x, divisor))

    def is_finite(self, x: Value) -> bool:
        """Whether x is a number."""
        return isinstance(x, Fraction) or exact.is_zero(x)


@dataclass(frozen=True)
class ComplexField:
    """Pairs of real numbers of a format, the real part first."""

    format: FloatFormat

    zero: Complex = (ZERO, ZERO)
    one: Complex = (Fraction(1), ZERO)

    @property
    def part(self) -> RealField:
        """The numbers that either part is."""
        return RealField(self.format)

    def round(self, x: Complex) -> Complex:
        """Both parts rounded."""
        return self.part.round(x[0]), self.part.round(x[1])

    def total(self, terms: Sequence[Complex]) -> Complex:
        """The exact sums of both parts, each rounded once."""
        return self.part.total([x[0] for x in terms]), self.part.total([x[1] for x in terms])

    def negate(self, x: Complex) -> Complex:
        """Both signs flipped."""
        return exact.negate(x[0]), exact.negate(x[1])

    def multiply(self, x: Complex, y: Complex) -> Complex:
        """(ac - bd, ad + bc), every step rounded."""
        (a, b), (c, d), part = x, y, self.part
        ac, bd, ad, bc = part.multiply(a, c), part.multiply(b, d), part.multiply(a, d), part.multiply(b, c)
        return part.total([ac, exact.negate(bd)]), part.total([ad, bc])

    def divide(self, x: Complex, divisor: Value) -> Complex:
        """Both parts divided by a real number and rounded."""
        return self.part.divide(x[0], divisor), self.part.divide(x[1], divisor)

    def is_finite(self, x: Complex) -> bool:
        """Whether both parts are numbers."""
        return self.part.is_finite(x[0]) and self.part.is_finite(x[1])


def accumulating(dtype: str, accumulator: str | None = None) -> Field[Any]:
    """The numbers that operands of a dtype are accumulated in, by default those of the canon.

    Raises:
        BadArgument: the dtype has no accumulator.
    """
    name = accumulator or (dtype if dtype in COMPONENTS else ACCUMULATORS.get(dtype))
    if name is None:
        raise BadArgument("dtype", dtype, f"one of {', '.join((*ACCUMULATORS, *COMPONENTS))}", "LANG-10-02")
    return ComplexField(component_format(name)) if name in COMPONENTS else RealField(FORMATS[name])


def elements_of(tensor: Tensor) -> list[Any]:
    """The exact value of every element, a pair where it is complex."""
    values = values_of(tensor)
    if tensor.dtype not in COMPONENTS:
        return list(values)
    return list(zip(values[::2], values[1::2], strict=True))


def tensor_from(dtype: str, shape: tuple[int, ...], elements: Sequence[Any], *, nonfinite: bool = False) -> Tensor:
    """Elements rounded once to `dtype`."""
    flat = [part for pair in elements for part in pair] if dtype in COMPONENTS else list(elements)
    return tensor_of(dtype, shape, flat, nonfinite=nonfinite)


# Exact sums of many numbers, fast: integer sums in windows of 64 bits, after Kulisch.
#
# numpy does integer arithmetic here and nothing else. A number is a significand times a power of two; significands
# whose exponents fall into one window are shifted to its lower end and added as integers, which cannot overflow and
# so have no order; the windows are put together as Python integers.


Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

MOST_TERMS = 1 << 24
HALF_BITS = 27
"""Significands of more bits than an fp32 one are added in two halves, of which this is the lower."""


@dataclass(frozen=True)
class ExactSums:
    """The sums of rows of numbers: integers that count units of 2**exponent; None for a row with an infinity or NaN."""

    totals: list[int | None]
    exponent: int

    def fractions(self) -> list[Fraction | None]:
        """The sums as rational numbers."""
        unit = Fraction(2) ** self.exponent
        return [None if total is None else total * unit for total in self.totals]

    def rounded(self, target: FloatFormat) -> list[int | None]:
        """The codes that the sums round to, once."""
        return [None if total is None else target.encode(total) for total in self.fractions()]


def exact_sum(x: Tensor, axis: int = -1, *, magnitudes: bool = False) -> ExactSums:
    """The exact sums of a real floating-point tensor along an axis, or of its magnitudes, row-major.

    Raises:
        BadArgument: the tensor is not one of real floats, or has too many terms in a row.
    """
    if not x.format.is_float or x.dtype in COMPONENTS:
        raise BadArgument("dtype", x.dtype, "a real floating-point dtype")
    length = x.shape[axis]
    if length > MOST_TERMS:
        raise BadArgument("shape", list(x.shape), f"at most {MOST_TERMS} terms in a row")
    lines = np.moveaxis(x.words().reshape(x.shape), axis, -1)
    words = lines.reshape(math.prod(lines.shape[:-1]), length)
    significands, exponents, finite = _decoded(words, x.format)
    if magnitudes:
        significands = np.abs(significands)
    totals, lowest = _totals(significands, exponents, x.format.fraction_bits + 1)
    whole = finite.all(axis=1).tolist()
    return ExactSums([total if known else None for total, known in zip(totals, whole, strict=True)], lowest)


def _decoded(words: Any, layout: ElementFormat) -> tuple[Integers, Integers, Any]:
    """Signed significands, the exponents of their units, and which elements are finite; the others count as zero."""
    codes = words.astype(np.int64)
    fields = (codes >> layout.fraction_bits) & ((1 << layout.exponent_bits) - 1)
    fractions = codes & ((1 << layout.fraction_bits) - 1)
    highest = (1 << layout.exponent_bits) - 1
    last = (1 << layout.fraction_bits) - 1
    finite = (fields < highest) if layout.has_infinity else (fields < highest) | (fractions < last)
    sizes = np.where(fields > 0, fractions | (1 << layout.fraction_bits), fractions) * finite
    negative = (codes >> (layout.exponent_bits + layout.fraction_bits)) & 1
    bias = (highest >> 1) + layout.fraction_bits
    return np.where(negative == 1, -sizes, sizes), np.maximum(fields, 1) - bias, finite


def _totals(significands: Integers, exponents: Integers, bits: int) -> tuple[list[int], int]:
    """The sum of each row, in units of the smallest exponent there is."""
    count = significands.shape[0]
    present = significands != 0
    if not present.any():
        return [0] * count, 0
    lowest = int(exponents[present].min())
    if bits <= HALF_BITS:
        return _windowed(significands, exponents - lowest, present, bits), lowest
    upper = significands >> HALF_BITS
    halves = (upper, HALF_BITS), (significands - (upper << HALF_BITS), 0)
    totals = [0] * count
    for half, shift in halves:
        part = _windowed(half, exponents - lowest, present, HALF_BITS)
        totals = [total + (more << shift) for total, more in zip(totals, part, strict=True)]
    return totals, lowest


def _windowed(significands: Integers, places: Integers, present: Any, bits: int) -> list[int]:
    """The sum of significands at their places, window by window; no window's sum reaches 63 bits."""
    count, length = significands.shape
    width = 62 - bits - length.bit_length()
    windows = places // width
    shifted = significands << (places - windows * width)
    totals = [0] * count
    used = np.unique(windows[present]).tolist()
    for window in used:
        sums = (shifted if len(used) == 1 else np.where(windows == window, shifted, 0)).sum(axis=1).tolist()
        totals = [total + (part << (window * width)) for total, part in zip(totals, sums, strict=True)]
    return totals


# Lines of elements along an axis, and tensors stacked along a new one.


@dataclass(frozen=True)
class Lines:
    """The flat places of the elements along an axis, a list for each result, in row-major order of the results."""

    places: list[list[int]]
    reduced: tuple[int, ...]
    kept: tuple[int, ...]

    def shape(self, keepdims: bool) -> tuple[int, ...]:
        """The shape of the results: the axis is dropped, or kept with extent 1."""
        return self.kept if keepdims else self.reduced


def along(shape: tuple[int, ...], axis: int) -> Lines:
    """The lines of a tensor along an axis from -rank to rank-1.

    Raises:
        BadArgument: there is no such axis.
    """
    moved = _axis_last(shape, axis)
    axis %= len(shape)
    places = moved.reshape(prod(moved.shape[:-1]), shape[axis]).tolist()
    return Lines(places, moved.shape[:-1], (*shape[:axis], 1, *shape[axis + 1 :]))


def channels(shape: tuple[int, ...], axis: int) -> list[list[int]]:
    """The flat places of the elements at each position along an axis, in row-major order.

    Raises:
        BadArgument: there is no such axis.
    """
    moved = _axis_last(shape, axis)
    found: list[list[int]] = moved.reshape(prod(moved.shape[:-1]), moved.shape[-1]).T.tolist()
    return found


def _axis_last(shape: tuple[int, ...], axis: int) -> Any:
    """The flat place of each element, the axis moved to the end."""
    rank = len(shape)
    if not -rank <= axis < rank:
        raise BadArgument("axis", axis, f"an axis from {-rank} to {rank - 1} of a tensor of rank {rank}")
    return np.moveaxis(np.arange(prod(shape)).reshape(shape), axis, -1)


def stacked(inputs: tuple[Tensor, ...]) -> Tensor:
    """The contributions along a new first axis.

    Raises:
        BadArgument: there are none, or they differ in dtype or shape.
    """
    forms = {(x.dtype, x.shape) for x in inputs}
    if len(forms) != 1:
        raise BadArgument("inputs", sorted(map(str, forms)), "one tensor of each rank, all of one dtype and shape")
    ((dtype, shape),) = forms
    return Tensor(dtype, (len(inputs), *shape), b"".join(x.data for x in inputs))
