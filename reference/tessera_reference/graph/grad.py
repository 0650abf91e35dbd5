"""`tessera.graph.grad`: reverse-mode derivatives (spec sections 5.2, 5.5; AMB-LANG-58, AMB-LANG-107)."""

from ..ir.operation import Operand, Operands, operation, require
from ..ir.stepwise import StepEnvironment, Steps, Stepwise
from ..ir.types import LAYOUTS, Scalar, Tensor, Type
from ..numerics.array import Array


@operation("tessera.graph.grad", spellings=("op.grad",), clauses=("LANG-05.2-06", "LANG-05.5-01", "LANG-05.5-02"))
class Grad(Stepwise):
    """The derivative of the sum of y's elements with respect to each of `wrt`, of that operand's type."""

    y: Operand[Tensor | Scalar]
    wrt: Operands[Tensor | Scalar]

    layouts = frozenset(LAYOUTS)

    def infer(self) -> tuple[Type, ...]:
        """One gradient for each operand; only floats have any."""
        require(len(self.wrt) > 0, "types", "differentiates by nothing", "op.grad(y, x, ...)", "LANG-05.2-06")
        for name, type_ in self.operand_types:
            require(
                type_.dtype.kind == "float",  # type: ignore[union-attr]  # kinds are checked before
                "types",
                f"{name} is {type_}, which has no derivative",
                "a float dtype",
                "LANG-05.2-06",
            )
        return self.wrt

    def steps(self, y: Array, *wrt: Array, env: StepEnvironment) -> Steps:
        """Go back along what was executed."""
        return env.differentiate(y, wrt)
