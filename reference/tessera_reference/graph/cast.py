"""`tessera.graph.cast`: the explicit conversion that the language asks for (spec section 3.1; AMB-LANG-105)."""

from typing import get_args

from ..ir.module import Value
from ..ir.operation import Applied, Attribute, Builder, Environment, Operand, Operation, operation, require
from ..ir.types import LAYOUTS, Numeric, Scalar, Tensor
from ..numerics.array import Array
from ..numerics.formats import DType
from ..numerics.rounding import Overflow, cast
from .adjoints import terms


@operation("tessera.graph.cast", spellings=("op.cast",), clauses=("LANG-03.1-05", "LANG-02.2-06", "LANG-02.2-07"))
class Cast(Operation):
    """Every element in another dtype, rounded once; `overflow` concerns fp8 only."""

    x: Operand[Tensor | Scalar]
    dtype: Attribute[DType]
    overflow: Attribute[str] = "saturate"

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Numeric:
        """The operand's type with the other dtype; a complex number does not become a real one."""
        require(
            self.x.dtype.kind != "complex" or self.dtype.kind in ("complex", "bool"),
            "types",
            f"{self.x.dtype} does not become {self.dtype}",
            "a complex dtype",
            "LANG-03.1-05",
        )
        require(
            self.overflow in get_args(Overflow),
            "numerics",
            f"there is no overflow mode {self.overflow!r}",
            " or ".join(get_args(Overflow)),
            "LANG-11-13",
        )
        return self.x.with_dtype(self.dtype)

    def execute(self, x: Array, env: Environment) -> Array:
        """The conversion by the canon."""
        return cast(x, self.dtype, self.overflow)  # type: ignore[arg-type]  # infer has checked it

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """dy in the operand's dtype, as if nothing had been rounded or saturated; both are floats."""
        dy, _, x = terms(at, build)
        return (dy.cast(dtype=x.dtype, overflow=self.overflow).value,)
