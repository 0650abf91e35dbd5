"""An oracle for the arithmetic: exact rational numbers, rounded by comparison with both neighbours.

It shares nothing with the reference: formats are written out again, floats are Python's, and every operation is
evaluated on `Fraction`, with the special values of IEEE 754 spelled out case by case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest


class Format(NamedTuple):
    precision: int
    min_exponent: int
    largest: Fraction
    beyond: float  # what overflow gives; fp8 saturates


TWO = Fraction(2)
FORMATS = {
    "fp8_e4m3": Format(4, -6, Fraction(448), 448.0),
    "fp8_e5m2": Format(3, -14, Fraction(57344), 57344.0),
    "fp16": Format(11, -14, Fraction(65504), math.inf),
    "bf16": Format(8, -126, (2 - TWO**-7) * TWO**127, math.inf),
    "tf32 operand": Format(11, -126, (2 - TWO**-10) * TWO**127, math.inf),
    "tf32": Format(24, -126, (2 - TWO**-23) * TWO**127, math.inf),
    "fp32": Format(24, -126, (2 - TWO**-23) * TWO**127, math.inf),
    "fp64": Format(53, -1022, (2 - TWO**-52) * TWO**1023, math.inf),
}


@lru_cache(1 << 17)
def nearest(value: Fraction, name: str, beyond: float | None = None) -> float:
    """Round `value` != 0 to the nearer neighbour in format `name`, of two equally near to the even one."""
    return nearest_to_ratio(value.numerator, value.denominator, name, beyond)


def nearest_to_ratio(numerator: int, denominator: int, name: str, beyond: float | None = None) -> float:
    """Round `numerator / denominator` != 0 as `nearest` does; in whole numbers, of which no common factor is sought."""
    form, size = FORMATS[name], abs(numerator)
    binade = size.bit_length() - denominator.bit_length()
    binade -= size << max(-binade, 0) < denominator << max(binade, 0)
    spacing = max(binade, form.min_exponent) - form.precision + 1  # the neighbours are multiples of 2**spacing
    step = denominator << max(spacing, 0)
    below, down = divmod(size << max(-spacing, 0), step)
    up = step - down
    multiple = below if down < up or (down == up and below % 2 == 0) else below + 1
    limit = form.beyond if beyond is None else beyond
    inside = spacing <= 0 or multiple << spacing <= form.largest  # with a spacing below 1 there is no overflow
    return (-1 if numerator < 0 else 1) * (math.ldexp(multiple, spacing) if inside else limit)


def directed(value: Fraction, name: str, rounding: str) -> float:
    """Round `value` != 0 to format `name` in any mode of IEEE 754; fp8 saturates where others would be infinite."""
    form, size, negative = FORMATS[name], abs(value), value < 0
    binade = max(size.numerator.bit_length() - size.denominator.bit_length() - 1, form.min_exponent)
    step = TWO ** (binade - form.precision + 1)
    while size >= step * 2**form.precision:
        step *= 2
    below, rest = divmod(size, step)
    inward = rounding == "toward_zero" or rounding == ("up" if negative else "down")
    goes_up = {"nearest_even": rest * 2 > step or (rest * 2 == step and below % 2), "nearest_away": rest * 2 >= step}
    result = (below + (1 if goes_up.get(rounding, rest > 0 and not inward) else 0)) * step
    if result > form.largest:
        return (-1 if negative else 1) * (float(form.largest) if inward else form.beyond)
    return (-1 if negative else 1) * float(result)


def nearest_or_special(value: float, name: str) -> float:
    """Round a float, which may be zero, infinite or NaN."""
    if math.isinf(value):
        return math.copysign(FORMATS[name].beyond, value)
    return nearest(Fraction(value), name) if value == value and value != 0 else value


def scalar_operator(
    exact: Callable[[Fraction, Fraction], Fraction], symbol: str
) -> Callable[[float, float, str], float]:
    """Extend an exact operation to floats with signed zeros, infinities and NaN, rounded to a format."""

    def operator(a: float, b: float, name: str) -> float:
        if math.isfinite(a) and math.isfinite(b) and not (symbol == "/" and b == 0):
            value = exact(Fraction(a), Fraction(b))
            if value != 0:
                return nearest(value, name)
        result = special(a, b, symbol)
        return math.copysign(FORMATS[name].beyond, result) if math.isinf(result) else result

    return operator


def special(a: float, b: float, symbol: str) -> float:
    """Results that are zero, infinite or NaN, before rounding."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if symbol == "-":
        return special(a, -b, "+")
    if symbol == "+":
        if math.isinf(a) or math.isinf(b):
            return math.nan if math.isinf(a) and math.isinf(b) and a != b else (a if math.isinf(a) else b)
        both_negative_zero = a == 0 and b == 0 and math.copysign(1, a) < 0 and math.copysign(1, b) < 0
        return -0.0 if both_negative_zero else 0.0
    sign = math.copysign(1, a) * math.copysign(1, b)
    if symbol == "*":
        if math.isinf(a) or math.isinf(b):
            return math.nan if a == 0 or b == 0 else sign * math.inf
        return sign * 0.0
    if (a == 0 and b == 0) or (math.isinf(a) and math.isinf(b)):
        return math.nan
    return sign * math.inf if math.isinf(a) or b == 0 else sign * 0.0


