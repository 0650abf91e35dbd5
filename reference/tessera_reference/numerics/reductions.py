"""Reductions along one axis.

Sum, prod, mean, max, min, argmax, logsumexp, softmax; Kahan's sum where it is selected."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from . import arithmetic as complex_numbers
from .arithmetic import larger, largest, smaller
from .array import BLOCK, Array
from .elementary import exp, log
from .errors import AxisOutOfRange, EmptyAxis, InvalidArgument, require_room
from .formats import DTYPES, DType, UnsupportedDType
from .node_arithmetic import NodeArithmetic
from .rounding import cast, round_to
from .trees import FOLD, PAIRWISE, Combine, Tree, fold, pairwise

# Kahan's compensated sum, used only where it is selected (reference arithmetic, "sums").


Values: TypeAlias = npt.NDArray[Any]


def kahan(values: Values, axis: int = -1) -> Values:
    """Add along `axis`, which is dropped, carrying each rounding error into the next addition; +0 for no elements.

    s = x[0], c = +0; for each next x: y = x - c; t = s + y; c = (t - s) - y, or +0 where t is not finite, so that an
    infinite sum stays infinite; s = t. Every step is rounded in the type of `values`; complex numbers by component.
    """
    row = np.moveaxis(np.asarray(values), axis, 0)
    if row.size == 0:
        return np.zeros(row.shape[1:], row.dtype)
    total, error = row[0, ...], np.zeros(row.shape[1:], row.dtype)
    with np.errstate(all="ignore"):
        for k in range(1, row.shape[0]):
            corrected = np.asarray(row[k, ...] - error)
            following = np.asarray(total + corrected)
            error = _where_finite(following, np.asarray((following - total) - corrected))
            total = following
    return total


def _where_finite(total: Values, error: Values) -> Values:
    """Return the components of `error` where those of `total` are finite, else +0."""
    if error.dtype.kind == "c":
        result = np.empty_like(error)
        result.real, result.imag = _where_finite(total.real, error.real), _where_finite(total.imag, error.imag)
        return result
    return np.where(np.isfinite(total), error, np.zeros((), error.dtype))


# Reductions along one axis: sum, prod, mean, max, min, argmax, logsumexp.
#
# Language spec sections 5, 10 and 15; reference arithmetic ("sums", "max/min"). All drop their axis unless `keepdims`.
# Sums and products are computed in the accumulator type over the canonical tree of adjacent pairs, or a `tree`
# argument, with one final rounding to the dtype; integers wrap in the accumulator and then into the dtype.


Node: TypeAlias = Callable[[list[Any]], Values]
Order: TypeAlias = Literal["tree", "kahan"]
"""The order of a sum: a tree, or from first to last with Kahan's compensation."""


def sum(
    x: Array,
    axis: int,
    keepdims: bool = False,
    *,
    tree: Tree | None = None,
    order: Order = "tree",
    arithmetic: NodeArithmetic | None = None,
) -> Array:
    """Return the sum along `axis`; +0 for no elements. Not on bool.

    The order is the canonical tree, or another `tree`; or, with `order` "kahan", compensated. `arithmetic` replaces the
    usual one in each node. Raises `AxisOutOfRange`, `UnsupportedDType`, and `LeafCount` for a tree over another number
    of elements.
    """
    model = _model("sum", x, arithmetic, "float", "int", "complex")
    axis = checked_axis("sum", x, axis)
    total = _add_up("sum", x.values, axis, tree, order, model, x.dtype)
    return _result(cast(Array(model.accumulator, total), x.dtype), axis, keepdims)


def prod(
    x: Array, axis: int, keepdims: bool = False, *, tree: Tree | None = None, arithmetic: NodeArithmetic | None = None
) -> Array:
    """Return the product along `axis`; 1 for no elements. Not on bool. Raises as `sum` does."""
    model = _model("prod", x, arithmetic, "float", "int", "complex")
    axis = checked_axis("prod", x, axis)
    total = _over_tree(model.enter(x.values, x.dtype), axis, tree, model, model.multiply, 1)
    return _result(cast(Array(model.accumulator, total), x.dtype), axis, keepdims)


