"""Selection among elements that is wrong at special values, or selects the other operand (language spec, 2 and 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.strength import Violation, replaced, without_refusals
from tessera_reference.adapter import make
from tessera_reference.graph import elementwise
from tessera_reference.graph.elementwise import Abs, Clamp, Select
from tessera_reference.ir.operation import Refusal
from tessera_reference.numerics import arithmetic
from tessera_reference.numerics.array import Array

from .changes import changed
from .misrounding import without_subnormals

Values: TypeAlias = Any
CALLS, BROADCASTING = "LANG-02-04", "LANG-03.2-02"


# Maximum and minimum


def extremes(name: str, description: str, larger: Callable[[Values, Values], Values]) -> Violation:
    """Return a violation with another maximum of two arrays, and the mirrored minimum."""

    def maximum(a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            return Array(a.dtype, np.asarray(larger(a.values, b.values), a.values.dtype))

    def minimum(a: Array, b: Array) -> Array:
        if a.dtype.kind == "int":
            return arithmetic.minimum(a, b)
        with np.errstate(all="ignore"):
            return Array(a.dtype, np.asarray(-larger(-a.values, -b.values), a.values.dtype))

    changes = [
        ("graph.elementwise.Maximum.compute", staticmethod(maximum)),
        ("graph.elementwise.Minimum.compute", staticmethod(minimum)),
    ]
    return changed(BROADCASTING, name, description, *changes, only=["maximum", "minimum"])


EXTREMES = [
    changed(BROADCASTING, "extremes_flush", "flushes subnormal extremes",
        ("graph.elementwise.Maximum.compute", staticmethod(lambda a, b: flushed(arithmetic.maximum(a, b)))),
        only=["maximum"]),
]  # fmt: skip


def flushed(x: Array) -> Array:
    return Array(x.dtype, without_subnormals(x.values, x.dtype)) if x.dtype.kind == "float" else x


# Clamp, magnitude, select


def executes(name: str, clause: str, description: str, operation: type[Any], execute: Any) -> Violation:
    """Return a violation with another result of an operation."""
    return changed(clause, name, description, (operation, "execute", execute), only=[operation.__name__.lower()])


def into_bounds(self: Clamp, x: Array, low: Array, high: Array, env: Any) -> Array:
    with np.errstate(all="ignore"):
        raised = np.where(x.values < low.values, low.values, x.values)
        return Array(x.dtype, np.where(raised > high.values, high.values, raised))


def nan_to_lower_bound(self: Clamp, x: Array, low: Array, high: Array, env: Any) -> Array:
    found = arithmetic.minimum(arithmetic.maximum(x, low), high).values
    bound = np.broadcast_to(low.values, found.shape)
    lost = np.broadcast_to(np.isnan(x.values), found.shape)
    return Array(x.dtype, np.where(lost, bound, found))


def negated_below_zero(self: Abs, x: Array, env: Any) -> Array:
    with np.errstate(all="ignore"):
        return Array(x.dtype, np.where(x.values < 0, -x.values, x.values))


def saturating(self: Abs, x: Array, env: Any) -> Array:
    if x.dtype.kind != "int":
        return arithmetic.absolute(x)
    return Array(x.dtype, np.abs(np.maximum(x.values, -x.dtype.int_max)))


def by_product(self: Select, condition: Array, a: Array, b: Array, env: Any) -> Array:
    if a.dtype.kind != "float":
        return USUAL_SELECT(self, condition, a, b, env)
    with np.errstate(all="ignore"):
        chosen = condition.values.astype(a.values.dtype)
        return Array(a.dtype, chosen * a.values + (1 - chosen) * b.values)


def wholly(self: Select, condition: Array, a: Array, b: Array, env: Any) -> Array:
    if not condition.values.size:
        return USUAL_SELECT(self, condition, a, b, env)
    first = np.full(condition.shape, condition.values.reshape(-1)[0])
    return USUAL_SELECT(self, Array(condition.dtype, first), a, b, env)


USUAL_SELECT = Select.execute

CHOICE = [
    executes("clamp_upper_first", BROADCASTING, "lets the lower bound win", Clamp,
        lambda self, x, low, high, env: arithmetic.maximum(arithmetic.minimum(x, high), low)),
    executes("clamp_by_comparison", BROADCASTING, "takes a bound that is NaN for none", Clamp, into_bounds),
    executes("clamp_nan_to_bound", BROADCASTING, "clamps NaN to the lower bound", Clamp, nan_to_lower_bound),
    executes("abs_of_negative_zero", CALLS, "leaves -0 its sign", Abs, negated_below_zero),
    executes("abs_saturates", CALLS, "saturates the magnitude of the least integer", Abs, saturating),
    executes("select_by_product", BROADCASTING, "chooses by products", Select, by_product),
    executes("select_wholly", BROADCASTING, "chooses for all elements at once", Select, wholly),
]  # fmt: skip


# Refusals


def any_dtypes(a: Any, b: Any) -> None:
    """Accept operands of two dtypes."""


def first_shape(dtype: Any, *operands: Any) -> Any:
    try:
        return USUAL_SHAPE(dtype, *operands)
    except Refusal:
        return max(operands, key=lambda operand: len(operand.shape)).with_dtype(dtype)


USUAL_SHAPE = elementwise.elementwise

LENIENT = [
    replaced("LANG-03.1-05", "chooses from two dtypes", make, ("graph.elementwise.require_one_dtype", any_dtypes),
             name="choice_of_dtypes"),
    replaced("LANG-11-01", "takes any number for a condition", make,
             *without_refusals(elementwise, lambda source: "the condition is" in source), name="any_condition"),
    replaced("LANG-03.2-03", "chooses from shapes that do not fit", make,
        ("graph.elementwise.elementwise", first_shape), name="choice_of_shapes"),
]  # fmt: skip
