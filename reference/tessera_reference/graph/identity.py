"""`tessera.graph.identity`: a value under another name, as where it is handed to a function or a region."""

from ..ir.module import Value
from ..ir.operation import Applied, Builder, Environment, Operand, Operation, operation
from ..ir.types import LAYOUTS, Numeric, Scalar, Tensor
from ..numerics.array import Array


@operation("tessera.graph.identity", clauses=("LANG-05-01", "LANG-05.5-01"))
class Identity(Operation):
    """Its operand. On the tape of a differentiation it tells two values apart that happen to be one array."""

    x: Operand[Tensor | Scalar]

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Numeric:
        """The operand's type."""
        return self.x

    def execute(self, x: Array, env: Environment) -> Array:
        """The operand."""
        return x

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """The gradient as it is."""
        return (at.dy,)
