"""The oracle: what the canon of arithmetic demands, computed with exact rational numbers.

It shares nothing with the reference implementation and uses no floating-point arithmetic: an operand is the Fraction
it stands for, an operation is exact, and rounding is a division of integers. It is slow and meant to be read beside the
canon.

Every function named in `FUNCTIONS` takes `Tensor` objects, then keyword arguments, and returns a `Tensor`; golden
vectors name the one that confirmed them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tessera_conformance.oracle.compositions import add_to_product, attention, multiply_add, scale
from tessera_conformance.oracle.elementwise import (
    add,
    divide,
    equal,
    greater,
    greater_or_equal,
    less,
    less_or_equal,
    multiply,
    negate,
    not_equal,
    subtract,
    transpose,
)
from tessera_conformance.oracle.reductions import matmul
from tessera_conformance.oracle.softmax import softmax
from tessera_conformance.tensors import Tensor

_PUBLISHED: tuple[Callable[..., Tensor], ...] = (
    add,
    add_to_product,
    attention,
    divide,
    equal,
    greater,
    greater_or_equal,
    less,
    less_or_equal,
    matmul,
    multiply,
    multiply_add,
    negate,
    not_equal,
    scale,
    softmax,
    subtract,
    transpose,
)

FUNCTIONS: Mapping[str, Callable[..., Tensor]] = {f"oracle.{function.__name__}": function for function in _PUBLISHED}
"""The functions that a golden vector may name as its independent check."""

__all__ = [
    "FUNCTIONS",
    "add",
    "add_to_product",
    "attention",
    "divide",
    "equal",
    "greater",
    "greater_or_equal",
    "less",
    "less_or_equal",
    "matmul",
    "multiply",
    "multiply_add",
    "negate",
    "not_equal",
    "scale",
    "softmax",
    "subtract",
    "transpose",
]
