"""Elementary functions that are not correctly rounded, or wrong at a special value (language specification, 10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.strength import Violation
from tessera_reference.numerics import elementary, ziv
from tessera_reference.numerics.elementary import cos, exp, exp2, log, log2, rsqrt, sin
from tessera_reference.numerics.formats import DType, dtype
from tessera_reference.numerics.rounding import Overflow, round_to

from .changes import changed
from .misrounding import one_off_now_and_then, toward_zero, without_subnormals

Values: TypeAlias = Any
Function: TypeAlias = Callable[..., Values]
"""Takes one or two arrays of values, their dtype and what fp8 does on overflow."""

DECIDE = ziv._decide_double
LN2, LOG2_E, HALF_PI, TAU = 0.6931471805599453, 1.4426950408889634, 1.5707963267948966, 6.283185307179586


def misjudged(name: str, description: str, functions: Mapping[str, Function]) -> Violation:
    """Return a violation that replaces some elementary functions."""
    substitution = (elementary, "FUNCTIONS", {**elementary.FUNCTIONS, **functions})
    return changed("LANG-02-04", name, description, substitution, only=functions)


def every(change: Callable[[Function], Function]) -> Mapping[str, Function]:
    """Return every function, changed in one way."""
    return {name: change(function) for name, function in elementary.FUNCTIONS.items()}


def dtype_of(operands: tuple[Any, ...]) -> DType:
    """Return the dtype among a function's arguments."""
    kind: DType = next(operand for operand in operands if isinstance(operand, DType))
    return kind


# Formulas for functions


def composed(name: str, formula: Callable[..., Values], description: str) -> Violation:
    """Return a violation with a formula for a function, every step rounded in the accumulator type, then once more."""

    def function(*operands: Any) -> Values:
        *values, kind, overflow = operands if isinstance(operands[-1], str) else (*operands, "saturate")
        wide = [value.astype(kind.accumulator.carrier) for value in values]
        with np.errstate(all="ignore"):
            return round_to(np.asarray(formula(*wide, kind.accumulator)), kind, overflow)

    return misjudged(name, description, {name.partition("_")[0]: function})


def number(value: float, like: Values) -> Values:
    """Return a constant, rounded to the type of a formula's computation."""
    return like.dtype.type(value)


def erf_by_polynomial(x: Values, kind: DType) -> Values:
    t = 1 / (1 + number(0.3275911, x) * np.abs(x))
    total = np.zeros_like(x)
    for coefficient in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        total = (total + number(coefficient, x)) * t
    return np.copysign(1 - total * exp(np.asarray(-x * x), kind), x)


def reciprocal_by_newton(x: Values, kind: DType) -> Values:
    y = round_to(np.asarray(1 / x), dtype("bf16")).astype(x.dtype)
    for _ in range(2):
        y = y * (2 - x * y)
    return y


def sin_by_turns(x: Values, kind: DType) -> Values:
    return sin(np.asarray(x - np.rint(x / number(TAU, x)) * number(TAU, x)), kind)


def tanh_by_exp(x: Values, kind: DType) -> Values:
    return 1 - 2 / (exp(np.asarray(2 * x), kind) + 1)


COMPOSED = [
    composed("exp_by_exp2", lambda x, kind: exp2(x * number(LOG2_E, x), kind), "takes exp from exp2"),
    composed("exp2_by_exp", lambda x, kind: exp(x * number(LN2, x), kind), "takes exp2 from exp"),
    composed("expm1_by_exp", lambda x, kind: exp(x, kind) - 1, "subtracts 1 from exp for expm1"),
    composed("log_by_log2", lambda x, kind: log2(x, kind) * number(LN2, x), "takes log from log2"),
    composed("log1p_by_log", lambda x, kind: log(1 + x, kind), "adds 1 and takes log for log1p"),
    composed("sin_by_turns", sin_by_turns, "reduces arguments of sin by a rounded 2 pi"),
    composed("cos_by_sin", lambda x, kind: sin(x + number(HALF_PI, x), kind), "takes cos from sin"),
    composed("tan_by_quotient", lambda x, kind: sin(x, kind) / cos(x, kind), "divides sin by cos for tan"),
    composed("sinh_by_exp", lambda x, kind: (exp(x, kind) - exp(-x, kind)) / 2, "takes sinh from two exponentials"),
    composed("cosh_by_exp", lambda x, kind: (exp(x, kind) + exp(-x, kind)) / 2, "takes cosh from two exponentials"),
    composed("tanh_by_exp", tanh_by_exp, "takes tanh from one exponential"),
    composed("erf_by_polynomial", erf_by_polynomial, "takes erf from a polynomial of five terms"),
    composed("sqrt_by_rsqrt", lambda x, kind: x * rsqrt(x, kind), "multiplies x by rsqrt for sqrt"),
    composed("reciprocal_by_newton", reciprocal_by_newton, "stops an iteration for the reciprocal early"),
    composed("pow_by_exp", lambda x, y, kind: exp(y * log(x, kind), kind), "takes pow from exp and log"),
]


# Rounding


def libm(name: str) -> Violation:
    """Return a violation whose function sometimes misses the last place if the type has 32 or 64 bits."""
    exact = elementary.FUNCTIONS[name]

    def function(*operands: Any) -> Values:
        result = exact(*operands)
        return result if dtype_of(operands).is_narrow else one_off_now_and_then(result)

    return misjudged(f"libm_{name}", f"misses the last place of {name} now and then", {name: function})


