"""A small kernel library on numpy with the bits of the reference arithmetic: the wrong kernels are lines of it changed.

bf16 and fp8 are those of ml_dtypes.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np

NAME, VERSION = "small", "1"
LEVEL = "strict"
Array = Any


def wide(x: Array) -> Array:
    """Operands in the type that sums are kept in."""
    if x.dtype.kind in "iu":
        return x.astype(np.int64 if x.dtype == np.int64 else np.int32)
    return x.astype(np.float64 if x.dtype == np.float64 else np.float32)


def narrow(y: Array, dtype: Any) -> Array:
    """A result in the type of the operands; fp8 saturates."""
    if dtype.name.startswith("float8"):
        y = wide(y)
        limit = y.dtype.type(ml_dtypes.finfo(dtype).max)
        y = np.clip(y, -limit, limit)
    return y.astype(dtype)


def near(function: Any, x: Array) -> Array:
    """A function rounded once, by way of long doubles."""
    return function(x.astype(np.longdouble)).astype(x.dtype)


def total(terms: Array) -> Array:
    """The sum along the first axis, by neighbours."""
    if not len(terms):
        return np.zeros(terms.shape[1:], terms.dtype)
    while len(terms) > 1:
        even = len(terms) // 2 * 2
        terms = np.concatenate([terms[0:even:2] + terms[1:even:2], terms[even:]])
    return terms[0]


def fold(terms: Array) -> Array:
    """The sum from left to right."""
    return reduce(lambda x, y: x + y, terms) if len(terms) else total(terms)


def halves(terms: Array) -> Array:
    """The sum of the first half and the second, again and again."""
    while len(terms) > 1:
        half = (len(terms) + 1) // 2
        terms = np.concatenate([terms[: len(terms) - half] + terms[half:], terms[len(terms) - half : half]])
    return total(terms)


def truncated(y: Array, dtype: Any) -> Array:
    """A bf16 result whose last bits are cut off."""
    if dtype != ml_dtypes.bfloat16:
        return narrow(y, dtype)
    return np.where(np.isfinite(y), (y.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32), y).astype(dtype)


def away(y: Array, dtype: Any) -> Array:
    """A bf16 result of which ties are rounded away from zero."""
    if dtype != ml_dtypes.bfloat16:
        return narrow(y, dtype)
    return np.where(
        np.isfinite(y), (y.view(np.uint32) + 0x8000 & 0xFFFF0000).astype(np.uint32).view(np.float32), y
    ).astype(dtype)


def tf32(x: Array) -> Array:
    """fp32 operands with ten fraction bits."""
    words = x.view(np.uint32)
    words = words + np.uint32(0xFFF) + (words >> np.uint32(13) & np.uint32(1)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(x), words.view(np.float32), x)


def flushed(x: Array) -> Array:
    """Numbers with subnormal ones taken for zero."""
    values = wide(x)
    tiny = np.abs(values) < float(ml_dtypes.finfo(x.dtype).smallest_normal)
    return np.where(tiny, np.copysign(values.dtype.type(0), values), values).astype(x.dtype)


def finite(y: Array, dtype: Any) -> Array:
    """A result that overflows to the largest number."""
    limit = y.dtype.type(ml_dtypes.finfo(dtype).max)
    return np.clip(y, -limit, limit).astype(dtype)


def placed(y: Array, axis: int, keepdims: bool) -> Array:
    """A reduced axis put back where it is to be kept."""
    return np.expand_dims(y, axis) if keepdims else y


def summed(x: Array, axis: int = -1, keepdims: bool = False) -> Array:
    rows = np.moveaxis(wide(x), axis, 0)
    result = total(rows)
    return placed(narrow(result, x.dtype), axis, keepdims)


def mean(x: Array, axis: int = -1, keepdims: bool = False) -> Array:
    rows = np.moveaxis(wide(x), axis, 0)
    result = total(rows) / rows.dtype.type(len(rows))
    return placed(narrow(result, x.dtype), axis, keepdims)


def softmax(x: Array, axis: int = -1) -> Array:
    rows = np.moveaxis(wide(x), axis, 0)
    largest = rows.max(axis=0)
    powers = near(np.exp, rows - largest)
    denominator = total(powers)
    result = powers / denominator
    return narrow(np.moveaxis(result, 0, axis), x.dtype)


def matmul(a: Array, b: Array) -> Array:
    left, right = wide(a), wide(b)
    products = [left[..., :, k, None] * right[..., None, k, :] for k in range(a.shape[-1])]
    start = np.zeros((*a.shape[:-1], b.shape[-1]), left.dtype)
    result = fold([start, *products])
    return narrow(result, a.dtype)


def layer_norm(x: Array, gamma: Array, beta: Array, axis: int = -1, eps: float = 1e-5) -> Array:
    rows = np.moveaxis(wide(x), axis, -1)
    count = rows.dtype.type(rows.shape[-1])
    centred = rows - (total(np.moveaxis(rows, -1, 0)) / count)[..., None]
    spread = total(np.moveaxis(centred * centred, -1, 0)) / count
    scale = near(lambda v: 1 / np.sqrt(v), spread + rows.dtype.type(eps))
    result = centred * scale[..., None] * wide(gamma) + wide(beta)
    return narrow(np.moveaxis(result, -1, axis), x.dtype)


def add(a: Array, b: Array) -> Array:
    result = wide(a) + wide(b)
    return narrow(result, a.dtype)


def multiply(a: Array, b: Array) -> Array:
    result = wide(a) * wide(b)
    return narrow(result, a.dtype)


def divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "i":
        return np.trunc(a.astype(np.longdouble) / b).astype(a.dtype)
    result = wide(a) / wide(b)
    return narrow(result, a.dtype)


def negate(a: Array) -> Array:
    return -a


def exp(x: Array) -> Array:
    return narrow(
        np.exp(x.astype(np.longdouble)).astype(np.float64) if x.dtype.itemsize < 4 else near(np.exp, x), x.dtype
    )


def sigmoid(x: Array) -> Array:
    values = wide(x)
    result = 1 / (1 + near(np.exp, -values))
    return narrow(result, x.dtype)


def maximum(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    return np.where((a > b) | (a != a) | ((a == b) & ~np.signbit(wide(a))), a, b)


def greatest(x: Array, axis: int = -1, keepdims: bool = False) -> Array:
    rows = np.moveaxis(x, axis, 0)
    return placed(reduce(maximum, rows), axis, keepdims)


def argmax(x: Array, axis: int = -1, keepdims: bool = False) -> Array:
    rows = np.moveaxis(x, axis, 0)
    largest = reduce(maximum, rows)
    same = (rows == largest) & (np.signbit(wide(rows)) == np.signbit(wide(largest))) | (rows != rows)
    return placed(np.argmax(same, axis=0).astype(np.int32), axis, keepdims)


def relu(x: Array) -> Array:
    return maximum(x, np.zeros((), x.dtype))


def cast(x: Array, dtype: Any) -> Array:
    if dtype.kind == "i" and x.dtype.kind != "i":
        limits = np.iinfo(dtype)
        whole = np.trunc(x.astype(np.longdouble))
        return np.clip(np.nan_to_num(whole), limits.min, limits.max).astype(dtype)
    return narrow(x, dtype)


TABLE = {
    "sum": summed,
    "mean": mean,
    "softmax": softmax,
    "matmul": matmul,
    "layer_norm": layer_norm,
    "add": add,
    "multiply": multiply,
    "divide": divide,
    "negate": negate,
    "exp": exp,
    "sigmoid": sigmoid,
    "maximum": maximum,
    "max": greatest,
    "argmax": argmax,
    "relu": relu,
    "cast": cast,
}
