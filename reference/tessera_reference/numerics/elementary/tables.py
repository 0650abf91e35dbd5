"""Constants of elementary functions, and tables of those of 8 and 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache, wraps
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ..array import code_dtype, decode, in_blocks
from ..errors import WrongCarrier
from ..formats import DType, UnsupportedDType
from ..rounding import Overflow, require_overflow
from ..ziv import Definition, correctly_rounded

# Mathematical constants to 300 bits, as rational numbers; approximations take their pieces from these.


BITS = 300
"""The precision of constants and table entries: far more than a pair can hold."""

LN2 = Fraction(0xB17217F7D1CF79ABC9E3B39803F2F6AF40F343267298B62D8A0D175B8BAAFA2BE7B876206DF, 1 << BITS)
PI = Fraction(0xC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3, 1 << BITS - 2)

# Elementary functions of one operand by dtype: checks, and tables for 8 and 16 bits.
#
# A narrow type has at most 65,536 values, so a function of it is a table: the function of every code, made by the same
# vectorised evaluation as fp32 in about ten milliseconds, once in a process for each function, type and overflow mode.
# Reading a file and verifying its digest would take longer, so tables are not kept on disk.


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
    """Make a function of one operand from its evaluation: check the dtype, and use a table for a narrow one."""

    @wraps(evaluate)
    def function(values: Values, dtype: DType, overflow: Overflow = "saturate") -> Values:
        check_operand(evaluate.__name__, values, dtype, overflow)
        if not dtype.is_narrow:
            return evaluate(values, dtype, overflow)
        results, dropped = table(evaluate, dtype, overflow), 23 - dtype.fraction_bits

        def looked_up(x: Values) -> Values:
            code = x.view(np.uint32)
            result = results.take(code >> dropped, mode="wrap")  # the fastest mode; no index is out of range
            others = (result == _NO_NUMBER) | (code & ((1 << dropped) - 1) != 0)
            if others.any():
                result[others] = evaluate(x[others], dtype, overflow).view(np.uint32)
            return result.view(np.float32)

        return in_blocks(looked_up, np.float32, values)

    return function


def rounded_function(name: str, definition: Definition, meaning: str) -> Unary:
    """Return the function of one operand with a definition, correctly rounded."""

    def evaluate(values: Values, dtype: DType, overflow: Overflow) -> Values:
        return correctly_rounded(definition, dtype, overflow, values)

    evaluate.__name__, evaluate.__doc__ = name, meaning
    return elementary_function(evaluate)


def check_operand(operation: str, values: Values, dtype: DType, overflow: Overflow) -> None:
    """Raise unless `dtype` is a float, `values` are in its carrier, and `overflow` is known."""
    require_overflow(operation, overflow)
    if dtype.kind != "float":
        raise UnsupportedDType(operation, dtype)
    if values.dtype != dtype.carrier:
        raise WrongCarrier(dtype, values.dtype)


_NO_NUMBER = 0x7FFFFFFF
"""The entry for a result that the type lacks, such as infinity in fp8_e4m3; a NaN that no function gives."""


@cache
def table(evaluate: Evaluate, dtype: DType, overflow: Overflow) -> npt.NDArray[np.uint32]:
    """Return the codes of the function of every number of a narrow `dtype`, by the upper bits of its carrier's code.

    They are sign, exponent and as many fraction bits as the numbers have.
    """
    numbers = decode(np.arange(1 << dtype.bits).astype(code_dtype(dtype)), dtype)
    results = np.full(1 << (9 + dtype.fraction_bits), _NO_NUMBER, np.uint32)
    results[numbers.view(np.uint32) >> (23 - dtype.fraction_bits)] = evaluate(numbers, dtype, overflow).view(np.uint32)
    return results
