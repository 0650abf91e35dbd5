"""Data movement: transposes, slices, padding, gathers, selection.

The operations of section 2 that move elements (AMB-LANG-106, AMB-LANG-165). A moved element is copied byte for byte;
only operations that compare or add decode values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from math import prod
from typing import TypeAlias

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.exact import (
    ACCUMULATORS,
    COMPONENTS,
    FORMATS,
    BadArgument,
    IntegerFormat,
    Value,
    tensor_of,
    values_of,
)
from tessera_conformance.tensors import Tensor, shape_of

Index: TypeAlias = tuple[int, ...]
Number: TypeAlias = int | float | str
"""A number of an attribute, as it is, or as the decimal text of a literal."""


# Elements moved


def transpose(a: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    """Axis k of the result is axis perm[k] of the operand; without `perm` the axes are reversed."""
    axes = list(reversed(range(len(a.shape)))) if perm is None else list(perm)
    shape = tuple(a.shape[axis] for axis in axes)
    return _drawn(a, shape, lambda index: tuple(index[axes.index(axis)] for axis in range(len(axes))))


def reshape(x: Tensor, *, shape: Sequence[int]) -> Tensor:
    """The elements in row-major order; an extent of -1 follows from the others."""
    size = prod(extent for extent in shape if extent != -1)
    whole = tuple(x.size // size if extent == -1 else extent for extent in shape)
    return Tensor(x.dtype, whole, x.data)


def broadcast(x: Tensor, *, shape: Sequence[int]) -> Tensor:
    """New axes in front, and every axis of extent 1 as often as is requested.

    Raises `BadArgument`: an axis has another extent, and that is not 1.
    """
    missing = len(shape) - len(x.shape)
    if missing < 0 or any(have not in (1, want) for have, want in zip(x.shape, shape[missing:], strict=True)):
        raise BadArgument("shape", list(shape), f"one that {list(x.shape)} broadcasts to")

    def origin(index: Index) -> Index:
        return tuple(0 if have == 1 else at for have, at in zip(x.shape, index[missing:], strict=True))

    return _drawn(x, tuple(shape), origin)


def slice_(x: Tensor, *, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int] | None = None) -> Tensor:
    """x[start:stop:step] in each dimension, the stop excluded; dimensions without a start are taken whole."""
    bounds_of = zip(starts, stops, steps or [1] * len(starts), strict=True)
    ranges = [range(*bounds) for bounds in bounds_of] + [range(extent) for extent in x.shape[len(starts) :]]
    if any(
        position not in range(extent)
        for positions, extent in zip(ranges, x.shape, strict=True)
        for position in positions
    ):
        raise BadArgument("starts", list(starts), f"positions of {list(x.shape)}")
    shape = tuple(map(len, ranges))
    return _drawn(x, shape, lambda index: tuple(positions[at] for positions, at in zip(ranges, index, strict=True)))


def gather(x: Tensor, indices: Tensor, *, axis: int) -> Tensor:
    """result[a, i, b] = x[a, indices[i], b]: the dimensions of the indices replace the axis."""
    axis, depth = _axis(x, axis), len(indices.shape)
    chosen = _positions(indices, x.shape[axis])

    def origin(index: Index) -> Index:
        at = chosen[_place(index[axis : axis + depth], indices.shape)]
        return (*index[:axis], at, *index[axis + depth :])

    return _drawn(x, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), origin)


def layout_cast(x: Tensor, *, to: str) -> Tensor:
    """The same elements: a layout says how they are stored."""
    return x


# Elements joined


def concat(*parts: Tensor, axis: int) -> Tensor:
    """The parts one after another along an axis."""
    axis = _axis(parts[0], axis)
    elements = [_elements(part) for part in parts]
    origins = [(number, at) for number, part in enumerate(parts) for at in range(part.shape[axis])]
    shape = (*parts[0].shape[:axis], len(origins), *parts[0].shape[axis + 1 :])
    chunks = []
    for index in _indices(shape):
        part, at = origins[index[axis]]
        chunks.append(elements[part][_place((*index[:axis], at, *index[axis + 1 :]), parts[part].shape)])
    return Tensor(parts[0].dtype, shape, b"".join(chunks))


def pad(x: Tensor, *, low: Sequence[int], high: Sequence[int], value: Number = 0) -> Tensor:
    """So many elements of a value before and after those of x in each dimension."""
    shape = tuple(before + extent + after for before, extent, after in zip(low, x.shape, high, strict=True))
    elements, filling = _elements(x), tensor_of(x.dtype, (), _leaves(x.dtype, value)).data
    chunks = []
    for index in _indices(shape):
        within = tuple(at - before for at, before in zip(index, low, strict=True))
        is_inside = all(at in range(extent) for at, extent in zip(within, x.shape, strict=True))
        chunks.append(elements[_place(within, x.shape)] if is_inside else filling)
    return Tensor(x.dtype, shape, b"".join(chunks))


# Elements generated


def iota(*, shape: Sequence[int], axis: int = 0, dtype: str = "int32") -> Tensor:
    """Every element is its position along an axis, rounded once."""
    axis %= len(shape)
    return tensor_of(dtype, tuple(shape), [Fraction(index[axis]) for index in _indices(tuple(shape))])


def const_tensor(*, shape: Sequence[int], dtype: str, value: Number | Sequence[object] = 0) -> Tensor:
    """One number everywhere, or a number for each element, nested as the shape or flat."""
    if isinstance(value, int | float | str):
        return tensor_of(dtype, tuple(shape), _leaves(dtype, value) * prod(shape))
    if shape_of(value) not in (tuple(shape), (prod(shape),)):
        raise BadArgument("value", value, f"{prod(shape)} numbers in shape {list(shape)}")
    return tensor_of(dtype, tuple(shape), _leaves(dtype, value))


# Choice by value


def select(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The element of a where the condition holds, that of b elsewhere; all three broadcast."""
    shape = _common_shape(condition, a, b)
    conditions, lefts, rights = (_elements(broadcast(operand, shape=shape)) for operand in (condition, a, b))
    chunks = [left if any(holds) else right for holds, left, right in zip(conditions, lefts, rights, strict=True)]
    return Tensor(a.dtype, shape, b"".join(chunks))