def same(found: Iterable[float], expected: Iterable[float]) -> None:
    """Assert equality of float sequences: signs of zero count, every NaN is alike."""
    pairs = list(zip(found, expected, strict=True))
    wrong = [(i, f, e) for i, (f, e) in enumerate(pairs) if describe(f) != describe(e)]
    assert not wrong, f"{len(wrong)} of {len(pairs)} differ; first (index, found, expected): {wrong[:5]}"


def describe(x: float) -> str:
    return "nan" if x != x else float(x).hex()


ORACLE = SimpleNamespace(
    formats=FORMATS,
    nearest=nearest,
    nearest_or_special=nearest_or_special,
    same=same,
    add=scalar_operator(lambda a, b: a + b, "+"),
    subtract=scalar_operator(lambda a, b: a - b, "-"),
    multiply=scalar_operator(lambda a, b: a * b, "*"),
    divide=scalar_operator(lambda a, b: a / b, "/"),
)


@pytest.fixture(scope="session")
def oracle() -> Any:
    return ORACLE


@pytest.fixture(scope="session", name="directed")
def _directed() -> Callable[[Fraction, str, str], float]:
    return directed


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.Generator(np.random.Philox(20261120))


MPFR_BITS = 300
"""No case here has its value within 2**-250 of a midpoint, relatively, without being on it."""


class Mpfr:
    """Elementary functions of Python floats by MPFR with guard bits, rounded once, exactly, by the oracle."""

    def __init__(self, gmpy2: Any) -> None:
        self.gmpy2 = gmpy2
        self.functions: dict[str, Callable[..., Any]] = {
            name: getattr(gmpy2, name)
            for name in "exp exp2 expm1 log log2 log1p sin cos tan tanh sinh cosh erf sqrt".split()
        }
        self.functions |= {"rsqrt": gmpy2.rec_sqrt, "reciprocal": lambda x: 1 / x, "pow": lambda x, y: x**y}

    def values(self, name: str, *operands: Iterable[float]) -> list[Any]:
        """The function's values to 300 bits; in a wide range of exponents, yet short of where MPFR becomes slow."""
        function, number = self.functions[name], self.gmpy2.mpfr
        with self.gmpy2.context(precision=MPFR_BITS, emax=1 << 14, emin=-(1 << 14)):
            return [function(*map(number, operands_)) for operands_ in zip(*operands, strict=True)]

    def nearest(self, name: str, dtype: str, *operands: Iterable[float]) -> list[float]:
        """The function's values rounded to a dtype; fp8 saturates."""
        return [self.rounded(value, dtype) for value in self.values(name, *operands)]

    def rounded(self, value: Any, dtype: str) -> float:
        """One value rounded to a dtype."""
        if not self.gmpy2.is_finite(value) or value == 0:
            return nearest_or_special(float(value), dtype)
        numerator, denominator = value.as_integer_ratio()
        return nearest_to_ratio(int(numerator), int(denominator), dtype)


@pytest.fixture(scope="session")
def mpfr() -> Mpfr:
    return Mpfr(pytest.importorskip("gmpy2", reason="pip install gmpy2"))
