"""Departures of an implementation from the reference arithmetic, as values: orders of sums, and steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache, partial, reduce
from typing import Any, NamedTuple, TypeAlias

from tessera_conformance.arithmetic.replay import Pending, aligned, exact_of, flushed
from tessera_conformance.oracle import exact
from tessera_conformance.oracle.elementwise import evaluate
from tessera_conformance.oracle.exact import (
    ACCUMULATORS,
    FORMATS,
    NAN,
    TF32_OPERAND,
    ZERO,
    FloatFormat,
    Format,
    IntegerFormat,
    Rounding,
    Value,
)

# Orders in which implementations add up many terms, by name, each with the words that a diagnosis says.
#
# An order is a function of the terms and the `Steps` that add them. The names are those of the violators of reductions
# and products where they mean the same. Language specification, sections 10 and 15; reference arithmetic, "Orders of
# reduction".


Terms: TypeAlias = Sequence[Any]


Run: TypeAlias = "Callable[[Terms, Steps], Any]"


class Order(NamedTuple):
    """An order of addition: the sum in words, and the function that adds at least one term."""

    words: str
    run: Run


def fold(terms: Terms, steps: Steps) -> Any:
    """((x0 + x1) + x2) + ..."""
    return reduce(steps.add, terms)


def pairwise(terms: Terms, steps: Steps, *, tail: bool = True) -> Any:
    """Add neighbours repeatedly; an odd term at the end moves up, or is left out."""
    row = list(terms)
    while len(row) > 1:
        odd = row[len(row) & ~1 :] if tail else []
        row = [steps.add(x, y) for x, y in zip(row[::2], row[1::2], strict=False)] + odd
    return row[0]


def strided_halves(terms: Terms, steps: Steps) -> Any:
    """Add the first half to the second repeatedly; an odd term moves to the next round."""
    row = list(terms)
    while len(row) > 1:
        half = (len(row) + 1) // 2
        rest = len(row) - half
        row = [steps.add(x, y) for x, y in zip(row[:rest], row[half:], strict=True)] + row[rest:half]
    return row[0]


def in_two(terms: Terms, steps: Steps, place: int, order: Run) -> Any:
    """Add the terms before a place and those from it on, each in an order of their own."""
    return steps.add(order(terms[:place], steps), order(terms[place:], steps)) if place else order(terms, steps)


def split_in_the_middle(terms: Terms, steps: Steps) -> Any:
    """Each half is summed for itself, by recursion."""
    return in_two(terms, steps, len(terms) // 2, split_in_the_middle) if len(terms) > 1 else terms[0]


def kahan(terms: Terms, steps: Steps) -> Any:
    """A left fold that carries the part that each addition loses."""
    total, lost = terms[0], None
    for term in terms[1:]:
        corrected = term if lost is None else steps.subtract(term, lost)
        following = steps.add(total, corrected)
        gained = steps.subtract(following, total)
        lost = steps.subtract(gained, corrected) if steps.size(following) < math.inf else None
        total = following
    return total


def numpy(terms: Terms, steps: Steps) -> Any:
    """Add as numpy does along contiguous memory: eight lanes in blocks of up to 128 terms, larger rows split."""
    count = len(terms)
    if count < 8:
        return fold(terms, steps)
    if count > 128:
        return in_two(terms, steps, count // 2 - count // 2 % 8, numpy)
    whole = count - count % 8
    return fold([lanes(8)(terms[:whole], steps), *terms[whole:]], steps)


def blocks(size: int, across: Run = fold) -> Run:
    """A fold of each block of consecutive terms; the blocks are then added in the order `across`."""

    def run(terms: Terms, steps: Steps) -> Any:
        return across([fold(terms[at : at + size], steps) for at in range(0, len(terms), size)], steps)

    return run


def lanes(count: int, across: Run = pairwise) -> Run:
    """Add term i to partial result i mod `count`; then add the partial results in the order `across`."""

    def run(terms: Terms, steps: Steps) -> Any:
        return across([fold(terms[lane::count], steps) for lane in range(min(count, len(terms)))], steps)

    return run


def fused(size: int) -> Run:
    """Add so many terms at once to a running total, exactly, as tensor cores do."""

    def run(terms: Terms, steps: Steps) -> Any:
        total = steps.join(terms[:size])
        for at in range(size, len(terms), size):
            total = steps.join([total, *terms[at : at + size]])
        return total

    return run


def tensor_core(size: int) -> Run:
    """Add so many products at once to a running total from the start value, aligned and truncated."""

    def run(terms: Terms, steps: Steps) -> Any:
        total = terms[0]
        for at in range(1, len(terms), size):
            total = steps.align([total, *terms[at : at + size]], ALIGNED_BITS)
        return total

    return run


ALIGNED_BITS = 24
"""Bits below the largest exponent that the adder of a tensor core keeps."""
SIZES = (4, 8, 16, 32, 64)

ORDERS: Mapping[str, Order] = {
    "fold": Order("a left fold of the sum", fold),
    "pairwise": Order("the pairwise tree of the sum", pairwise),
    "backwards": Order(
        "a fold of the sum from the last term to the first", lambda terms, steps: fold(terms[::-1], steps)
    ),
    "two_halves": Order(
        "a fold of each half of the terms", lambda terms, steps: in_two(terms, steps, len(terms) // 2, fold)
    ),
    "split_in_the_middle": Order("a sum that splits its terms in the middle", split_in_the_middle),
    "strided_halves": Order("a sum of the first half and the second, repeatedly", strided_halves),
    "ring": Order(
        "a fold of the sum that begins at the second term", lambda terms, steps: fold([*terms[1:], *terms[:1]], steps)
    ),
    "without_tail": Order("a sum of neighbours, an odd one left out each time", partial(pairwise, tail=False)),
    "numpy": Order("a sum as numpy adds, by eight lanes in blocks of 128", numpy),
    "kahan": Order("Kahan's compensated sum", kahan),
    "at_once": Order("an exact sum that is rounded once", lambda terms, steps: steps.join(terms)),
    **{f"blocks_of_{size}": Order(f"a sum by blocks of {size} terms", blocks(size)) for size in SIZES},
    **{
        f"paired_blocks_of_{size}": Order(f"a pairwise sum of blocks of {size} terms", blocks(size, pairwise))
        for size in SIZES
    },
    "two_lanes": Order("a sum by 2 lanes", lanes(2)),
    "four_lanes": Order("a sum by 4 lanes, added pairwise", lanes(4)),
    **{f"{size}_lanes": Order(f"a sum by {size} lanes, added pairwise", lanes(size)) for size in SIZES if size > 4},
    **{
        f"{size}_lanes_{name}": Order(f"a sum by {size} lanes, added {words}", lanes(size, across))
        for size in SIZES
        for name, words, across in (("in_turn", "in turn", fold), ("halved", "half to half", strided_halves))
    },
    **{f"fused_{size}": Order(f"a fold of {size} terms at once, exactly", fused(size)) for size in SIZES[:3]},
    **{
        f"tensor_core_{size}": Order(f"a fold of {size} exact products at once, truncated", tensor_core(size))
        for size in SIZES[:3]
    },
}
"""The orders that the catalogue knows, simplest first: of several that fit, the first is named."""

# A departure from the reference arithmetic, as a value, and the arithmetic of its steps.
#
# Numbers are the exact values of the oracle, so that a departure costs a few microseconds a step and is the same on
# every machine.


OWN = "own"
"""The operands' own dtype, as an accumulator or as the dtype to which products are rounded."""

