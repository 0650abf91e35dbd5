"""Elementary functions of tensors: correctly rounded, once, in the dtype itself.

Canon of arithmetic (LANG-10-11, AMB-LANG-45): not through the accumulator type; tf32 is fp32 here. A result too large
for fp8 becomes the largest finite value of its sign, an infinite one too, unless `overflow="nonfinite"`.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, TypeAlias

from tessera_conformance.oracle.elementwise import paired
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.formats import float_format, tensor_of
from tessera_conformance.oracle.functions import code_of, evaluate
from tessera_conformance.tensors import Tensor

Overflow: TypeAlias = Literal["saturate", "nonfinite"]


def exp(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """e to the power x."""
    return _unary("exp", x, overflow)


def exp2(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """2 to the power x; exact where x is an integer."""
    return _unary("exp2", x, overflow)


def expm1(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """e to the power x, less 1; -0 gives -0."""
    return _unary("expm1", x, overflow)


def log(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """The natural logarithm; either zero gives -inf, a negative number NaN."""
    return _unary("log", x, overflow)


def log2(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """The logarithm to base 2; exact where x is a power of two."""
    return _unary("log2", x, overflow)


def log1p(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """The natural logarithm of 1 + x; -1 gives -inf and -0 gives -0."""
    return _unary("log1p", x, overflow)


def sin(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """The sine of x radians; an infinity gives NaN."""
    return _unary("sin", x, overflow)


def cos(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """The cosine of x radians; an infinity gives NaN."""
    return _unary("cos", x, overflow)


def tan(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """The tangent of x radians; an infinity gives NaN."""
    return _unary("tan", x, overflow)


def tanh(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """The hyperbolic tangent."""
    return _unary("tanh", x, overflow)


def sinh(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """The hyperbolic sine."""
    return _unary("sinh", x, overflow)


def cosh(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """The hyperbolic cosine."""
    return _unary("cosh", x, overflow)


def erf(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """The error function."""
    return _unary("erf", x, overflow)


def sqrt(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """The square root; -0 gives -0, another negative number NaN."""
    return _unary("sqrt", x, overflow)


def rsqrt(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """One over the square root; -0 gives -inf, another negative number NaN."""
    return _unary("rsqrt", x, overflow)


def reciprocal(x: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """1 / x; a zero gives the infinity of its sign."""
    return _unary("reciprocal", x, overflow)


def pow_(x: Tensor, y: Tensor, *, overflow: Overflow = "saturate") -> Tensor:
    """x to the power y; pow(x, 0) and pow(1, y) are 1 even for NaN."""
    target, nonfinite = float_format(x.dtype), is_nonfinite(overflow)
    shape, pairs = paired(x, y)
    known = {pair: evaluate("pow", target, *pair, nonfinite=nonfinite) for pair in set(pairs)}
    return tensor_of(x.dtype, shape, [known[pair] for pair in pairs], nonfinite=nonfinite)


def is_nonfinite(overflow: str) -> bool:
    """Whether overflow to fp8 gives an infinity or NaN.

    Raises:
        BadArgument: `overflow` is neither of its two values.
    """
    if overflow not in ("saturate", "nonfinite"):
        raise BadArgument("overflow", overflow, "saturate or nonfinite")
    return overflow == "nonfinite"


def _unary(name: str, x: Tensor, overflow: str) -> Tensor:
    float_format(x.dtype)
    nonfinite = is_nonfinite(overflow)
    answer = _remembered if x.format.word_bytes <= 2 else _answer
    words = x.words().tolist()
    known = {word: answer(name, x.dtype, word, nonfinite) for word in set(words)}
    return Tensor.from_words(x.dtype, x.shape, [known[word] for word in words])


def _answer(name: str, dtype: str, word: int, nonfinite: bool) -> int:
    target = float_format(dtype)
    return code_of(name, target, target.decode(word), nonfinite=nonfinite)


_remembered = cache(_answer)
"""Narrow types have few codes, and the same ones are asked for again and again."""
