"""Where an implementation departs from the reference arithmetic, as a value; and the arithmetic of its steps.

Numbers are the exact values of the oracle, so that a departure costs a few microseconds a step and is the same on every
machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

from tessera_conformance.arithmetic.model import Rounding
from tessera_conformance.arithmetic.rounding import flushed, rounded
from tessera_conformance.diagnosis.orders import ORDERS
from tessera_conformance.oracle import exact
from tessera_conformance.oracle.exact import NAN, ZERO, Value
from tessera_conformance.oracle.formats import ACCUMULATORS, FORMATS, TF32_OPERAND, FloatFormat, Format, IntegerFormat
from tessera_conformance.oracle.functions import evaluate

OWN = "own"
"""The operands' own dtype, as an accumulator or as what products are rounded to."""

TRUNCATED = "tf32_truncated"
"""What operands of tf32 are where the bits that tf32 lacks are cut off."""

WIDE = FloatFormat(exponent_bits=15, fraction_bits=160)
"""Stands for the exact value of an elementary function, which is then rounded in another way.

Its range lies within that of MPFR, so that an enclosure at its end is decided too.
"""


class GaveUp(Exception):
    """The budget of a diagnosis is used up."""


class Budget:
    """A count of steps that a diagnosis may take: the same on every machine. `spend` raises `GaveUp` at the end."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Take steps off. Raises `GaveUp` where there are none left."""
        self.left -= steps
        if self.left < 0:
            raise GaveUp


@dataclass(frozen=True)
class Departure:
    """What an implementation does otherwise; an empty field is as the reference arithmetic has it.

    `order` is a name of `ORDERS`; `accumulator` and `through` (what a result is rounded to first) are dtypes or `own`;
    `product` is `fused`, `own` or a dtype; `operands` a dtype that operands are rounded to; `flushed` one of
    `operands`, `results`, `both`, `steps`; `overflow` is `saturate`, `saturate_all` (infinite operands too) or
    `nonfinite`; `start` is `zero` where a sum begins with +0, `none` where it begins with its first term; `form` is
    another formula of the operation; `layout` is what is read or written column by column, `left`, `right`, `both` or
    `result`; `tail` leaves out what exceeds a multiple of so many `terms` or `results`; `signs` says that no zero is
    negative: of `steps`, before the last rounding, or of `results`.
    """

    order: str = ""
    accumulator: str = ""
    product: str = ""
    steps: Rounding = "nearest_even"
    result: Rounding = "nearest_even"
    through: str = ""
    operands: str = ""
    flushed: str = ""
    overflow: str = ""
    start: str = ""
    form: str = ""
    layout: str = ""
    tail: tuple[str, int] | None = None
    signs: str = ""

    def __or__(self, other: Departure) -> Departure:
        """Both departures together."""
        changes = {name: getattr(other, name) for name in other.changed}
        return replace(self, **changes)

    @property
    def changed(self) -> frozenset[str]:
        """The names of the fields that differ from the canon."""
        return frozenset(each.name for each in fields(self) if getattr(self, each.name) != each.default)


CANON = Departure()


@dataclass(frozen=True)
class Product:
    """An exact product on its way into the sum that takes it unrounded."""

    value: Value


