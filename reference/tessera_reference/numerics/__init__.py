"""The arithmetic of the reference: dtypes, rounding, exact storage, fixed orders, correctly rounded functions.

Everything here follows the canon of arithmetic: only operations that IEEE 754 defines exactly, in a defined order,
so that the same operands give the same bits on every machine.
"""

from .array import Array
from .environment import check_environment
from .errors import (
    DivisionByZero,
    DTypeMismatch,
    MalformedStorage,
    NotRepresentable,
    NumericsFailure,
    ShapeMismatch,
    UnknownDType,
    UnsuitableEnvironment,
    UnsupportedDType,
    WrongCarrier,
)
from .formats import DTYPES, DType, dtype
from .rounding import Overflow, cast, round_exact, round_to

__all__ = [
    "DTYPES",
    "Array",
    "DType",
    "DTypeMismatch",
    "DivisionByZero",
    "MalformedStorage",
    "NotRepresentable",
    "NumericsFailure",
    "Overflow",
    "ShapeMismatch",
    "UnknownDType",
    "UnsuitableEnvironment",
    "UnsupportedDType",
    "WrongCarrier",
    "cast",
    "check_environment",
    "dtype",
    "round_exact",
    "round_to",
]
