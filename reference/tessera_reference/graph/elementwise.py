"""Elementwise operations: the operators of the language (spec sections 2.3, 3.2; AMB-LANG-55).

They declare NumPy broadcasting, scalars included, take operands of one dtype and of equal layouts, and round once, to
the result type. Comparisons give bool, and bools no gradient.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ..ir.module import Value
from ..ir.operation import Applied, Builder, Environment, Operand, Operation, Refusal, Unimplemented, operation
from ..ir.types import LAYOUTS, Dim, Layout, Numeric, Scalar, Tensor, show_dim
from ..numerics import arithmetic
from ..numerics.array import Array
from ..numerics.formats import DType, dtype
from .adjoints import terms
from .dtypes import require_kind, require_numeric
from .term import Term


class Operator(Protocol):
    """A function of the canon's arithmetic."""

    def __call__(self, a: Array, b: Array, /) -> Array:
        """The result."""


@dataclass(frozen=True)
class ElementwiseBinary(Operation):
    """What all operators of two operands share."""

    a: Operand[Tensor | Scalar]
    b: Operand[Tensor | Scalar]

    alike = ("a", "b")
    layouts = frozenset(LAYOUTS)
    defined_on: ClassVar[tuple[str, ...]]
    compute: ClassVar[Operator]

    def infer(self) -> Numeric:
        """The broadcast of the operands; comparisons narrow it to bool."""
        a, b = self.a, self.b
        require_one_dtype(a, b)
        require_kind(a.dtype, *self.defined_on)
        return elementwise(a.dtype, a, b)

    def execute(self, a: Array, b: Array, env: Environment) -> Array:
        """The operation by the canon."""
        return type(self).compute(a, b)


def require_one_dtype(a: Numeric, b: Numeric) -> None:
    """Nothing is cast implicitly. Raises `Refusal`."""
    if a.dtype != b.dtype:
        raise Refusal(
            "types",
            f"operands have dtypes {a.dtype} and {b.dtype}",
            "a.dtype == b.dtype, since nothing is cast implicitly",
            "LANG-03.1-05",
            "cast one operand with op.cast",
        )


def elementwise(dtype: DType, *operands: Numeric) -> Numeric:
    """The type of a result with an element for each of the operands' broadcast shape. Raises `Refusal`."""
    layout = _one_layout([type_.layout for type_ in operands if isinstance(type_, Tensor)])
    shape: tuple[Dim, ...] = ()
    for type_ in operands:
        shape = broadcast(shape, type_.shape)
    return Tensor(shape, dtype, layout) if layout else Scalar(dtype)


def _one_layout(layouts: list[Layout]) -> Layout | None:
    for layout in layouts[1:]:
        if layout != layouts[0]:
            raise Refusal(
                "layouts",
                f"operands have layouts {layouts[0]} and {layout}",
                "a.layout == b.layout",
                "LANG-11-05",
                "cast one layout: op.layout_cast",
            )
    return layouts[0] if layouts else None


def broadcast(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """NumPy's rule, on shapes whose dimensions may be names or unknown: what is not known to fit is refused."""
    rank = max(len(a), len(b))
    left, right = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    shape: list[Dim] = []
    for x, y in zip(left, right, strict=True):
        if x != y and 1 not in (x, y):
            known = isinstance(x, int) and isinstance(y, int)
            raise Refusal(
                "shapes",
                f"dimensions {'differ' if known else 'are not known to be equal'}: {show_dim(x)} and {show_dim(y)}",
                "shapes that broadcast: each dimension equal, or 1",
                "LANG-03.2-03",
                "",
            )
        shape.append(y if x == 1 else x)
    return tuple(shape)


@dataclass(frozen=True)
class Arithmetic(ElementwiseBinary):
    """Operators whose result has the operands' dtype."""

    defined_on: ClassVar[tuple[str, ...]] = ("float", "int", "complex")

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """What each operand's element gets, summed over the elements that it was spread to."""
        dy, y, a, b = terms(at, build)
        to_a, to_b = self.pullback(dy, y, a, b)
        return to_a.summed_to(a).value, to_b.summed_to(b).value

    @abstractmethod
    def pullback(self, dy: Term, y: Term, a: Term, b: Term) -> tuple[Term, Term]:
        """The gradients of the operands before those that were spread are summed."""


@dataclass(frozen=True)
class Comparison(ElementwiseBinary):
    """Operators whose result is bool, by IEEE's rules for NaN."""

    defined_on: ClassVar[tuple[str, ...]] = ("float", "int")

    def infer(self) -> Numeric:
        """The broadcast shape, as bool."""
        return super().infer().with_dtype(dtype("bool"))

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """A bool has no gradient."""
        return None, None


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
        """As every operator; complex quotients have no canon yet."""
        type_ = super().infer()
        if type_.dtype.kind == "complex":
            raise Unimplemented("op.divide.complex")
        return type_

    def pullback(self, dy: Term, y: Term, a: Term, b: Term) -> tuple[Term, Term]:
        """dy / b; -(dy / b) * y."""
        to_a = dy / b
        return to_a, -to_a * y


@operation("tessera.graph.equal", spellings=("==",), clauses=("LANG-02.3-66",))
class Equal(Comparison):
    """a == b; NaN equals nothing."""

    defined_on = ("float", "int", "complex", "bool")
    compute = staticmethod(arithmetic.equal)


@operation("tessera.graph.not_equal", spellings=("!=",), clauses=("LANG-02.3-67",))
class NotEqual(Comparison):
    """a != b; true for NaN."""

    defined_on = ("float", "int", "complex", "bool")
    compute = staticmethod(arithmetic.not_equal)


@operation("tessera.graph.less", spellings=("<",), clauses=("LANG-02.3-68",))
class Less(Comparison):
    """a < b."""

    compute = staticmethod(arithmetic.less)


@operation("tessera.graph.greater", spellings=(">",), clauses=("LANG-02.3-69",))
class Greater(Comparison):
    """a > b."""

    compute = staticmethod(arithmetic.greater)


@operation("tessera.graph.less_equal", spellings=("<=",), clauses=("LANG-02.3-70",))
class LessEqual(Comparison):
    """a <= b."""

    compute = staticmethod(arithmetic.less_equal)


@operation("tessera.graph.greater_equal", spellings=(">=",), clauses=("LANG-02.3-71",))
class GreaterEqual(Comparison):
    """a >= b."""

    compute = staticmethod(arithmetic.greater_equal)


@operation("tessera.graph.negate", spellings=("unary -",), clauses=("LANG-14.2-02",))
class Negate(Operation):
    """-x: flips the sign, of zeros too; integers wrap."""

    x: Operand[Tensor | Scalar]

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Numeric:
        """The operand's type."""
        require_numeric(self.x.dtype)
        return self.x

    def execute(self, x: Array, env: Environment) -> Array:
        """The sign flipped."""
        return arithmetic.negate(x)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """-dy."""
        dy, *_ = terms(at, build)
        return ((-dy).value,)
