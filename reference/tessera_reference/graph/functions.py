"""Elementary functions and the activations composed of them (AMB-LANG-45, AMB-LANG-132, AMB-LANG-133).

An elementary function is correctly rounded in its operand's dtype. An activation is a composition, each step rounded in
the accumulator type, with one final rounding.
"""

from dataclasses import dataclass
from functools import partial

from ..ir.operation import Attribute, Environment, Operand, Operation, operation, require
from ..ir.types import LAYOUTS, Scalar, Tensor, Type
from ..numerics import activations, elementary
from ..numerics.array import Array
from .elementwise import ElementwiseBinary

_CLAUSES = ("LANG-02-04", "LANG-10-07", "LANG-10-11")


@dataclass(frozen=True)
class FloatFunction(Operation):
    """What all functions of one float operand share: same shape, dtype and layout."""

    x: Operand[Tensor | Scalar]

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Type:
        """The operand's type, which is a float."""
        require(
            self.x.dtype.kind == "float",
            "types",
            f"is not defined on {self.x.dtype}",
            "a float dtype",
            "LANG-11-01",
            "cast the operand with op.cast",
        )
        return self.x


@dataclass(frozen=True)
class ElementaryFunction(FloatFunction):
    """A function that is rounded once; its short name is its name in the canon."""

    def execute(self, x: Array, env: Environment) -> Array:
        """The correctly rounded values."""
        return elementary.apply(self.short_name, x)


@operation("tessera.graph.exp", spellings=("op.exp",), clauses=_CLAUSES)
class Exp(ElementaryFunction):
    """e to the power of x."""


@operation("tessera.graph.exp2", spellings=("op.exp2",), clauses=_CLAUSES)
class Exp2(ElementaryFunction):
    """2 to the power of x."""


@operation("tessera.graph.expm1", spellings=("op.expm1",), clauses=_CLAUSES)
class Expm1(ElementaryFunction):
    """e to the power of x, minus 1."""


@operation("tessera.graph.log", spellings=("op.log",), clauses=_CLAUSES)
class Log(ElementaryFunction):
    """The natural logarithm; of a zero -inf, of a negative number NaN."""


@operation("tessera.graph.log2", spellings=("op.log2",), clauses=_CLAUSES)
class Log2(ElementaryFunction):
    """The logarithm to base 2."""


@operation("tessera.graph.log1p", spellings=("op.log1p",), clauses=_CLAUSES)
class Log1p(ElementaryFunction):
    """The natural logarithm of 1 + x."""


@operation("tessera.graph.sin", spellings=("op.sin",), clauses=_CLAUSES)
class Sin(ElementaryFunction):
    """The sine of x radians; of an infinity NaN."""


@operation("tessera.graph.cos", spellings=("op.cos",), clauses=_CLAUSES)
class Cos(ElementaryFunction):
    """The cosine of x radians; of an infinity NaN."""


@operation("tessera.graph.tan", spellings=("op.tan",), clauses=_CLAUSES)
class Tan(ElementaryFunction):
    """The tangent of x radians; of an infinity NaN."""


@operation("tessera.graph.sinh", spellings=("op.sinh",), clauses=_CLAUSES)
class Sinh(ElementaryFunction):
    """The hyperbolic sine."""


@operation("tessera.graph.cosh", spellings=("op.cosh",), clauses=_CLAUSES)
class Cosh(ElementaryFunction):
    """The hyperbolic cosine."""


@operation("tessera.graph.tanh", spellings=("op.tanh",), clauses=_CLAUSES)
class Tanh(ElementaryFunction):
    """The hyperbolic tangent."""


@operation("tessera.graph.erf", spellings=("op.erf",), clauses=_CLAUSES)
class Erf(ElementaryFunction):
    """The error function."""


@operation("tessera.graph.sqrt", spellings=("op.sqrt",), clauses=_CLAUSES)
class Sqrt(ElementaryFunction):
    """The square root; of -0 it is -0, of a negative number NaN."""


@operation("tessera.graph.rsqrt", spellings=("op.rsqrt",), clauses=_CLAUSES)
class Rsqrt(ElementaryFunction):
    """1 / sqrt(x), rounded once; of -0 it is -inf."""


@operation("tessera.graph.reciprocal", spellings=("op.reciprocal",), clauses=_CLAUSES)
class Reciprocal(ElementaryFunction):
    """1 / x."""


@operation("tessera.graph.pow", spellings=("op.pow",), clauses=_CLAUSES)
class Pow(ElementwiseBinary):
    """a to the power of b, rounded once; shapes broadcast as those of operators do."""

    defined_on = ("float",)
    compute = staticmethod(partial(elementary.apply, "pow"))


@operation("tessera.graph.sigmoid", spellings=("op.sigmoid",), clauses=_CLAUSES)
class Sigmoid(FloatFunction):
    """1 / (1 + exp(-x))."""

    def execute(self, x: Array, env: Environment) -> Array:
        """The composition by the canon."""
        return activations.sigmoid(x)


@operation("tessera.graph.silu", spellings=("op.silu",), clauses=_CLAUSES)
class Silu(FloatFunction):
    """x * sigmoid(x)."""

    def execute(self, x: Array, env: Environment) -> Array:
        """The composition by the canon."""
        return activations.silu(x)


@operation("tessera.graph.relu", spellings=("op.relu",), clauses=_CLAUSES)
class Relu(FloatFunction):
    """The maximum of x and +0 (AMB-LANG-106); NaN propagates."""

    def infer(self) -> Type:
        """The operand's type, a float or an integer."""
        require(
            self.x.dtype.kind in ("float", "int"),
            "types",
            f"is not defined on {self.x.dtype}",
            "a float or integer dtype",
            "LANG-11-01",
        )
        return self.x

    def execute(self, x: Array, env: Environment) -> Array:
        """The maximum by the canon."""
        return activations.relu(x)


@operation("tessera.graph.gelu", spellings=("op.gelu",), clauses=_CLAUSES)
class Gelu(FloatFunction):
    """x times the normal distribution function of x, exactly or by its tanh form."""

    approximate: Attribute[str] = "none"

    def infer(self) -> Type:
        """A float operand; `approximate` is none or tanh."""
        require(
            self.approximate in ("none", "tanh"),
            "numerics",
            f"there is no approximation {self.approximate!r}",
            "none or tanh",
            "LANG-11-13",
        )
        return super().infer()

    def execute(self, x: Array, env: Environment) -> Array:
        """The composition by the canon."""
        return activations.gelu(x, self.approximate)  # type: ignore[arg-type]  # infer has checked it
