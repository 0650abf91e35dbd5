"""Moving elements: slices and their replacement, other shapes, concatenation, gathering, padding.

Every result is a copy, so that an assignment to one name never changes another (AMB-LANG-95). Positions count from the
start, and a position outside is an error, never clamped and never counted from the end (AMB-LANG-96).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .array import Array
from .errors import DTypeMismatch, ShapeMismatch, broadcast_shape, require_room, require_shape
from .formats import DTYPES, DType
from .reductions import checked_axis
from .rounding import cast

Values: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Stretch:
    """`start:stop:step` of one dimension, `stop` excluded; a missing bound extends to the end of the dimension.

    The step is never 0. A negative one goes down from `start`, by default the last position.
    """

    start: int | None = None
    stop: int | None = None
    step: int = 1

    def problem(self, extent: int | None) -> str:
        """Return the error of the stretch for a dimension of `extent`, if known, or ""."""
        if self.step == 0:
            return "the step of a slice is 0"
        for name, bound in (("start", self.start), ("stop", self.stop)):
            if bound is not None and (bound < 0 or (extent is not None and bound > extent)):
                return f"a slice's {name} {bound} is out of range{_of(extent)}"
        if self.step < 0 and extent is not None and self.start == extent:
            return f"a slice that goes down starts at {self.start}, which is out of range{_of(extent)}"
        return ""

    def over(self, extent: int | None) -> range | None:
        """Return the positions that it takes; None where they depend on an unknown extent."""
        first, end = (0, extent) if self.step > 0 else (None if extent is None else extent - 1, -1)
        start, stop = first if self.start is None else self.start, end if self.stop is None else self.stop
        return None if start is None or stop is None else range(start, stop, self.step)

    @property
    def is_whole(self) -> bool:
        """True if it takes every position of any extent."""
        return abs(self.step) == 1 and self.stop is None and self.start in (None, 0 if self.step > 0 else None)


Selection: TypeAlias = tuple[int | Stretch, ...]
"""An entry for each of the first dimensions: an index drops it, a stretch keeps it. The others are taken whole."""


def index_problem(index: int, extent: int | None) -> str:
    """Return the error of an index into a dimension of `extent`, if known, or ""."""
    inside = index >= 0 and (extent is None or index < extent)
    return "" if inside else f"index {index} is out of range{_of(extent)}"


def sliced(x: Array, selection: Selection) -> Array:
    """Return the selected part of `x`; of rank 0 where every dimension is indexed. Raises `ShapeMismatch`."""
    return Array(x.dtype, np.asarray(x.values[_places("slice", x, selection)]).copy())


def updated(x: Array, value: Array, selection: Selection) -> Array:
    """Return `x` with its selected part replaced by `value`, which has that shape, or rank 0 to fill the part.

    Raises `DTypeMismatch` and `ShapeMismatch`.
    """
    if x.dtype != value.dtype:
        raise DTypeMismatch("update", x.dtype, value.dtype)
    values = x.values.copy()
    places = _places("update", x, selection)
    shape = np.shape(values[places])
    if value.shape not in (shape, ()):
        raise ShapeMismatch("update", f"the value has shape {list(value.shape)}, the slice {list(shape)}")
    values[places] = value.values
    return Array(x.dtype, values)


def reshaped(x: Array, shape: Sequence[int]) -> Array:
    """Return the elements in row-major order in another shape; one extent may be -1. Raises `ShapeMismatch`."""
    product = prod(extent for extent in shape if extent != -1)
    whole = [x.values.size // product if extent == -1 and product else extent for extent in shape]
    require_shape("reshape", [max(extent, 0) for extent in whole])
    if min(whole, default=0) < 0 or prod(whole) != x.values.size:
        raise ShapeMismatch("reshape", f"{list(x.shape)} of {x.values.size} elements does not become {list(shape)}")
    return Array(x.dtype, x.values.reshape(whole).copy())


def broadcast(x: Array, shape: Sequence[int]) -> Array:
    """Return `x` repeated to `shape` by NumPy's rules. Raises `ShapeMismatch` and `TooLarge`."""
    require_room("broadcast", shape, x.values.size)
    padded = (1,) * (len(shape) - x.rank) + x.shape
    if len(shape) < x.rank or any(have not in (1, want) for have, want in zip(padded, shape, strict=False)):
        raise ShapeMismatch("broadcast", f"{list(x.shape)} does not broadcast to {list(shape)}")
    return Array(x.dtype, np.broadcast_to(x.values, tuple(shape)).copy())


def concatenated(parts: Sequence[Array], axis: int) -> Array:
    """Return the arrays one after another along `axis`. Raises `ShapeMismatch` unless all else is equal."""
    first = parts[0]
    at = checked_axis("concat", first, axis)
    for part in parts[1:]:
        if part.rank != first.rank or _without(part.shape, at) != _without(first.shape, at):
            raise ShapeMismatch(
                "concat", f"{list(first.shape)} and {list(part.shape)} differ in an axis other than {axis}"
            )
    return Array(first.dtype, np.concatenate([part.values for part in parts], at))


