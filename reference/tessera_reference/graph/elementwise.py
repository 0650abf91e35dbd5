"""Elementwise operations, elementary functions, activations (spec 2.3, 3.1, 3.2; AMB-LANG-45, -55, -132, -133).

An elementary function is correctly rounded in its operand's dtype. An activation is a composition, each step rounded in
the accumulator type, with one final rounding. Adjoints are written for the operand's dtype, in which each step rounds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar, Protocol, TypeAlias, get_args

from ..ir.operation import (
    Applied,
    Attribute,
    Builder,
    Environment,
    Operand,
    Operation,
    Refusal,
    Unimplemented,
    no_gradient,
    operation,
)
from ..ir.types import LAYOUTS, Dim, Layout, Numeric, Scalar, Tensor, Value
from ..numerics import activations, arithmetic, elementary, movement
from ..numerics.array import Array
from ..numerics.formats import DType, dtype
from ..numerics.rounding import Overflow, cast
from .term import Term, differing, require_float, require_kind, require_numeric, require_one_dtype, terms

# Elementwise operations: the operators of the language (spec sections 2.3, 3.2; AMB-LANG-55).
#
# They declare NumPy broadcasting, scalars included, take operands of one dtype and of equal layouts, and round once,
# to the result type. Comparisons give bool, and bools no gradient.


class Operator(Protocol):
    """A function of the reference arithmetic."""

    def __call__(self, a: Array, b: Array, /) -> Array:
        """Return the result."""


class Elementwise(Operation):
    """The base of operations whose result has an element for each of the operands' broadcast shape."""

    layouts = frozenset(LAYOUTS)
    nest = "map"
    lanewise = True


@dataclass(frozen=True)
class ElementwiseBinary(Elementwise):
    """The base of all operators of two operands."""

    a: Operand[Tensor | Scalar]
    b: Operand[Tensor | Scalar]

    alike = ("a", "b")
    defined_on: ClassVar[tuple[str, ...]]
    compute: ClassVar[Operator]

    def infer(self) -> Numeric:
        """Return the broadcast of the operands; comparisons narrow it to bool."""
        a, b = self.a, self.b
        require_one_dtype(a, b)
        require_kind(a.dtype, *self.defined_on)
        return elementwise(a.dtype, a, b)

    def execute(self, a: Array, b: Array, env: Environment) -> Array:
        return type(self).compute(a, b)


def elementwise(dtype: DType, *operands: Numeric) -> Numeric:
    """Return the type with an element for each of the operands' broadcast shape. Raises `Refusal`."""
    layout = _one_layout([type_.layout for type_ in operands if isinstance(type_, Tensor)])
    shape: tuple[Dim, ...] = ()
    for type_ in operands:
        shape = broadcast(shape, type_.shape)
    return Tensor(shape, dtype, layout) if layout else Scalar(dtype)


def _one_layout(layouts: list[Layout]) -> Layout | None:
    for layout in layouts[1:]:
        if layout != layouts[0]:
            message = f"operands have layouts {layouts[0]} and {layout}"
            raise Refusal("layouts", message, "a.layout == b.layout", "LANG-11-05", "cast one layout: op.layout_cast")
    return layouts[0] if layouts else None


