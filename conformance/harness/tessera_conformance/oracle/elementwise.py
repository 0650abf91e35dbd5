"""Elementary functions and elementwise operations on exact values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from functools import cache, partial
from typing import Any, Literal, TypeAlias

import gmpy2

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.exact import BadArgument, FloatFormat, IntegerFormat, Special, Value
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

# MPFR with directed rounding: numbers proved to lie below and above a real number.
#
# MPFR rounds every function correctly in the requested direction, so that its results under `RoundDown` and `RoundUp`
# enclose the exact one. The exponent range is far wider than that of any format here, and yet small enough that its
# extremes are ordinary fractions.


Number: TypeAlias = Any
"""An MPFR number."""
Context: TypeAlias = Any
"""The precision and direction of the roundings of an operation of MPFR."""
Enclosing: TypeAlias = Callable[[Context, Context], tuple[Number, Number]]
"""Returns a lower and an upper end, from contexts that round down and up."""

FIRST_PRECISION = 64
"""Bits beyond a significand and its rounding bit in any format: both ends of an exact result or a tie equal it."""
LARGEST_EXPONENT = 20_000


@cache
def contexts(precision: int) -> tuple[Context, Context]:
    """Return contexts of that many bits that round down and up."""
    span = {"precision": precision, "emin": -LARGEST_EXPONENT, "emax": LARGEST_EXPONENT}
    return gmpy2.context(round=gmpy2.RoundDown, **span), gmpy2.context(round=gmpy2.RoundUp, **span)


def number(value: Value) -> Number:
    """The MPFR number that a value is, exactly. Raises `ValueError`: the value is no multiple of a power of two."""
    if isinstance(value, Special):
        return gmpy2.mpfr(value.value)
    numerator, denominator = value.numerator, value.denominator
    if denominator & (denominator - 1):
        raise ValueError(f"{value} is not a binary fraction")
    trailing_zeros = max((numerator & -numerator).bit_length() - 1, 0)
    precision = max(numerator.bit_length() - trailing_zeros, 2)
    return gmpy2.mpfr(gmpy2.mpq(numerator, denominator), precision)


def correctly_rounded(enclose: Enclosing, target: FloatFormat, *, nonfinite: bool = False) -> Value:
    """Return the rounding of a real number."""
    return target.decode(rounded_code(enclose, target, nonfinite=nonfinite))


def rounded_code(enclose: Enclosing, target: FloatFormat, *, nonfinite: bool = False) -> int:
    """Return the code to which a real number rounds: its enclosure is narrowed until both ends round alike.

    This ends unless the number is a tie that no precision represents, and no function here has such a result: ties have
    one bit more than the format, so that MPFR gives them exactly.
    """
    precision = FIRST_PRECISION
    while True:
        lower, upper = enclose(*contexts(precision))
        code = _code(lower, target, nonfinite)
        if lower == upper or code == _code(upper, target, nonfinite):
            return code
        precision *= 2


def _code(number: Number, target: FloatFormat, nonfinite: bool) -> int:
    """Return the code to which an MPFR number rounds."""
    if not gmpy2.is_finite(number) or gmpy2.is_zero(number):
        return target.encode(exact.value_of(number), nonfinite=nonfinite)
    numerator, denominator = number.as_integer_ratio()
    return target.encode_ratio(int(numerator), int(denominator), nonfinite=nonfinite)


# Elementary functions of one value, correctly rounded.
#
# Reference arithmetic: elementary functions are correctly rounded in the result type (LANG-10-11, AMB-LANG-45);
# special values are those of IEEE 754-2019, clause 9.2. Where MPFR and IEEE 754 differ, which is rsqrt(-0), IEEE 754
# holds.


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
"""The functions of the reference arithmetic, each as MPFR computes it in a context; `oracle.NAME` rounds it once."""


def evaluate(name: str, target: FloatFormat, *operands: Value, nonfinite: bool = False) -> Value:
    """Return a function of `OPERATIONS`, rounded once to `target`."""
    return target.decode(code_of_number(name, target, *map(number, operands), nonfinite=nonfinite))


def code_of_number(name: str, target: FloatFormat, *operands: Number, nonfinite: bool = False) -> int:
    """Return the code of `evaluate` for MPFR operands."""
    if name == "rsqrt" and gmpy2.is_zero(operands[0]) and gmpy2.is_signed(operands[0]):
        return target.encode(exact.NEGATIVE_INFINITY, nonfinite=nonfinite)
    operation = OPERATIONS[name]
    return rounded_code(
        lambda down, up: (operation(down, *operands), operation(up, *operands)), target, nonfinite=nonfinite
    )


def two_pi(target: FloatFormat) -> Value:
    """A full turn."""
    return correctly_rounded(lambda down, up: (_two_pi(down), _two_pi(up)), target)


@cache
def sqrt_two_over_pi(target: FloatFormat) -> Value:
    """The square root of 2/pi, rounded once."""
    return correctly_rounded(root_of_two_over_pi, target)


def root_of_two_over_pi(down: Context, up: Context) -> tuple[Number, Number]:
    """The square root of 2/pi, the factor in the approximation of gelu."""
    return down.sqrt(down.div(2, up.const_pi())), up.sqrt(up.div(2, down.const_pi()))


def turn(numerator: int, denominator: int, target: FloatFormat) -> tuple[Value, Value]:
    """Return cosine and sine of `numerator / denominator` of a full turn, each correctly rounded; zeros are +0."""
    cosine, sine = cosine_and_sine(Fraction(numerator, denominator))
    return correctly_rounded(cosine, target), correctly_rounded(sine, target)


def cosine_and_sine(part: Fraction) -> tuple[Enclosing, Enclosing]:
    """Return enclosures of the cosine and the sine of a part of a full turn."""
    return _cosine(part % 1), _cosine((part - Fraction(1, 4)) % 1)


def _cosine(part: Fraction) -> Enclosing:
    """Return the enclosure by symmetry from the first quarter of the turn, where it falls."""
    part = min(part, 1 - part)
    if part == Fraction(1, 4):
        return lambda down, up: (gmpy2.mpfr(0), gmpy2.mpfr(0))
    negative = part > Fraction(1, 4)
    part = Fraction(1, 2) - part if negative else part

    def enclose(down: Context, up: Context) -> tuple[Number, Number]:
        largest, smallest = (
            context.div(context.mul(_two_pi(context), part.numerator), part.denominator) for context in (up, down)
        )
        low, high = down.cos(largest), up.cos(smallest)
        return (down.minus(high), up.minus(low)) if negative else (low, high)

    return enclose


def _two_pi(context: Context) -> Number:
    return context.mul(2, context.const_pi())


# Activations as the reference composes them: every step rounded in the accumulator type, one final rounding.
#
# AMB-LANG-75; exponential, error function and hyperbolic tangent are correctly rounded in the accumulator type.


Approximate: TypeAlias = Literal["none", "tanh"]

ONE = Fraction(1)
HALF = Fraction(1, 2)
TANH_FACTOR = Fraction("0.044715")
"""The factor of the cube in the approximation of gelu, rounded once from its decimal value."""


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return _activated(_sigmoid, x)


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x), the sigmoid kept in the accumulator type."""
    return _activated(_silu, x)


