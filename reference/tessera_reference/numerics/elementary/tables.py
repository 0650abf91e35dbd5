"""Elementary functions of one operand by dtype: checks, and tables for 8 and 16 bits.

A narrow type has at most 65,536 values, so a function of it is a table: the function of every code, made by the same
vectorised evaluation as fp32 in some ten milliseconds, once in a process for each function, type and overflow mode.
That is less than reading a file and verifying its digest would take, so tables are not kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ..encoding import code_dtype, decode, encode
from ..errors import UnsupportedDType, WrongCarrier
from ..formats import DType
from ..rounding import Overflow, require_overflow

__all__ = ["Unary", "check_operand", "elementary_function"]

Values: TypeAlias = npt.NDArray[Any]
Evaluate: TypeAlias = Callable[[Values, DType, Overflow], Values]


class Unary(Protocol):
    """A function of one operand, correctly rounded."""

    __name__: str

    def __call__(self, values: Values, dtype: DType, overflow: Overflow = "saturate") -> Values:
        """Return the function of `values`, numbers of `dtype` in its carrier; same shape and carrier.

        Raises `UnsupportedDType` unless `dtype` is a float, `WrongCarrier` when `values` are held otherwise,
        `InvalidArgument` for another `overflow`, whether or not anything overflows.
        """


def elementary_function(evaluate: Evaluate) -> Unary:
    """Make a function of one operand out of its evaluation: check the dtype, and go through a table if it is narrow."""

    @wraps(evaluate)
    def function(values: Values, dtype: DType, overflow: Overflow = "saturate") -> Values:
        check_operand(evaluate.__name__, values, dtype, overflow)
        if not dtype.is_narrow:
            return evaluate(values, dtype, overflow)
        codes = encode(values, dtype)
        known = decode_all(dtype)[codes]
        if ((known == values) | np.isnan(values)).all():
            return np.asarray(table(evaluate, dtype, overflow)[codes])
        return evaluate(values, dtype, overflow)  # a number that is not of the type, as infinity in fp8_e4m3

    return function


def check_operand(operation: str, values: Values, dtype: DType, overflow: Overflow) -> None:
    """Raise unless `dtype` is a float, `values` are in its carrier, and `overflow` is known."""
    require_overflow(operation, overflow)
    if dtype.kind != "float":
        raise UnsupportedDType(operation, dtype)
    if values.dtype != dtype.carrier:
        raise WrongCarrier(dtype, values.dtype)


@cache
def table(evaluate: Evaluate, dtype: DType, overflow: Overflow) -> Values:
    """Return the function of every code of a narrow `dtype`, indexed by code, read-only."""
    results = evaluate(decode_all(dtype), dtype, overflow)
    results.flags.writeable = False
    return results


@cache
def decode_all(dtype: DType) -> Values:
    """Return the value of every code of a narrow `dtype`, indexed by code, read-only."""
    values = decode(np.arange(1 << dtype.bits).astype(code_dtype(dtype)), dtype)
    values.flags.writeable = False
    return values
