"""Elementary functions that are not correctly rounded, or wrong at a special value (language specification, 10)."""

import numpy as np

from tessera_conformance.strength import Around
from tessera_reference.numerics.elementary import FUNCTIONS, cos, sin
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.rounding import round_to

from .changes import after, changed
from .misrounding import one_off_now_and_then, toward_zero


def misjudged(name, description, functions, wrong):
    """Return a violation of some elementary functions.

    `wrong` takes the right function, its operands, their dtype and what fp8 does on overflow.
    """

    def change(exact):
        @np.errstate(all="ignore")
        def function(*operands):
            *values, kind, overflow = operands if isinstance(operands[-1], str) else (*operands, "saturate")
            return wrong(exact, values, kind, overflow)

        return function

    all_of = Around(lambda usual: {**usual, **{function: change(usual[function]) for function in functions}})
    return changed("LANG-02-04", name, description, ("numerics.elementary.FUNCTIONS", all_of), only=functions)


def tan_by_quotient(exact, values, kind, overflow):
    wide, inner = values[0].astype(kind.accumulator.carrier), kind.accumulator
    return round_to(np.asarray(sin(wide, inner) / cos(wide, inner)), kind, overflow)


def libm(exact, values, kind, overflow):
    result = exact(*values, kind, overflow)
    return result if kind.is_narrow else one_off_now_and_then(result)


def in_wider(wide, narrow):
    """Return functions of 8 and 16 bits that are computed in a wider type and rounded to the narrow one."""

    def function(exact, values, kind, overflow):
        if not kind.is_narrow:
            return exact(*values, kind, overflow)
        middle = dtype(wide)
        return narrow(exact(*(value.astype(middle.carrier) for value in values), middle), kind, overflow)

    return function


def special(name, wrong, where, description):
    """Return a violation with another result of a function if its operands satisfy a condition."""

    def answer(exact, values, kind, overflow):
        result = exact(*values, kind, overflow)
        return np.where(where(*values), np.asarray(wrong(*values), result.dtype), result)

    return misjudged(name, description, [name.partition("_")[0]], answer)


def negative_zero(x):
    return (x == 0) & np.signbit(x)


VIOLATIONS = [
    misjudged("tan_by_quotient", "divides sin by cos for tan", ["tan"], tan_by_quotient),
    changed("LANG-02-04", "undecided", "takes an approximation of twice the precision for the value",
            ("numerics.ziv._decide_double", after(lambda found: (found[0], found[1] | True))), only=FUNCTIONS),
    *(misjudged(f"libm_{name}", f"misses the last place of {name} now and then", [name], libm) for name in FUNCTIONS),
    misjudged("double_rounding", "rounds narrow functions to fp32 first", FUNCTIONS, in_wider("fp32", round_to)),
    misjudged("truncated", "truncates narrow functions", FUNCTIONS, in_wider("fp64", toward_zero)),
    misjudged("no_saturation", "lets fp8 functions overflow to infinity or NaN", FUNCTIONS,
        lambda exact, values, kind, overflow: exact(*values, kind, "nonfinite")),
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
