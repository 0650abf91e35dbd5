"""`tessera.graph.constant`: a literal of the source, as a scalar of the type its place asks for (AMB-LANG-54)."""

from ..ir.operation import Attribute, Environment, Hidden, Operation, operation
from ..ir.types import Scalar
from ..numerics.array import Array
from ..numerics.formats import DType


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
        return Array.checked(self.dtype, self.value)
