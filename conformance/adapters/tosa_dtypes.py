"""The dtypes of TOSA: their names, and which operators take which (TOSA 1.0, the tables of each operator)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tessera_conformance.adapter import NotSupported

TYPES = {
    np.dtype(np.float16): "FP16",
    np.dtype(np.float32): "FP32",
    np.dtype(ml_dtypes.bfloat16): "BF16",
    np.dtype(ml_dtypes.float8_e4m3fn): "FP8E4M3",
    np.dtype(ml_dtypes.float8_e5m2): "FP8E5M2",
    **{np.dtype(f"int{bits}"): f"INT{bits}" for bits in (8, 16, 32)},
    np.dtype(bool): "BOOL",
}
FLOATS = {"FP16", "BF16", "FP32"}
FP8 = {"FP8E4M3", "FP8E5M2"}
INTEGERS = {"INT8", "INT16", "INT32"}
MOVED = FLOATS | FP8 | INTEGERS | {"BOOL"}
COMPARED = FLOATS | {"INT32"}
TAKEN = {
    **dict.fromkeys(("add", "sub", "abs", "maximum", "minimum", "equal", "greater", "greater_equal"), COMPARED),
    **dict.fromkeys(("concat", "pad", "reshape", "slice", "tile", "transpose"), MOVED),
    **dict.fromkeys(("mul", "negate", "reduce_max", "reduce_min"), FLOATS | INTEGERS),
    "reduce_sum": COMPARED,
    "select": FLOATS | INTEGERS | {"BOOL"},
    "clamp": FLOATS | {"INT8", "INT16"},
    "intdiv": {"INT32"},
    "logical_not": {"BOOL"},
    "argmax": FLOATS | FP8 | {"INT8", "INT16"},
    "matmul": FLOATS | FP8 | {"INT8"},
}
"""The dtypes that an operator takes, where they are not just the floats."""
CAST = {
    *((a, b) for a in INTEGERS for b in INTEGERS | FLOATS | {"BOOL"}),
    *((a, b) for a in FLOATS for b in INTEGERS | FP8),
    *((a, b) for a in FP8 for b in FLOATS),
    *(("BOOL", integer) for integer in INTEGERS),
    *(("FP16", "FP32"), ("FP32", "FP16"), ("BF16", "FP32"), ("FP32", "BF16")),
}
"""The pairs of dtypes that are cast."""
PRODUCTS = {"INT8": "int32", "FP16": "float32", "BF16": "float32", "FP8E4M3": "float16"}
PRODUCTS |= {"FP8E5M2": "float16", "FP32": "float32"}
"""The dtypes of products, by those of the operands."""


def name_of(dtype: Any) -> str:
    """The name of a dtype in TOSA.

    Raises:
        NotSupported: it has none.
    """
    if np.dtype(dtype) not in TYPES:
        raise NotSupported(f"{dtype} in TOSA")
    return TYPES[np.dtype(dtype)]


def require(operator: str, operand: Any, result: Any) -> None:
    """The operator takes the operand's dtype, and a cast the result's too.

    Raises:
        NotSupported: it does not.
    """
    taken, given = name_of(operand), name_of(result)
    if taken not in TAKEN.get(operator, FLOATS) and operator != "cast":
        raise NotSupported(f"TOSA: {operator} of {taken}")
    if operator == "cast" and (taken, given) not in CAST:
        raise NotSupported(f"TOSA: cast of {taken} to {given}")