def broadcast(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Return the shape by NumPy's rule; refuse named or unknown dimensions that are not known to fit."""
    rank = max(len(a), len(b))
    left, right = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    shape: list[Dim] = []
    for x, y in zip(left, right, strict=True):
        if x != y and 1 not in (x, y):
            requirement = "shapes that broadcast: each dimension equal, or 1"
            raise Refusal("shapes", differing(x, y), requirement, "LANG-03.2-03", "")
        shape.append(y if x == 1 else x)
    return tuple(shape)


@dataclass(frozen=True)
class Arithmetic(ElementwiseBinary):
    """Operators whose result has the operands' dtype."""

    defined_on: ClassVar[tuple[str, ...]] = ("float", "int", "complex")

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return the adjoint of each operand, summed over the elements that it was broadcast to."""
        dy, y, a, b = terms(at, build)
        to_a, to_b = self.pullback(dy, y, a, b)
        return to_a.summed_to(a).value, to_b.summed_to(b).value

    @abstractmethod
    def pullback(self, dy: Term, y: Term, a: Term, b: Term) -> tuple[Term, Term]:
        """Return the gradients of the operands, before those of broadcast elements are summed."""


@dataclass(frozen=True)
class Comparison(ElementwiseBinary):
    """Operators whose result is bool, by IEEE's rules for NaN."""

    defined_on: ClassVar[tuple[str, ...]] = ("float", "int")

    def infer(self) -> Numeric:
        """Return the broadcast shape, as bool."""
        return super().infer().with_dtype(dtype("bool"))

    adjoint = no_gradient


@operation("tessera.graph.add", spellings=("+",), clauses=("LANG-02.3-61",))
class Add(Arithmetic):
    """a + b; integers wrap."""

    compute = staticmethod(arithmetic.add)

    def pullback(self, dy: Term, y: Term, a: Term, b: Term) -> tuple[Term, Term]:
        """dy; dy."""
        return dy, dy


@operation("tessera.graph.subtract", spellings=("-",), clauses=("LANG-02.3-62",))
class Subtract(Arithmetic):
    """a - b; integers wrap."""

    compute = staticmethod(arithmetic.subtract)

    def pullback(self, dy: Term, y: Term, a: Term, b: Term) -> tuple[Term, Term]:
        """dy; -dy."""
        return dy, -dy


@operation("tessera.graph.multiply", spellings=("*",), clauses=("LANG-02.3-63",))
class Multiply(Arithmetic):
    """a * b; integers wrap."""

    compute = staticmethod(arithmetic.multiply)

    def pullback(self, dy: Term, y: Term, a: Term, b: Term) -> tuple[Term, Term]:
        """dy * b; dy * a."""
        return dy * b, dy * a


@operation("tessera.graph.divide", spellings=("/",), clauses=("LANG-02.3-64",))
class Divide(Arithmetic):
    """a / b; integers truncate toward zero, and fail on zero while they run."""

    compute = staticmethod(arithmetic.divide)

    def infer(self) -> Numeric:
        """Return the type as for every operator; complex quotients are not defined yet."""
        type_ = super().infer()
        if type_.dtype.kind == "complex":
            raise Unimplemented("op.divide.complex")
        return type_

    def pullback(self, dy: Term, y: Term, a: Term, b: Term) -> tuple[Term, Term]:
        """dy / b; -(dy / b) * y."""
        to_a = dy / b
        return to_a, -to_a * y


def _comparison(
    name: str, spelling: str, clause: str, meaning: str, compute: Operator, kinds: tuple[str, ...] = ("float", "int")
) -> type[Comparison]:
    members = {"__doc__": meaning, "compute": staticmethod(compute), "defined_on": kinds}
    declared = type(name.title().replace("_", ""), (Comparison,), members)
    return operation(f"tessera.graph.{name}", spellings=(spelling,), clauses=(clause,))(declared)


NUMBERS = ("float", "int", "complex", "bool")
Equal = _comparison("equal", "==", "LANG-02.3-66", "a == b; NaN equals nothing.", arithmetic.equal, NUMBERS)
NotEqual = _comparison("not_equal", "!=", "LANG-02.3-67", "a != b; true for NaN.", arithmetic.not_equal, NUMBERS)
Less = _comparison("less", "<", "LANG-02.3-68", "a < b.", arithmetic.less)
Greater = _comparison("greater", ">", "LANG-02.3-69", "a > b.", arithmetic.greater)
LessEqual = _comparison("less_equal", "<=", "LANG-02.3-70", "a <= b.", arithmetic.less_equal)
GreaterEqual = _comparison("greater_equal", ">=", "LANG-02.3-71", "a >= b.", arithmetic.greater_equal)


@operation("tessera.graph.negate", spellings=("unary -",), clauses=("LANG-14.2-02",))
class Negate(Elementwise):
    """-x: flips the sign, of zeros too; integers wrap."""

    x: Operand[Tensor | Scalar]

    def infer(self) -> Numeric:
        """Return the operand's type."""
        require_numeric(self.x.dtype)
        return self.x

    def execute(self, x: Array, env: Environment) -> Array:
        return arithmetic.negate(x)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """-dy."""
        dy, *_ = terms(at, build)
        return ((-dy).value,)


# Choosing among elements: `select`, `maximum`, `minimum`, `clamp`, `abs` (section 2; AMB-LANG-106's feature).
#
# They broadcast as the operators do. Maximum and minimum are the reference's: NaN propagates, -0 lies below +0. Where a
# function has a corner, the derivative is one of its subgradients: at equal operands that of the first, of abs at 0
# it is 0.


_CLAUSES = ("LANG-02-04", "LANG-03.2-02")


@operation("tessera.graph.select", spellings=("op.select",), clauses=_CLAUSES)
class Select(Elementwise):
    """The elements of `a` where the condition holds, those of `b` elsewhere; all three broadcast."""

    condition: Operand[Tensor | Scalar]
    a: Operand[Tensor | Scalar]
    b: Operand[Tensor | Scalar]

    alike = ("a", "b")

    def infer(self) -> Numeric:
        """Return the broadcast type of two operands of one dtype; the condition is a bool."""
        if self.condition.dtype.kind != "bool":
            message = f"the condition is {self.condition}, not bool"
            raise Refusal("types", message, "bool", "LANG-11-01", "compare it: {condition} != 0")
        require_one_dtype(self.a, self.b)
        return elementwise(self.a.dtype, self.condition, self.a, self.b)

    def execute(self, condition: Array, a: Array, b: Array, env: Environment) -> Array:
        return movement.chosen(condition, a, b)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return dy to the chosen operand, and 0 to the other."""
        dy, _, condition, a, b = terms(at, build)
        return None, dy.where(condition).summed_to(a).value, dy.unless(condition).summed_to(b).value


@operation("tessera.graph.maximum", spellings=("op.maximum",), clauses=_CLAUSES)
class Maximum(Arithmetic):
    """The larger of two elements; a NaN wins, -0 is below +0."""

    defined_on: ClassVar[tuple[str, ...]] = ("float", "int")
    compute = staticmethod(arithmetic.maximum)

    def pullback(self, dy: Term, y: Term, a: Term, b: Term) -> tuple[Term, Term]:
        """dy to b where b > a, else to a."""
        return dy.unless(b > a), dy.where(b > a)


@operation("tessera.graph.minimum", spellings=("op.minimum",), clauses=_CLAUSES)
class Minimum(Arithmetic):
    """The smaller of two elements; a NaN wins, -0 is below +0."""

    defined_on: ClassVar[tuple[str, ...]] = ("float", "int")
    compute = staticmethod(arithmetic.minimum)

    def pullback(self, dy: Term, y: Term, a: Term, b: Term) -> tuple[Term, Term]:
        """dy to b where b < a, else to a."""
        return dy.unless(b < a), dy.where(b < a)


@operation("tessera.graph.clamp", spellings=("op.clamp",), clauses=_CLAUSES)
class Clamp(Elementwise):
    """minimum(maximum(x, low), high): x kept between two bounds, which broadcast; high where they cross."""

    x: Operand[Tensor | Scalar]
    low: Operand[Tensor | Scalar]
    high: Operand[Tensor | Scalar]

    alike = ("x", "low", "high")

    def infer(self) -> Numeric:
        """Return the broadcast type of three operands of one dtype."""
        require_one_dtype(self.x, self.low)
        require_one_dtype(self.x, self.high)
        require_kind(self.x.dtype, "float", "int")
        return elementwise(self.x.dtype, self.x, self.low, self.high)

    def execute(self, x: Array, low: Array, high: Array, env: Environment) -> Array:
        return arithmetic.minimum(arithmetic.maximum(x, low), high)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return dy to the bound that was reached, or to x, also where x equals a bound."""
        dy, _, x, low, high = terms(at, build)
        above, below = high < x.maximum(low), low > x
        inside = dy.unless(above)
        to_x, to_low, to_high = inside.unless(below), inside.where(below), dy.where(above)
        return to_x.summed_to(x).value, to_low.summed_to(low).value, to_high.summed_to(high).value


@operation("tessera.graph.abs", spellings=("op.abs",), clauses=_CLAUSES)
class Abs(Elementwise):
    """The magnitude: the sign cleared, of -0 and -inf too; the least integer wraps to itself."""

    x: Operand[Tensor | Scalar]

    def infer(self) -> Numeric:
        """Return the operand's type."""
        require_kind(self.x.dtype, "float", "int")
        return self.x

    def execute(self, x: Array, env: Environment) -> Array:
        return arithmetic.absolute(x)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """dy above 0, -dy below, 0 at 0."""
        dy, _, x = terms(at, build)
        return ((x < 0).select(-dy, dy.where(x > 0)).value,)


# `tessera.graph.cast`: the explicit conversion that the language asks for (spec section 3.1; AMB-LANG-105).


@operation("tessera.graph.cast", spellings=("op.cast",), clauses=("LANG-03.1-05", "LANG-02.2-06", "LANG-02.2-07"))
class Cast(Elementwise):
    """Every element in another dtype, rounded once; `overflow` concerns fp8 only."""

    x: Operand[Tensor | Scalar]
    dtype: Attribute[DType]
    overflow: Attribute[str] = "saturate"

    def infer(self) -> Numeric:
        """Return the operand's type with the other dtype; a complex number does not become a real one."""
        if self.x.dtype.kind == "complex" and self.dtype.kind not in ("complex", "bool"):
            raise Refusal("types", f"{self.x.dtype} does not become {self.dtype}", "a complex dtype", "LANG-03.1-05")
        if self.overflow not in get_args(Overflow):
            message = f"there is no overflow mode {self.overflow!r}"
            raise Refusal("numerics", message, " or ".join(get_args(Overflow)), "LANG-11-13")
        return self.x.with_dtype(self.dtype)

    def execute(self, x: Array, env: Environment) -> Array:
        return cast(x, self.dtype, self.overflow)  # type: ignore[arg-type]  # infer has checked it

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """dy in the operand's dtype, as if nothing had been rounded or saturated; both are floats."""
        dy, _, x = terms(at, build)
        return (dy.cast(dtype=x.dtype, overflow=self.overflow).value,)


# `tessera.graph.identity`: a value under another name, as when a function or a region receives it.


@operation("tessera.graph.identity", clauses=("LANG-05-01", "LANG-05.5-01"))
class Identity(Operation):
    """Its operand. On the tape of a differentiation it distinguishes two values that share one array."""

    x: Operand[Tensor | Scalar]

    layouts = frozenset(LAYOUTS)
    nest = "map"
    lanewise = True

    def infer(self) -> Numeric:
        """Return the operand's type."""
        return self.x

    def execute(self, x: Array, env: Environment) -> Array:
        return x

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return the gradient unchanged."""
        return (at.dy,)


# Elementary functions, and the activations composed of them.


_FUNCTION_CLAUSES = ("LANG-02-04", "LANG-10-07", "LANG-10-11")

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
        """Return the operand's type, which is a float."""
        require_float(self.x)
        return self.x

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return the pullback."""
        dy, y, x = terms(at, build)
        return (self.pullback(dy, y, x).value,)

    @abstractmethod
    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """Return the gradient of x from that of y."""


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
    operation(f"tessera.graph.{_name}", spellings=(f"op.{_name}",), clauses=_FUNCTION_CLAUSES)(
        type(_name.capitalize(), (ElementaryFunction,), {"__doc__": _meaning, "pullback": staticmethod(_gradient)})
    )


@operation("tessera.graph.pow", spellings=("op.pow",), clauses=_FUNCTION_CLAUSES)
class Pow(Arithmetic):
    """a to the power of b, rounded once; shapes broadcast as those of operators do."""

    defined_on = ("float",)
    compute = staticmethod(partial(elementary.apply, "pow"))

    def pullback(self, dy: Term, y: Term, a: Term, b: Term) -> tuple[Term, Term]:
        """dy * (b * a**(b - 1)), 0 where b is 0; dy * (y * log a), 0 where a is 0 and b is not negative."""
        power = a.pow((b - 1).unless(b.equal(0)))
        logarithm = a.equal(0).select(a.beside(1), a).log()
        return dy * (b * power), dy * (y * logarithm)


@operation("tessera.graph.sigmoid", spellings=("op.sigmoid",), clauses=_FUNCTION_CLAUSES)
class Sigmoid(FloatFunction):
    """1 / (1 + exp(-x))."""

    def execute(self, x: Array, env: Environment) -> Array:
        return activations.sigmoid(x)

    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """dy * (y * (1 - y))."""
        return dy * (y * (1 - y))


@operation("tessera.graph.silu", spellings=("op.silu",), clauses=_FUNCTION_CLAUSES)
class Silu(FloatFunction):
    """x * sigmoid(x)."""

    def execute(self, x: Array, env: Environment) -> Array:
        return activations.silu(x)

    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """dy * (s + y * (1 - s)) with s = sigmoid(x)."""
        s = x.sigmoid()
        return dy * (s + y * (1 - s))


@operation("tessera.graph.relu", spellings=("op.relu",), clauses=_FUNCTION_CLAUSES)
class Relu(FloatFunction):
    """The maximum of x and +0 (AMB-LANG-106); NaN propagates."""

    def infer(self) -> Numeric:
        """Return the operand's type, a float or an integer."""
        if self.x.dtype.kind not in ("float", "int"):
            raise Refusal("types", f"is not defined on {self.x.dtype}", "a float or integer dtype", "LANG-11-01")
        return self.x

    def execute(self, x: Array, env: Environment) -> Array:
        return activations.relu(x)

    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """dy where x is above 0, else 0: also at 0 itself."""
        return dy.where(x > 0)


@operation("tessera.graph.gelu", spellings=("op.gelu",), clauses=_FUNCTION_CLAUSES)
class Gelu(FloatFunction):
    """x times the normal distribution function of x, exactly or by its tanh form."""

    approximate: Attribute[str] = "none"

    def infer(self) -> Numeric:
        """Return the operand's type, which is a float; `approximate` is none or tanh."""
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
