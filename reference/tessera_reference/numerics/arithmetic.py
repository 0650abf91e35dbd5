"""Arithmetic on arrays, by the canon.

Language spec sections 10 and 15; usage, "operators". Both operands have one dtype, and so has the result, except that
comparisons give bool. Shapes broadcast by NumPy's rules. An operator rounds once, to its result type. Integers wrap.
tf32 is fp32 everywhere except for matmul's operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .array import Array
from .elementary import exp
from .errors import DivisionByZero, DTypeMismatch, ShapeMismatch, UnsupportedDType
from .formats import DTYPES, DType
from .rounding import cast, round_operand, round_to
from .trees import pairwise

__all__ = [
    "add",
    "divide",
    "equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "matmul",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not_equal",
    "softmax",
    "subtract",
    "transpose",
]

Values: TypeAlias = npt.NDArray[Any]
Operator: TypeAlias = Callable[[Values, Values], Values]

_TILE = 1 << 14
"""Accumulators of a matmul handled at once, so that they stay in cache; no result depends on it."""


def add(a: Array, b: Array) -> Array:
    """Return a + b. Not on bool."""
    _require_elementwise("add", a, b, "float", "int", "complex")
    return _rounded_once(np.add, a, b)


def subtract(a: Array, b: Array) -> Array:
    """Return a - b. Not on bool."""
    _require_elementwise("subtract", a, b, "float", "int", "complex")
    return _rounded_once(np.subtract, a, b)


def multiply(a: Array, b: Array) -> Array:
    """Return a * b; for complex numbers (ac - bd, ad + bc), rounding every step. Not on bool."""
    _require_elementwise("multiply", a, b, "float", "int", "complex")
    if a.dtype.kind == "complex":
        with np.errstate(all="ignore"):
            return Array(a.dtype, _complex(*_complex_product(_parts(a.values), _parts(b.values))))
    return _rounded_once(np.multiply, a, b)


def divide(a: Array, b: Array) -> Array:
    """Return a / b. Integers truncate toward zero, and raise `DivisionByZero`. Not on bool or complex."""
    _require_elementwise("divide", a, b, "float", "int")
    return _rounded_once(_integer_quotient if a.dtype.kind == "int" else np.divide, a, b)


def negate(a: Array) -> Array:
    """Return -a: the sign flipped, of zeros, infinities and NaN too; integers wrap. Not on bool."""
    if a.dtype.kind == "bool":
        raise UnsupportedDType("negate", a.dtype)
    with np.errstate(all="ignore"):
        return Array(a.dtype, np.negative(a.values))


def equal(a: Array, b: Array) -> Array:
    """Return whether a == b, as bool; NaN equals nothing, -0 equals +0."""
    return _compared("equal", np.equal, a, b, "float", "int", "bool", "complex")


def not_equal(a: Array, b: Array) -> Array:
    """Return whether a != b, as bool; true for NaN."""
    return _compared("not_equal", np.not_equal, a, b, "float", "int", "bool", "complex")


def less(a: Array, b: Array) -> Array:
    """Return whether a < b, as bool; false for NaN. Not on bool or complex."""
    return _compared("less", np.less, a, b, "float", "int")


def greater(a: Array, b: Array) -> Array:
    """Return whether a > b, as bool; false for NaN. Not on bool or complex."""
    return _compared("greater", np.greater, a, b, "float", "int")


def less_equal(a: Array, b: Array) -> Array:
    """Return whether a <= b, as bool; false for NaN. Not on bool or complex."""
    return _compared("less_equal", np.less_equal, a, b, "float", "int")


def greater_equal(a: Array, b: Array) -> Array:
    """Return whether a >= b, as bool; false for NaN. Not on bool or complex."""
    return _compared("greater_equal", np.greater_equal, a, b, "float", "int")


def maximum(a: Array, b: Array) -> Array:
    """Return the larger element; NaN wins, -0 is below +0. Not on bool or complex."""
    _require_elementwise("maximum", a, b, "float", "int")
    return Array(a.dtype, _maximum(a.values, b.values))


def minimum(a: Array, b: Array) -> Array:
    """Return the smaller element; NaN wins, -0 is below +0. Not on bool or complex."""
    _require_elementwise("minimum", a, b, "float", "int")
    return Array(a.dtype, _minimum(a.values, b.values))


def matmul(a: Array, b: Array, out: DType | None = None) -> Array:
    """Return the matrix product, (..., M, K) x (..., K, N) -> (..., M, N), leading dimensions equal.

    acc = +0; for k ascending, acc = round(acc + round(a * b)) in the accumulator type; one final rounding to `out`, by
    default the operands' dtype (LANG-10-02, LANG-15-01, LANG-15-04 to -06). K = 0 gives +0. Not on bool.
    Raises `ShapeMismatch`.
    """
    _require_kinds("matmul", a, b, "float", "int", "complex")
    if a.rank < 2 or b.rank < 2:
        raise ShapeMismatch("matmul", f"operands have ranks {a.rank} and {b.rank}, at least 2 is needed")
    if a.shape[-1] != b.shape[-2]:
        raise ShapeMismatch("matmul", f"inner dimensions differ: {a.shape[-1]} and {b.shape[-2]}")
    if a.shape[:-2] != b.shape[:-2]:
        raise ShapeMismatch("matmul", f"batch dimensions differ: {list(a.shape[:-2])} and {list(b.shape[:-2])}")
    accumulate = _accumulate_complex if a.dtype.kind == "complex" else _accumulate
    with np.errstate(all="ignore"):
        total = accumulate(_matmul_operand(a), _matmul_operand(b))
    return cast(Array(a.dtype.accumulator, total), out or a.dtype)


def softmax(x: Array, axis: int = -1) -> Array:
    """Return exp(x - max) / sum(exp(x - max)) along `axis`; same shape and dtype. Floats only.

    Computed in the accumulator type, exp correctly rounded, the sum over the canonical tree; one final rounding
    (LANG-10-03, LANG-15-07, AMB-LANG-75). A row that holds NaN or +inf, or -inf only, is NaN.
    Raises `ShapeMismatch` for an axis out of range or of extent 0.
    """
    if x.dtype.kind != "float":
        raise UnsupportedDType("softmax", x.dtype)
    if not -x.rank <= axis < x.rank:
        raise ShapeMismatch("softmax", f"axis {axis} is out of range for rank {x.rank}")
    if x.shape[axis] == 0:
        raise ShapeMismatch("softmax", f"axis {axis} has extent 0")
    with np.errstate(all="ignore"):
        largest = np.expand_dims(pairwise(x.values, axis, _maximum), axis)
        exponentials = exp(x.values - largest, x.dtype.accumulator)
        total = np.expand_dims(pairwise(exponentials, axis), axis)
        return Array(x.dtype, round_to(exponentials / total, x.dtype))


def transpose(x: Array, perm: Sequence[int] | None = None) -> Array:
    """Permute the axes: axis i of the result is axis perm[i] of `x`; by default reversed. Raises `ShapeMismatch`."""
    order = list(range(x.rank))[::-1] if perm is None else list(perm)
    if sorted(order) != list(range(x.rank)):
        raise ShapeMismatch("transpose", f"{order} is no permutation of the axes of rank {x.rank}")
    return Array(x.dtype, x.values.transpose(order))


def _require_kinds(operation: str, a: Array, b: Array, *kinds: str) -> None:
    if a.dtype != b.dtype:
        raise DTypeMismatch(operation, a.dtype, b.dtype)
    if a.dtype.kind not in kinds:
        raise UnsupportedDType(operation, a.dtype)


def _require_elementwise(operation: str, a: Array, b: Array, *kinds: str) -> None:
    _require_kinds(operation, a, b, *kinds)
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise ShapeMismatch(operation, f"{list(a.shape)} and {list(b.shape)} do not broadcast") from None


def _rounded_once(operator: Operator, a: Array, b: Array) -> Array:
    """Apply + - * or / with one rounding.

    A narrow float is computed in float64 and rounded again, which is innocuous. With significands of p <= 11 bits,
    float64 holds every product exactly. An inexact quotient lies at least 2**-(2p + 2) of itself away from each number
    of p + 1 bits, and so from each midpoint between results; float64 errs by 2**-53. An inexact sum has operands more
    than 40 binades apart, and both roundings give the larger. Subnormal results have fewer bits, hence fewer
    midpoints, and are normal numbers of float64.
    """
    with np.errstate(all="ignore"):
        if a.dtype.is_narrow:
            wide = np.asarray(operator(a.values.astype(np.float64), b.values.astype(np.float64)))
            return Array(a.dtype, round_to(wide, a.dtype))
        return Array(a.dtype, np.asarray(operator(a.values, b.values)))


def _integer_quotient(a: Values, b: Values) -> Values:
    """Truncate toward zero: divide magnitudes, which unsigned numbers hold even for the least integer."""
    a, b = np.broadcast_arrays(a, b)
    if (b == 0).any():
        raise DivisionByZero(tuple(int(i) for i in np.argwhere(b == 0)[0]))
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    quotient = np.abs(a).astype(unsigned) // np.abs(b).astype(unsigned)
    return np.asarray(np.where((a < 0) != (b < 0), np.negative(quotient), quotient), a.dtype)


def _compared(operation: str, operator: Operator, a: Array, b: Array, *kinds: str) -> Array:
    _require_elementwise(operation, a, b, *kinds)
    with np.errstate(all="ignore"):
        return Array(DTYPES["bool"], np.asarray(operator(a.values, b.values)))


def _maximum(a: Values, b: Values) -> Values:
    if a.dtype.kind == "i":
        return np.where(a > b, a, b)
    with np.errstate(all="ignore"):
        takes_a = np.isnan(a) | (a > b) | ((a == b) & ~np.signbit(a))
        return np.where(takes_a, a, b)


def _minimum(a: Values, b: Values) -> Values:
    if a.dtype.kind == "i":
        return np.where(a < b, a, b)
    with np.errstate(all="ignore"):
        takes_a = np.isnan(a) | (a < b) | ((a == b) & np.signbit(a))
        return np.where(takes_a, a, b)


def _matmul_operand(x: Array) -> Values:
    """Return the values in the accumulator's carrier; tf32 rounded to 10 fraction bits."""
    return round_operand(x.values) if x.dtype.name == "tf32" else x.values.astype(x.dtype.accumulator.carrier)


