"""Formats of numbers by their fields of bits, and exact values rounded to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property, reduce
from math import prod
from typing import Any, Literal, TypeAlias

import gmpy2
import numpy as np

from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

# The error for arguments without a result in the oracle.


class BadArgument(ValueError):
    """An argument without a meaning: its name, its value and the allowed values."""

    def __init__(self, argument: str, value: object, allowed: str) -> None:
        super().__init__(f"{argument}: {value!r} is not allowed; expected {allowed}")


# Exact arithmetic on the values of floating-point codes.
#
# A value is a `Fraction`, or one of four others: negative zero, the infinities and NaN. The functions here follow IEEE
# 754 and are exact; a format rounds. MPFR, which follows IEEE 754 too, gives the results that depend on signs alone.


class Special(Enum):
    """A value that is not a Fraction."""

    NEGATIVE_ZERO = "-0"
    INFINITY = "inf"
    NEGATIVE_INFINITY = "-inf"
    NAN = "nan"


Value: TypeAlias = Fraction | Special
Complex: TypeAlias = tuple[Value, Value]

ZERO = Fraction(0)
NEGATIVE_ZERO, INFINITY, NEGATIVE_INFINITY, NAN = Special
_OPPOSITES: dict[Value, Value] = {
    ZERO: NEGATIVE_ZERO,
    NEGATIVE_ZERO: ZERO,
    INFINITY: NEGATIVE_INFINITY,
    NEGATIVE_INFINITY: INFINITY,
    NAN: NAN,
}


def is_negative(x: Value) -> bool:
    """True if the sign bit is set; NaN counts as positive."""
    return x.numerator < 0 if isinstance(x, Fraction) else x in (NEGATIVE_ZERO, NEGATIVE_INFINITY)


def is_infinite(x: Value) -> bool:
    """True if `x` is one of the infinities."""
    return x is INFINITY or x is NEGATIVE_INFINITY


def is_zero(x: Value) -> bool:
    """True if `x` is one of the zeros."""
    return x is NEGATIVE_ZERO or x == 0


def is_finite(x: Value) -> bool:
    """True if `x` is a number, and neither infinite nor NaN."""
    return isinstance(x, Fraction) or x is NEGATIVE_ZERO


def finite(x: Value) -> Fraction:
    """The number behind a value that is neither infinite nor NaN; raises ValueError for those."""
    if isinstance(x, Fraction):
        return x
    if x is not NEGATIVE_ZERO:
        raise ValueError(f"{x.value} is not a number")
    return ZERO


def zero(negative: bool) -> Value:
    """The zero of the given sign."""
    return NEGATIVE_ZERO if negative else ZERO


def infinity(negative: bool) -> Value:
    """The infinity of the given sign."""
    return NEGATIVE_INFINITY if negative else INFINITY


def _sign(x: Value) -> Any:
    """Return the MPFR number -1, 0 or 1 for the sign of a number, the value itself for the others."""
    return gmpy2.mpfr(x.value if isinstance(x, Special) else (x > 0) - (x < 0))


def negate(x: Value) -> Value:
    """The sign flipped, that of zeros and infinities too."""
    return -x if isinstance(x, Fraction) and x else _OPPOSITES[x]


def add(x: Value, y: Value) -> Value:
    """The sum; exact cancellation gives +0, and only -0 + -0 gives -0."""
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x + y
    if is_finite(x) and is_finite(y):
        return NEGATIVE_ZERO if x is y else finite(x) + finite(y)
    return value_of(_sign(x) + _sign(y))


def subtract(x: Value, y: Value) -> Value:
    """The difference."""
    return add(x, negate(y))


def multiply(x: Value, y: Value) -> Value:
    """The product; zero times infinity is NaN."""
    if isinstance(x, Fraction) and isinstance(y, Fraction) and (product := x * y):
        return product
    return value_of(_sign(x) * _sign(y))


def divide(x: Value, y: Value) -> Value:
    """The quotient; a number by zero is infinite, 0/0 and inf/inf are NaN."""
    if isinstance(x, Fraction) and isinstance(y, Fraction) and x and y:
        return x / y
    return value_of(_sign(x) / _sign(y))


def compare(x: Value, y: Value) -> int | None:
    """-1, 0 or 1 as x is below, equal to or above y, the zeros being equal; None where either is NaN."""
    if x is NAN or y is NAN:
        return None
    left, right = (float(value.value) if isinstance(value, Special) else value for value in (x, y))
    return (left > right) - (left < right)


def maximum(x: Value, y: Value) -> Value:
    """The larger of two; NaN wins, and -0 is below +0."""
    order = compare(x, y)
    if order is None:
        return NAN
    if order == 0:
        return y if is_negative(x) else x
    return x if order > 0 else y


def minimum(x: Value, y: Value) -> Value:
    """The smaller of two; NaN wins, and -0 is below +0."""
    return negate(maximum(negate(x), negate(y)))


def exponent_of(number: Fraction) -> int:
    """floor(log2 |number|) of a number that is not zero."""
    return exponent_of_ratio(abs(number.numerator), number.denominator)


def exponent_of_ratio(numerator: int, denominator: int) -> int:
    """floor(log2(numerator / denominator)) of positive numbers."""
    exponent = numerator.bit_length() - denominator.bit_length()
    is_less = numerator << -exponent < denominator if exponent < 0 else numerator < denominator << exponent
    return exponent - is_less


def fraction(number: Any) -> Fraction:
    """Return the fraction that a finite number of Python, MPFR or GMP is."""
    numerator, denominator = number.as_integer_ratio()
    return Fraction(int(numerator), int(denominator))


def value_of(number: Any) -> Value:
    """Return the exact value of a float or an MPFR number."""
    if gmpy2.is_nan(number):
        return NAN
    if gmpy2.is_infinite(number):
        return infinity(number < 0)
    return zero(gmpy2.is_signed(number)) if number == 0 else fraction(number)


# Lines of elements along an axis, and tensors stacked along a new one.


def along(shape: tuple[int, ...], axis: int) -> list[list[int]]:
    """Return the flat places of the elements of each line along an axis from -rank to rank-1, in row-major order.

    Raises `BadArgument`: there is no such axis.
    """
    rank = len(shape)
    if not -rank <= axis < rank:
        raise BadArgument("axis", axis, f"an axis from {-rank} to {rank - 1} of a tensor of rank {rank}")
    moved = np.moveaxis(np.arange(prod(shape)).reshape(shape), axis, -1)
    lines: list[list[int]] = moved.reshape(prod(moved.shape[:-1]), moved.shape[-1]).tolist()
    return lines


def without_axis(shape: tuple[int, ...], axis: int, *, keepdims: bool = False) -> tuple[int, ...]:
    """Return the shape of results along an axis, which is dropped, or kept with extent 1."""
    axis %= len(shape)
    return (*shape[:axis], *([1] if keepdims else []), *shape[axis + 1 :])


def rows_of(x: Tensor, axis: int) -> list[list[Any]]:
    """Return the elements of each line along an axis. Raises `BadArgument`: there is no such axis."""
    elements = elements_of(x)
    return [[elements[place] for place in line] for line in along(x.shape, axis)]


def parts_along(x: Tensor, axis: int) -> list[list[Value]]:
    """Return the values of each line; of complex elements the real parts of a line, then the imaginary ones."""
    rows = rows_of(x, axis)
    return rows if x.format.words == 1 else [[element[part] for element in row] for row in rows for part in (0, 1)]


def from_rows(x: Tensor, axis: int, rows: Iterable[Sequence[Value]]) -> Tensor:
    """Return a tensor like `x` with these rows along an axis, rounded once."""
    results: list[Value] = [ZERO] * x.size
    for line, row in zip(along(x.shape, axis), rows, strict=True):
        for place, value in zip(line, row, strict=True):
            results[place] = value
    return tensor_of(x.dtype, x.shape, results)


def grouped(*operands: Tensor) -> tuple[tuple[int, ...], list[tuple[Any, ...]]]:
    """Return the broadcast shape of operands of one dtype, and the group of elements at each place of it."""
    if len({operand.dtype for operand in operands}) > 1:
        raise BadArgument("operands", [operand.dtype for operand in operands], "operands of one dtype")
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    places = (np.broadcast_to(np.arange(x.size).reshape(x.shape), shape).ravel().tolist() for x in operands)
    columns = [list(map(elements_of(x).__getitem__, chosen)) for x, chosen in zip(operands, places, strict=True)]
    return shape, list(zip(*columns, strict=True))


def elementwise(function: Callable[..., Value], *operands: Tensor, nonfinite: bool = False) -> Tensor:
    """Return a function of the elements at each place, rounded once to the dtype of the first operand."""
    shape, groups = grouped(*operands)
    return tensor_of(operands[0].dtype, shape, [function(*group) for group in groups], nonfinite=nonfinite)


def stacked(inputs: tuple[Tensor, ...]) -> Tensor:
    """The contributions along a new first axis.

    Raises `BadArgument`: there are none, or they differ in dtype or shape.
    """
    forms = {(x.dtype, x.shape) for x in inputs}
    if len(forms) != 1:
        raise BadArgument("inputs", sorted(map(str, forms)), "one tensor of each rank, all of one dtype and shape")
    ((dtype, shape),) = forms
    return Tensor(dtype, (len(inputs), *shape), b"".join(x.data for x in inputs))


# Number formats as data: the value of a code, and the code of a value, rounded once to nearest even.
#
# Runtime spec Appendix B; reference arithmetic, "formats" and "accumulators". fp8_e4m3 is OCP E4M3 (no infinity, 448 is
# the largest, 464 still rounds to it). Overflow to an 8-bit float saturates, and so do infinite results, unless
# `nonfinite` is set.


Rounding: TypeAlias = Literal["nearest_even", "nearest_away", "toward_zero", "up", "down"]
_INWARD: dict[tuple[Rounding, bool], Rounding] = {("up", True): "toward_zero", ("down", False): "toward_zero"}
"""The directions toward zero, each with True for negative numbers."""


@dataclass(frozen=True)
class Format(ABC):
    """A number format: its codes, and arithmetic whose exact results are rounded to it once."""

    @abstractmethod
    def decode(self, code: int) -> Value:
        """The exact value of a code."""

    @abstractmethod
    def encode(self, value: Value, *, nonfinite: bool = False) -> int:
        """The code of a value, rounded."""

    def round(self, value: Value, direction: Rounding = "nearest_even") -> Value:
        """The value, rounded; integers wrap in every direction."""
        return self.decode(self.encode(value))

    def total(self, terms: Sequence[Value]) -> Value:
        """The sum, rounded once; -0 only where every term is."""
        return self.round(reduce(add, terms))

    def subtract(self, x: Value, y: Value) -> Value:
        """The difference, rounded."""
        return self.round(add(x, negate(y)))

    def multiply(self, x: Value, y: Value) -> Value:
        """The product, rounded."""
        return self.round(multiply(x, y))

    def divide(self, x: Value, y: Value) -> Value:
        """The quotient, rounded."""
        return self.round(divide(x, y))


@dataclass(frozen=True)
class FloatFormat(Format):
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
        """Return the code of `value`, rounded to nearest with ties to even; NaN gives the canonical one."""
        if isinstance(value, Fraction):
            return self.encode_ratio(value.numerator, value.denominator, nonfinite=nonfinite)
        if value is NAN:
            return self.nan_code
        return self._limited(is_negative(value), self.largest_code + 1 if is_infinite(value) else 0, nonfinite)

    def encode_ratio(self, numerator: int, denominator: int, *, nonfinite: bool = False) -> int:
        """Return the code of a number, without the fraction in lowest terms that `encode` takes; zero is +0."""
        return self._limited(numerator < 0, self._magnitude(abs(numerator), denominator), nonfinite)

    def _limited(self, negative: bool, magnitude: int, nonfinite: bool) -> int:
        """Return a code with its sign, or the code for overflow."""
        sign = self.sign_bit if negative else 0
        if magnitude <= self.largest_code:
            return sign | magnitude
        if self.saturates and not nonfinite:
            return sign | self.largest_code
        return sign | self.largest_code + 1 if self.has_infinity else self.nan_code

    def round(self, value: Value, direction: Rounding = "nearest_even") -> Value:
        """The value, rounded; beyond the largest number it becomes that one if the direction is toward zero."""
        if direction == "nearest_even" or not isinstance(value, Fraction) or not value:
            return self.decode(self.encode(value))
        direction = _INWARD.get((direction, value < 0), direction)
        magnitude = self._magnitude(abs(value.numerator), value.denominator, direction)
        if direction == "toward_zero":
            magnitude = min(magnitude, self.largest_code)
        return self.decode(self._limited(value < 0, magnitude, nonfinite=False))

    def _magnitude(self, numerator: int, denominator: int, direction: Rounding = "nearest_even") -> int:
        """Return the code of a non-negative number, rounded, without a largest exponent.

        Codes of positive values count upwards without gaps, so a significand that rounds up into the next binade needs
        no care.
        """
        if numerator == 0:
            return 0
        spacing = exponent_of_ratio(numerator, denominator) - self.fraction_bits
        if spacing < self.smallest_exponent:
            spacing = self.smallest_exponent
        if spacing < 0:
            significand = _rounded_integer(numerator << -spacing, denominator, direction)
        else:
            significand = _rounded_integer(numerator, denominator << spacing, direction)
        return (spacing - self.smallest_exponent << self.fraction_bits) + significand


@dataclass(frozen=True)
class IntegerFormat(Format):
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
    format_ = FORMATS.get(dtype)
    if not isinstance(format_, FloatFormat):
        raise BadArgument("dtype", dtype, "a real floating-point dtype")
    return format_


def accumulator_format(dtype: str) -> FloatFormat:
    """Return the accumulator format of a float dtype."""
    float_format(dtype)
    return float_format(ACCUMULATORS[dtype])


def accumulating(dtype: str, accumulator: str | None = None) -> Format:
    """Return the format in which operands of a dtype, or the parts of complex ones, are accumulated.

    Raises `BadArgument`: the dtype has no accumulator.
    """
    name = accumulator or ACCUMULATORS.get(COMPONENTS.get(dtype, dtype))
    if name is None:
        raise BadArgument("dtype", dtype, f"one of {', '.join((*ACCUMULATORS, *COMPONENTS))}")
    return FORMATS[name]


def complex_product(x: Complex, y: Complex, part: Format) -> Complex:
    """(ac - bd, ad + bc), every step rounded."""
    (a, b), (c, d) = x, y
    real = part.subtract(part.multiply(a, c), part.multiply(b, d))
    return real, part.total([part.multiply(a, d), part.multiply(b, c)])


def elements_of(tensor: Tensor) -> list[Any]:
    """Return the exact value of every element, a pair for a complex one."""
    values = values_of(tensor)
    return values if tensor.format.words == 1 else list(zip(values[::2], values[1::2], strict=True))


def values_of(tensor: Tensor) -> list[Value]:
    """The exact value of every element, row-major; two of a complex one."""
    decode = FORMATS[COMPONENTS.get(tensor.dtype, tensor.dtype)].decode
    codes = tensor.words().tolist()
    values = {code: decode(code) for code in set(codes)}
    return [values[code] for code in codes]


def tensor_of(dtype: str, shape: tuple[int, ...], values: list[Value], *, nonfinite: bool = False) -> Tensor:
    """Values rounded once to `dtype`; two for a complex element."""
    encode = FORMATS[COMPONENTS.get(dtype, dtype)].encode
    return Tensor.from_words(dtype, shape, [encode(value, nonfinite=nonfinite) for value in values])


def _rounded_integer(numerator: int, denominator: int, direction: Rounding) -> int:
    """Return the quotient of two positive numbers rounded; up and down are both away from zero."""
    quotient, remainder = divmod(numerator, denominator)
    if direction == "nearest_even":
        return quotient + (2 * remainder > denominator or (2 * remainder == denominator and quotient & 1))
    if direction == "nearest_away":
        return quotient + (2 * remainder >= denominator)
    return quotient + (remainder > 0 and direction != "toward_zero")


def complex_dtype(dtype: str) -> str:
    """Return the dtype of complex results with this operand (AMB-LANG-116). Raises `BadArgument` for others."""
    if dtype in COMPONENTS:
        return dtype
    if not isinstance(FORMATS.get(dtype), FloatFormat):
        raise BadArgument("dtype", dtype, "a float or complex dtype")
    return "complex128" if dtype == "fp64" else "complex64"