def gelu(x: Tensor, *, approximate: Approximate = "none") -> Tensor:
    """(0.5 * x) * (1 + erf(x * sqrt(1/2))), or the approximation of it by the hyperbolic tangent."""
    forms: dict[str, _Function] = {"none": _gelu, "tanh": _gelu_by_tanh}
    if approximate not in forms:
        raise BadArgument("approximate", approximate, "none or tanh")
    return _activated(forms[approximate], x)


def relu(x: Tensor) -> Tensor:
    """The maximum of x and +0: NaN propagates, and -0 gives +0."""
    if x.dtype not in exact.FORMATS:
        raise BadArgument("dtype", x.dtype, "a real dtype")
    return exact.elementwise(lambda value: exact.maximum(value, exact.ZERO), x, nonfinite=True)


_Function: TypeAlias = Callable[[Value, FloatFormat], Value]


def _sigmoid(x: Value, format_: FloatFormat) -> Value:
    return format_.divide(ONE, format_.total([ONE, evaluate("exp", format_, exact.negate(x))]))


def _silu(x: Value, format_: FloatFormat) -> Value:
    return format_.multiply(x, _sigmoid(x, format_))


def _gelu(x: Value, format_: FloatFormat) -> Value:
    root = evaluate("sqrt", format_, HALF)
    return _half_of(x, evaluate("erf", format_, format_.multiply(x, root)), format_)