def in_wider(wide: str, narrow: Callable[[Values, DType, Overflow], Values]) -> Callable[[Function], Function]:
    """Return a change that computes functions of 8 and 16 bits in a wider type and rounds the result."""

    def change(exact: Function) -> Function:
        def function(*operands: Any) -> Values:
            *values, kind, overflow = operands if isinstance(operands[-1], str) else (*operands, "saturate")
            if not kind.is_narrow:
                return exact(*values, kind, overflow)
            middle = dtype(wide)
            return narrow(exact(*(value.astype(middle.carrier) for value in values), middle), kind, overflow)

        return function

    return change


def without_tiny_results(exact: Function) -> Function:
    def function(*operands: Any) -> Values:
        return without_subnormals(exact(*operands), dtype_of(operands))

    return function


def without_tiny_operands(exact: Function) -> Function:
    def function(*operands: Any) -> Values:
        kind = next(operand for operand in operands if isinstance(operand, DType))
        return exact(
            *(without_subnormals(operand, kind) if isinstance(operand, np.ndarray) else operand for operand in operands)
        )

    return function


def never_saturating(exact: Function) -> Function:
    def function(*operands: Any) -> Values:
        given = [operand for operand in operands if not isinstance(operand, str)]
        return exact(*given, "nonfinite")

    return function


def at_once(*of: Any) -> tuple[Values, Values]:
    result, certain = DECIDE(*of)
    return result, certain | True


ROUNDED = [
    changed("LANG-02-04", "undecided", "takes an approximation of twice the precision for the value",
            (ziv, "_decide_double", at_once), only=elementary.FUNCTIONS),
    *(libm(name) for name in elementary.FUNCTIONS),
    misjudged("double_rounding", "rounds narrow functions to fp32 first", every(in_wider("fp32", round_to))),
    misjudged("truncated", "truncates narrow functions", every(in_wider("fp64", toward_zero))),
    misjudged("flushed_results", "flushes subnormal results of functions", every(without_tiny_results)),
    misjudged("flushed_operands", "takes subnormal operands of functions for zero", every(without_tiny_operands)),
    misjudged("no_saturation", "lets fp8 functions overflow to infinity or NaN", every(never_saturating)),
]  # fmt: skip


# Special values


def special(
    name: str, wrong: Callable[..., Values], where: Callable[..., Values], description: str, function: str = ""
) -> Violation:
    """Return a violation with another result of a function if its operands satisfy a condition."""
    function = function or name.partition("_")[0]
    exact = elementary.FUNCTIONS[function]

    def answer(*operands: Any) -> Values:
        values = [operand for operand in operands if isinstance(operand, np.ndarray)]
        result = exact(*operands)
        with np.errstate(all="ignore"):
            instead = np.asarray(wrong(*values), result.dtype)
            return np.where(where(*values), instead, result)

    return misjudged(name, description, {function: answer})


def negative_zero(x: Values) -> Values:
    """Select the elements that are -0."""
    return (x == 0) & np.signbit(x)


SPECIAL = [
    special("log_of_negative_zero", lambda x: np.nan, negative_zero, "takes log(-0) for NaN"),
    special("sqrt_of_negative_zero", np.abs, negative_zero, "takes sqrt(-0) for +0"),
    special("sin_of_negative_zero", np.abs, negative_zero, "takes sin(-0) for +0"),
    special("expm1_of_negative_zero", np.abs, negative_zero, "takes expm1(-0) for +0"),
    special("tanh_of_negative_zero", np.abs, negative_zero, "takes tanh(-0) for +0"),
    special("cos_of_infinity", lambda x: 0, np.isinf, "takes the cosine of an infinity for 0"),
    special("tanh_of_infinity", lambda x: np.nan, np.isinf, "takes tanh of an infinity for NaN"),
    special("exp_of_infinity", lambda x: np.nan, lambda x: x == -np.inf, "takes exp(-inf) for NaN"),
    special("exp_of_nan", lambda x: 0, np.isnan, "takes exp(NaN) for 0"),
    special("pow_nan_0", lambda x, y: np.nan, lambda x, y: np.isnan(x) & (y == 0), "takes pow(NaN, 0) for NaN"),
    special("pow_1_nan", lambda x, y: np.nan, lambda x, y: (x == 1) & np.isnan(y), "takes pow(1, NaN) for NaN"),
    special("pow_0_0", lambda x, y: np.nan, lambda x, y: (x == 0) & (y == 0), "takes pow(0, 0) for NaN"),
    special("pow_negative", lambda x, y: np.nan, lambda x, y: x < 0, "has no powers of negative numbers"),
    special(
        "pow_unsigned", lambda x, y: np.abs(np.power(x, y)), lambda x, y: (x < 0) & np.isfinite(x) & (y == 3),
        "forgets the sign of cubes",
    ),
    special(
        "pow_minus_1_infinity", lambda x, y: np.nan, lambda x, y: (x == -1) & np.isinf(y),
        "takes pow(-1, inf) for NaN",
    ),
    special(
        "rsqrt_of_negative_zero", lambda x: np.copysign(1 / x, 1), negative_zero, "takes rsqrt(-0) for +inf"
    ),
]  # fmt: skip
