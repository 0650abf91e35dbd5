"""Number formats as data: which value a code stands for, and which code a value rounds to, once, to nearest even.

Runtime spec Appendix B; reference arithmetic, "formats" and "accumulators". fp8_e4m3 is OCP E4M3 (no infinity, 448 is
the largest, 464 still rounds to it). Overflow to an 8-bit float saturates, and so do infinite results, unless
`nonfinite` is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from tessera_conformance.oracle.exact import (
    NAN,
    BadArgument,
    Value,
    exponent_of_ratio,
    finite,
    infinity,
    is_infinite,
    is_negative,
    zero,
)
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format: sign, exponent and fraction fields, most significant first."""

    exponent_bits: int
    fraction_bits: int
    has_infinity: bool = True
    saturates: bool = False

    @cached_property
    def bias(self) -> int:
        """The number that is subtracted from the exponent field."""
        return (1 << (self.exponent_bits - 1)) - 1

    @cached_property
    def smallest_exponent(self) -> int:
        """The exponent of the smallest positive value, a power of two."""
        return 1 - self.bias - self.fraction_bits

    @cached_property
    def sign_bit(self) -> int:
        """The code of -0."""
        return 1 << (self.exponent_bits + self.fraction_bits)

    @cached_property
    def largest_code(self) -> int:
        """The code of the largest finite value."""
        return self.sign_bit - 1 - (1 << self.fraction_bits if self.has_infinity else 1)

    @cached_property
    def largest(self) -> Fraction:
        """The largest finite value."""
        return finite(self.decode(self.largest_code))

    @cached_property
    def smallest(self) -> Fraction:
        """The smallest positive value, a subnormal."""
        return finite(self.decode(1))

    @cached_property
    def smallest_normal(self) -> Fraction:
        """The smallest positive value whose significand is full."""
        return finite(self.decode(1 << self.fraction_bits))

    @cached_property
    def epsilon(self) -> Fraction:
        """The distance from 1 to the next larger value."""
        return Fraction(1, 1 << self.fraction_bits)

    @cached_property
    def nan_code(self) -> int:
        """The canonical NaN: quiet, positive, no payload."""
        if not self.has_infinity:
            return self.sign_bit - 1
        return self.largest_code + 1 + (1 << (self.fraction_bits - 1))

    def decode(self, code: int) -> Value:
        """The exact value of a code."""
        negative, magnitude = bool(code & self.sign_bit), code & (self.sign_bit - 1)
        if magnitude == 0:
            return zero(negative)
        if magnitude > self.largest_code:
            is_infinity = self.has_infinity and magnitude == self.largest_code + 1
            return infinity(negative) if is_infinity else NAN
        field, fraction = magnitude >> self.fraction_bits, magnitude & ((1 << self.fraction_bits) - 1)
        significand = fraction + (1 << self.fraction_bits if field else 0)
        exponent = self.smallest_exponent + (field - 1 if field else 0)
        if negative:
            significand = -significand
        return Fraction(significand << exponent) if exponent >= 0 else Fraction(significand, 1 << -exponent)

    def encode(self, value: Value, *, nonfinite: bool = False) -> int:
        """The code that `value` rounds to, to nearest with ties to even; NaN gives the canonical one."""
        if isinstance(value, Fraction):
            return self.encode_ratio(value.numerator, value.denominator, nonfinite=nonfinite)
        if value is NAN:
            return self.nan_code
        return self._limited(is_negative(value), self.largest_code + 1 if is_infinite(value) else 0, nonfinite)

    def encode_ratio(self, numerator: int, denominator: int, *, nonfinite: bool = False) -> int:
        """The code of a number, without the fraction in lowest terms that `encode` takes; zero is +0."""
        return self._limited(numerator < 0, self._nearest(abs(numerator), denominator), nonfinite)

    def _limited(self, negative: bool, magnitude: int, nonfinite: bool) -> int:
        """A code with its sign, or what overflow gives."""
        sign = self.sign_bit if negative else 0
        if magnitude <= self.largest_code:
            return sign | magnitude
        if self.saturates and not nonfinite:
            return sign | self.largest_code
        return sign | self.largest_code + 1 if self.has_infinity else self.nan_code

    def round(self, value: Value) -> Value:
        """`value` rounded to this format."""
        return self.decode(self.encode(value))

    def _nearest(self, numerator: int, denominator: int) -> int:
        """The code nearest to a number that is not negative, as if there were no largest exponent.

        Codes of positive values count upwards without gaps, so a significand that rounds up into the next binade
        needs no care.
        """
        if numerator == 0:
            return 0
        spacing = exponent_of_ratio(numerator, denominator) - self.fraction_bits
        if spacing < self.smallest_exponent:
            spacing = self.smallest_exponent
        if spacing < 0:
            significand = _nearest_integer(numerator << -spacing, denominator)
        else:
            significand = _nearest_integer(numerator, denominator << spacing)
        return (spacing - self.smallest_exponent << self.fraction_bits) + significand


