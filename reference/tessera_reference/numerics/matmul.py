"""The matrix product.

Language spec sections 5, 10 and 15; reference arithmetic ("matmul"). It is a left fold over k from +0, or from a C
operand. Each product and each sum is rounded to the accumulator, and the result once more. The tree, the accumulator
and the arithmetic of a node are parameters. The plain fold below is the definition; `kernels` has a faster one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import arithmetic as complex_numbers
from .array import Array
from .errors import DTypeMismatch, InvalidArgument, ShapeMismatch, require_room
from .formats import DType, UnsupportedDType
from .kernels import left_fold_product
from .node_arithmetic import NodeArithmetic
from .rounding import cast, round_operand
from .trees import FOLD, Tree

Values: TypeAlias = npt.NDArray[Any]

_TILE = 1 << 16
"""The number of accumulators handled at once, so that they stay in cache; no result depends on it."""


def matmul(
    a: Array,
    b: Array,
    out: DType | None = None,
    *,
    addend: Array | None = None,
    tree: Tree | None = None,
    accumulator: DType | None = None,
    arithmetic: NodeArithmetic | None = None,
) -> Array:
    """Return the matrix product, (..., M, K) x (..., K, N) -> (..., M, N), leading dimensions equal. Not on bool.

    acc = +0, or `addend`; for k ascending, acc = round(acc + round(a * b)) in the accumulator type; one final rounding
    to `out`, by default the operands' dtype (LANG-10-02, LANG-15-01, LANG-15-04 to -06). K = 0 gives the start value.
    `addend`, the C operand, is (..., M, N), of the dtype of the operands, of the accumulator or of `out`. `tree`
    combines the K products and the start value in another order than the fold. `accumulator`, or a whole `arithmetic`,
    replaces the usual one. Raises `ShapeMismatch`, `DTypeMismatch`, `UnsupportedDType`, `InvalidArgument`, `LeafCount`,
    `TooLarge`.
    """
    out = out or a.dtype
    model = arithmetic or NodeArithmetic(accumulator or a.dtype.accumulator)
    shape = _result_shape(a, b)
    model.require("matmul", a.dtype)
    _require_result(a.dtype, out)
    start = np.zeros(shape, model.accumulator.carrier) if addend is None else _addend(addend, a, model, out, shape)
    left, right = (_operand(x, model) for x in (a, b))
    with np.errstate(all="ignore"):
        if start.size == 0 and (tree is None or tree.form != "explicit"):
            total = start
        elif tree in (None, FOLD) and model.is_plain(a.dtype):
            total = _left_fold(left, right, start)
        else:
            total = _over_tree(left, right, start, tree or FOLD, model)
    return cast(Array(model.accumulator, total), out)


def _result_shape(a: Array, b: Array) -> tuple[int, ...]:
    if a.dtype != b.dtype:
        raise DTypeMismatch("matmul", a.dtype, b.dtype)
    if a.dtype.kind == "bool":
        raise UnsupportedDType("matmul", a.dtype)
    if a.rank < 2 or b.rank < 2:
        raise ShapeMismatch("matmul", f"operands have ranks {a.rank} and {b.rank}, at least 2 is needed")
    if a.shape[-1] != b.shape[-2]:
        raise ShapeMismatch("matmul", f"inner dimensions differ: {a.shape[-1]} and {b.shape[-2]}")
    if a.shape[:-2] != b.shape[:-2]:
        raise ShapeMismatch("matmul", f"batch dimensions differ: {list(a.shape[:-2])} and {list(b.shape[:-2])}")
    shape = (*a.shape[:-1], b.shape[-1])
    require_room("matmul", shape, max(a.values.size, b.values.size))
    return shape


def _require_result(operands: DType, out: DType) -> None:
    if out.kind == "bool" or (operands.kind == "complex" and out.kind != "complex"):
        allowed = "a complex dtype" if operands.kind == "complex" else "any dtype but bool"
        raise InvalidArgument("matmul", f"out, of a product of {operands},", out.name, allowed)


def _addend(addend: Array, a: Array, model: NodeArithmetic, out: DType, shape: tuple[int, ...]) -> Values:
    """Return the C operand, rounded to the accumulator where that is narrower."""
    if addend.shape != shape:
        raise ShapeMismatch("matmul", f"addend has shape {list(addend.shape)}, the product {list(shape)}")
    if addend.dtype not in (a.dtype, model.accumulator, out) or addend.dtype.kind != model.accumulator.kind:
        raise DTypeMismatch("matmul with addend", a.dtype, addend.dtype)
    return model.enter(cast(addend, model.accumulator).values, model.accumulator)


def _operand(x: Array, model: NodeArithmetic) -> Values:
    """Return the factors as the nodes take them: those of tf32 rounded to 10 fraction bits."""
    entered = model.enter(x.values, x.dtype)
    return round_operand(entered.astype(np.float32)).astype(entered.dtype) if x.dtype.name == "tf32" else entered


def _over_tree(a: Values, b: Values, start: Values, tree: Tree, model: NodeArithmetic) -> Values:
    """Combine the products of all k, and the start value, by any tree; a term is a whole (..., M, N) array."""

    def leaf(k: int) -> Values:
        return model.leaf_product(a[..., :, k, None], b[..., k, None, :])

    return tree.over(a.shape[-1], start=True).evaluate(leaf, model.add, start)


def _left_fold(a: Values, b: Values, start: Values) -> Values:
    if a.dtype.kind == "c":
        return _complex_left_fold(a, b, start)
    total = left_fold_product(a, b, start)
    return _plain_left_fold(a, b, start) if total is None else total


def _plain_left_fold(a: Values, b: Values, start: Values) -> Values:
    """Return the left fold over k from `start`, computed one tile of the result at a time."""
    *batch, m, k = a.shape
    n = b.shape[-1]
    left = np.moveaxis(a.reshape(prod(batch), m, k), -1, 0)[..., None]
    right = np.moveaxis(b.reshape(prod(batch), k, n), 1, 0)[..., None, :]
    total = np.array(start, order="C").reshape(prod(batch), m, n)
    for matrices, rows, columns in _tiles(*total.shape):
        factors = zip(left[:, matrices, rows].copy(), right[:, matrices, :, columns], strict=True)
        accumulator = total[matrices, rows, columns].copy()
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


def _complex_left_fold(a: Values, b: Values, start: Values) -> Values:
    """Return the left fold over k from `start`, with the complex product of `multiply`."""
    total = start.copy()
    for k in range(a.shape[-1]):
        left, right = a[..., :, k, None], b[..., k, None, :]
        total += complex_numbers.join(
            *complex_numbers.product(complex_numbers.parts(left), complex_numbers.parts(right))
        )
    return total
