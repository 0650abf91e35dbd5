"""Data movement: transposes, slices, padding, gathers, selection.

The operations of section 2 that move elements (AMB-LANG-106, AMB-LANG-165). A moved element is copied byte for byte, by
numpy; only operations that compare or add decode values.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.exact import BadArgument, IntegerFormat, Value
from tessera_conformance.tensors import Tensor, shape_of

Number: TypeAlias = int | float | str
"""A number of an attribute: itself, or the decimal text of a literal."""
Elements: TypeAlias = np.ndarray[Any, np.dtype[np.void]]
"""The elements of a tensor as bytes, for which numpy has no arithmetic."""


# Elements moved


def transpose(a: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    """Axis k of the result is axis perm[k] of the operand; without `perm` the axes are reversed."""
    return _tensor(a.dtype, _elements(a).transpose(perm))


def reshape(x: Tensor, *, shape: Sequence[int]) -> Tensor:
    """The elements in row-major order; an extent of -1 follows from the others."""
    return _tensor(x.dtype, _elements(x).reshape(shape))


def broadcast(x: Tensor, *, shape: Sequence[int]) -> Tensor:
    """New axes in front, and every axis of extent 1 repeated to the requested extent.

    Raises `ValueError`: an axis has another extent, and that is not 1.
    """
    return _tensor(x.dtype, np.broadcast_to(_elements(x), shape))


def slice_(x: Tensor, *, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int] | None = None) -> Tensor:
    """x[start:stop:step] in each dimension, the stop excluded; dimensions without a start are taken whole."""
    elements = _elements(x)
    for axis, bounds in enumerate(zip(starts, stops, steps or [1] * len(starts), strict=True)):
        elements = elements.take(_positions(list(range(*bounds)), x.shape[axis]), axis)
    return _tensor(x.dtype, elements)


def gather(x: Tensor, indices: Tensor, *, axis: int) -> Tensor:
    """result[a, i, b] = x[a, indices[i], b]: the dimensions of the indices replace the axis."""
    chosen = _positions(_integers(indices), x.shape[axis])
    return _tensor(x.dtype, _elements(x).take(chosen.reshape(indices.shape), axis))


def layout_cast(x: Tensor, *, to: str) -> Tensor:
    """The same elements: a layout says how they are stored."""
    return x


# Elements joined


def concat(*parts: Tensor, axis: int) -> Tensor:
    """The parts one after another along an axis."""
    return _tensor(parts[0].dtype, np.concatenate(list(map(_elements, parts)), axis))


def pad(x: Tensor, *, low: Sequence[int], high: Sequence[int], value: Number = 0) -> Tensor:
    """The given numbers of elements of a value before and after those of x in each dimension."""
    extents = list(zip(low, x.shape, high, strict=True))
    padded = _elements(const_tensor(shape=[sum(parts) for parts in extents], dtype=x.dtype, value=value)).copy()
    padded[tuple(slice(before, before + extent) for before, extent, _ in extents)] = _elements(x)
    return _tensor(x.dtype, padded)


# Elements generated


def iota(*, shape: Sequence[int], axis: int = 0, dtype: str = "int32") -> Tensor:
    """Every element is its position along an axis, rounded once."""
    return exact.tensor_of(dtype, tuple(shape), [Fraction(place) for place in np.indices(shape)[axis].ravel().tolist()])


def const_tensor(*, shape: Sequence[int], dtype: str, value: Number | Sequence[object] = 0) -> Tensor:
    """One number everywhere, or a number for each element, nested as the shape or flat."""
    if isinstance(value, int | float | str):
        return exact.tensor_of(dtype, tuple(shape), _leaves(dtype, value) * prod(shape))
    if shape_of(value) not in (tuple(shape), (prod(shape),)):
        raise BadArgument("value", value, f"{prod(shape)} numbers in shape {list(shape)}")
    return exact.tensor_of(dtype, tuple(shape), _leaves(dtype, value))


# Choice by value


def select(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The element of a where the condition holds, that of b elsewhere; all three broadcast."""
    holds = condition.words().reshape(condition.shape) != 0
    return _tensor(a.dtype, np.where(holds, _elements(a), _elements(b)))


def maximum(a: Tensor, b: Tensor) -> Tensor:
    """The larger; NaN wins, -0 is below +0."""
    return exact.elementwise(exact.maximum, a, b, nonfinite=True)


def minimum(a: Tensor, b: Tensor) -> Tensor:
    """The smaller; NaN wins, -0 is below +0."""
    return exact.elementwise(exact.minimum, a, b, nonfinite=True)


def clamp(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The minimum of high and the maximum of x and low."""

    def clamped(value: Value, least: Value, most: Value) -> Value:
        return exact.minimum(exact.maximum(value, least), most)

    return exact.elementwise(clamped, x, low, high, nonfinite=True)


def abs_(x: Tensor) -> Tensor:
    """The absolute value; that of the least integer wraps to itself."""
    return exact.elementwise(
        lambda value: exact.negate(value) if exact.is_negative(value) else value, x, nonfinite=True
    )


def scatter_add(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int) -> Tensor:
    """x[a, indices[i], b] += updates[a, i, b] for ascending i, in the accumulator type; one rounding at the end."""
    accumulator = exact.FORMATS[exact.ACCUMULATORS[x.dtype]]
    rows = scattered(x, indices, updates, axis)
    totals = [reduce(lambda total, term: accumulator.round(exact.add(total, term)), row) for row in rows]
    return exact.tensor_of(x.dtype, x.shape, totals)


def scattered(x: Tensor, indices: Tensor, updates: Tensor, axis: int) -> list[list[Value]]:
    """Return the terms of the sum of each element of x: itself, then its updates in ascending order of their index."""
    axis %= len(x.shape)
    chosen = _positions(_integers(indices), x.shape[axis])
    rows, terms = [[value] for value in exact.values_of(x)], exact.values_of(updates)
    targets, sources = (np.arange(tensor.size).reshape(tensor.shape) for tensor in (x, updates))
    for place, position in zip(np.ndindex(*indices.shape), chosen.tolist(), strict=True):
        added = sources[(slice(None),) * axis + place]
        for target, source in zip(targets.take(position, axis).ravel(), added.ravel(), strict=True):
            rows[target].append(terms[source])
    return rows


# Helpers


def _elements(x: Tensor) -> Elements:
    return np.frombuffer(x.data, np.dtype((np.void, x.format.word_bytes * x.format.words))).reshape(x.shape)


def _tensor(dtype: str, elements: Elements) -> Tensor:
    return Tensor(dtype, elements.shape, elements.tobytes())


def _integers(indices: Tensor) -> list[int]:
    return [int(exact.finite(value)) for value in exact.values_of(indices)]


def _positions(places: list[int], extent: int) -> Any:
    """Return the indices as an array. Raises `BadArgument`: one is outside the extent (numpy allows negative ones)."""
    if any(place not in range(extent) for place in places):
        raise BadArgument("indices", places, f"positions from 0 to {extent - 1}")
    return np.array(places, np.int64)


def _leaves(dtype: str, value: object) -> list[Value]:
    """Return the numbers of a nested list in order, two for each complex one."""
    if isinstance(value, int | float | str):
        signed = str(value).startswith("-") and not isinstance(
            exact.FORMATS[exact.COMPONENTS.get(dtype, dtype)], IntegerFormat
        )
        number: Value = exact.zero(signed) if Fraction(value) == 0 else Fraction(value)
        return [number] + [exact.ZERO] * (dtype in exact.COMPONENTS)
    assert isinstance(value, Sequence)
    return [leaf for item in value for leaf in _leaves(dtype, item)]
