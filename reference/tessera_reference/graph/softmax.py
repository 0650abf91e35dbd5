"""`tessera.graph.softmax` (spec sections 5.2, 5.4, 10, 15)."""

from ..ir.module import Value
from ..ir.operation import (
    Applied,
    Attribute,
    Builder,
    Environment,
    Operand,
    Operation,
    Unimplemented,
    derived,
    operation,
    require,
)
from ..ir.types import Tensor
from ..numerics.array import Array
from ..numerics.formats import DType
from ..numerics.softmax import softmax
from .adjoints import terms
from .axes import require_axis
from .dtypes import require_accumulator, require_float


@operation(
    "tessera.graph.softmax",
    spellings=("op.softmax",),
    clauses=("LANG-05.2-03", "LANG-05.4-02", "LANG-05.4-03", "LANG-10-03", "LANG-15-07", "LANG-15-08", "LANG-15-09"),
)
class Softmax(Operation):
    """exp(x - max) / sum(exp(x - max)) along an axis; same shape and dtype (AMB-LANG-37, AMB-LANG-75).

    Stable by construction: there is no attribute that turns the subtraction off (AMB-LANG-39).
    """

    x: Operand[Tensor]
    axis: Attribute[int] = -1
    accum: Attribute[DType] = derived(lambda self: self.x.dtype.accumulator)

    def infer(self) -> Tensor:
        """A float tensor with elements along an axis from -rank to rank - 1."""
        x, axis = self.x, self.axis
        require_float(x)
        require_axis(axis, x.rank, "LANG-05.4-02")
        require(
            x.shape[axis] != 0,
            "shapes",
            f"axis {axis} has no elements",
            "an axis of at least 1 element",
            "LANG-05.2-03",
        )
        require_accumulator(x.dtype, self.accum)
        if self.accum != x.dtype.accumulator:
            raise Unimplemented("op.softmax.accum")
        return x

    def execute(self, x: Array, env: Environment) -> Array:
        """Softmax by the canon."""
        return softmax(x, self.axis)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """y * (dy - sum(dy * y))."""
        dy, y, _ = terms(at, build)
        return ((y * (dy - (dy * y).sum(axis=self.axis, keepdims=True))).value,)
