"""`tessera.graph.call`: another function of the module (LANG-05-03)."""

from ..ir.operation import Attribute, Environment, Hidden, Operands, Operation, operation
from ..ir.types import LAYOUTS, Type
from ..numerics.array import Array


@operation("tessera.graph.call", clauses=("LANG-02.3-32", "LANG-05-03"))
class Call(Operation):
    """Runs `callee` on the arguments; its results are what the callee's signature gives for these arguments."""

    arguments: Operands[Type]
    callee: Attribute[str]
    returns: Hidden[tuple[Type, ...]]

    layouts = frozenset(LAYOUTS)

    def infer(self) -> tuple[Type, ...]:
        """What the front end found the callee to return."""
        return self.returns

    def execute(self, *arguments: Array, env: Environment) -> tuple[Array, ...]:
        """The callee's results."""
        return env.call(self.callee, arguments)
