"""Elementary functions and the activations composed of them (AMB-LANG-45, AMB-LANG-132, AMB-LANG-133).

An elementary function is correctly rounded in its operand's dtype. An activation is a composition, each step rounded in
the accumulator type, with one final rounding. Adjoints are written for the operand's dtype, in which each step rounds.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from ..ir.operation import Applied, Attribute, Builder, Environment, Operand, Refusal, operation
from ..ir.types import Numeric, Scalar, Tensor, Value
from ..numerics import activations, elementary
from ..numerics.array import Array
from .elementwise import Arithmetic, Elementwise
from .term import Term, require_float, terms

_CLAUSES = ("LANG-02-04", "LANG-10-07", "LANG-10-11")

HALF = Fraction(1, 2)
CUBE_FACTOR = Fraction("0.044715")
LOG_2 = Fraction("0.693147180559945309417232121458176568")
ROOT_HALF = Fraction("0.707106781186547524400844362104849039")
TWO_OVER_ROOT_PI = Fraction("1.128379167095512573896158903121545172")
ROOT_TWO_OVER_PI = Fraction("0.797884560802865355879892119868763737")
ROOT_HALF_OVER_PI = Fraction("0.398942280401432677939946059934381868")
"""Constants of adjoints, to 36 digits; rounded once, to the dtype in which they are used."""


@dataclass(frozen=True)
class FloatFunction(Elementwise):
    """The base of all functions of one float operand: same shape, dtype and layout."""

    x: Operand[Tensor | Scalar]

    def infer(self) -> Numeric:
        """The operand's type, which is a float."""
        require_float(self.x)
        return self.x

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """The pullback."""
        dy, y, x = terms(at, build)
        return (self.pullback(dy, y, x).value,)

    @abstractmethod
    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """The gradient of x from that of y."""


class ElementaryFunction(FloatFunction):
    """A function that is rounded once; its short name is its name in the reference arithmetic."""

    def execute(self, x: Array, env: Environment) -> Array:
        return elementary.apply(self.short_name, x)


Gradient: TypeAlias = Callable[[Term, Term, Term], Term]

FUNCTIONS: Mapping[str, tuple[str, Gradient]] = {
    "exp": ("e to the power of x.", lambda dy, y, x: dy * y),
    "exp2": ("2 to the power of x.", lambda dy, y, x: dy * (y * LOG_2)),
    "expm1": ("e to the power of x, minus 1.", lambda dy, y, x: dy * x.exp()),  # y + 1 would round twice near -1
    "log": ("The natural logarithm; of a zero -inf, of a negative number NaN.", lambda dy, y, x: dy / x),
    "log2": ("The logarithm to base 2.", lambda dy, y, x: dy / (x * LOG_2)),
    "log1p": ("The natural logarithm of 1 + x.", lambda dy, y, x: dy / (1 + x)),
    "sin": ("The sine of x radians; of an infinity NaN.", lambda dy, y, x: dy * x.cos()),
    "cos": ("The cosine of x radians; of an infinity NaN.", lambda dy, y, x: dy * -x.sin()),
    "tan": ("The tangent of x radians; of an infinity NaN.", lambda dy, y, x: dy * (1 + y * y)),
    "sinh": ("The hyperbolic sine.", lambda dy, y, x: dy * x.cosh()),
    "cosh": ("The hyperbolic cosine.", lambda dy, y, x: dy * x.sinh()),
    "tanh": ("The hyperbolic tangent.", lambda dy, y, x: dy * (1 - y * y)),
    "erf": ("The error function.", lambda dy, y, x: dy * (TWO_OVER_ROOT_PI * (-(x * x)).exp())),
    "sqrt": ("The square root; of -0 it is -0, of a negative number NaN.", lambda dy, y, x: dy / (y + y)),
    "rsqrt": ("1 / sqrt(x), rounded once; of -0 it is -inf.", lambda dy, y, x: dy * -(y / (x + x))),
    "reciprocal": ("1 / x.", lambda dy, y, x: dy * -(y * y)),
}
"""The meaning of each elementary function, and the gradient of x from dy, y = f(x) and x."""