def mean(x: Array, axis: int, keepdims: bool = False, *, tree: Tree | None = None, order: Order = "tree") -> Array:
    """Return the sum along `axis` divided by the number of elements, in the accumulator; NaN for no elements.

    Floats and complex numbers, these divided by component. Raises as `sum` does.
    """
    _require_kind("mean", x, "float", "complex")
    axis = checked_axis("mean", x, axis)
    inner = x.dtype.accumulator
    total = _add_up("mean", x.values, axis, tree, order, NodeArithmetic(inner), x.dtype)
    return _result(cast(Array(inner, divided(total, x.shape[axis], inner)), x.dtype), axis, keepdims)


def divided(total: Values, number: int, inner: DType) -> Values:
    """Return sums of an accumulator dtype divided by their number of terms, in it; complex ones by component."""
    count = np.float64(number).astype((inner.component if inner.kind == "complex" else inner).carrier)
    with np.errstate(all="ignore"):
        if inner.kind == "complex":
            return complex_numbers.join(*(np.asarray(part / count) for part in complex_numbers.parts(total)))
        return np.asarray(total / count)


def max(x: Array, axis: int, keepdims: bool = False) -> Array:
    """Return the largest element along `axis`; a NaN wins, -0 is below +0. Floats and integers.

    Raises `AxisOutOfRange`, `EmptyAxis`, `UnsupportedDType`.
    """
    return _max_or_min("max", x, axis, keepdims, larger)


def min(x: Array, axis: int, keepdims: bool = False) -> Array:
    """Return the smallest element along `axis`; a NaN wins, -0 is below +0. Raises as `max` does."""
    return _max_or_min("min", x, axis, keepdims, smaller)


def extreme(operation: str, x: Array) -> Array:
    """Return the `max` or `min` along axis 0; for bool, `or` or `and` (AMB-RT-28). Raises as `max` does."""
    if x.dtype.kind == "bool":
        return Array(x.dtype, np.asarray(x.values.any(axis=0) if operation == "max" else x.values.all(axis=0)))
    return max(x, 0) if operation == "max" else min(x, 0)


def argmax(x: Array, axis: int, keepdims: bool = False) -> Array:
    """Return the int32 index of the first largest element along `axis`, or of the first NaN; -0 is below +0.

    Raises as `max` does.
    """
    _require_kind("argmax", x, "float", "int")
    axis = checked_axis("argmax", x, axis, empty=False)
    if x.values.size == 0:
        return _result(Array(DTYPES["int32"], np.zeros(x.shape[:axis] + x.shape[axis + 1 :], np.int32)), axis, keepdims)
    largest = np.expand_dims(pairwise(x.values, axis, larger), axis)
    matches = x.values == largest
    if x.dtype.kind == "float":
        matches = (matches & (np.signbit(x.values) == np.signbit(largest))) | np.isnan(x.values)
    places = np.arange(x.shape[axis], dtype=np.int32).reshape([-1 if i == axis else 1 for i in range(x.rank)])
    first = pairwise(np.where(matches, places, np.int32(x.shape[axis])), axis, smaller)
    return _result(Array(DTYPES["int32"], first), axis, keepdims)


def logsumexp(x: Array, axis: int, keepdims: bool = False, *, tree: Tree | None = None) -> Array:
    """Return log(sum(exp(x - m))) + m along `axis`, m being the maximum, or +0 where that is not finite. Floats only.

    Every step is rounded to the accumulator, exp and log correctly, then once to the dtype. So -inf alone gives -inf,
    +inf gives +inf, and NaN gives NaN. Raises as `max` does, and `LeafCount`.
    """
    _require_kind("logsumexp", x, "float")
    axis = checked_axis("logsumexp", x, axis, empty=False)
    inner = x.dtype.accumulator
    with np.errstate(all="ignore"):
        largest = np.expand_dims(pairwise(x.values, axis, larger), axis)
        shift = np.where(np.isfinite(largest), largest, np.zeros((), inner.carrier))
        total = add_up(exp(x.values - shift, inner), axis, tree, inner)
        result = round_to(log(total, inner) + np.squeeze(shift, axis), x.dtype)
    return _result(Array(x.dtype, result), axis, keepdims)


def add_up(values: Values, axis: int, tree: Tree | None, dtype: DType) -> Values:
    """Add values of an accumulator `dtype` along `axis`, which is dropped, over the canonical tree or another."""
    model = NodeArithmetic(dtype)
    return _over_tree(values, axis, tree, model, model.add, 0)


