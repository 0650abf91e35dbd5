"""Terms: values under construction, which read as mathematics and build Graph IR (section 5.5; AMB-LANG-59).

Operations are found by their short names: `x.exp()` is `tessera.graph.exp`. None is imported here, since adjoints are
written in terms, and those of several operations use each other in circles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from ..ir.module import Value
from ..ir.operation import OPERATIONS, Builder
from ..ir.types import Dim, Tensor, dtype_of
from ..numerics.formats import DType
from ..numerics.rounding import round_exact

Number: TypeAlias = int | Fraction


@dataclass(frozen=True)
class Term:
    """A value under construction. Numbers beside it become constants of its dtype, rounded once."""

    value: Value
    build: Builder

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The extents; in an adjoint those of operands are integers."""
        type_ = self.value.type
        return type_.shape if isinstance(type_, Tensor) else ()

    @property
    def dtype(self) -> DType:
        """The dtype of a tensor or scalar."""
        found = dtype_of(self.value.type)
        assert found is not None
        return found

    def __getattr__(self, name: str) -> Callable[..., Term]:
        """The operation of that short name, with this as its first operand."""
        if name.startswith("__"):
            raise AttributeError(name)
        declared = OPERATIONS[f"tessera.graph.{name}"]

        def apply(*others: Term | Number, **attributes: object) -> Term:
            operands = (self.value, *(self.beside(other).value for other in others))
            return Term(self.build(declared, *operands, **attributes), self.build)

        return apply

    def beside(self, other: Term | Number) -> Term:
        """A term as it is; a number as a constant of this one's dtype."""
        return other if isinstance(other, Term) else constant(self.build, other, self.dtype)

    def __add__(self, other: Term | Number) -> Term:
        return self.add(other)

    def __radd__(self, other: Number) -> Term:
        return self.beside(other).add(self)

    def __sub__(self, other: Term | Number) -> Term:
        return self.subtract(other)

    def __rsub__(self, other: Number) -> Term:
        return self.beside(other).subtract(self)

    def __mul__(self, other: Term | Number) -> Term:
        return self.multiply(other)

    def __rmul__(self, other: Number) -> Term:
        return self.beside(other).multiply(self)

    def __truediv__(self, other: Term | Number) -> Term:
        return self.divide(other)

    def __neg__(self) -> Term:
        return self.negate()

    def __gt__(self, other: Term | Number) -> Term:
        return self.greater(other)

    def __lt__(self, other: Term | Number) -> Term:
        return self.less(other)

    def where(self, condition: Term) -> Term:
        """This where the condition holds, 0 elsewhere."""
        return condition.select(self, self.beside(0))

    def unless(self, condition: Term) -> Term:
        """0 where the condition holds, this elsewhere."""
        return condition.select(self.beside(0), self)

    def cast_to(self, dtype: DType) -> Term:
        """This in another dtype, rounded once; itself where it has that dtype."""
        return self if dtype == self.dtype else self.cast(dtype=dtype)

    def shaped(self, shape: tuple[Dim, ...]) -> Term:
        """The same elements in another shape."""
        return self if shape == self.shape else self.reshape(shape=shape)

    def summed_to(self, like: Term) -> Term:
        """The adjoint of broadcasting `like` to this shape: the sum over each axis that was spread, first to last."""
        total, kept = self, like.shape
        while len(total.shape) > len(kept):
            total = total.sum(axis=0)
        for axis, extent in enumerate(kept):
            if extent == 1 and total.shape[axis] != 1:
                total = total.sum(axis=axis, keepdims=True)
        return total


def constant(build: Builder, number: Number, dtype: DType) -> Term:
    """A number as a scalar, rounded once to `dtype`."""
    held = int(number) if dtype.kind in ("int", "bool") else round_exact(Fraction(number), dtype)
    return Term(build(OPERATIONS["tessera.graph.constant"], value=held, dtype=dtype), build)