def maximum(a: Tensor, b: Tensor) -> Tensor:
    """The larger; NaN wins, -0 is below +0."""
    return _elementwise(exact.maximum, a, b)


def minimum(a: Tensor, b: Tensor) -> Tensor:
    """The smaller; NaN wins, -0 is below +0."""
    return _elementwise(exact.minimum, a, b)


def clamp(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The minimum of high and the maximum of x and low."""
    return _elementwise(lambda value, least, most: exact.minimum(exact.maximum(value, least), most), x, low, high)


def abs_(x: Tensor) -> Tensor:
    """The absolute value; that of the least integer wraps to itself."""
    return _elementwise(lambda value: exact.negate(value) if exact.is_negative(value) else value, x)


def scatter_add(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int) -> Tensor:
    """x[a, indices[i], b] += updates[a, i, b] for ascending i, in the accumulator type; one rounding at the end."""
    accumulator = FORMATS[ACCUMULATORS[x.dtype]]
    rows = scattered(x, indices, updates, axis)
    totals = [reduce(lambda total, term: accumulator.round(exact.add(total, term)), row) for row in rows]
    return tensor_of(x.dtype, x.shape, totals)


def scattered(x: Tensor, indices: Tensor, updates: Tensor, axis: int) -> list[list[Value]]:
    """For each element of x what is added up there: itself, then its updates in ascending order of their index."""
    axis = _axis(x, axis)
    chosen, terms = _positions(indices, x.shape[axis]), values_of(updates)
    rows_of_terms = []
    for index, value in zip(_indices(x.shape), values_of(x), strict=True):
        places = (place for place, at in zip(_indices(indices.shape), chosen, strict=True) if at == index[axis])
        origins = (_place((*index[:axis], *place, *index[axis + 1 :]), updates.shape) for place in places)
        rows_of_terms.append([value, *(terms[origin] for origin in origins)])
    return rows_of_terms


# Places


def _elements(x: Tensor) -> list[bytes]:
    width = x.format.word_bytes * x.format.words
    return [x.data[start : start + width] for start in range(0, len(x.data), width)]


def _indices(shape: Sequence[int]) -> list[Index]:
    """Every index, row-major."""
    return list(product(*map(range, shape)))


def _place(index: Index, shape: Sequence[int]) -> int:
    """The number of an element, row-major."""
    place = 0
    for at, extent in zip(index, shape, strict=True):
        place = place * extent + at
    return place


def _drawn(x: Tensor, shape: tuple[int, ...], origin: Callable[[Index], Index]) -> Tensor:
    """A tensor whose element at an index is that of x at its origin."""
    elements = _elements(x)
    return Tensor(x.dtype, shape, b"".join(elements[_place(origin(index), x.shape)] for index in _indices(shape)))


def _axis(x: Tensor, axis: int) -> int:
    if not -len(x.shape) <= axis < len(x.shape):
        raise BadArgument("axis", axis, f"an axis of {list(x.shape)}")
    return axis % len(x.shape)


def _positions(indices: Tensor, extent: int) -> list[int]:
    positions = [int(exact.finite(value)) for value in values_of(indices)]
    if any(position not in range(extent) for position in positions):
        raise BadArgument("indices", positions, f"positions from 0 to {extent - 1}")
    return positions


def _common_shape(*operands: Tensor) -> tuple[int, ...]:
    """The shape that operands broadcast to."""
    rank = max(len(operand.shape) for operand in operands)
    columns = zip(*((1,) * (rank - len(operand.shape)) + operand.shape for operand in operands), strict=True)
    return tuple(next((extent for extent in column if extent != 1), 1) for column in columns)


def _elementwise(function: Callable[..., Value], *operands: Tensor) -> Tensor:
    """An elementwise function that does not round."""
    shape = _common_shape(*operands)
    columns = [values_of(broadcast(operand, shape=shape)) for operand in operands]
    results = [function(*values) for values in zip(*columns, strict=True)]
    return tensor_of(operands[0].dtype, shape, results, nonfinite=True)


def _leaves(dtype: str, value: object) -> list[Value]:
    """The numbers of a nested list in order, two for each of a complex dtype."""
    if isinstance(value, int | float | str):
        signed = str(value).startswith("-") and not isinstance(FORMATS[COMPONENTS.get(dtype, dtype)], IntegerFormat)
        number: Value = exact.zero(signed) if Fraction(value) == 0 else Fraction(value)
        return [number] + [exact.ZERO] * (dtype in COMPONENTS)
    assert isinstance(value, Sequence)
    return [leaf for item in value for leaf in _leaves(dtype, item)]
