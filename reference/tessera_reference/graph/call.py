"""`tessera.graph.call`: another function of the module (LANG-05-03)."""

from ..ir.operation import Attribute, Hidden, Operands, StepEnvironment, Steps, Stepwise, operation
from ..ir.types import LAYOUTS, Type
from ..numerics.array import Array


@operation("tessera.graph.call", clauses=("LANG-02.3-32", "LANG-05-03"))
class Call(Stepwise):
    """Runs `callee` on the arguments; its results are what the callee's signature gives for these arguments."""

    arguments: Operands[Type]
    callee: Attribute[str]
    returns: Hidden[tuple[Type, ...]]

    layouts = frozenset(LAYOUTS)

    def infer(self) -> tuple[Type, ...]:
        """What the front end found the callee to return."""
        return self.returns

    def steps(self, *arguments: Array, env: StepEnvironment) -> Steps:
        """The callee's results."""
        return env.call(self.callee, arguments)
