"""Enclosures of data movement: elements are copied exactly, and only scatter_add computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tessera_conformance.oracle import functions_of, movement
from tessera_conformance.oracle.bounds.elementwise import unchanged
from tessera_conformance.oracle.bounds.intervals import Enclosures, accumulator_of
from tessera_conformance.oracle.bounds.reductions import sum_of
from tessera_conformance.oracle.formats import component_format, float_format, values_of
from tessera_conformance.tensors import Tensor


def _moved(function: Callable[..., Tensor], *inputs: Tensor, **arguments: Any) -> Enclosures:
    found = function(*inputs, **arguments)
    return unchanged(values_of(found), component_format(found.dtype))


def _scatter_add(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int) -> Enclosures:
    """For every element a sum in any order."""
    inner, result = accumulator_of(x.dtype), float_format(x.dtype)
    return [sum_of(row, inner, result) for row in movement.scattered(x, indices, updates, axis)]


RULES: Mapping[str, Callable[..., Enclosures]] = {
    **{name: partial(_moved, function) for name, function in functions_of(movement).items()},
    "scatter_add": _scatter_add,
}
"""The rule of each function."""
