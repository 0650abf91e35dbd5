"""Enclosures of elements that are moved, chosen or joined: nothing is computed for them, but where they are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from tessera_conformance.oracle import movement
from tessera_conformance.oracle.bounds.elementwise import unchanged
from tessera_conformance.oracle.bounds.intervals import Enclosure
from tessera_conformance.oracle.bounds.reductions import sum_of
from tessera_conformance.oracle.bounds.sums import accumulator_of
from tessera_conformance.oracle.formats import component_format, float_format, values_of
from tessera_conformance.tensors import Tensor

Enclosures: TypeAlias = list[Enclosure | None]


def _moved(function: Callable[..., Tensor], *inputs: Tensor, **arguments: Any) -> Enclosures:
    found = function(*inputs, **arguments)
    return unchanged(values_of(found), component_format(found.dtype))


def _scatter_add(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int) -> Enclosures:
    """For every element a sum in any order."""
    inner, result = accumulator_of(x.dtype), float_format(x.dtype)
    return [sum_of(row, inner, result) for row in movement.scattered(x, indices, updates, axis)]


MOVED = (
    movement.abs_,
    movement.broadcast,
    movement.clamp,
    movement.concat,
    movement.const_tensor,
    movement.gather,
    movement.iota,
    movement.layout_cast,
    movement.maximum,
    movement.minimum,
    movement.pad,
    movement.reshape,
    movement.select,
    movement.slice_,
    movement.transpose,
)

RULES: Mapping[str, Callable[..., Enclosures]] = {
    **{function.__name__.rstrip("_"): partial(_moved, function) for function in MOVED},
    "scatter_add": _scatter_add,
}
"""The rule of each function."""
