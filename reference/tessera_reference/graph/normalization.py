"""`tessera.graph.layer_norm` and `rms_norm`: normalization along one axis (spec sections 2, 10)."""

from ..ir.module import Value
from ..ir.operation import Attribute, Builder, Operand, operation
from ..ir.stepwise import Composite
from ..ir.types import Tensor
from .axes import require_axis
from .compositions import along_axis, number, require_number, require_vector_along, widened
from .dtypes import require_float

_CLAUSES = ("LANG-02-04", "LANG-10-01", "LANG-10-05", "LANG-10-06")


@operation("tessera.graph.layer_norm", spellings=("op.layer_norm",), clauses=_CLAUSES)
class LayerNorm(Composite):
    """Each row along the axis centred, divided by its standard deviation, times gamma, plus beta.

    In the accumulator type, each step rounded, means as `mean` has them, then one rounding to x's dtype:
    c = x - mean(x); v = mean(c * c); y = ((c * rsqrt(v + eps)) * gamma) + beta.
    """

    x: Operand[Tensor]
    gamma: Operand[Tensor]
    beta: Operand[Tensor]
    axis: Attribute[int] = -1
    eps: Attribute[float] = 1e-5

    def infer(self) -> Tensor:
        """x's type; gamma and beta have an element for each position along the axis."""
        require_float(self.x)
        require_axis(self.axis, self.x.rank)
        require_vector_along("gamma", self.gamma, self.x, self.axis)
        require_vector_along("beta", self.beta, self.x, self.axis)
        require_number("eps", self.eps)
        return self.x

    def decompose(self, build: Builder, *operands: Value) -> Value:
        """The steps above."""
        x, gamma, beta = (widened(operand, build) for operand in operands)
        centred = x - x.mean(axis=self.axis, keepdims=True)
        variance = (centred * centred).mean(axis=self.axis, keepdims=True)
        unit = centred * (variance + number(self.eps)).rsqrt()
        rank = self.x.rank
        found = unit * along_axis(gamma, self.axis, rank) + along_axis(beta, self.axis, rank)
        return found.cast_to(self.x.dtype).value


@operation("tessera.graph.rms_norm", spellings=("op.rms_norm",), clauses=_CLAUSES)
class RmsNorm(Composite):
    """Each row along the axis divided by its root mean square, times gamma.

    In the accumulator type, each step rounded, then one rounding to x's dtype:
    s = mean(x * x); y = (x * rsqrt(s + eps)) * gamma.
    """

    x: Operand[Tensor]
    gamma: Operand[Tensor]
    axis: Attribute[int] = -1
    eps: Attribute[float] = 1e-6

    def infer(self) -> Tensor:
        """x's type; gamma has an element for each position along the axis."""
        require_float(self.x)
        require_axis(self.axis, self.x.rank)
        require_vector_along("gamma", self.gamma, self.x, self.axis)
        require_number("eps", self.eps)
        return self.x

    def decompose(self, build: Builder, *operands: Value) -> Value:
        """The steps above."""
        x, gamma = (widened(operand, build) for operand in operands)
        square = (x * x).mean(axis=self.axis, keepdims=True)
        unit = x * (square + number(self.eps)).rsqrt()
        return (unit * along_axis(gamma, self.axis, self.x.rank)).cast_to(self.x.dtype).value
