"""Replaying a declared order and arithmetic bit for bit, by which the deterministic level is judged."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from tessera_conformance.arithmetic import NodeArithmetic, fast_sums
from tessera_conformance.arithmetic.fast_sums import Array, PendingArray
from tessera_conformance.oracle import exact
from tessera_conformance.oracle.exact import NAN, ZERO, FloatFormat, Format, Value
from tessera_conformance.oracle.trees import START, Tree
from tessera_conformance.tensors import Tensor

# `reduce` and `product` compute one sum on exact values; `sum`, `matmul`, `inner` and `all_reduce` whole tensors.
# If numpy computes the arithmetic exactly, they take a fast path, which gives the same bits.


class ReplayError(ValueError):
    """Operands that no replay can take; the message begins with the name of the wrong one."""


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
        raise ReplayError(f"b: no product of {a.dtype} {list(a.shape)} and {b.dtype} {list(b.shape)}")
    shape = (*batch, rows, columns)
    if start is not None and start.shape != shape:
        raise ReplayError(f"start: expected shape {list(shape)}, found {list(start.shape)}")
    explicit, dtype = tree.with_start(terms) if start is not None else _started(tree, terms, model), out or a.dtype
    if start is None and fast_sums.can(explicit, model, a.dtype):
        left, right = _factors(a, model)[..., :, None], _factors(b, model)[..., None, :, :]
        zeros = np.zeros(shape, fast_sums.type_of(model.accumulator))
        sums = fast_sums.evaluated(lambda k: PendingArray(left[..., :, k, :], right[..., k, :]), zeros, explicit, model)
        return fast_sums.as_tensor(sums, dtype, shape)
    lefts, rights = _exact_factors(a, model, -1), _exact_factors(b, model, -2)
    starts = [None if _is_unstarted(terms, model) else ZERO] * prod(shape) if start is None else exact.values_of(start)
    results = []
    for place, first in enumerate(starts):
        row, column = divmod(place, columns)
        results.append(product(lefts[row], rights[row // rows * columns + column], explicit, model, first))
    return exact.tensor_of(dtype, shape, results)


def inner(a: Tensor, b: Tensor, tree: Tree, model: NodeArithmetic, out: str | None = None) -> Tensor:
    """(R, K) and (R, K) -> (R,): the inner product of each pair of rows.

    Raises `ReplayError`: dtypes or shapes differ, or the dtype has no scalar arithmetic; or `LeafCountError`: the tree
    is not one over K terms.
    """
    rows, terms = _shape("a", a, 2, model)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        raise ReplayError(f"b: expected {a.dtype} {list(a.shape)}, found {b.dtype} {list(b.shape)}")
    left, right = Tensor(a.dtype, (rows, 1, terms), a.data), Tensor(b.dtype, (rows, terms, 1), b.data)
    products = matmul(left, right, tree, model, out)
    return Tensor(products.dtype, (rows,), products.data)


def sum(
    x: Tensor, axis: int, tree: Tree, model: NodeArithmetic, out: str | None = None, keepdims: bool = False
) -> Tensor:
    """Return the sum over one axis, counted from the end where negative, in dtype `out`, by default that of `x`.

    Raises `ReplayError`: there is no such axis, or the dtype has no scalar arithmetic; or `LeafCountError`: the tree is
    not one over as many terms.
    """
    shape = _shape("x", x, 1, model)
    if not -len(shape) <= axis < len(shape):
        raise ReplayError(f"axis: expected {-len(shape)} to {len(shape) - 1}, found {axis}")
    rest = exact.without_axis(shape, axis, keepdims=keepdims)
    explicit, dtype = tree.over(shape[axis]), out or x.dtype
    if fast_sums.can(explicit, model, x.dtype):
        terms = np.moveaxis(fast_sums.flushed_operands(fast_sums.as_array(x), x.dtype, model), axis, 0)
        terms = terms.astype(fast_sums.type_of(model.accumulator))
        zeros = np.zeros(terms.shape[1:], terms.dtype)
        return fast_sums.as_tensor(fast_sums.evaluated(terms.__getitem__, zeros, explicit, model), dtype, rest)
    values = operands(exact.values_of(x), x.dtype, model)
    rows = ([values[place] for place in line] for line in exact.along(shape, axis))
    return exact.tensor_of(dtype, rest, [reduce(row, explicit, model) for row in rows])


def all_reduce(inputs: Sequence[Tensor], tree: Tree, model: NodeArithmetic) -> Tensor:
    """Return the sum over ranks, one leaf each, elementwise.

    Raises `ReplayError`: no ranks, or their tensors differ in dtype or shape.
    """
    if not inputs or any((x.dtype, x.shape) != (inputs[0].dtype, inputs[0].shape) for x in inputs):
        raise ReplayError("inputs: expected one tensor of the same dtype and shape for each rank")
    stacked = Tensor(inputs[0].dtype, (len(inputs), *inputs[0].shape), b"".join(x.data for x in inputs))
    return sum(stacked, 0, tree, model)


def is_fast(tree: Tree, model: NodeArithmetic, dtype: str, products: bool, terms: int) -> bool:
    """True if sums over so many terms take the fast path."""
    return fast_sums.can(_started(tree, terms, model) if products else tree.over(terms), model, dtype)


def _started(tree: Tree, terms: int, model: NodeArithmetic) -> Tree:
    """Return the explicit tree of a product without a C operand: with +0 in its place, or with the terms alone."""
    return tree.over(terms).without_start() if _is_unstarted(terms, model) else tree.with_start(terms)


def _is_unstarted(terms: int, model: NodeArithmetic) -> bool:
    """True if a product starts from its first term; one of no terms is +0."""
    return model.start == "none" and terms > 0


def _shape(argument: str, tensor: Tensor, rank: int, model: NodeArithmetic) -> tuple[int, ...]:
    if tensor.dtype not in exact.FORMATS or tensor.dtype == "bool":
        raise ReplayError(f"{argument}: {tensor.dtype} has no sums of real numbers")
    if isinstance(exact.FORMATS[tensor.dtype], FloatFormat) != model.is_float:
        raise ReplayError(f"{argument}: {tensor.dtype} does not accumulate in {model.accumulator}")
    if len(tensor.shape) < rank:
        raise ReplayError(f"{argument}: expected {rank} dimensions or more, found {len(tensor.shape)}")
    return tensor.shape


def _factors(tensor: Tensor, model: NodeArithmetic) -> Array:
    numbers = fast_sums.flushed_operands(fast_sums.as_array(tensor), tensor.dtype, model)
    return fast_sums.tf32_operands(numbers) if tensor.dtype == "tf32" else numbers


def _exact_factors(tensor: Tensor, model: NodeArithmetic, axis: int) -> list[list[Value]]:
    """Return the factors of each line along an axis."""
    values = operands(exact.values_of(tensor), tensor.dtype, model)
    if tensor.dtype == "tf32":
        values = [exact.TF32_OPERAND.round(value) for value in values]
    return [[values[place] for place in line] for line in exact.along(tensor.shape, axis)]


# The values of nodes, which are rounded in a direction that IEEE 754 names, and flushed if they are subnormal.


def flushed(value: Value, format_: Format) -> Value:
    """Return `value`, or the zero of its sign if it is a subnormal of the format."""
    if isinstance(value, Fraction) and isinstance(format_, FloatFormat) and 0 < abs(value) < format_.smallest_normal:
        return exact.zero(value < 0)
    return value


def result_of(value: Value, model: NodeArithmetic) -> Value:
    """Return the value of a node from the exact value of its sum."""
    result = model.format.round(value, model.rounding)
    return flushed(result, model.format) if model.subnormals == "flushed" else result


# A tree of sums evaluated on exact values: the definition with which the fast path is compared.
#
# A leaf is a value, or an unrounded product. Every node adds its terms exactly and rounds once, as its model says.


@dataclass(frozen=True)
class Pending:
    """An exact product that the node above its leaf adds unrounded."""

    value: Value


def reduce(terms: Sequence[Value | Pending], tree: Tree, model: NodeArithmetic, start: Value | None = None) -> Value:
    """Return the sum of leaves in the order of the tree, in the accumulator; without a start value, `c` is +0.

    Raises `LeafCountError`: the tree is not one over these terms.
    """
    explicit = tree.over(len(terms)) if start is None else tree.with_start(len(terms))
    first = ZERO if start is None else result_of(start, model)

    def leaf(number: int) -> Value | Pending:
        return first if number == START else terms[number]

    result = explicit.folded(leaf, lambda children: _node(children, model))
    return result_of(exact_of(result), model)  # rounds a leaf that is the whole tree, which no node has rounded


def product(
    left: Sequence[Value], right: Sequence[Value], tree: Tree, model: NodeArithmetic, start: Value | None = ZERO
) -> Value:
    """Return the inner product of two rows of values, in the accumulator, from the start value, by default +0."""
    products = [exact.multiply(x, y) for x, y in zip(left, right, strict=True)]
    fused = model.product == "fused"
    return reduce([Pending(value) if fused else result_of(value, model) for value in products], tree, model, start)


def operands(values: Sequence[Value], dtype: str, model: NodeArithmetic) -> list[Value]:
    """Return input values as the arithmetic reads them: subnormals of their dtype flushed if the model flushes."""
    if model.subnormals == "kept":
        return list(values)
    return [flushed(value, exact.FORMATS[dtype]) for value in values]


def _node(children: Sequence[Value | Pending], model: NodeArithmetic) -> Value:
    if len(children) == 2 and all(isinstance(child, Pending) for child in children):
        children = [result_of(exact_of(children[0]), model), children[1]]
    terms = [exact_of(child) for child in children]
    if len(terms) > 2 and model.alignment_bits is not None and model.is_float:
        terms = aligned(terms, model.alignment_bits)
    return result_of(_sum(terms, model), model)


def exact_of(child: Value | Pending) -> Value:
    """Return the exact value of a leaf or of a node."""
    return child.value if isinstance(child, Pending) else child


def _sum(terms: Sequence[Value], model: NodeArithmetic) -> Value:
    """Return the exact sum; a zero has the sign of its terms, else it is +0, or -0 if rounding goes down."""
    if any(term is NAN or exact.is_infinite(term) for term in terms):
        return functools.reduce(exact.add, terms)
    number = functools.reduce(operator.add, map(exact.finite, terms), ZERO)
    if number:
        return number
    downward = model.rounding == "down" and any(map(exact.is_negative, terms))
    return exact.zero(downward or all(term is exact.NEGATIVE_ZERO for term in terms))


def aligned(terms: Sequence[Value], bits: int) -> list[Value]:
    """Return each term cut toward zero to a multiple of 2^(e - bits), e being the largest exponent among them."""
    numbers = [term for term in terms if isinstance(term, Fraction) and term]
    if not numbers:
        return list(terms)
    spacing = Fraction(2) ** (max(map(exact.exponent_of, numbers)) - bits)
    return [int(term / spacing) * spacing if isinstance(term, Fraction) else term for term in terms]
