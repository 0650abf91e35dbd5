"""sigmoid, silu, gelu and relu: compositions in the accumulator type, with one final rounding (LANG-15-14).

Every step is rounded in the accumulator type, in which exp, erf and tanh are correctly rounded. Only the result is
rounded to the operand's dtype. The constants are rounded once, to the accumulator type.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from .array import Array, in_blocks
from .elementary import erf, exp, tanh
from .errors import InvalidArgument
from .formats import DType, UnsupportedDType
from .rounding import Overflow, round_exact, round_to
from .ziv import mp, rational

Approximate: TypeAlias = Literal["none", "tanh"]
Values: TypeAlias = npt.NDArray[Any]

_CUBE_FACTOR = Fraction("0.044715")


def sigmoid(x: Array, overflow: Overflow = "saturate") -> Array:
    """Return 1 / (1 + exp(-x)); same shape and dtype. Raises `UnsupportedDType` for any dtype but floats."""
    wide = _accumulated("sigmoid", x)
    return _rounded(_sigmoid(wide, x.dtype.accumulator), x.dtype, overflow)


def silu(x: Array, overflow: Overflow = "saturate") -> Array:
    """Return x * sigmoid(x), which is NaN at -inf; same shape and dtype. Raises as `sigmoid`."""
    wide = _accumulated("silu", x)
    with np.errstate(all="ignore"):
        return _rounded(wide * _sigmoid(wide, x.dtype.accumulator), x.dtype, overflow)


def gelu(x: Array, approximate: Approximate = "none", overflow: Overflow = "saturate") -> Array:
    """Return (x/2) (1 + erf(c x)), c = sqrt(1/2); or for "tanh" (x/2) (1 + tanh(c (x + d x**3))), c = sqrt(2/pi).

    Same shape and dtype. Raises as `sigmoid`, and `InvalidArgument` for another `approximate`.
    """
    forms = {"none": _gelu, "tanh": _gelu_by_tanh}
    if approximate not in get_args(Approximate):
        raise InvalidArgument("gelu", "approximate", approximate, "'none' or 'tanh'")
    wide = _accumulated("gelu", x)
    with np.errstate(all="ignore"):
        return _rounded(forms[approximate](wide, x.dtype.accumulator), x.dtype, overflow)


def relu(x: Array) -> Array:
    """Return the larger of x and +0: relu(-0) = +0, NaN stays; same shape and dtype. Floats and integers."""
    if x.dtype.kind not in ("float", "int"):
        raise UnsupportedDType("relu", x.dtype)
    with np.errstate(all="ignore"):
        zero, carrier = np.zeros((), x.dtype.carrier), x.dtype.carrier
        return Array(x.dtype, in_blocks(lambda block: np.where(block <= 0, zero, block), carrier, x.values))


def _accumulated(operation: str, x: Array) -> Values:
    if x.dtype.kind != "float":
        raise UnsupportedDType(operation, x.dtype)
    return x.values.astype(x.dtype.accumulator.carrier)


def _rounded(values: Values, dtype: DType, overflow: Overflow) -> Array:
    return Array(dtype, round_to(np.asarray(values), dtype, overflow))


def _sigmoid(x: Values, accumulator: DType) -> Values:
    one = accumulator.carrier.type(1)
    with np.errstate(all="ignore"):
        return np.asarray(one / (one + exp(np.negative(x), accumulator)))


def _gelu(x: Values, accumulator: DType) -> Values:
    factor, _, _ = _constants(accumulator)
    half, one = accumulator.carrier.type(0.5), accumulator.carrier.type(1)
    return np.asarray((half * x) * (one + erf(np.asarray(x * factor), accumulator)))


def _gelu_by_tanh(x: Values, accumulator: DType) -> Values:
    _, factor, cube_factor = _constants(accumulator)
    half, one = accumulator.carrier.type(0.5), accumulator.carrier.type(1)
    inner = factor * (x + cube_factor * ((x * x) * x))
    return np.asarray((half * x) * (one + tanh(np.asarray(inner), accumulator)))


@cache
def _constants(accumulator: DType) -> tuple[Any, Any, Any]:
    """Return sqrt(1/2), sqrt(2/pi) and the factor of the cube, each correctly rounded."""
    two_over_pi = mp().mpf_div(mp().from_int(2), mp().mpf_pi(220), 200, "n")
    roots = (rational(mp().mpf_sqrt(square, 200, "n")) for square in (mp().fhalf, two_over_pi))
    rounded = (accumulator.carrier.type(round_exact(value, accumulator)) for value in (*roots, _CUBE_FACTOR))
    half_root, factor, cube_factor = rounded
    return half_root, factor, cube_factor
