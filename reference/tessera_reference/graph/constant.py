"""Constants: a literal of the source, and a tensor of given numbers (LANG-05.2-01; AMB-LANG-53, AMB-LANG-54)."""

from math import prod
from typing import Any

import numpy as np

from ..ir.builder import Applied, Builder
from ..ir.module import Value
from ..ir.operation import Attribute, Environment, Hidden, Operation, operation, require
from ..ir.types import Scalar, Tensor
from ..numerics.array import Array
from ..numerics.formats import DType
from ..numerics.limits import require_room
from .axes import require_extents
from .layouts import known_layout


@operation("tessera.graph.constant", clauses=("LANG-02.3-42", "LANG-02.3-72", "LANG-02.3-74", "LANG-02.3-75"))
class Constant(Operation):
    """One number, exact in its dtype."""

    value: Attribute[int | float | bool]
    dtype: Hidden[DType]

    def infer(self) -> Scalar:
        """A scalar."""
        return Scalar(self.dtype)

    def execute(self, env: Environment) -> Array:
        """The number."""
        return Array(self.dtype, np.asarray(self.value, self.dtype.carrier))

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """A constant depends on nothing."""
        return ()


@operation(
    "tessera.graph.const_tensor",
    spellings=("op.const_tensor",),
    clauses=("LANG-05.2-01", "LANG-05.3-01", "LANG-05.3-02", "LANG-02.3-35"),
)
class ConstTensor(Operation):
    """A tensor of given numbers: one for every element, or a nested list of them (AMB-LANG-53)."""

    shape: Attribute[tuple[int, ...]]
    dtype: Attribute[DType]
    value: Attribute[int | float | bool | tuple[Any, ...]] = 0
    layout: Attribute[str] = "row_major"

    def infer(self) -> Tensor | Scalar:
        """The shape and dtype asked for; a list of numbers has that shape, or is flat in row-major order."""
        require_extents("shape", self.shape)
        if isinstance(self.value, tuple):
            given = _shape_of(self.value)
            require(
                given in (self.shape, (prod(self.shape),)),
                "shapes",
                f"value has shape {list(given) if given is not None else 'of no tensor'}",
                f"one number, or {prod(self.shape)} of them in shape {list(self.shape)}",
                "LANG-05.2-01",
            )
        layout = known_layout(self.layout)
        return Tensor(self.shape, self.dtype, layout) if self.shape else Scalar(self.dtype)

    def execute(self, env: Environment) -> Array:
        """The numbers."""
        require_room("const_tensor", self.shape)
        numbers = np.asarray(self.value, self.dtype.carrier)
        filled = np.broadcast_to(numbers, self.shape) if numbers.ndim == 0 else numbers.reshape(self.shape)
        return Array(self.dtype, filled)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """A constant depends on nothing."""
        return ()


def _shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of a nested tuple; nothing when its rows differ."""
    if not isinstance(value, tuple):
        return ()
    inner = {_shape_of(item) for item in value}
    if len(inner) > 1 or None in inner:
        return None
    return (len(value), *(inner.pop() or ())) if inner else (0,)