class Steps:
    """The steps of an operation under a departure: sums, products and functions in one format.

    Every rounding is taken off the budget. A sum that starts before its first term starts from `neutral`.
    """

    neutral: Value = ZERO

    def __init__(self, dtype: str, departure: Departure, budget: Budget) -> None:
        self.dtype, self.departure, self.budget = dtype, departure, budget
        self.format: Format = FORMATS[accumulator_of(dtype, departure)]

    def operand(self, value: Value, dtype: str, *, factor: bool = False) -> Value:
        """An operand as the implementation sees it; a `factor` of tf32 has ten fraction bits."""
        changed, form = self.departure.operands, FORMATS[dtype]
        if changed == TRUNCATED:
            value = rounded(value, TF32_OPERAND, "toward_zero") if dtype == "tf32" else value
        elif changed and isinstance(form, FloatFormat):
            value = narrowed(value, changed)
        if factor and dtype == "tf32":
            value = value if changed == "fp32" else TF32_OPERAND.round(value)
        if self.departure.flushed in ("operands", "both"):
            value = flushed(value, form)
        return value

    def round(self, value: Value, format_: Format | None = None) -> Value:
        """A value rounded as every step is."""
        self.budget.spend()
        form = format_ or self.format
        if isinstance(form, IntegerFormat) and self.departure.overflow.startswith("saturate"):
            return limited(value, form)
        found = rounded(value, form, self.departure.steps)
        return flushed(found, form) if self.departure.flushed == "steps" else found

    def constant(self, value: Fraction | int | float) -> Value:
        """A constant, rounded once to the accumulator type."""
        return self.format.round(Fraction(value))

    def add(self, x: Any, y: Any) -> Value:
        """The sum; of two products that wait to be rounded, the first is rounded."""
        if isinstance(x, Product) and isinstance(y, Product):
            x = self.round(x.value)
        return self.round(exact.add(_value(x), _value(y)))

    def join(self, terms: Sequence[Any]) -> Value:
        """The exact sum, rounded once."""
        return self.round(reduce(exact.add, map(_value, terms)))

    def align(self, terms: Sequence[Any], bits: int) -> Value:
        """The sum of terms, rounded toward zero; three or more keep so many bits below the largest exponent."""
        values = [_value(term) for term in terms]
        self.budget.spend(len(values))
        numbers = [value for value in values if isinstance(value, Fraction) and value]
        if numbers and len(values) > 2:
            spacing = Fraction(2) ** (max(map(exact.exponent_of, numbers)) - bits)
            values = [spacing * int(each / spacing) if isinstance(each, Fraction) else each for each in values]
        return rounded(reduce(exact.add, values), self.format, "toward_zero")

    def subtract(self, x: Any, y: Any) -> Value:
        """The difference."""
        return self.round(exact.subtract(_value(x), _value(y)))

    def size(self, x: Any) -> Fraction | float:
        """The magnitude; infinities and NaN come last."""
        value = _value(x)
        if value is NAN or exact.is_infinite(value):
            return float("inf")
        return abs(exact.finite(value))

    def multiply(self, x: Value, y: Value) -> Value:
        """The product."""
        return self.round(exact.multiply(x, y))

    def factor(self, x: Value, y: Value) -> Any:
        """A product that is going to be added: rounded, or not if it is fused."""
        kind = self.departure.product
        if kind == "fused":
            return Product(exact.multiply(x, y))
        product = self.multiply(x, y)
        return self.round(product, FORMATS[self.dtype if kind == OWN else kind]) if kind else product

    def divide(self, x: Value, y: Value) -> Value:
        """The quotient."""
        return self.round(exact.divide(x, y))

    def function(self, name: str, *operands: Value) -> Value:
        """An elementary function, rounded once."""
        self.budget.spend(4)
        form = self.format
        assert isinstance(form, FloatFormat)
        if self.departure.steps == "nearest_even":
            return self.round(function(name, form, *operands))
        return self.round(function(name, WIDE, *operands))

    def total(self, terms: Sequence[Any], order: str) -> Value:
        """The sum of terms in the order of the departure, by default `order`; the empty sum is +0."""
        kept = self.kept(terms)
        if not kept:
            return ZERO
        total = self.round(_value(ORDERS[self.departure.order or order].run(kept, self)))
        return self.add(total, self.neutral) if self.departure.start == "zero" else total

    def kept(self, terms: Sequence[Any]) -> Sequence[Any]:
        """The terms that are taken: all, or those of whole tiles."""
        tail = self.departure.tail
        return terms[: len(terms) - len(terms) % tail[1]] if tail and tail[0] == "terms" else terms

    def code(self, value: Value, dtype: str, *, nonfinite: bool = False) -> int:
        """The code of a result, rounded once to its dtype, or as the departure has it."""
        self.budget.spend()
        form, departure = FORMATS[dtype], self.departure
        if not isinstance(form, FloatFormat):
            assert isinstance(form, IntegerFormat)
            return form.encode(limited(value, form) if departure.overflow.startswith("saturate") else value)
        through = self.dtype if departure.through == OWN else departure.through
        if through and through != dtype:
            value = narrowed(value, through)
        if departure.signs == "steps":
            value = FORMATS[ACCUMULATORS.get(dtype, dtype)].round(value)
            value = ZERO if value is exact.NEGATIVE_ZERO else value
        if departure.result != "nearest_even":
            value = rounded(value, form, departure.result)
        code = form.encode(value, nonfinite=nonfinite or departure.overflow == "nonfinite")
        magnitude = code & (form.sign_bit - 1)
        overflows = magnitude > form.largest_code and value is not NAN
        if overflows and (departure.overflow == "saturate_all" or (departure.overflow and isinstance(value, Fraction))):
            return code if departure.overflow == "nonfinite" else (code & form.sign_bit) | form.largest_code
        if departure.flushed in ("results", "both") and 0 < magnitude < 1 << form.fraction_bits:
            code &= form.sign_bit
        return 0 if code == form.sign_bit and departure.signs == "results" else code


def accumulator_of(dtype: str, departure: Departure) -> str:
    """The dtype that operands of `dtype` are accumulated in: integers in integers, floats in floats."""
    right = ACCUMULATORS.get(dtype, dtype)
    name = dtype if departure.accumulator == OWN else departure.accumulator or right
    fits = isinstance(FORMATS[name], FloatFormat) == isinstance(FORMATS[right], FloatFormat)
    return name if fits else right


@lru_cache(maxsize=1 << 15)
def function(name: str, form: FloatFormat, *operands: Value) -> Value:
    """An elementary function rounded to nearest; the same arguments come up in one departure after the other."""
    return evaluate(name, form, *operands)


def narrowed(value: Value, dtype: str) -> Value:
    """A value rounded to a dtype on the way; tf32 has ten fraction bits."""
    return (TF32_OPERAND if dtype == "tf32" else FORMATS[dtype]).round(value)


def limited(value: Value, form: IntegerFormat) -> Value:
    """An integer, or the nearest end of the range."""
    least, greatest = -(1 << (form.bits - 1)), (1 << (form.bits - 1)) - 1
    return Fraction(min(max(int(exact.finite(value)), least), greatest))


def _value(x: Any) -> Value:
    return x.value if isinstance(x, Product) else x
