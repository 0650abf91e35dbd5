"""A test that the errors of many inner products are those of roundings: bound, variance and bias, as TOSA has them.

TOSA specification, "Dot product accuracy requirements", with the limits of its reference model of 2025. The error of
each result is measured in units of u times the sum of the magnitudes of its products. Here u is the unit roundoff of
the result type, or of the smallest normal number where that is more. With KS products, and KSB = KS / 2**(difference
of the fraction bits of accumulator and result), rounded up:

- bound: no error is beyond 2 KSB;
- variance: the mean of the squared errors is at most 1.6 KSB;
- bias: the sum of T errors is at most sqrt(16 KSB T), for data whose products are not biased to one sign.

The bound grows like the number of terms, and real errors only like its root. At KS = 512, operands that were rounded to
tf32 still lie within it, and only the variance test refuses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tessera_conformance.check import Check
from tessera_conformance.oracle.bounds.intervals import Terms
from tessera_conformance.oracle.bounds.operations import inner_products
from tessera_conformance.oracle.exact import (
    FloatFormat,
    Value,
    accumulator_format,
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
class Rule:
    """One rule: the measured value of the errors, and its limit."""

    name: str
    found: Fraction
    limit: Fraction

    @property
    def accepted(self) -> bool:
        """True if the limit is kept."""
        return self.found <= self.limit


def judge_errors(check: Check, factors: Sequence[Tensor], actual: Any, level: str, *, unbiased: bool) -> None:
    """Check the product of the factors, which has their dtype, by every rule; the failing rule is named."""
    a, b = factors
    form = (actual.dtype, actual.shape) if isinstance(actual, Tensor) else None
    check.equal(form, (a.dtype, (a.shape[0], b.shape[1])), "dtype and shape")
    for rule in rules_of_products(a, b, actual, unbiased=unbiased):
        what = f"{level}: the {rule.name} of the errors in units of roundoff is at most {float(rule.limit):.4g}"
        check.true(rule.accepted, what, float(rule.found))


def rules_of_products(a: Tensor, b: Tensor, result: Tensor, *, unbiased: bool) -> list[Rule]:
    """Return the rules on a product of real floats (M, K) and (K, N); the bound alone if a result is NaN or infinite.

    With `unbiased`, the products of the data are as often positive as negative, and the bias test is added.
    """
    target = float_format(result.dtype)
    spare = max(accumulator_format(a.dtype).fraction_bits - target.fraction_bits, 0)
    units = -(-a.shape[-1] // (1 << spare))
    errors = []
    for terms, value in zip(inner_products(a, b), values_of(result), strict=True):
        error = _error(terms, value, units, target)
        if error is None:
            return [Rule("bound", BOUND * units + 1, BOUND * units)]
        errors.append(error)
    total, squares = sum(errors, Fraction(0)), sum((error * error for error in errors), Fraction(0))
    return [
        Rule("bound", max(map(abs, errors)), BOUND * units),
        Rule("variance", squares / len(errors), VARIANCE * units),
        *([Rule("bias, squared", total * total / len(errors), SQUARED_BIAS * units)] if unbiased else []),
    ]


def _error(terms: Terms | None, value: Value, units: int, target: FloatFormat) -> Fraction | None:
    """Return an error in units; zero if nothing is promised, None if the result is no number."""
    unit_roundoff = Fraction(1, 2 << target.fraction_bits)
    if terms is None or terms.magnitude * (1 + BOUND * units * unit_roundoff) > target.largest:
        return Fraction(0)
    if not (isinstance(value, Fraction) or is_zero(value)) or (terms.magnitude == 0 and not is_zero(value)):
        return None
    # Rounded to 64 bits: the squares of errors with exact denominators would grow with every result.
    error = (finite(value) - terms.exact) / max(terms.magnitude * unit_roundoff, target.smallest_normal)
    return Fraction(round(error * (1 << 64)), 1 << 64)