def gathered(x: Array, indices: Array, axis: int) -> Array:
    """Return the slices of `x` along `axis` at `indices`, whose dimensions replace the axis. Raises `ShapeMismatch`."""
    at = checked_axis("gather", x, axis)
    require_room("gather", (*x.shape[:at], *indices.shape, *x.shape[at + 1 :]), x.values.size)
    _require_inside("gather", indices, x.shape[at])
    return Array(x.dtype, np.take(x.values, indices.values, at))


def scattered(x: Array, indices: Array, updates: Array, axis: int) -> Array:
    """Return `x` with `updates` added to its slices along `axis` at `indices`; the adjoint of `gathered`.

    The updates of one slice are added in ascending order of their positions in `indices`, row-major, in the accumulator
    type, starting from the element of `x`; one final rounding. Raises `ShapeMismatch`.
    """
    at = checked_axis("scatter_add", x, axis)
    expected = (*x.shape[:at], *indices.shape, *x.shape[at + 1 :])
    if updates.shape != expected:
        raise ShapeMismatch("scatter_add", f"the updates have shape {list(updates.shape)}, not {list(expected)}")
    _require_inside("scatter_add", indices, x.shape[at])
    accumulator = x.dtype.accumulator
    total = np.moveaxis(cast(x, accumulator).values, at, 0).copy()
    flat = cast(updates, accumulator).values.reshape(*x.shape[:at], indices.values.size, *x.shape[at + 1 :])
    terms = np.moveaxis(flat, at, 0)
    with np.errstate(all="ignore"):
        for position, index in enumerate(indices.values.reshape(-1).tolist()):
            total[index] = total[index] + terms[position]
    return cast(Array(accumulator, np.moveaxis(total, 0, at).copy()), x.dtype)


def padded(x: Array, low: Sequence[int], high: Sequence[int], value: float) -> Array:
    """Return `x` with `low` elements of `value` before and `high` after it in each dimension. Raises `TooLarge`."""
    shape = tuple(before + extent + after for before, extent, after in zip(low, x.shape, high, strict=True))
    require_room("pad", shape, x.values.size)
    values = np.full(shape, value, x.dtype.carrier)
    values[tuple(slice(before, before + extent) for before, extent in zip(low, x.shape, strict=True))] = x.values
    return Array(x.dtype, values)


def positions(shape: Sequence[int], axis: int, dtype: DType) -> Array:
    """Return the position along `axis` of every element, in `dtype`. Raises `TooLarge`."""
    require_room("iota", shape)
    along = [extent if dimension == axis else 1 for dimension, extent in enumerate(shape)]
    counted = cast(Array(DTYPES["int64"], np.arange(shape[axis], dtype=np.int64).reshape(along)), dtype)
    return Array(dtype, np.broadcast_to(counted.values, tuple(shape)).copy())


def chosen(condition: Array, a: Array, b: Array) -> Array:
    """Return `a` where the condition holds and `b` elsewhere; all broadcast. Raises as `broadcast_shape`."""
    if a.dtype != b.dtype:
        raise DTypeMismatch("select", a.dtype, b.dtype)
    broadcast_shape("select", condition.shape, a.shape, b.shape)
    return Array(a.dtype, np.where(condition.values, a.values, b.values))


def _places(operation: str, x: Array, selection: Selection) -> tuple[int | slice, ...]:
    """Return the selection as numpy takes it, with every bound checked."""
    if len(selection) > x.rank:
        raise ShapeMismatch(operation, f"{len(selection)} indices for rank {x.rank}")
    places: list[int | slice] = []
    for dimension, (part, extent) in enumerate(zip(selection, x.shape, strict=False)):
        problem = index_problem(part, extent) if isinstance(part, int) else part.problem(extent)
        if problem:
            raise ShapeMismatch(operation, f"dimension {dimension}: {problem}")
        places.append(part if isinstance(part, int) else _as_slice(part, extent))
    return tuple(places)


def _as_slice(stretch: Stretch, extent: int) -> slice:
    """Return a stretch as numpy's slice, without a stop where it goes down to the very start."""
    span = stretch.over(extent)
    return slice(span.start, None if span.stop < 0 else span.stop, span.step) if span else slice(0, 0)


def _of(extent: int | None) -> str:
    return "" if extent is None else f" for extent {extent}"


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _require_inside(operation: str, indices: Array, extent: int) -> None:
    outside = (indices.values < 0) | (indices.values >= extent)
    if outside.any():
        position = tuple(int(i) for i in np.argwhere(outside)[0])
        index = int(indices.values[position])
        raise ShapeMismatch(operation, f"index {index} at {list(position)} is out of range for extent {extent}")
