"""Elementary functions of one value, correctly rounded.

Canon of arithmetic: elementary functions are correctly rounded in the result type (LANG-10-11, AMB-LANG-45); special
values are those of IEEE 754-2019, clause 9.2. Where MPFR and IEEE 754 differ, which is rsqrt(-0), IEEE 754 holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeAlias

import gmpy2

from tessera_conformance.oracle.directed import Context, Number, correctly_rounded, number, rounded_code
from tessera_conformance.oracle.exact import NEGATIVE_INFINITY, Value
from tessera_conformance.oracle.formats import FloatFormat

Operation: TypeAlias = Callable[..., Number]

OPERATIONS: Mapping[str, Operation] = {
    "exp": lambda context, x: context.exp(x),
    "exp2": lambda context, x: context.exp2(x),  # exact where x is an integer
    "expm1": lambda context, x: context.expm1(x),  # e to the power x, less 1; -0 gives -0
    "log": lambda context, x: context.log(x),  # either zero gives -inf, a negative number NaN
    "log2": lambda context, x: context.log2(x),  # exact where x is a power of two
    "log1p": lambda context, x: context.log1p(x),  # log(1 + x); -1 gives -inf and -0 gives -0
    "sin": lambda context, x: context.sin(x),  # of radians; sin, cos and tan of an infinity are NaN
    "cos": lambda context, x: context.cos(x),
    "tan": lambda context, x: context.tan(x),
    "sinh": lambda context, x: context.sinh(x),
    "cosh": lambda context, x: context.cosh(x),
    "tanh": lambda context, x: context.tanh(x),
    "erf": lambda context, x: context.erf(x),
    "sqrt": lambda context, x: context.sqrt(x),  # -0 gives -0, another negative number NaN
    "rsqrt": lambda context, x: context.rec_sqrt(x),  # -0 gives -inf, another negative number NaN
    "reciprocal": lambda context, x: context.div(1, x),  # a zero gives the infinity of its sign
    "pow": lambda context, x, y: context.pow(x, y),  # pow(x, 0) and pow(1, y) are 1 even for NaN
}
"""The functions of the canon, each as MPFR computes it in a context; `oracle.NAME` rounds it once."""


def evaluate(name: str, target: FloatFormat, *operands: Value, nonfinite: bool = False) -> Value:
    """A function of `OPERATIONS`, rounded once to `target`."""
    return target.decode(code_of_number(name, target, *map(number, operands), nonfinite=nonfinite))


def code_of_number(name: str, target: FloatFormat, *operands: Number, nonfinite: bool = False) -> int:
    """The code of `evaluate`, of operands that MPFR has already."""
    if name == "rsqrt" and gmpy2.is_zero(operands[0]) and gmpy2.is_signed(operands[0]):
        return target.encode(NEGATIVE_INFINITY, nonfinite=nonfinite)
    operation = OPERATIONS[name]
    return rounded_code(
        lambda down, up: (operation(down, *operands), operation(up, *operands)), target, nonfinite=nonfinite
    )


def two_pi(target: FloatFormat) -> Value:
    """A full turn."""
    return correctly_rounded(lambda down, up: (_two_pi(down), _two_pi(up)), target)


def sqrt_two_over_pi(target: FloatFormat) -> Value:
    """The square root of 2/pi, the factor in the approximation of gelu."""

    def enclose(down: Context, up: Context) -> tuple[Number, Number]:
        return down.sqrt(down.div(2, up.const_pi())), up.sqrt(up.div(2, down.const_pi()))

    return correctly_rounded(enclose, target)


def turn(numerator: int, denominator: int, target: FloatFormat) -> tuple[Value, Value]:
    """Cosine and sine of `numerator / denominator` of a full turn, each correctly rounded; zeros are +0."""
    part = Fraction(numerator, denominator) % 1
    return _cosine(part, target), _cosine((part - Fraction(1, 4)) % 1, target)


def _cosine(part: Fraction, target: FloatFormat) -> Value:
    """By symmetry from the first quarter of the turn, where the cosine falls; rational values are found exactly.

    The cosine of a rational part of a turn is rational only where it is 0, 1/2 or 1 (Niven's theorem).
    """
    part = min(part, 1 - part)
    negative = part > Fraction(1, 4)
    part = Fraction(1, 2) - part if negative else part
    known = {Fraction(0): Fraction(1), Fraction(1, 6): Fraction(1, 2), Fraction(1, 4): Fraction(0)}
    size: Value
    if part in known:
        size = known[part]
    else:

        def enclose(down: Context, up: Context) -> tuple[Number, Number]:
            angles = [
                context.div(context.mul(_two_pi(context), part.numerator), part.denominator) for context in (up, down)
            ]
            return down.cos(angles[0]), up.cos(angles[1])

        size = correctly_rounded(enclose, target)
    return -size if negative and isinstance(size, Fraction) else size


def _two_pi(context: Context) -> Number:
    return context.mul(2, context.const_pi())
