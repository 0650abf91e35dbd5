"""Enclosures of derivatives: reverse-mode differentiation of a program on intervals.

LANG-05.5-01 defines a gradient, and no text defines the steps of its computation. So a model of the function is run on
`Number`s, which record their operands. The textbook adjoint of each step builds its contribution, all in the operand's
dtype. It is computed exactly, which encloses the derivative itself, and with the error that every step may have. A
gradient may differ from the derivative `BUDGET` times as much as that textbook computation may. The slope of an
elementary function may have a larger error: it has forms as different as 1 - tanh(x)**2 and 1 / cosh(x)**2. Adjoints
build numbers like any other program, so derivatives have derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce
from itertools import count
from math import ceil
from typing import TypeAlias

from tessera_conformance.oracle.bounds import operations
from tessera_conformance.oracle.bounds.intervals import (
    DOWN,
    EXACT,
    FUNCTION_ULPS,
    UP,
    Enclosure,
    Interval,
    Steps,
    Unpromised,
    enclosure,
    point,
    promised,
)
from tessera_conformance.oracle.exact import FloatFormat, finite, float_format, values_of
from tessera_conformance.tensors import Tensor

BUDGET = 2

_serial = count()


@dataclass(frozen=True)
class Arithmetic:
    """The format to which steps round, and their errors."""

    format: FloatFormat
    steps: Steps


@dataclass(frozen=True, eq=False)
class Number:
    """A number of a program: its exact and its computed interval, its operands, and its adjoint."""

    ideal: Interval
    actual: Interval
    arithmetic: Arithmetic
    operands: tuple[Number, ...] = ()
    adjoint: Callable[[Number], tuple[Number, ...]] = lambda dy: ()
    serial: int = -1

    def __post_init__(self) -> None:
        object.__setattr__(self, "serial", next(_serial))

    def beside(self, value: Fraction | int) -> Number:
        """Return a literal, rounded once if its format does not hold it."""
        interval, format_ = Interval.around(value), self.arithmetic.format
        is_exact = format_.round(Fraction(value)) == value
        return self.made(interval, interval if is_exact else self.arithmetic.steps.rounded(interval, format_))

    def made(self, ideal: Interval, actual: Interval, *operands: Number, adjoint: Adjoint | None = None) -> Number:
        """Return the result of a step; without an adjoint it has no operands."""
        return Number(ideal, actual, self.arithmetic, operands if adjoint else (), adjoint or (lambda dy: ()))

    def __add__(self, other: Number) -> Number:
        return self._rounded(self.ideal + other.ideal, self.actual + other.actual, other, lambda dy: (dy, dy))

    def __sub__(self, other: Number) -> Number:
        return self._rounded(self.ideal - other.ideal, self.actual - other.actual, other, lambda dy: (dy, -dy))

    def __mul__(self, other: Number) -> Number:
        return self._rounded(
            self.ideal * other.ideal, self.actual * other.actual, other, lambda dy: (dy * other, dy * self)
        )

    def __truediv__(self, other: Number) -> Number:
        actual = self.arithmetic.steps.quotient(self.actual, other.actual, self.arithmetic.format)
        return self.made(
            self.ideal / other.ideal,
            actual,
            self,
            other,
            adjoint=lambda dy: (dy / other, -(dy * ((self / other) / other))),
        )

    @property
    def spread(self) -> Number:
        """This slope, widened by the differences between other forms of the same derivative."""
        units = ceil(2 * self.arithmetic.steps.ulps) + 4
        actual = self.arithmetic.steps.relative(self.actual, units, self.arithmetic.format)
        return self.made(self.ideal, actual, self, adjoint=lambda dy: (dy,))

    def __neg__(self) -> Number:
        return self.made(-self.ideal, -self.actual, self, adjoint=lambda dy: (-dy,))

    @property
    def constant(self) -> Number:
        """The same number, without operands."""
        return self.made(self.ideal, self.actual)

    def _rounded(self, ideal: Interval, actual: Interval, other: Number, adjoint: Adjoint) -> Number:
        actual = self.arithmetic.steps.rounded(actual, self.arithmetic.format)
        return self.made(ideal, actual, self, other, adjoint=adjoint)


Adjoint: TypeAlias = Callable[[Number], tuple[Number, ...]]
Model: TypeAlias = Callable[..., Sequence[Number]]
"""Maps a list of numbers for each operand, row-major, to the numbers of the result."""


def function(name: str, *operands: Number) -> Number:
    """Return an elementary function."""
    first, format_ = operands[0], operands[0].arithmetic.format
    ideal = EXACT.function(name, format_, *(operand.ideal for operand in operands))
    actual = first.arithmetic.steps.function(name, format_, *(operand.actual for operand in operands))

    def adjoint(dy: Number) -> tuple[Number, ...]:
        return tuple(dy * slope.spread for slope in SLOPES[name](number, *operands))

    number = first.made(ideal, actual, *operands, adjoint=adjoint)
    return number


def sigmoid(x: Number) -> Number:
    """1 / (1 + exp(-x)), whose derivative is taken from its value."""
    ideal, actual = (
        operations.sigmoid(steps, x.arithmetic.format, interval)
        for steps, interval in ((EXACT, x.ideal), (x.arithmetic.steps, x.actual))
    )
    number = x.made(ideal, actual, x, adjoint=lambda dy: (dy * (number * (number.beside(1) - number)).spread,))
    return number


def total(terms: Sequence[Number]) -> Number:
    """Return a sum from left to right: no other order has a larger error."""
    return reduce(lambda a, b: a + b, terms)


@cache
def _log_2(x: Arithmetic) -> Number:
    interval = Interval(DOWN.log(2), UP.log(2))
    return Number(interval, x.steps.rounded(interval, x.format), x)


@cache
def _two_over_root_pi(x: Arithmetic) -> Number:
    interval = Interval(DOWN.div(2, UP.sqrt(UP.const_pi())), UP.div(2, DOWN.sqrt(DOWN.const_pi())))
    return Number(interval, x.steps.rounded(interval, x.format), x)


def _pow(y: Number, a: Number, b: Number) -> tuple[Number, ...]:
    return b * function("pow", a, b - b.beside(1)), y * function("log", a)


SLOPES: Mapping[str, Callable[..., tuple[Number, ...]]] = {
    "exp": lambda y, x: (y,),
    "exp2": lambda y, x: (y * _log_2(x.arithmetic),),
    "expm1": lambda y, x: (y + y.beside(1),),
    "log": lambda y, x: (x.beside(1) / x,),
    "log2": lambda y, x: (x.beside(1) / (x * _log_2(x.arithmetic)),),
    "log1p": lambda y, x: (x.beside(1) / (x + x.beside(1)),),
    "sin": lambda y, x: (function("cos", x),),
    "cos": lambda y, x: (-function("sin", x),),
    "tan": lambda y, x: (y * y + y.beside(1),),
    "sinh": lambda y, x: (function("cosh", x),),
    "cosh": lambda y, x: (function("sinh", x),),
    "tanh": lambda y, x: (y.beside(1) - y * y,),
    "erf": lambda y, x: (_two_over_root_pi(x.arithmetic) * function("exp", -(x * x)),),
    "sqrt": lambda y, x: (y.beside(1) / (y + y),),
    "rsqrt": lambda y, x: (-(x.beside(Fraction(1, 2)) * (y * (y * y))),),
    "reciprocal": lambda y, x: (-(y * y),),
    "pow": _pow,
}
"""The slope of each elementary function in each operand, from the result and the operands."""


def gradient(ys: Sequence[Number], seeds: Sequence[Number], xs: Sequence[Number]) -> list[Number]:
    """Return the derivative of the sum of seeds times ys with respect to each of xs."""
    adjoints: dict[int, Number] = {}
    behind: dict[int, Number] = {}

    def give(target: Number, dy: Number) -> None:
        adjoints[target.serial] = adjoints[target.serial] + dy if target.serial in adjoints else dy
        behind[target.serial] = target

    for y, seed in zip(ys, seeds, strict=True):
        give(y, seed)
    serials = {x.serial for x in xs}
    while rest := behind.keys() - serials:
        target = behind.pop(max(rest))
        for operand, dy in zip(target.operands, target.adjoint(adjoints[target.serial]), strict=True):
            give(operand, dy)
    return [adjoints.get(x.serial) or x.beside(0) for x in xs]


def numbers_of(tensor: Tensor, arithmetic: Arithmetic) -> list[Number]:
    """Return the elements of a tensor; subnormal ones may be flushed. Raises `Unpromised`: one is NaN or infinite."""
    numbers = []
    for value in values_of(tensor):
        interval = point(value)
        numbers.append(Number(interval, arithmetic.steps.operand(interval, arithmetic.format), arithmetic))
    return numbers


def enclosed(
    model: Model, operands: Sequence[Tensor], weights: Tensor, which: int = 0, *, ulps: float = FUNCTION_ULPS
) -> list[Enclosure | None]:
    """Return enclosures of the gradient of a model's weighted results, for each element of one operand.

    An elementary function may have an error of `ulps`. None means that nothing is promised.
    """
    arithmetic = Arithmetic(float_format(operands[which].dtype), Steps(ulps))
    try:
        numbers = [numbers_of(operand, arithmetic) for operand in operands]
        ys = model(*numbers)
        seeds = [ys[0].beside(finite(value)) for value in values_of(weights)]
        derivatives = gradient(ys, seeds, numbers[which])
    except Unpromised:
        return [None] * operands[which].size
    return [promised(_within_budget, derivative) for derivative in derivatives]


def _within_budget(number: Number) -> Enclosure:
    single = enclosure(number.ideal, number.actual, "the textbook adjoint, its error twice")
    return Enclosure(single.exact, BUDGET * single.error, single.rule)
