"""Layouts, and constants (spec sections 3.3, 5.2; AMB-LANG-53, -54).

A literal of the source, and a tensor of given numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite, prod
from typing import Any

import numpy as np

from ..ir.operation import (
    Applied,
    Attribute,
    AttributeValue,
    Builder,
    Environment,
    Hidden,
    Operand,
    Operation,
    Refusal,
    Shown,
    no_gradient,
    operation,
)
from ..ir.text import read_layout
from ..ir.types import LAYOUTS, Scalar, Tensor, Type, Value, dtype_of
from ..numerics.array import Array
from ..numerics.errors import require_room
from ..numerics.formats import DType
from ..numerics.rounding import round_to
from .term import require_extents

# Layouts: as attributes, words such as `col_major` or `blocked(bm=2,bn=4)`; and casts between them (section 3.3).


@operation("tessera.graph.layout_cast", spellings=("op.layout_cast",), clauses=("LANG-03.3-02", "LANG-11-05"))
class LayoutCast(Operation):
    """The same elements in another layout: a materialized copy (AMB-LANG-67)."""

    x: Operand[Tensor]
    to: Attribute[str]

    layouts = frozenset(LAYOUTS)
    nest = "map"

    def infer(self) -> Tensor:
        """Return the operand's type with the other layout."""
        return replace(self.x, layout=read_layout(self.to))

    def execute(self, x: Array, env: Environment) -> Array:
        """Return the elements unchanged; a layout only determines how they are stored."""
        return x

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return the gradient in the operand's layout."""
        return (build(LayoutCast, at.dy, to=self.x.layout.text),)


# Constants: a literal of the source, and a tensor of given numbers (LANG-05.2-01; AMB-LANG-53, AMB-LANG-54).


@operation("tessera.graph.constant", clauses=("LANG-02.3-42", "LANG-02.3-72", "LANG-02.3-74", "LANG-02.3-75"))
class Constant(Operation):
    """One number, exact in its dtype."""

    value: Attribute[int | float | bool]
    dtype: Hidden[DType]

    lanewise = True
    adjoint = no_gradient

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        types = shown.results or ()
        if len(types) != 1 or not isinstance(types[0], Scalar):
            message = "the result of a constant is not stated to be a scalar"
            requirement = ": () -> fp32"
            remedy = "a tensor of numbers is a tessera.graph.const_tensor"
            raise Refusal("types", message, requirement, "LANG-02.3-42", remedy)
        return {"dtype": dtype_of(types[0])}

    def infer(self) -> Scalar:
        """Return a scalar type."""
        if not _is_held(self.value, self.dtype):
            message, expected = f"{self.value} is no value of {self.dtype}", f"a number that {self.dtype} holds exactly"
            raise Refusal("types", message, expected, "LANG-02.3-42", "")
        return Scalar(self.dtype)

    def execute(self, env: Environment) -> Array:
        return Array(self.dtype, np.asarray(self.value, self.dtype.carrier))


@operation(
    "tessera.graph.const_tensor",
    spellings=("op.const_tensor",),
    clauses=("LANG-05.2-01", "LANG-05.3-01", "LANG-05.3-02", "LANG-02.3-35"),
)
class ConstTensor(Operation):
    """A tensor of given numbers: one for every element, or a nested list of them (AMB-LANG-53).

    A text may state its type alone, as section 5.2 does; it is then one of zeros.
    """

    shape: Attribute[tuple[int, ...]]
    dtype: Attribute[DType]
    value: Attribute[int | float | bool | tuple[Any, ...]] = 0
    layout: Attribute[str] = "row_major"

    adjoint = no_gradient

    @classmethod
    def attributes_of(cls, results: tuple[Type, ...]) -> dict[str, AttributeValue]:
        match results:
            case [Tensor(shape, dtype, layout)]:
                extents = tuple(extent for extent in shape if isinstance(extent, int))
                return {"shape": extents, "dtype": dtype, "layout": layout.text} if len(extents) == len(shape) else {}
            case _:
                return {}

    def infer(self) -> Tensor | Scalar:
        """Return the requested shape and dtype; a list of numbers has that shape, or is flat in row-major order."""
        require_extents("shape", self.shape)
        if isinstance(self.value, tuple):
            shape = _shape_of(self.value)
            if shape not in (self.shape, (prod(self.shape),)):
                message = f"value has shape {list(shape) if shape is not None else 'of no tensor'}"
                requirement = f"one number, or {prod(self.shape)} of them in shape {list(self.shape)}"
                raise Refusal("shapes", message, requirement, "LANG-05.2-01")
        if any(not _is_held(number, self.dtype) for number in _leaves(self.value)):
            message = f"value holds what is no value of {self.dtype}"
            raise Refusal("types", message, f"numbers that {self.dtype} holds exactly", "LANG-05.2-01")
        layout = read_layout(self.layout)
        return Tensor(self.shape, self.dtype, layout) if self.shape else Scalar(self.dtype)

    def execute(self, env: Environment) -> Array:
        require_room("const_tensor", self.shape)
        numbers = np.asarray(self.value, self.dtype.carrier)
        filled = np.broadcast_to(numbers, self.shape) if numbers.ndim == 0 else numbers.reshape(self.shape)
        return Array(self.dtype, filled)


def _shape_of(value: Any) -> tuple[int, ...] | None:
    """Return the shape of a nested tuple; None when its rows differ."""
    if not isinstance(value, tuple):
        return ()
    inner = {_shape_of(item) for item in value}
    if len(inner) > 1 or None in inner:
        return None
    return (len(value), *(inner.pop() or ())) if inner else (0,)


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the numbers of a nested tuple."""
    if isinstance(value, tuple):
        for item in value:
            yield from _leaves(item) if isinstance(item, tuple) else (item,)
    else:
        yield value


def _is_held(value: Any, dtype: DType) -> bool:
    """True if a number is one of the values of a dtype; 0 and 1 also count as bools."""
    if dtype.kind == "bool":
        return isinstance(value, int) and value in (0, 1)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if dtype.kind == "int":
        return isinstance(value, int) and dtype.int_min <= value <= dtype.int_max
    component = (dtype.component if dtype.kind == "complex" else dtype).storage
    if isinstance(value, float) and not isfinite(value):
        return value != value or component.has_infinity
    if abs(value) > component.max_finite:
        return False
    number = float(value)
    return number == value and (component.name == "fp64" or float(round_to(np.asarray(number), component)) == number)
