"""Elementwise operators, elementary functions and casts of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache, partial
from typing import Any, Literal, TypeAlias

import numpy as np

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.exact import NAN, ZERO, BadArgument, Value, finite, is_infinite, is_negative, is_zero
from tessera_conformance.oracle.fields import Complex, ComplexField, elements_of, tensor_from
from tessera_conformance.oracle.formats import (
    COMPONENTS,
    FORMATS,
    FloatFormat,
    IntegerFormat,
    component_format,
    float_format,
    tensor_of,
    values_of,
)
from tessera_conformance.oracle.functions import OPERATIONS, Number, code_of_number, evaluate, number
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

# Binary operators, negation and comparisons, element by element.
#
# Language spec 2.3 (operators), AMB-LANG-55: NumPy broadcasting; each operator rounds once, from the exact result, to
# the result type; integers wrap and integer division truncates toward zero; comparisons are IEEE and yield bool. tf32
# is fp32 here: only matmul rounds its operands.


def add(a: Tensor, b: Tensor) -> Tensor:
    """a + b (LANG-02.3-61)."""
    if a.dtype in COMPONENTS:
        return _complex(lambda field, x, y: field.total([x, y]), a, b)
    return _arithmetic(exact.add, a, b)


def subtract(a: Tensor, b: Tensor) -> Tensor:
    """a - b (LANG-02.3-62)."""
    if a.dtype in COMPONENTS:
        return _complex(lambda field, x, y: field.total([x, field.negate(y)]), a, b)
    return _arithmetic(exact.subtract, a, b)


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """a * b (LANG-02.3-63); complex numbers as (ac - bd, ad + bc), every step rounded."""
    if a.dtype in COMPONENTS:
        return _complex(lambda field, x, y: field.multiply(x, y), a, b)
    return _arithmetic(exact.multiply, a, b)


def divide(a: Tensor, b: Tensor) -> Tensor:
    """a / b (LANG-02.3-64); an integer divided by zero is an error, not a value."""
    if a.dtype in COMPONENTS:
        raise BadArgument("dtype", a.dtype, "a real dtype: the reference arithmetic does not divide complex numbers")
    return _arithmetic(_truncated if isinstance(FORMATS[a.dtype], IntegerFormat) else exact.divide, a, b)


def negate(a: Tensor) -> Tensor:
    """-a: the sign flipped, nothing rounded, so that an infinity stays one."""
    negated = [exact.negate(value) for value in values_of(a)]
    return tensor_of(a.dtype, a.shape, negated, nonfinite=True)


def equal(a: Tensor, b: Tensor) -> Tensor:
    """a == b (LANG-02.3-66)."""
    return _comparison(lambda order: order == 0, a, b)


def not_equal(a: Tensor, b: Tensor) -> Tensor:
    """a != b (LANG-02.3-67): the only comparison that holds for NaN."""
    return _comparison(lambda order: order != 0, a, b)


def less(a: Tensor, b: Tensor) -> Tensor:
    """a < b (LANG-02.3-68)."""
    return _comparison(lambda order: order == -1, a, b)


def greater(a: Tensor, b: Tensor) -> Tensor:
    """a > b (LANG-02.3-69)."""
    return _comparison(lambda order: order == 1, a, b)


def less_or_equal(a: Tensor, b: Tensor) -> Tensor:
    """a <= b (LANG-02.3-70)."""
    return _comparison(lambda order: order in (-1, 0), a, b)


def greater_or_equal(a: Tensor, b: Tensor) -> Tensor:
    """a >= b (LANG-02.3-71)."""
    return _comparison(lambda order: order in (0, 1), a, b)


def _arithmetic(function: Callable[[Value, Value], Value], a: Tensor, b: Tensor) -> Tensor:
    shape, pairs = paired(a, b)
    return tensor_of(a.dtype, shape, [function(x, y) for x, y in pairs])


def _complex(function: Callable[[ComplexField, Complex, Complex], Complex], a: Tensor, b: Tensor) -> Tensor:
    shape, pairs = paired(a, b)
    field = ComplexField(component_format(a.dtype))
    return tensor_from(a.dtype, shape, [function(field, x, y) for x, y in pairs])


def _comparison(holds: Callable[[int | None], bool], a: Tensor, b: Tensor) -> Tensor:
    shape, pairs = paired(a, b)
    return Tensor.from_words("bool", shape, [int(holds(exact.compare(x, y))) for x, y in pairs])


def paired(a: Tensor, b: Tensor) -> tuple[tuple[int, ...], list[tuple[Any, Any]]]:
    """The shape that two operands broadcast to, and the pair of elements at each place of it.

    Raises:
        ValueError: their dtypes differ, or their shapes do not broadcast.
    """
    if a.dtype != b.dtype:
        raise ValueError(f"operands of one dtype are wanted, not {a.dtype} and {b.dtype}")
    shape = np.broadcast_shapes(a.shape, b.shape)
    places = (np.broadcast_to(np.arange(t.size).reshape(t.shape), shape).ravel().tolist() for t in (a, b))
    lefts, rights = elements_of(a), elements_of(b)
    return shape, [(lefts[i], rights[j]) for i, j in zip(*places, strict=True)]


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
    target, nonfinite = float_format(x.dtype), is_nonfinite(overflow)
    shape, pairs = paired(x, y)
    known = {pair: evaluate("pow", target, *pair, nonfinite=nonfinite) for pair in set(pairs)}
    return tensor_of(x.dtype, shape, [known[pair] for pair in pairs], nonfinite=nonfinite)


def is_nonfinite(overflow: str) -> bool:
    """True if overflow to fp8 gives an infinity or NaN.

    Raises:
        BadArgument: `overflow` is neither of its two values.
    """
    if overflow not in ("saturate", "nonfinite"):
        raise BadArgument("overflow", overflow, "saturate or nonfinite")
    return overflow == "nonfinite"


def _unary(name: str, x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    target, nonfinite = float_format(x.dtype), is_nonfinite(overflow)
    operand = _remembered if x.format.word_bytes <= 2 else _operand
    words = x.words().tolist()
    known = {word: code_of_number(name, target, operand(x.dtype, word), nonfinite=nonfinite) for word in set(words)}
    return Tensor.from_words(x.dtype, x.shape, [known[word] for word in words])


def _operand(dtype: str, word: int) -> Number:
    return number(float_format(dtype).decode(word))


_remembered = cache(_operand)
"""Narrow types have few codes, which recur from function to function."""

UNARY: Mapping[str, Callable[..., Tensor]] = {name: partial(_unary, name) for name in OPERATIONS if name != "pow"}
"""The functions of one operand, each of which takes a tensor and `overflow`."""

# Conversions between all dtypes.
#
# Language spec usage, "op.cast": one rounding; a float becomes an integer by truncation toward zero, and an integer
# another by wrapping. What a number out of an integer's range gives is not asserted: here it is the nearest end, and
# NaN gives 0. Infinities and overflow become the largest finite value of fp8, unless `overflow="nonfinite"`. A bool
# is 0 or 1, and true is whatever is not zero. A complex number cannot become a real one; a real number gets the
# imaginary part +0.


def cast(x: Tensor, *, dtype: str, overflow: Overflow = "saturate") -> Tensor:
    """The elements as another dtype."""
    if dtype not in ELEMENT_FORMATS:
        raise BadArgument("dtype", dtype, f"one of {', '.join(ELEMENT_FORMATS)}")
    nonfinite = is_nonfinite(overflow)
    values = values_of(x)
    if x.dtype in COMPONENTS or dtype in COMPONENTS:
        return tensor_of(dtype, x.shape, _complex_cast(values, x.dtype, dtype), nonfinite=nonfinite)
    if dtype == "bool":
        return Tensor.from_words("bool", x.shape, [int(not is_zero(value)) for value in values])
    target, source = FORMATS[dtype], FORMATS[x.dtype]
    if isinstance(target, IntegerFormat) and isinstance(source, FloatFormat):
        values = [_truncated_code(value, target) for value in values]
    return tensor_of(dtype, x.shape, values, nonfinite=nonfinite)


def _complex_cast(values: list[Value], source: str, target: str) -> list[Value]:
    """The parts of complex numbers, the imaginary one +0 where the source is real."""
    if target not in COMPONENTS:
        raise BadArgument("dtype", target, f"a complex dtype for elements of {source}")
    if source in COMPONENTS:
        return values
    return [part for value in values for part in (value, ZERO)]


def _truncated_code(value: Value, target: IntegerFormat) -> Value:
    """Toward zero, and to the nearest end of the range."""
    least, greatest = -(1 << (target.bits - 1)), (1 << (target.bits - 1)) - 1
    if value is NAN:
        return ZERO
    if is_infinite(value):
        return Fraction(least if is_negative(value) else greatest)
    return Fraction(min(max(int(finite(value)), least), greatest))
