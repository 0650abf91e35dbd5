"""Elementary functions, correctly rounded in their result type (LANG-10-11, AMB-LANG-45).

Each is approximated by IEEE-exact operations only, in pairs of float64, and then decided by Ziv's test. Functions of 8-
and 16-bit types are tables made that way. So the bits are the same on every machine, and no mathematical library is
trusted. Special values are those of IEEE 754-2019, 9.2.1. In fp8 a result too large, or infinite, becomes the largest
finite number of its sign, unless `overflow` is "nonfinite". tf32 is fp32 here.

The functions take values in the carrier of a dtype, and the dtype; `apply` takes arrays and a function's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ..array import Array
from ..errors import DTypeMismatch, InvalidArgument
from ..rounding import Overflow
from .exponential import cosh, erf, exp, exp2, expm1, sinh, tanh
from .logarithm import log, log1p, log2, pow
from .roots import reciprocal, rsqrt, sqrt
from .trigonometric import cos, sin, tan

__all__ = [
    "FUNCTIONS",
    "apply",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "pow",
    "reciprocal",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]

FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        function.__name__: function
        for function in (
            exp, exp2, expm1, log, log2, log1p, sin, cos, tan, tanh, sinh, cosh, erf, sqrt, rsqrt, reciprocal, pow
        )
    }
)  # fmt: skip
"""Every function by its name in the reference arithmetic; all take one array of values except pow, which takes two."""


def apply(name: str, *operands: Array, overflow: Overflow = "saturate") -> Array:
    """Apply the function called `name`, element by element; two operands broadcast by NumPy's rules.

    Raises `InvalidArgument` for an unknown name or `overflow`, or a wrong number of operands, `DTypeMismatch`,
    `UnsupportedDType` for any dtype but floats, `ShapeMismatch`, and `TooLarge`.
    """
    if name not in FUNCTIONS:
        raise InvalidArgument("elementary function", "name", name, "one of " + ", ".join(FUNCTIONS))
    expected = 2 if name == "pow" else 1
    if len(operands) != expected:
        raise InvalidArgument(name, "number of operands", len(operands), str(expected))
    dtype = operands[0].dtype
    for other in operands[1:]:
        if other.dtype != dtype:
            raise DTypeMismatch(name, dtype, other.dtype)
    return Array(dtype, np.asarray(FUNCTIONS[name](*(operand.values for operand in operands), dtype, overflow)))