TRUNCATED = "tf32_truncated"
"""The name of operands of tf32 whose surplus bits are cut off."""

WIDE = FloatFormat(exponent_bits=15, fraction_bits=160)
"""The format of an elementary function's exact value before another rounding. Its range is within that of MPFR, so that
an enclosure at its end is decided too.
"""


class GaveUp(Exception):
    """The budget of a diagnosis is used up."""


class Budget:
    """The steps that a diagnosis may take, the same on every machine; and as a guard, processor time."""

    def __init__(self, steps: int, seconds: float) -> None:
        self.left = self._steps = self._look = steps
        self._end = time.process_time() + seconds

    @property
    def taken(self) -> int:
        """The number of steps taken."""
        return min(self._steps - self.left, self._steps)

    def spend(self, steps: int = 1) -> None:
        """Subtract steps. Raises `GaveUp` if none are left, or the time is over."""
        self.left -= steps
        if self.left < self._look - 256:
            self._look = self.left
            if time.process_time() > self._end:
                self.left = -1
        if self.left < 0:
            raise GaveUp


@dataclass(frozen=True)
class Departure:
    """A departure of an implementation; an empty field is as the reference arithmetic has it.

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

    @property
    def changed(self) -> frozenset[str]:
        """The names of the fields that differ from the reference arithmetic."""
        return frozenset(field.name for field in fields(self) if getattr(self, field.name) != field.default)


REFERENCE = Departure()


class Steps:
    """The steps of an operation under a departure: sums, products and functions in one format.

    Every rounding is charged to the budget. A sum that starts before its first term starts from `neutral`.
    """

    neutral: Value = ZERO

    def __init__(self, dtype: str, departure: Departure, budget: Budget) -> None:
        self.dtype, self.departure, self.budget = dtype, departure, budget
        self.format: Format = FORMATS[accumulator_of(dtype, departure)]

    def operand(self, value: Value, dtype: str, *, factor: bool = False) -> Value:
        """Return an operand as the implementation reads it; a `factor` of tf32 has ten fraction bits."""
        changed, form = self.departure.operands, FORMATS[dtype]
        if changed == TRUNCATED:
            value = TF32_OPERAND.round(value, "toward_zero") if dtype == "tf32" else value
        elif changed and isinstance(form, FloatFormat):
            value = narrowed(value, changed)
        if factor and dtype == "tf32":
            value = value if changed == "fp32" else TF32_OPERAND.round(value)
        if self.departure.flushed in ("operands", "both"):
            value = flushed(value, form)
        return value

    def round(self, value: Value, format_: Format | None = None) -> Value:
        """Return a value rounded as every step is."""
        self.budget.spend()
        form = format_ or self.format
        if isinstance(form, IntegerFormat) and self.departure.overflow.startswith("saturate"):
            return limited(value, form)
        result = form.round(value, self.departure.steps)
        return flushed(result, form) if self.departure.flushed == "steps" else result

    def constant(self, value: Fraction | int | float) -> Value:
        """Return a constant, rounded once to the accumulator type."""
        return self.format.round(Fraction(value))

    def add(self, x: Any, y: Any) -> Value:
        """Return the sum; of two unrounded products, the first is rounded."""
        if isinstance(x, Pending) and isinstance(y, Pending):
            x = self.round(x.value)
        return self.round(exact.add(exact_of(x), exact_of(y)))

    def join(self, terms: Sequence[Any]) -> Value:
        """Return the exact sum, rounded once."""
        return self.round(reduce(exact.add, map(exact_of, terms)))

    def align(self, terms: Sequence[Any], bits: int) -> Value:
        """Return the sum of terms, rounded toward zero; three or more keep so many bits below the largest exponent."""
        values = [exact_of(term) for term in terms]
        self.budget.spend(len(values))
        values = aligned(values, bits) if len(values) > 2 else values
        return self.format.round(reduce(exact.add, values), "toward_zero")

    def subtract(self, x: Any, y: Any) -> Value:
        """The difference."""
        return self.round(exact.subtract(exact_of(x), exact_of(y)))

    def size(self, x: Any) -> Fraction | float:
        """Return the magnitude; infinities and NaN come last."""
        value = exact_of(x)
        if value is NAN or exact.is_infinite(value):
            return float("inf")
        return abs(exact.finite(value))

    def multiply(self, x: Value, y: Value) -> Value:
        """The product."""
        return self.round(exact.multiply(x, y))

    def factor(self, x: Value, y: Value) -> Any:
        """Return a product for a sum: rounded, or not if it is fused."""
        kind = self.departure.product
        if kind == "fused":
            return Pending(exact.multiply(x, y))
        product = self.multiply(x, y)
        return self.round(product, FORMATS[self.dtype if kind == OWN else kind]) if kind else product

    def divide(self, x: Value, y: Value) -> Value:
        """The quotient."""
        return self.round(exact.divide(x, y))

    def function(self, name: str, *operands: Value) -> Value:
        """Return an elementary function, rounded once."""
        self.budget.spend(4)
        form = self.format
        assert isinstance(form, FloatFormat)
        if self.departure.steps == "nearest_even":
            return self.round(function(name, form, *operands))
        return self.round(function(name, WIDE, *operands))

    def total(self, terms: Sequence[Any], order: str) -> Value:
        """Return the sum of terms in the order of the departure, by default `order`; the empty sum is +0."""
        used = self.kept(terms)
        if not used:
            return ZERO
        total = self.round(exact_of(ORDERS[self.departure.order or order].run(used, self)))
        return self.add(total, self.neutral) if self.departure.start == "zero" else total

    def kept(self, terms: Sequence[Any]) -> Sequence[Any]:
        """Return the terms that are added: all, or those of whole tiles."""
        tail = self.departure.tail
        return terms[: len(terms) - len(terms) % tail[1]] if tail and tail[0] == "terms" else terms

    def code(self, value: Value, dtype: str, *, nonfinite: bool = False) -> int:
        """Return the code of a result, rounded once to its dtype, or as the departure says."""
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
            value = form.round(value, departure.result)
        code = form.encode(value, nonfinite=nonfinite or departure.overflow == "nonfinite")
        magnitude = code & (form.sign_bit - 1)
        overflows = magnitude > form.largest_code and value is not NAN
        if overflows and (departure.overflow == "saturate_all" or (departure.overflow and isinstance(value, Fraction))):
            return code if departure.overflow == "nonfinite" else (code & form.sign_bit) | form.largest_code
        if departure.flushed in ("results", "both") and 0 < magnitude < 1 << form.fraction_bits:
            code &= form.sign_bit
        return 0 if code == form.sign_bit and departure.signs == "results" else code


def accumulator_of(dtype: str, departure: Departure) -> str:
    """Return the accumulator dtype of operands of `dtype`: integers for integers, floats for floats."""
    right = ACCUMULATORS.get(dtype, dtype)
    name = dtype if departure.accumulator == OWN else departure.accumulator or right
    fits = isinstance(FORMATS[name], FloatFormat) == isinstance(FORMATS[right], FloatFormat)
    return name if fits else right


@lru_cache(maxsize=1 << 15)
def function(name: str, form: FloatFormat, *operands: Value) -> Value:
    """Return an elementary function rounded to nearest; departures often call it with the same arguments."""
    return evaluate(name, form, *operands)


def narrowed(value: Value, dtype: str) -> Value:
    """Return an intermediate value rounded to a dtype; tf32 has ten fraction bits."""
    return (TF32_OPERAND if dtype == "tf32" else FORMATS[dtype]).round(value)


def limited(value: Value, form: IntegerFormat) -> Value:
    """Return an integer, or the nearest end of the range."""
    least, greatest = -(1 << (form.bits - 1)), (1 << (form.bits - 1)) - 1
    return Fraction(min(max(int(exact.finite(value)), least), greatest))
