"""`tessera.graph.transpose`: the axes in another order."""

from ..ir.module import Value
from ..ir.operation import Applied, Attribute, Builder, Environment, Operand, Operation, derived, operation, require
from ..ir.types import Tensor
from ..numerics import arithmetic
from ..numerics.array import Array
from .adjoints import terms


@operation("tessera.graph.transpose", spellings=("op.transpose",), clauses=("LANG-02.3-32", "LANG-03.2-01"))
class Transpose(Operation):
    """Axis i of the result is axis perm[i] of the operand; reversed unless `perm` says otherwise."""

    x: Operand[Tensor]
    perm: Attribute[tuple[int, ...]] = derived(lambda self: tuple(reversed(range(self.x.rank))))

    def infer(self) -> Tensor:
        """`perm` names every axis once."""
        axes = list(range(self.x.rank))
        require(
            sorted(self.perm) == axes,
            "shapes",
            f"perm {list(self.perm)} is no permutation of {axes}",
            f"every axis of {self.x} once",
            "LANG-03.2-01",
        )
        return Tensor(tuple(self.x.shape[axis] for axis in self.perm), self.x.dtype, self.x.layout)

    def execute(self, x: Array, env: Environment) -> Array:
        """The same elements, elsewhere."""
        return arithmetic.transpose(x, self.perm)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """dy with its axes back in their places."""
        dy, *_ = terms(at, build)
        return (dy.transpose(perm=tuple(self.perm.index(axis) for axis in range(self.x.rank))).value,)
