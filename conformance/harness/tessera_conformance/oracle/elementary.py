"""Elementary functions of tensors: correctly rounded, once, in the dtype itself.

Canon of arithmetic (LANG-10-11, AMB-LANG-45): not through the accumulator type; tf32 is fp32 here. A result too large
for fp8 becomes the largest finite value of its sign, an infinite one too, unless `overflow="nonfinite"`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Literal, TypeAlias

from tessera_conformance.oracle.directed import Number, number
from tessera_conformance.oracle.elementwise import paired
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.formats import float_format, tensor_of
from tessera_conformance.oracle.functions import OPERATIONS, code_of_number, evaluate
from tessera_conformance.tensors import Tensor

Overflow: TypeAlias = Literal["saturate", "nonfinite"]


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