@dataclass(frozen=True)
class IntegerFormat:
    """Two's complement of some width; a value that does not fit wraps (AMB-LANG-40)."""

    bits: int

    def decode(self, code: int) -> Value:
        """The value of a code."""
        return Fraction(code - (1 << self.bits) if code >> (self.bits - 1) else code)

    def encode(self, value: Value, *, nonfinite: bool = False) -> int:
        """The code of an integer, wrapped; `nonfinite` concerns floats only."""
        number = finite(value)
        if number.denominator != 1:
            raise ValueError(f"{value} is not an integer")
        return number.numerator % (1 << self.bits)

    def round(self, value: Value) -> Value:
        """An integer, wrapped."""
        return self.decode(self.encode(value))


Format: TypeAlias = FloatFormat | IntegerFormat

FORMATS: dict[str, Format] = {
    name: FloatFormat(entry.exponent_bits, entry.fraction_bits, entry.has_infinity, saturates=entry.word_bytes == 1)
    if entry.is_float
    else IntegerFormat(8 * entry.word_bytes)
    for name, entry in ELEMENT_FORMATS.items()
    if entry.words == 1
}

TF32_OPERAND = FloatFormat(exponent_bits=8, fraction_bits=10)
"""The format to which matmul rounds operands of tf32; their storage is fp32."""

ACCUMULATORS = {
    **dict.fromkeys(("fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32"), "fp32"),
    **dict.fromkeys(("int8", "int16", "int32"), "int32"),
    **{name: name for name in ("fp64", "int64")},
}
"""Reference arithmetic, "accumulators" (LANG-10-02, LANG-15-04 to LANG-15-06, LANG-15-14)."""

COMPONENTS = {"complex64": "fp32", "complex128": "fp64"}
"""The dtype of a complex element's parts; complex types accumulate in themselves."""


def component_format(dtype: str) -> FloatFormat:
    """The format of a float, or of the parts of a complex number."""
    return float_format(COMPONENTS.get(dtype, dtype))


def float_format(dtype: str) -> FloatFormat:
    """The format of a real floating-point dtype."""
    found = FORMATS.get(dtype)
    if not isinstance(found, FloatFormat):
        raise BadArgument("dtype", dtype, "a real floating-point dtype")
    return found


def accumulator_format(dtype: str) -> FloatFormat:
    """The format that operands of a float dtype are computed in."""
    float_format(dtype)
    return float_format(ACCUMULATORS[dtype])


def values_of(tensor: Tensor) -> list[Value]:
    """The exact value of every element, row-major; two of a complex one."""
    decode = FORMATS[COMPONENTS.get(tensor.dtype, tensor.dtype)].decode
    codes = tensor.words().tolist()
    known = {code: decode(code) for code in set(codes)}
    return [known[code] for code in codes]


def tensor_of(dtype: str, shape: tuple[int, ...], values: list[Value], *, nonfinite: bool = False) -> Tensor:
    """Values rounded once to `dtype`; two for a complex element."""
    encode = FORMATS[COMPONENTS.get(dtype, dtype)].encode
    return Tensor.from_words(dtype, shape, [encode(value, nonfinite=nonfinite) for value in values])


def _nearest_integer(numerator: int, denominator: int) -> int:
    quotient, remainder = divmod(numerator, denominator)
    return quotient + (2 * remainder > denominator or (2 * remainder == denominator and quotient & 1))
