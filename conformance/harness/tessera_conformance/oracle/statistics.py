"""A test that the errors of many inner products are those of roundings: bound, bias and variance, as TOSA has them.

TOSA specification, "Dot product accuracy requirements", with the limits of its reference model of 2025. The error of
each result is measured in units of u times the sum of the magnitudes of its products. Here u is the unit roundoff of
the result type, or of the smallest normal number where that is more. With KS products, a start value counting as one
more, and KSB = KS / 2**(difference of the fraction bits of accumulator and result), rounded up:

- bound: no error is beyond 2 KSB;
- variance: the mean of the squared errors is at most 1.6 KSB;
- bias: the sum of T errors is at most sqrt(16 KSB T), for data whose products are not biased to one sign.

The bound grows like the number of terms, and real errors only like its root. At KS = 512, operands that were rounded to
tf32 still lie within it, and only the variance test refuses them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tessera_conformance.oracle.bounds.intervals import Terms
from tessera_conformance.oracle.bounds.operations import inner_products
from tessera_conformance.oracle.exact import (
    ACCUMULATORS,
    COMPONENTS,
    BadArgument,
    FloatFormat,
    Value,
    finite,
    float_format,
    is_zero,
    values_of,
)
from tessera_conformance.tensors import Tensor

BOUND = Fraction(2)
VARIANCE = Fraction(8, 5)
SQUARED_BIAS = 10 * VARIANCE


@dataclass(frozen=True)
class RuleResult:
    """One rule: the number that was found and its limit."""

    rule: str
    found: Fraction
    limit: Fraction

    @property
    def accepted(self) -> bool:
        """True if the limit is kept."""
        return self.found <= self.limit


@dataclass(frozen=True)
class StatisticalVerdict:
    """The verdict of each rule on the results."""

    rules: tuple[RuleResult, ...]

    @property
    def accepted(self) -> bool:
        """True if every rule accepts."""
        return all(rule.accepted for rule in self.rules)

    @property
    def refused_by(self) -> tuple[str, ...]:
        """The names of the rules that refuse."""
        return tuple(rule.rule for rule in self.rules if not rule.accepted)

    def sentence(self) -> str:
        """In words."""
        return "; ".join(
            f"{rule.rule} {'accepts' if rule.accepted else 'refuses'}: {float(rule.found):.4g} of at most "
            f"{float(rule.limit):.4g}"
            for rule in self.rules
        )


def judge_products(
    a: Tensor, b: Tensor, result: Tensor, *, addend: Tensor | None = None, unbiased: bool = False
) -> StatisticalVerdict:
    """Judge the matrix product of real floats (..., M, K) and (..., K, N).

    `unbiased` says that the products of the data are as often positive as negative, and adds the bias test.

    Raises `BadArgument`: the operands are not real floats, or the result has another shape.
    """
    if a.dtype in COMPONENTS or not a.format.is_float:
        raise BadArgument("a", a.dtype, "a real floating-point dtype")
    shape = (*a.shape[:-1], b.shape[-1])
    if result.shape != shape:
        raise BadArgument("result", list(result.shape), f"the shape {list(shape)}")
    target, accumulator = float_format(result.dtype), float_format(ACCUMULATORS[a.dtype])
    starts: list[Value] = [Fraction(0)] * result.size if addend is None else values_of(addend)
    units = _kernel_bound(a.shape[-1], any(not is_zero(start) for start in starts), accumulator, target)
    errors, worst = [], Fraction(0)
    for terms, start, value in zip(inner_products(a, b), starts, values_of(result), strict=True):
        error = _error(terms, start, value, units, target)
        if error is None:
            return StatisticalVerdict((RuleResult("bound", BOUND * units + 1, BOUND * units),))
        errors.append(error)
        worst = max(worst, abs(error))
    return _verdict(errors, worst, units, unbiased)


def _verdict(errors: list[Fraction], worst: Fraction, units: int, unbiased: bool) -> StatisticalVerdict:
    count = max(len(errors), 1)
    squares = sum((error * error for error in errors), Fraction(0))
    rules = [
        RuleResult("bound", worst, BOUND * units),
        RuleResult("variance", squares / count, VARIANCE * units),
    ]
    if unbiased:
        total = sum(errors, Fraction(0))
        rules.append(RuleResult("bias, squared", total * total / count, SQUARED_BIAS * units))
    return StatisticalVerdict(tuple(rules))


def _kernel_bound(count: int, started: bool, accumulator: FloatFormat, target: FloatFormat) -> int:
    """KSB: a wide accumulator adds less than one rounding of the result for many products."""
    spare = max(accumulator.fraction_bits - target.fraction_bits, 0)
    return -(-count // (1 << spare)) + started


def _error(terms: Terms | None, start: Value, value: Value, units: int, target: FloatFormat) -> Fraction | None:
    """In units; zero where nothing is promised, None where a number is wanted and there is none."""
    if terms is None or not (isinstance(start, Fraction) or is_zero(start)):
        return Fraction(0)
    exact, magnitude = terms.exact + finite(start), terms.magnitude + abs(finite(start))
    unit_roundoff = Fraction(1, 2 << target.fraction_bits)
    if magnitude * (1 + BOUND * units * unit_roundoff) > target.largest:
        return Fraction(0)
    if not (isinstance(value, Fraction) or is_zero(value)):
        return None
    if magnitude == 0:
        return Fraction(0) if is_zero(value) else None
    # To 64 bits: the squares of errors with exact denominators would grow with every result.
    error = (finite(value) - exact) / max(magnitude * unit_roundoff, target.smallest_normal)
    return Fraction(round(error * (1 << 64)), 1 << 64)
