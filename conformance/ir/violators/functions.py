"""Elementary functions that are not correctly rounded, or wrong at a special value (language specification, 10)."""

from typing import Any

import numpy as np

from tessera_reference.numerics import elementary, ziv
from tessera_reference.numerics.elementary import cos, sin
from tessera_reference.numerics.formats import DType, dtype
from tessera_reference.numerics.rounding import round_to

from .changes import changed
from .misrounding import one_off_now_and_then, toward_zero

Values = Any

DECIDE = ziv._decide_double
LN2, LOG2_E, HALF_PI, TAU = 0.6931471805599453, 1.4426950408889634, 1.5707963267948966, 6.283185307179586


def misjudged(name, description, functions):
    """Return a violation that replaces some elementary functions."""
    substitution = ("numerics.elementary.FUNCTIONS", {**elementary.FUNCTIONS, **functions})
    return changed("LANG-02-04", name, description, substitution, only=functions)


def every(change):
    """Return every function, changed in one way."""
    return {name: change(function) for name, function in elementary.FUNCTIONS.items()}


def dtype_of(operands):
    """Return the dtype among a function's arguments."""
    return next(operand for operand in operands if isinstance(operand, DType))


# Formulas for functions


def composed(name, formula, description):
    """Return a violation with a formula for a function, every step rounded in the accumulator type, then once more."""

    def function(*operands):
        *values, kind, overflow = operands if isinstance(operands[-1], str) else (*operands, "saturate")
        wide = [value.astype(kind.accumulator.carrier) for value in values]
        with np.errstate(all="ignore"):
            return round_to(np.asarray(formula(*wide, kind.accumulator)), kind, overflow)

    return misjudged(name, description, {name.partition("_")[0]: function})


def number(value, like):
    """Return a constant, rounded to the type of a formula's computation."""
    return like.dtype.type(value)


COMPOSED = [composed("tan_by_quotient", lambda x, kind: sin(x, kind) / cos(x, kind), "divides sin by cos for tan")]


# Rounding


def libm(name):
    """Return a violation whose function sometimes misses the last place if the type has 32 or 64 bits."""
    exact = elementary.FUNCTIONS[name]

    def function(*operands):
        result = exact(*operands)
        return result if dtype_of(operands).is_narrow else one_off_now_and_then(result)

    return misjudged(f"libm_{name}", f"misses the last place of {name} now and then", {name: function})


def in_wider(wide, narrow):
    """Return a change that computes functions of 8 and 16 bits in a wider type and rounds the result."""

    def change(exact):
        def function(*operands):
            *values, kind, overflow = operands if isinstance(operands[-1], str) else (*operands, "saturate")
            if not kind.is_narrow:
                return exact(*values, kind, overflow)
            middle = dtype(wide)
            return narrow(exact(*(value.astype(middle.carrier) for value in values), middle), kind, overflow)

        return function

    return change


def never_saturating(exact):
    def function(*operands):
        given = [operand for operand in operands if not isinstance(operand, str)]
        return exact(*given, "nonfinite")

    return function


def at_once(*of):
    result, certain = DECIDE(*of)
    return result, certain | True


ROUNDED = [
    changed("LANG-02-04", "undecided", "takes an approximation of twice the precision for the value",
            ("numerics.ziv._decide_double", at_once), only=elementary.FUNCTIONS),
    *(libm(name) for name in elementary.FUNCTIONS),
    misjudged("double_rounding", "rounds narrow functions to fp32 first", every(in_wider("fp32", round_to))),
    misjudged("truncated", "truncates narrow functions", every(in_wider("fp64", toward_zero))),
    misjudged("no_saturation", "lets fp8 functions overflow to infinity or NaN", every(never_saturating)),
]  # fmt: skip


# Special values


def special(name, wrong, where, description, function=""):
    """Return a violation with another result of a function if its operands satisfy a condition."""
    function = function or name.partition("_")[0]
    exact = elementary.FUNCTIONS[function]

    def answer(*operands):
        values = [operand for operand in operands if isinstance(operand, np.ndarray)]
        result = exact(*operands)
        with np.errstate(all="ignore"):
            instead = np.asarray(wrong(*values), result.dtype)
            return np.where(where(*values), instead, result)

    return misjudged(name, description, {function: answer})


def negative_zero(x):
    """Select the elements that are -0."""
    return (x == 0) & np.signbit(x)


SPECIAL = [
    special("log_of_negative_zero", lambda x: np.nan, negative_zero, "takes log(-0) for NaN"),
    special("sqrt_of_negative_zero", np.abs, negative_zero, "takes sqrt(-0) for +0"),
    special("sin_of_negative_zero", np.abs, negative_zero, "takes sin(-0) for +0"),
    special("expm1_of_negative_zero", np.abs, negative_zero, "takes expm1(-0) for +0"),
    special("cos_of_infinity", lambda x: 0, np.isinf, "takes the cosine of an infinity for 0"),
    special("tanh_of_infinity", lambda x: np.nan, np.isinf, "takes tanh of an infinity for NaN"),
    special("pow_minus_1_infinity", lambda x, y: np.nan, lambda x, y: (x == -1) & np.isinf(y),
        "takes pow(-1, inf) for NaN"),
    special("rsqrt_of_negative_zero", lambda x: np.copysign(1 / x, 1), negative_zero, "takes rsqrt(-0) for +inf"),
]  # fmt: skip