def _gelu_by_tanh(x: Value, format_: FloatFormat) -> Value:
    cube = format_.multiply(format_.multiply(x, x), x)
    inner = format_.total([x, format_.multiply(format_.round(TANH_FACTOR), cube)])
    scaled = format_.multiply(sqrt_two_over_pi(format_), inner)
    return _half_of(x, evaluate("tanh", format_, scaled), format_)


def _half_of(x: Value, shape: Value, format_: FloatFormat) -> Value:
    """(0.5 * x) * (1 + shape)."""
    return format_.multiply(format_.multiply(HALF, x), format_.total([ONE, shape]))


def _activated(function: _Function, x: Tensor) -> Tensor:
    format_, own = exact.accumulator_format(x.dtype), exact.float_format(x.dtype)
    words = x.words().tolist()
    codes = {word: own.encode(function(own.decode(word), format_)) for word in set(words)}
    return Tensor.from_words(x.dtype, x.shape, [codes[word] for word in words])


# Binary operators, negation and comparisons, element by element.
#
# Language spec 2.3 (operators), AMB-LANG-55: NumPy broadcasting; each operator rounds once, from the exact result, to
# the result type; integers wrap and integer division truncates toward zero; comparisons are IEEE and yield bool. tf32
# is fp32 here: only matmul rounds its operands.


def add(a: Tensor, b: Tensor) -> Tensor:
    """a + b (LANG-02.3-61)."""
    return exact.elementwise(exact.add, a, b)


def subtract(a: Tensor, b: Tensor) -> Tensor:
    """a - b (LANG-02.3-62)."""
    return exact.elementwise(exact.subtract, a, b)


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """a * b (LANG-02.3-63)."""
    return exact.elementwise(exact.multiply, a, b)


def divide(a: Tensor, b: Tensor) -> Tensor:
    """a / b (LANG-02.3-64); an integer divided by zero is an error, not a value."""
    return exact.elementwise(_truncated if isinstance(exact.FORMATS[a.dtype], IntegerFormat) else exact.divide, a, b)


def negate(a: Tensor) -> Tensor:
    """-a: the sign flipped, nothing rounded, so that an infinity stays one."""
    negated = [exact.negate(value) for value in exact.values_of(a)]
    return exact.tensor_of(a.dtype, a.shape, negated, nonfinite=True)


def _comparison(orders: Collection[int | None], a: Tensor, b: Tensor) -> Tensor:
    shape, pairs = exact.grouped(a, b)
    return Tensor.from_words("bool", shape, [int(exact.compare(x, y) in orders) for x, y in pairs])


COMPARISONS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "equal": partial(_comparison, (0,)),
    "not_equal": partial(_comparison, (-1, 1, None)),
    "less": partial(_comparison, (-1,)),
    "greater": partial(_comparison, (1,)),
    "less_or_equal": partial(_comparison, (-1, 0)),
    "greater_or_equal": partial(_comparison, (0, 1)),
}
"""The comparisons (LANG-02.3-66 to -71), by the orders for which they hold; None is the order of NaN and any number."""


def _truncated(x: Value, y: Value) -> Value:
    if exact.is_zero(y):
        raise ValueError("an integer divided by zero has no value")
    return Fraction(int(exact.finite(x) / exact.finite(y)))


# Elementary functions of tensors: correctly rounded, once, in the dtype itself.
#
# Reference arithmetic (LANG-10-11, AMB-LANG-45): not through the accumulator type; tf32 is fp32 here. A result too
# large for fp8 becomes the largest finite value of its sign, an infinite one too, unless `overflow="nonfinite"`.


