"""`tessera.graph.directive`: what a schedule or dist statement says about values (sections 2.3, 6; AMB-LANG-13).

A directive changes how a thing is computed, never a bit of it (AMB-LANG-110): executing it does nothing. Lowering to
Schedule IR reads it.
"""

from ..ir.module import Value
from ..ir.operation import Applied, Attribute, AttributeValue, Builder, Environment, Operands, Operation, operation
from ..ir.types import LAYOUTS, Type
from ..numerics.array import Array


@operation(
    "tessera.graph.directive", clauses=("LANG-02.3-53", "LANG-02.3-54", "LANG-02.3-79", "LANG-02.3-80", "LANG-02-06")
)
class Directive(Operation):
    """Metadata about its operands: the directive's dotted name, and its settings as pairs of name and value."""

    subjects: Operands[Type]
    directive: Attribute[str]
    settings: Attribute[tuple[tuple[str, AttributeValue], ...]] = ()

    layouts = frozenset(LAYOUTS)
    effects = frozenset({"metadata"})

    def infer(self) -> tuple[Type, ...]:
        """It yields nothing (LANG-02.3-53)."""
        return ()

    def execute(self, *subjects: Array, env: Environment) -> tuple[Array, ...]:
        """Nothing is computed."""
        return ()

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """It touches no value."""
        return (None,) * len(at.operands)
