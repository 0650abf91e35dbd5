"""The numbers that reductions work on, and lines of elements along an axis."""

from __future__ import annotations

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
from tessera_conformance.tensors import Tensor

# The numbers that reductions work on: real ones, integers, and pairs that are complex.
#
# Everything here rounds as the reference does: a real sum or product once, a complex product at every step of (ac - bd,
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
        """The product as the reference arithmetic rounds it."""

    def divide(self, x: E, divisor: Value) -> E:
        """Divided by a real number and rounded."""

    def is_finite(self, x: E) -> bool:
        """True if no part is infinite or NaN."""


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
        """True if x is a number."""
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
        """True if both parts are numbers."""
        return self.part.is_finite(x[0]) and self.part.is_finite(x[1])


def accumulating(dtype: str, accumulator: str | None = None) -> Field[Any]:
    """The numbers that operands of a dtype are accumulated in, by default those of the reference arithmetic.

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