def checked_axis(operation: str, x: Array, axis: int, empty: bool = True) -> int:
    """Return `axis` counted from the first.

    Raises `InvalidArgument`, `AxisOutOfRange` and, unless `empty` allows it, `EmptyAxis`; `TooLarge` where dropping an
    axis without elements leaves too much.
    """
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise InvalidArgument(operation, "axis", axis, "a whole number")
    if not -x.rank <= axis < x.rank:
        raise AxisOutOfRange(operation, axis, x.rank)
    if x.shape[axis] == 0 and not empty:
        raise EmptyAxis(operation, axis)
    axis %= x.rank
    require_room(operation, x.shape[:axis] + x.shape[axis + 1 :], x.values.size)
    return axis


def _require_kind(operation: str, x: Array, *kinds: str) -> None:
    if x.dtype.kind not in kinds:
        raise UnsupportedDType(operation, x.dtype)


def _model(operation: str, x: Array, arithmetic: NodeArithmetic | None, *kinds: str) -> NodeArithmetic:
    _require_kind(operation, x, *kinds)
    model = arithmetic or NodeArithmetic.canonical(x.dtype)
    model.require(operation, x.dtype)
    return model


def _add_up(
    operation: str, values: Values, axis: int, tree: Tree | None, order: Order, model: NodeArithmetic, dtype: DType
) -> Values:
    if order == "tree":
        return _over_tree(model.enter(values, dtype), axis, tree, model, model.add, 0)
    if order != "kahan":
        raise InvalidArgument(operation, "order", order, '"tree" or "kahan"')
    if tree is not None or not model.is_plain(dtype):
        raise InvalidArgument(operation, "order", order, '"tree", where a tree or the arithmetic of its nodes is given')
    return kahan(model.enter(values, dtype), axis)


def _over_tree(values: Values, axis: int, tree: Tree | None, model: NodeArithmetic, node: Node, neutral: int) -> Values:
    """Combine entered values along an axis; `neutral` is the result for no elements, and `c` where a tree names it."""
    rows, tree = np.moveaxis(values, axis, 0), tree or PAIRWISE
    with np.errstate(all="ignore"):
        if tree in (PAIRWISE, FOLD) and len(rows):
            combine = pairwise if tree == PAIRWISE else fold
            return combine(rows, 0, lambda a, b: node([a, b]))
        start = np.full(rows.shape[1:], neutral, model.accumulator.carrier)
        if start.size == 0 and tree.form != "explicit":
            return start
        return tree.over(len(rows)).evaluate(lambda k: rows[k, ...], node, start)


def _max_or_min(operation: str, x: Array, axis: int, keepdims: bool, combine: Combine) -> Array:
    _require_kind(operation, x, "float", "int")
    axis = checked_axis(operation, x, axis, empty=False)
    return _result(Array(x.dtype, pairwise(x.values, axis, combine)), axis, keepdims)


def _result(reduced: Array, axis: int, keepdims: bool) -> Array:
    return Array(reduced.dtype, np.expand_dims(reduced.values, axis)) if keepdims else reduced


# softmax, subtracting the maximum (language spec sections 5, 10 and 15; reference arithmetic, "softmax").


def softmax(x: Array, axis: int = -1, *, tree: Tree | None = None) -> Array:
    """Return exp(x - max) / sum(exp(x - max)) along `axis`; same shape and dtype. Floats only.

    Computed in the accumulator type, exp correctly rounded, the sum over the canonical tree or another; one final
    rounding (LANG-10-03, LANG-15-07, AMB-LANG-75). A row that holds NaN or +inf, or -inf only, is NaN.
    Raises `AxisOutOfRange` and `EmptyAxis`, both `ShapeMismatch`, and `LeafCount`.
    """
    if x.dtype.kind != "float":
        raise UnsupportedDType("softmax", x.dtype)
    axis = checked_axis("softmax", x, axis, empty=False)
    inner = x.dtype.accumulator
    rows = np.moveaxis(x.values, axis, -1).reshape(-1, x.shape[axis])
    result = np.empty(rows.shape, x.dtype.carrier)
    height = builtins.max(1, 4 * BLOCK // x.shape[axis])
    with np.errstate(all="ignore"):
        for start in range(0, len(rows), height):
            block = rows[start : start + height]
            exponentials = exp(block - largest(block, 1)[:, None], inner)
            total = add_up(exponentials, 1, tree, inner)[:, None]
            result[start : start + height] = round_to(exponentials / total, x.dtype)
    shape = (*x.shape[:axis], *x.shape[axis + 1 :], x.shape[axis])
    return Array(x.dtype, np.moveaxis(result.reshape(shape), -1, axis))
