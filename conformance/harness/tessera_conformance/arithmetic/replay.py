"""Replaying a declared order and arithmetic bit for bit: what judges the deterministic level.

`reduce` and `product` compute one sum on exact values; `sum`, `matmul`, `inner` and `all_reduce` whole tensors. Where
numpy computes the arithmetic exactly a fast path is taken, which gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tessera_conformance.arithmetic import fast_sums
from tessera_conformance.arithmetic.exact_sums import operands, product, reduce
from tessera_conformance.arithmetic.fast_sums import (
    Array,
    PendingArray,
    as_array,
    as_tensor,
    flushed_operands,
    tf32_operands,
)
from tessera_conformance.arithmetic.tree import NodeArithmetic, Tree
from tessera_conformance.oracle.exact import FORMATS, TF32_OPERAND, ZERO, FloatFormat, tensor_of, values_of
from tessera_conformance.tensors import Tensor

__all__ = ["ReplayError", "all_reduce", "inner", "is_fast", "matmul", "product", "reduce", "sum"]


class ReplayError(ValueError):
    """Operands that no replay can take; `argument` names the one at fault."""

    def __init__(self, argument: str, problem: str) -> None:
        self.argument = argument
        super().__init__(f"{argument}: {problem}")


def matmul(
    a: Tensor, b: Tensor, tree: Tree, model: NodeArithmetic, out: str | None = None, start: Tensor | None = None
) -> Tensor:
    """(..., M, K) x (..., K, N) -> (..., M, N) in dtype `out`, by default that of the operands.

    Every element is the same tree over ascending k. `start` is the C operand of shape (..., M, N), which enters the
    accumulator first; without it the sum starts as the model says.

    Raises `ReplayError`: shapes or dtypes do not fit, or a dtype has no scalar arithmetic; or `LeafCountError`: the
    tree is not one over K terms.
    """
    *batch, rows, terms = _shape("a", a, 2, model)
    *other, terms_too, columns = _shape("b", b, 2, model)
    if a.dtype != b.dtype or batch != other or terms != terms_too:
        raise ReplayError("b", f"no product of {a.dtype} {list(a.shape)} and {b.dtype} {list(b.shape)}")
    shape = (*batch, rows, columns)
    if start is not None and start.shape != shape:
        raise ReplayError("start", f"expected shape {list(shape)}, found {list(start.shape)}")
    explicit, dtype = tree.with_start(terms) if start is not None else _started(tree, terms, model), out or a.dtype
    if start is None and fast_sums.can(explicit, model, a.dtype):
        left, right = _factors(a, model)[..., :, None], _factors(b, model)[..., None, :, :]
        return as_tensor(
            _products([(left[..., :, k, :], right[..., k, :]) for k in range(terms)], shape, explicit, model),
            dtype,
            shape,
        )
    lefts, rights = _exact_factors(a, model), _exact_factors(b, model)
    starts = [None if _is_unstarted(terms, model) else ZERO] * prod(shape) if start is None else values_of(start)
    results = []
    for place, first in zip(np.ndindex(*shape), starts, strict=True):
        *which, row, column = place
        left_row, right_column = lefts[(*which, row)], rights[(*which, slice(None), column)]
        results.append(product(left_row.tolist(), right_column.tolist(), explicit, model, first))
    return tensor_of(dtype, shape, results)


def inner(a: Tensor, b: Tensor, tree: Tree, model: NodeArithmetic, out: str | None = None) -> Tensor:
    """(R, K) and (R, K) -> (R,): the inner product of each pair of rows.

    Raises `ReplayError`: dtypes or shapes differ, or the dtype has no scalar arithmetic; or `LeafCountError`: the tree
    is not one over K terms.
    """
    rows, terms = _shape("a", a, 2, model)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        raise ReplayError("b", f"expected {a.dtype} {list(a.shape)}, found {b.dtype} {list(b.shape)}")
    left, right = Tensor(a.dtype, (rows, 1, terms), a.data), Tensor(b.dtype, (rows, terms, 1), b.data)
    products = matmul(left, right, tree, model, out)
    return Tensor(products.dtype, (rows,), products.data)


def sum(
    x: Tensor, axis: int, tree: Tree, model: NodeArithmetic, out: str | None = None, keepdims: bool = False
) -> Tensor:
    """The sum over one axis, counted from the end where negative, in dtype `out`, by default that of `x`.

    Raises `ReplayError`: there is no such axis, or the dtype has no scalar arithmetic; or `LeafCountError`: the tree is
    not one over as many terms.
    """
    shape = _shape("x", x, 1, model)
    if not -len(shape) <= axis < len(shape):
        raise ReplayError("axis", f"expected {-len(shape)} to {len(shape) - 1}, found {axis}")
    axis %= len(shape)
    rest = (*shape[:axis], *((1,) if keepdims else ()), *shape[axis + 1 :])
    explicit, dtype = tree.over(shape[axis]), out or x.dtype
    if fast_sums.can(explicit, model, x.dtype):
        terms = np.moveaxis(flushed_operands(as_array(x), x.dtype, model), axis, 0)
        terms = terms.astype(fast_sums.type_of(model.accumulator))
        zeros = np.zeros(terms.shape[1:], terms.dtype)
        return as_tensor(fast_sums.evaluated(terms.__getitem__, zeros, explicit, model), dtype, rest)
    values = _objects(operands(values_of(x), x.dtype, model), shape)
    rows = np.moveaxis(values, axis, -1).reshape(prod(rest), shape[axis]).tolist()
    return tensor_of(dtype, rest, [reduce(row, explicit, model) for row in rows])


def all_reduce(inputs: Sequence[Tensor], tree: Tree, model: NodeArithmetic) -> Tensor:
    """The sum over ranks, one leaf each, elementwise.

    Raises `ReplayError`: no ranks, or their tensors differ in dtype or shape.
    """
    if not inputs or any((x.dtype, x.shape) != (inputs[0].dtype, inputs[0].shape) for x in inputs):
        raise ReplayError("inputs", "expected one tensor of the same dtype and shape for each rank")
    stacked = Tensor(inputs[0].dtype, (len(inputs), *inputs[0].shape), b"".join(x.data for x in inputs))
    return sum(stacked, 0, tree, model)


def is_fast(tree: Tree, model: NodeArithmetic, dtype: str, products: bool, terms: int) -> bool:
    """True if sums over so many terms take the fast path."""
    return fast_sums.can(_started(tree, terms, model) if products else tree.over(terms), model, dtype)


def _started(tree: Tree, terms: int, model: NodeArithmetic) -> Tree:
    """The explicit tree of a product without a C operand: with +0 in its place, or with the terms alone."""
    return tree.over(terms).without_start() if _is_unstarted(terms, model) else tree.with_start(terms)


def _is_unstarted(terms: int, model: NodeArithmetic) -> bool:
    """True if a product starts from its first term; one of no terms is +0."""
    return model.start == "none" and terms > 0


def _shape(argument: str, tensor: Tensor, rank: int, model: NodeArithmetic) -> tuple[int, ...]:
    if tensor.dtype not in FORMATS or tensor.dtype == "bool":
        raise ReplayError(argument, f"{tensor.dtype} has no sums of real numbers")
    if isinstance(FORMATS[tensor.dtype], FloatFormat) != model.is_float:
        raise ReplayError(argument, f"{tensor.dtype} does not accumulate in {model.accumulator}")
    if len(tensor.shape) < rank:
        raise ReplayError(argument, f"expected {rank} dimensions or more, found {len(tensor.shape)}")
    return tensor.shape


def _products(
    factors: Sequence[tuple[Array, Array]], shape: tuple[int, ...], tree: Tree, model: NodeArithmetic
) -> Array:
    """The fast path over pairs of factors, one a leaf; the start, where the tree has one, is +0."""
    zeros = np.zeros(shape, fast_sums.type_of(model.accumulator))
    return fast_sums.evaluated(lambda k: PendingArray(*factors[k]), zeros, tree, model)


def _factors(tensor: Tensor, model: NodeArithmetic) -> Array:
    numbers = flushed_operands(as_array(tensor), tensor.dtype, model)
    return tf32_operands(numbers) if tensor.dtype == "tf32" else numbers


def _exact_factors(tensor: Tensor, model: NodeArithmetic) -> np.ndarray[Any, np.dtype[np.object_]]:
    values = operands(values_of(tensor), tensor.dtype, model)
    if tensor.dtype == "tf32":
        values = [TF32_OPERAND.round(value) for value in values]
    return _objects(values, tensor.shape)


def _objects(values: Sequence[object], shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.object_]]:
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)
