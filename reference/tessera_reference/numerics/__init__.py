"""The arithmetic of the reference: dtypes, rounding, exact storage, fixed orders, correctly rounded functions.

Everything here follows the reference arithmetic. It uses only operations that IEEE 754 defines exactly, in a defined
order: the same operands give the same bits on every machine.
"""

from .array import Array
from .environment import check_environment
from .errors import (
    AxisOutOfRange,
    DivisionByZero,
    DTypeMismatch,
    EmptyAxis,
    InvalidArgument,
    LeafCount,
    MalformedStorage,
    MalformedTree,
    NonFinite,
    NotRepresentable,
    ShapeMismatch,
    UnsuitableEnvironment,
    WrongCarrier,
)
from .formats import (
    DTYPES,
    DType,
    NumericsFailure,
    UnknownDType,
    UnknownDTypeId,
    UnsupportedDType,
    dtype,
    dtype_of_abi_id,
)
from .node_arithmetic import NodeArithmetic
from .rounding import Overflow, cast, round_exact, round_to
from .trees import Tree

__all__ = [
    "DTYPES",
    "Array",
    "AxisOutOfRange",
    "DType",
    "DTypeMismatch",
    "DivisionByZero",
    "EmptyAxis",
    "InvalidArgument",
    "LeafCount",
    "MalformedStorage",
    "MalformedTree",
    "NodeArithmetic",
    "NonFinite",
    "NotRepresentable",
    "NumericsFailure",
    "Overflow",
    "ShapeMismatch",
    "Tree",
    "UnknownDType",
    "UnknownDTypeId",
    "UnsuitableEnvironment",
    "UnsupportedDType",
    "WrongCarrier",
    "cast",
    "check_environment",
    "dtype",
    "dtype_of_abi_id",
    "round_exact",
    "round_to",
]
