"""Activations as the canon composes them: every step rounded in the accumulator type, one final rounding to the dtype.

AMB-LANG-75; exponential, error function and hyperbolic tangent are correctly rounded in the accumulator type.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Literal, TypeAlias

from tessera_conformance.oracle import exact, functions
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.exact import ZERO, Value
from tessera_conformance.oracle.formats import (
    FORMATS,
    FloatFormat,
    accumulator_format,
    float_format,
    tensor_of,
    values_of,
)
from tessera_conformance.tensors import Tensor

Approximate: TypeAlias = Literal["none", "tanh"]

ONE = Fraction(1)
HALF = Fraction(1, 2)
TANH_FACTOR = Fraction("0.044715")
"""The factor of the cube in the approximation of gelu, rounded once from its decimal value."""


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return _elementwise(_sigmoid, x)


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x), the sigmoid kept in the accumulator type."""
    return _elementwise(_silu, x)


def gelu(x: Tensor, *, approximate: Approximate = "none") -> Tensor:
    """(0.5 * x) * (1 + erf(x * sqrt(1/2))), or the approximation of it by the hyperbolic tangent."""
    forms: dict[str, _Function] = {"none": _gelu, "tanh": _gelu_by_tanh}
    if approximate not in forms:
        raise BadArgument("approximate", approximate, "none or tanh")
    return _elementwise(forms[approximate], x)


def relu(x: Tensor) -> Tensor:
    """The maximum of x and +0: NaN propagates, and -0 gives +0."""
    if x.dtype not in FORMATS:
        raise BadArgument("dtype", x.dtype, "a real dtype")
    return tensor_of(x.dtype, x.shape, [exact.maximum(value, ZERO) for value in values_of(x)], nonfinite=True)


_Function: TypeAlias = Callable[[Value, FloatFormat], Value]


def _sigmoid(x: Value, format_: FloatFormat) -> Value:
    denominator = format_.round(exact.add(ONE, functions.evaluate("exp", format_, exact.negate(x))))
    return format_.round(exact.divide(ONE, denominator))


def _silu(x: Value, format_: FloatFormat) -> Value:
    return format_.round(exact.multiply(x, _sigmoid(x, format_)))


def _gelu(x: Value, format_: FloatFormat) -> Value:
    scaled = format_.round(exact.multiply(x, _root_of_half(format_)))
    return _half_of(x, functions.evaluate("erf", format_, scaled), format_)


def _gelu_by_tanh(x: Value, format_: FloatFormat) -> Value:
    cube = format_.round(exact.multiply(format_.round(exact.multiply(x, x)), x))
    inner = format_.round(exact.add(x, format_.round(exact.multiply(format_.round(TANH_FACTOR), cube))))
    scaled = format_.round(exact.multiply(_root_of_two_over_pi(format_), inner))
    return _half_of(x, functions.evaluate("tanh", format_, scaled), format_)


def _half_of(x: Value, shape: Value, format_: FloatFormat) -> Value:
    """(0.5 * x) * (1 + shape)."""
    half = format_.round(exact.multiply(HALF, x))
    return format_.round(exact.multiply(half, format_.round(exact.add(ONE, shape))))


@cache
def _root_of_half(format_: FloatFormat) -> Value:
    return functions.evaluate("sqrt", format_, HALF)


@cache
def _root_of_two_over_pi(format_: FloatFormat) -> Value:
    return functions.sqrt_two_over_pi(format_)


def _elementwise(function: _Function, x: Tensor) -> Tensor:
    format_, own = accumulator_format(x.dtype), float_format(x.dtype)
    words = x.words().tolist()
    known = {word: own.encode(function(own.decode(word), format_)) for word in set(words)}
    return Tensor.from_words(x.dtype, x.shape, [known[word] for word in words])