def _accumulate(a: Values, b: Values) -> Values:
    """Left fold over k from +0, one tile of the result at a time."""
    *batch, m, k = a.shape
    n = b.shape[-1]
    left = np.moveaxis(a.reshape(prod(batch), m, k), -1, 0)[..., None]
    right = np.moveaxis(b.reshape(prod(batch), k, n), 1, 0)[..., None, :]
    total = np.zeros((prod(batch), m, n), a.dtype)
    for matrices, rows, columns in _tiles(*total.shape):
        factors = zip(left[:, matrices, rows].copy(), right[:, matrices, :, columns], strict=True)
        accumulator = np.zeros_like(total[matrices, rows, columns], order="C")
        term = np.empty_like(accumulator)
        for a_k, b_k in factors:
            np.multiply(a_k, b_k, out=term)
            np.add(accumulator, term, out=accumulator)
        total[matrices, rows, columns] = accumulator
    return total.reshape(*batch, m, n)


def _tiles(matrices: int, rows: int, columns: int) -> Iterator[tuple[slice, slice, slice]]:
    """Cover (matrices, rows, columns) by blocks of at most about `_TILE` elements."""
    width = min(max(columns, 1), _TILE)
    height = min(max(rows, 1), max(_TILE // width, 1))
    depth = max(_TILE // (width * height), 1)
    for i, j, k in product(range(0, matrices, depth), range(0, rows, height), range(0, columns, width)):
        yield slice(i, i + depth), slice(j, j + height), slice(k, k + width)


def _accumulate_complex(a: Values, b: Values) -> Values:
    """Left fold over k from +0, with the complex product of `multiply`."""
    total = np.zeros((*a.shape[:-1], b.shape[-1]), a.dtype)
    for k in range(a.shape[-1]):
        total += _complex(*_complex_product(_parts(a[..., :, k, None]), _parts(b[..., k, None, :])))
    return total


def _parts(x: Values) -> tuple[Values, Values]:
    return x.real, x.imag


def _complex_product(x: tuple[Values, Values], y: tuple[Values, Values]) -> tuple[Values, Values]:
    (a, b), (c, d) = x, y
    return a * c - b * d, a * d + b * c


def _complex(real: Values, imaginary: Values) -> Values:
    """Join two parts. Written by component: real + 1j * imaginary would compute, and lose signs of zero."""
    result = np.empty(np.shape(real), np.result_type(real, np.complex64))
    result.real, result.imag = real, imaginary
    return result