Overflow: TypeAlias = Literal["saturate", "nonfinite"]


def pow_(x: Tensor, y: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """x to the power y; pow(x, 0) and pow(1, y) are 1 even for NaN."""
    target, nonfinite = exact.float_format(x.dtype), is_nonfinite(overflow)
    shape, pairs = exact.grouped(x, y)
    codes = {pair: evaluate("pow", target, *pair, nonfinite=nonfinite) for pair in set(pairs)}
    return exact.tensor_of(x.dtype, shape, [codes[pair] for pair in pairs], nonfinite=nonfinite)


def is_nonfinite(overflow: str) -> bool:
    """True if overflow to fp8 gives an infinity or NaN.

    Raises `BadArgument`: `overflow` is neither of its two values.
    """
    if overflow not in ("saturate", "nonfinite"):
        raise BadArgument("overflow", overflow, "saturate or nonfinite")
    return overflow == "nonfinite"


def _unary(name: str, x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    target, nonfinite = exact.float_format(x.dtype), is_nonfinite(overflow)
    operand = _remembered if x.format.word_bytes <= 2 else _operand
    words = x.words().tolist()
    codes = {word: code_of_number(name, target, operand(x.dtype, word), nonfinite=nonfinite) for word in set(words)}
    return Tensor.from_words(x.dtype, x.shape, [codes[word] for word in words])


def _operand(dtype: str, word: int) -> Number:
    return number(exact.float_format(dtype).decode(word))


_remembered = cache(_operand)
"""Narrow types have few codes, which many functions share."""

UNARY: Mapping[str, Callable[..., Tensor]] = {name: partial(_unary, name) for name in OPERATIONS if name != "pow"}
"""The functions of one operand, each of which takes a tensor and `overflow`."""

# Conversions between all dtypes.
#
# Language spec usage, "op.cast": one rounding; a float becomes an integer by truncation toward zero, and an integer
# another by wrapping. The result of a number outside an integer's range is not asserted: here it is the nearest end,
# and NaN gives 0. Infinities and overflow become the largest finite value of fp8, unless `overflow="nonfinite"`. A bool
# is 0 or 1; every number but zero is true. A complex number cannot become a real one; a real number gets the imaginary
# part +0.


def cast(x: Tensor, *, dtype: str, overflow: Overflow = "saturate") -> Tensor:
    """The elements as another dtype."""
    if dtype not in ELEMENT_FORMATS:
        raise BadArgument("dtype", dtype, f"one of {', '.join(ELEMENT_FORMATS)}")
    nonfinite = is_nonfinite(overflow)
    values = exact.values_of(x)
    if dtype in exact.COMPONENTS:
        if x.dtype not in exact.COMPONENTS:
            values = [part for value in values for part in (value, exact.ZERO)]
        return exact.tensor_of(dtype, x.shape, values, nonfinite=nonfinite)
    if x.dtype in exact.COMPONENTS:
        raise BadArgument("dtype", dtype, f"a complex dtype for elements of {x.dtype}")
    if dtype == "bool":
        return Tensor.from_words("bool", x.shape, [int(not exact.is_zero(value)) for value in values])
    target, source = exact.FORMATS[dtype], exact.FORMATS[x.dtype]
    if isinstance(target, IntegerFormat) and isinstance(source, FloatFormat):
        values = [_truncated_code(value, target) for value in values]
    return exact.tensor_of(dtype, x.shape, values, nonfinite=nonfinite)


def _truncated_code(value: Value, target: IntegerFormat) -> Value:
    """Return the code truncated toward zero, limited to the range."""
    least, greatest = -(1 << (target.bits - 1)), (1 << (target.bits - 1)) - 1
    if value is exact.NAN:
        return exact.ZERO
    if exact.is_infinite(value):
        return Fraction(least if exact.is_negative(value) else greatest)
    return Fraction(min(max(int(exact.finite(value)), least), greatest))
