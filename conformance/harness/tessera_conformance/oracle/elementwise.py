"""Binary operators, negation and comparisons, element by element.

Language spec 2.3 (operators), AMB-LANG-55: NumPy broadcasting; each operator rounds once, from the exact result, to the
result type; integers wrap and integer division truncates toward zero; comparisons are IEEE and yield bool. tf32
is fp32 here: only matmul rounds its operands.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.exact import Value
from tessera_conformance.oracle.fields import Complex, ComplexField, elements_of, tensor_from
from tessera_conformance.oracle.formats import (
    COMPONENTS,
    FORMATS,
    IntegerFormat,
    component_format,
    tensor_of,
    values_of,
)
from tessera_conformance.tensors import Tensor


def add(a: Tensor, b: Tensor) -> Tensor:
    """a + b (LANG-02.3-61)."""
    if a.dtype in COMPONENTS:
        return _complex(lambda field, x, y: field.total([x, y]), a, b)
    return _arithmetic(exact.add, a, b)


def subtract(a: Tensor, b: Tensor) -> Tensor:
    """a - b (LANG-02.3-62)."""
    if a.dtype in COMPONENTS:
        return _complex(lambda field, x, y: field.total([x, field.negate(y)]), a, b)
    return _arithmetic(exact.subtract, a, b)


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """a * b (LANG-02.3-63); complex numbers as (ac - bd, ad + bc), every step rounded."""
    if a.dtype in COMPONENTS:
        return _complex(lambda field, x, y: field.multiply(x, y), a, b)
    return _arithmetic(exact.multiply, a, b)


def divide(a: Tensor, b: Tensor) -> Tensor:
    """a / b (LANG-02.3-64); an integer divided by zero is an error, not a value."""
    if a.dtype in COMPONENTS:
        raise BadArgument("dtype", a.dtype, "a real dtype: the canon does not divide complex numbers")
    return _arithmetic(_truncated if isinstance(FORMATS[a.dtype], IntegerFormat) else exact.divide, a, b)


def negate(a: Tensor) -> Tensor:
    """-a: the sign flipped, nothing rounded, so that an infinity stays one."""
    negated = [exact.negate(value) for value in values_of(a)]
    return tensor_of(a.dtype, a.shape, negated, nonfinite=True)


def equal(a: Tensor, b: Tensor) -> Tensor:
    """a == b (LANG-02.3-66)."""
    return _comparison(lambda order: order == 0, a, b)


def not_equal(a: Tensor, b: Tensor) -> Tensor:
    """a != b (LANG-02.3-67): the only comparison that holds for NaN."""
    return _comparison(lambda order: order != 0, a, b)


def less(a: Tensor, b: Tensor) -> Tensor:
    """a < b (LANG-02.3-68)."""
    return _comparison(lambda order: order == -1, a, b)


def greater(a: Tensor, b: Tensor) -> Tensor:
    """a > b (LANG-02.3-69)."""
    return _comparison(lambda order: order == 1, a, b)


def less_or_equal(a: Tensor, b: Tensor) -> Tensor:
    """a <= b (LANG-02.3-70)."""
    return _comparison(lambda order: order in (-1, 0), a, b)


def greater_or_equal(a: Tensor, b: Tensor) -> Tensor:
    """a >= b (LANG-02.3-71)."""
    return _comparison(lambda order: order in (0, 1), a, b)


def _arithmetic(function: Callable[[Value, Value], Value], a: Tensor, b: Tensor) -> Tensor:
    shape, pairs = paired(a, b)
    return tensor_of(a.dtype, shape, [function(x, y) for x, y in pairs])


def _complex(function: Callable[[ComplexField, Complex, Complex], Complex], a: Tensor, b: Tensor) -> Tensor:
    shape, pairs = paired(a, b)
    field = ComplexField(component_format(a.dtype))
    return tensor_from(a.dtype, shape, [function(field, x, y) for x, y in pairs])


def _comparison(holds: Callable[[int | None], bool], a: Tensor, b: Tensor) -> Tensor:
    shape, pairs = paired(a, b)
    return Tensor.from_words("bool", shape, [int(holds(exact.compare(x, y))) for x, y in pairs])


def paired(a: Tensor, b: Tensor) -> tuple[tuple[int, ...], list[tuple[Any, Any]]]:
    """The shape that two operands broadcast to, and the pair of elements at each place of it.

    Raises:
        ValueError: their dtypes differ, or their shapes do not broadcast.
    """
    if a.dtype != b.dtype:
        raise ValueError(f"operands of one dtype are wanted, not {a.dtype} and {b.dtype}")
    shape = np.broadcast_shapes(a.shape, b.shape)
    places = (np.broadcast_to(np.arange(t.size).reshape(t.shape), shape).ravel().tolist() for t in (a, b))
    lefts, rights = elements_of(a), elements_of(b)
    return shape, [(lefts[i], rights[j]) for i, j in zip(*places, strict=True)]


def _truncated(x: Value, y: Value) -> Value:
    if exact.is_zero(y):
        raise ValueError("an integer divided by zero has no value")
    return Fraction(int(exact.finite(x) / exact.finite(y)))
