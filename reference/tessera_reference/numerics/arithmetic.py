"""Elementwise arithmetic on arrays, complex numbers by component, and the order of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .array import Array, Codes, decode, encode, in_blocks
from .errors import DivisionByZero, DTypeMismatch, ShapeMismatch, broadcast_shape
from .formats import DTYPES, UnsupportedDType
from .rounding import narrowing

# Complex arithmetic by component, since compilers and libraries differ about it.
#
# The product is (ac - bd, ad + bc) with every step rounded.


Values: TypeAlias = npt.NDArray[Any]
Parts: TypeAlias = tuple[Values, Values]


def parts(x: Values) -> Parts:
    """Return the real and the imaginary parts."""
    return x.real, x.imag


def join(real: Values, imaginary: Values) -> Values:
    """Join two parts. They are written by component, since real + 1j * imaginary would lose signs of zero."""
    result = np.empty(np.shape(real), np.result_type(real, np.complex64))
    result.real, result.imag = real, imaginary
    return result


def product(x: Parts, y: Parts) -> Parts:
    """Return the product of complex numbers; operands and result are (real, imaginary) pairs."""
    (a, b), (c, d) = x, y
    return a * c - b * d, a * d + b * c


# The order of numbers behind maximum, minimum and their reductions: a NaN wins, -0 is below +0.


def larger(a: Values, b: Values) -> Values:
    """Return the larger of each two floats or integers; shapes broadcast."""
    if a.dtype.kind == "i":
        return np.where(a > b, a, b)
    with np.errstate(all="ignore"):
        takes_a = np.isnan(a) | (a > b) | ((a == b) & ~np.signbit(a))
        return np.where(takes_a, a, b)


def smaller(a: Values, b: Values) -> Values:
    """Return the smaller of each two floats or integers; shapes broadcast."""
    if a.dtype.kind == "i":
        return np.where(a < b, a, b)
    with np.errstate(all="ignore"):
        takes_a = np.isnan(a) | (a < b) | ((a == b) & np.signbit(a))
        return np.where(takes_a, a, b)


def largest(values: Values, axis: int) -> Values:
    """Return the largest of the floats along `axis`, which is dropped and not empty, as any tree of `larger` does.

    Numpy is right except for the sign of a zero. The codes of floats, those of negative ones with all other bits
    inverted, are integers in the same order.
    """
    with np.errstate(all="ignore"):
        highest = values.max(axis)
        if not (highest == 0.0).any():
            return np.asarray(highest)
    code = np.dtype(f"i{values.dtype.itemsize}")
    others = np.iinfo(code).max
    keys = values.view(code)
    keys = keys ^ ((keys >> (8 * code.itemsize - 1)) & others)
    highest = keys.max(axis)
    result = (highest ^ ((highest >> (8 * code.itemsize - 1)) & others)).view(values.dtype)
    return np.where(np.isnan(values).any(axis), np.array(np.nan, values.dtype), result)


# Elementwise arithmetic on arrays, by the reference arithmetic, and transposition.
#
# Language spec sections 10 and 15; usage, "operators". Both operands have one dtype, which is also that of the result,
# except that comparisons give bool. Shapes broadcast by NumPy's rules. An operator rounds once, to its result type.
# Integers wrap. tf32 is fp32 here.


Operator: TypeAlias = Callable[[Values, Values], Values]


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
            left, right = parts(a.values), parts(b.values)
            return Array(a.dtype, join(*product(left, right)))
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


def absolute(x: Array) -> Array:
    """Return |x|: the sign cleared, of zeros, infinities and NaN too; integers wrap. Not on bool or complex."""
    if x.dtype.kind not in ("float", "int"):
        raise UnsupportedDType("absolute", x.dtype)
    return Array(x.dtype, np.abs(x.values))


def _comparison(operation: str, operator: Operator, *kinds: str) -> Callable[[Array, Array], Array]:
    def compare(a: Array, b: Array) -> Array:
        _require_elementwise(operation, a, b, *kinds)
        with np.errstate(all="ignore"):
            return Array(DTYPES["bool"], np.asarray(operator(a.values, b.values)))

    return compare


equal = _comparison("equal", np.equal, "float", "int", "bool", "complex")
"""The mask of a == b; NaN equals nothing, -0 equals +0."""
not_equal = _comparison("not_equal", np.not_equal, "float", "int", "bool", "complex")
"""The mask of a != b; true for NaN."""
less = _comparison("less", np.less, "float", "int")
"""The mask of a < b; false for NaN, as those below. Not on bool or complex."""
greater = _comparison("greater", np.greater, "float", "int")
less_equal = _comparison("less_equal", np.less_equal, "float", "int")
greater_equal = _comparison("greater_equal", np.greater_equal, "float", "int")


def maximum(a: Array, b: Array) -> Array:
    """Return the larger element; NaN wins, -0 is below +0. Not on bool or complex."""
    _require_elementwise("maximum", a, b, "float", "int")
    return Array(a.dtype, larger(a.values, b.values))


def minimum(a: Array, b: Array) -> Array:
    """Return the smaller element; NaN wins, -0 is below +0. Not on bool or complex."""
    _require_elementwise("minimum", a, b, "float", "int")
    return Array(a.dtype, smaller(a.values, b.values))


def transpose(x: Array, perm: Sequence[int]) -> Array:
    """Permute the axes: axis i of the result is axis perm[i] of `x`. Raises `ShapeMismatch`."""
    if sorted(perm) != list(range(x.rank)):
        raise ShapeMismatch("transpose", f"{list(perm)} is no permutation of the axes of rank {x.rank}")
    return Array(x.dtype, x.values.transpose(perm))


def _require_elementwise(operation: str, a: Array, b: Array, *kinds: str) -> None:
    if a.dtype != b.dtype:
        raise DTypeMismatch(operation, a.dtype, b.dtype)
    if a.dtype.kind not in kinds:
        raise UnsupportedDType(operation, a.dtype)
    broadcast_shape(operation, a.shape, b.shape)


def _rounded_once(operator: Operator, a: Array, b: Array) -> Array:
    """Apply + - * or / with one rounding.

    A narrow float is computed in float32 and rounded again, which is innocuous (Figueroa, 1995): its significands have
    p <= 11 bits, and float32 has 24, at least 2p + 2. A subnormal result has fewer bits, hence fewer midpoints, and is
    a normal number of float32, but for products and quotients in bf16: these are computed in float64. Sums in bf16
    have no smaller digit than their operands, and are exact there.
    """
    with np.errstate(all="ignore"):
        if not a.dtype.is_narrow:
            return Array(a.dtype, np.asarray(operator(a.values, b.values)))
        narrow = narrowing(a.dtype)
        inner = np.float64 if a.dtype.name == "bf16" and operator not in (np.add, np.subtract) else np.float32

        def rounded(*operands: Values) -> Values:
            return narrow(operator(*[x.astype(inner, copy=False) for x in operands]))

        if a.codes is None or b.codes is None:
            return Array(a.dtype, in_blocks(rounded, np.float32, a.values, b.values))

        def of_codes(*operands: Codes) -> Codes:
            return encode(rounded(*(decode(codes, a.dtype) for codes in operands)), a.dtype)

        return Array.from_codes(a.dtype, in_blocks(of_codes, a.codes.dtype, a.codes, b.codes))


def _integer_quotient(a: Values, b: Values) -> Values:
    """Truncate toward zero: divide magnitudes, which unsigned numbers hold even for the least integer."""
    if np.count_nonzero(b) < b.size and 0 not in broadcast_shape("divide", a.shape, b.shape):
        raise DivisionByZero
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    quotient = np.abs(a).astype(unsigned) // np.abs(b).astype(unsigned)
    return np.asarray(np.where((a < 0) != (b < 0), np.negative(quotient), quotient), a.dtype)
