"""Choosing among elements: `select`, `maximum`, `minimum`, `clamp`, `abs` (section 2; AMB-LANG-106's feature).

They broadcast as the operators do. Maximum and minimum are the canon's: NaN propagates, -0 lies below +0. Where they
have a corner, the derivative is one of its subgradients: at equal operands that of the first, of abs at 0 it is 0.
"""

from typing import ClassVar

from ..ir.module import Value
from ..ir.operation import Applied, Builder, Environment, Operand, Operation, operation, require
from ..ir.types import LAYOUTS, Numeric, Scalar, Tensor
from ..numerics import arithmetic, movement
from ..numerics.array import Array
from .adjoints import terms
from .dtypes import require_kind
from .elementwise import Arithmetic, elementwise, require_one_dtype
from .term import Term

_CLAUSES = ("LANG-02-04", "LANG-03.2-02")


@operation("tessera.graph.select", spellings=("op.select",), clauses=_CLAUSES)
class Select(Operation):
    """The elements of `a` where the condition holds, those of `b` elsewhere; all three broadcast."""

    condition: Operand[Tensor | Scalar]
    a: Operand[Tensor | Scalar]
    b: Operand[Tensor | Scalar]

    alike = ("a", "b")
    layouts = frozenset(LAYOUTS)

    def infer(self) -> Numeric:
        """A bool condition, and two operands of one dtype."""
        require(
            self.condition.dtype.kind == "bool",
            "types",
            f"the condition is {self.condition}, not bool",
            "bool",
            "LANG-11-01",
            "compare it: {condition} != 0",
        )
        require_one_dtype(self.a, self.b)
        return elementwise(self.a.dtype, self.condition, self.a, self.b)

    def execute(self, condition: Array, a: Array, b: Array, env: Environment) -> Array:
        """One or the other."""
        return movement.chosen(condition, a, b)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """dy to the operand that was chosen, 0 to the other."""
        dy, _, condition, a, b = terms(at, build)
        return None, dy.where(condition).summed_to(a).value, dy.unless(condition).summed_to(b).value


@operation("tessera.graph.maximum", spellings=("op.maximum",), clauses=_CLAUSES)
class Maximum(Arithmetic):
    """The larger of two elements; a NaN wins, -0 lies below +0."""

    defined_on: ClassVar[tuple[str, ...]] = ("float", "int")
    compute = staticmethod(arithmetic.maximum)

    def pullback(self, dy: Term, y: Term, a: Term, b: Term) -> tuple[Term, Term]:
        """dy to b where b > a, else to a."""
        return dy.unless(b > a), dy.where(b > a)


@operation("tessera.graph.minimum", spellings=("op.minimum",), clauses=_CLAUSES)
class Minimum(Arithmetic):
    """The smaller of two elements; a NaN wins, -0 lies below +0."""

    defined_on: ClassVar[tuple[str, ...]] = ("float", "int")
    compute = staticmethod(arithmetic.minimum)

    def pullback(self, dy: Term, y: Term, a: Term, b: Term) -> tuple[Term, Term]:
        """dy to b where b < a, else to a."""
        return dy.unless(b < a), dy.where(b < a)


@operation("tessera.graph.clamp", spellings=("op.clamp",), clauses=_CLAUSES)
class Clamp(Operation):
    """minimum(maximum(x, low), high): x kept between two bounds, which broadcast; high where they cross."""

    x: Operand[Tensor | Scalar]
    low: Operand[Tensor | Scalar]
    high: Operand[Tensor | Scalar]

    alike = ("x", "low", "high")
    layouts = frozenset(LAYOUTS)

    def infer(self) -> Numeric:
        """Three operands of one dtype."""
        require_one_dtype(self.x, self.low)
        require_one_dtype(self.x, self.high)
        require_kind(self.x.dtype, "float", "int")
        return elementwise(self.x.dtype, self.x, self.low, self.high)

    def execute(self, x: Array, low: Array, high: Array, env: Environment) -> Array:
        """A maximum, then a minimum."""
        return arithmetic.minimum(arithmetic.maximum(x, low), high)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """dy to the bound that was reached, or to x: where it equals a bound too."""
        dy, _, x, low, high = terms(at, build)
        above, below = high < x.maximum(low), low > x
        inside = dy.unless(above)
        to_x, to_low, to_high = inside.unless(below), inside.where(below), dy.where(above)
        return to_x.summed_to(x).value, to_low.summed_to(low).value, to_high.summed_to(high).value


@operation("tessera.graph.abs", spellings=("op.abs",), clauses=_CLAUSES)
class Abs(Operation):
    """The magnitude: the sign cleared, of -0 and -inf too; the least integer wraps to itself."""

    x: Operand[Tensor | Scalar]

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Numeric:
        """The operand's type."""
        require_kind(self.x.dtype, "float", "int")
        return self.x

    def execute(self, x: Array, env: Environment) -> Array:
        """Without signs."""
        return arithmetic.absolute(x)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """dy above 0, -dy below, 0 at 0."""
        dy, _, x = terms(at, build)
        return ((x < 0).select(-dy, dy.where(x > 0)).value,)