for _name, (_meaning, _gradient) in FUNCTIONS.items():
    operation(f"tessera.graph.{_name}", spellings=(f"op.{_name}",), clauses=_CLAUSES)(
        type(_name.capitalize(), (ElementaryFunction,), {"__doc__": _meaning, "pullback": staticmethod(_gradient)})
    )


@operation("tessera.graph.pow", spellings=("op.pow",), clauses=_CLAUSES)
class Pow(Arithmetic):
    """a to the power of b, rounded once; shapes broadcast as those of operators do."""

    defined_on = ("float",)
    compute = staticmethod(partial(elementary.apply, "pow"))

    def pullback(self, dy: Term, y: Term, a: Term, b: Term) -> tuple[Term, Term]:
        """dy * (b * a**(b - 1)), 0 where b is 0; dy * (y * log a), 0 where a is 0 and b is not negative."""
        power = a.pow((b - 1).unless(b.equal(0)))
        logarithm = a.equal(0).select(a.beside(1), a).log()
        return dy * (b * power), dy * (y * logarithm)


@operation("tessera.graph.sigmoid", spellings=("op.sigmoid",), clauses=_CLAUSES)
class Sigmoid(FloatFunction):
    """1 / (1 + exp(-x))."""

    def execute(self, x: Array, env: Environment) -> Array:
        return activations.sigmoid(x)

    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """dy * (y * (1 - y))."""
        return dy * (y * (1 - y))


@operation("tessera.graph.silu", spellings=("op.silu",), clauses=_CLAUSES)
class Silu(FloatFunction):
    """x * sigmoid(x)."""

    def execute(self, x: Array, env: Environment) -> Array:
        return activations.silu(x)

    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """dy * (s + y * (1 - s)) with s = sigmoid(x)."""
        s = x.sigmoid()
        return dy * (s + y * (1 - s))


@operation("tessera.graph.relu", spellings=("op.relu",), clauses=_CLAUSES)
class Relu(FloatFunction):
    """The maximum of x and +0 (AMB-LANG-106); NaN propagates."""

    def infer(self) -> Numeric:
        """The operand's type, a float or an integer."""
        if self.x.dtype.kind not in ("float", "int"):
            raise Refusal("types", f"is not defined on {self.x.dtype}", "a float or integer dtype", "LANG-11-01")
        return self.x

    def execute(self, x: Array, env: Environment) -> Array:
        return activations.relu(x)

    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """dy where x is above 0, else 0: also at 0 itself."""
        return dy.where(x > 0)


@operation("tessera.graph.gelu", spellings=("op.gelu",), clauses=_CLAUSES)
class Gelu(FloatFunction):
    """x times the normal distribution function of x, exactly or by its tanh form."""

    approximate: Attribute[str] = "none"

    def infer(self) -> Numeric:
        """A float operand; `approximate` is none or tanh."""
        if self.approximate not in ("none", "tanh"):
            raise Refusal("numerics", f"there is no approximation {self.approximate!r}", "none or tanh", "LANG-11-13")
        return super().infer()

    def execute(self, x: Array, env: Environment) -> Array:
        return activations.gelu(x, self.approximate)  # type: ignore[arg-type]  # infer has checked it

    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """dy * (F(x) + x * F'(x)), where gelu(x) = x * F(x)."""
        square = x * x
        if self.approximate == "none":
            distribution = HALF * (1 + (x * ROOT_HALF).erf())
            density = ROOT_HALF_OVER_PI * (-HALF * square).exp()
            return dy * (distribution + x * density)
        t = (ROOT_TWO_OVER_PI * (x + CUBE_FACTOR * (square * x))).tanh()
        inner = ROOT_TWO_OVER_PI * (1 + 3 * CUBE_FACTOR * square)
        return dy * (HALF * (1 + t) + (HALF * x) * ((1 - t * t) * inner))
