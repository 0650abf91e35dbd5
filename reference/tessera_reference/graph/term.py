"""Terms, values under construction that read as mathematics (section 5.5); and the checks that operations share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import TypeAlias

from ..ir.operation import OPERATIONS, Applied, Builder, Refusal
from ..ir.types import Dim, Numeric, Tensor, Value, dtype_of, show_dim
from ..numerics.formats import DType
from ..numerics.rounding import round_exact

# Terms: values under construction, which read as mathematics and build Graph IR (section 5.5; AMB-LANG-59).
#
# Operations are found by their short names: `x.exp()` is `tessera.graph.exp`. None is imported here, since adjoints
# are written in terms, and those of several operations use each other in circles.


Number: TypeAlias = int | Fraction


@dataclass(frozen=True)
class Term:
    """A value under construction. Numbers beside it become constants of its dtype, rounded once."""

    value: Value
    build: Builder

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The extents; in an adjoint those of operands are integers."""
        type_ = self.value.type
        return type_.shape if isinstance(type_, Tensor) else ()

    @property
    def dtype(self) -> DType:
        """The dtype of a tensor or scalar."""
        element = dtype_of(self.value.type)
        assert element is not None
        return element

    def __getattr__(self, name: str) -> Callable[..., Term]:
        """Return the operation of that short name, with this as its first operand."""
        if name.startswith("__"):
            raise AttributeError(name)
        declared = OPERATIONS[f"tessera.graph.{name}"]

        def apply(*others: Term | Number, **attributes: object) -> Term:
            operands = (self.value, *(self.beside(other).value for other in others))
            return Term(self.build(declared, *operands, **attributes), self.build)

        return apply

    def beside(self, other: Term | Number) -> Term:
        """Return a term as it is, and a number as a constant of this term's dtype."""
        return other if isinstance(other, Term) else constant(self.build, other, self.dtype)

    def __add__(self, other: Term | Number) -> Term:
        return self.add(other)

    def __radd__(self, other: Number) -> Term:
        return self.beside(other).add(self)

    def __sub__(self, other: Term | Number) -> Term:
        return self.subtract(other)

    def __rsub__(self, other: Number) -> Term:
        return self.beside(other).subtract(self)

    def __mul__(self, other: Term | Number) -> Term:
        return self.multiply(other)

    def __rmul__(self, other: Number) -> Term:
        return self.beside(other).multiply(self)

    def __truediv__(self, other: Term | Number) -> Term:
        return self.divide(other)

    def __neg__(self) -> Term:
        return self.negate()

    def __gt__(self, other: Term | Number) -> Term:
        return self.greater(other)

    def __lt__(self, other: Term | Number) -> Term:
        return self.less(other)

    def where(self, condition: Term) -> Term:
        """Return this where the condition holds, 0 elsewhere."""
        return condition.select(self, self.beside(0))

    def unless(self, condition: Term) -> Term:
        """Return 0 where the condition holds, this elsewhere."""
        return condition.select(self.beside(0), self)

    def cast_to(self, dtype: DType) -> Term:
        """Return this in another dtype, rounded once; itself where it has that dtype."""
        return self if dtype == self.dtype else self.cast(dtype=dtype)

    def shaped(self, shape: tuple[Dim, ...]) -> Term:
        """Return the same elements in another shape."""
        return self if shape == self.shape else self.reshape(shape=shape)

    def summed_to(self, like: Term) -> Term:
        """Return the adjoint of broadcasting `like` to this shape: the sum over each broadcast axis, first to last."""
        total, shape = self, like.shape
        while len(total.shape) > len(shape):
            total = total.sum(axis=0)
        for axis, extent in enumerate(shape):
            if extent == 1 and total.shape[axis] != 1:
                total = total.sum(axis=axis, keepdims=True)
        return total


def constant(build: Builder, number: Number, dtype: DType) -> Term:
    """Return a number as a scalar, rounded once to `dtype`."""
    value = int(number) if dtype.kind in ("int", "bool") else round_exact(Fraction(number), dtype)
    return Term(build(OPERATIONS["tessera.graph.constant"], value=value, dtype=dtype), build)


# Common parts of adjoints: the terms that one starts from, and positions along an axis (section 5.5; AMB-LANG-59).
#
# An adjoint is a composition of operations of Graph IR in the operand's dtype, each of which rounds, so that it can
# be executed, traced and differentiated again like any other code.


def terms(at: Applied, build: Builder) -> tuple[Term, ...]:
    """Return the gradient of the only result, the result, and the operands."""
    return tuple(Term(value, build) for value in (at.dy, at.results[0], *at.operands))


def positions_along(axis: int, like: Term) -> Term:
    """Return the position along an axis of every element of a tensor, as int32."""
    declared = OPERATIONS["tessera.graph.iota"]
    return Term(like.build(declared, shape=like.shape, axis=axis), like.build)


# Checks of an axis and of a shape given as attributes.


def require_axis(axis: int, rank: int, clause: str = "LANG-03.2-01") -> None:
    """Require an axis from -rank to rank - 1. Raises `Refusal`."""
    if not -rank <= axis < rank:
        message = f"axis {axis} is out of range for rank {rank}"
        raise Refusal("shapes", message, f"{-rank} <= axis <= {rank - 1}", clause, "the last axis is -1")


def require_extents(name: str, extents: Sequence[int], least: int = 0) -> None:
    """Require extents of at least `least`. Raises `Refusal`."""
    if not all(extent >= least for extent in extents):
        message = f"{name} {list(extents)} has an extent below {least}"
        raise Refusal("shapes", message, f"extents of at least {least}", "LANG-05.3-01")


def differing(x: Dim, y: Dim, what: str = "dimensions") -> str:
    """Return the words for two extents that are not known to be equal."""
    fixed = isinstance(x, int) and isinstance(y, int)
    return f"{what} {'differ' if fixed else 'are not known to be equal'}: {show_dim(x)} and {show_dim(y)}"


# Checks of the operands' dtypes.


def require_kind(dtype: DType, *kinds: str) -> None:
    """Require a dtype of one of these kinds. Raises `Refusal`."""
    if dtype.kind not in kinds:
        expected = f"a dtype of kind {' or '.join(kinds)}"
        raise Refusal("types", f"is not defined on {dtype}", expected, "LANG-11-01", "")


def require_one_dtype(
    a: Numeric,
    b: Numeric,
    requirement: str = "a.dtype == b.dtype, since nothing is cast implicitly",
    clause: str = "LANG-03.1-05",
) -> None:
    """Raise `Refusal` for operands of two dtypes, since nothing is cast implicitly."""
    if a.dtype != b.dtype:
        message = f"operands have dtypes {a.dtype} and {b.dtype}"
        raise Refusal("types", message, requirement, clause, "cast one operand with op.cast")


def require_numeric(dtype: DType) -> None:
    """Require any dtype but bool. Raises `Refusal`."""
    if dtype.kind == "bool":
        raise Refusal("types", "is not defined on bool", "a numeric dtype", "LANG-11-01")


def require_float(x: Numeric) -> None:
    """Require a float dtype. Raises `Refusal`."""
    remedy = "cast the operand with op.cast"
    if x.dtype.kind != "float":
        raise Refusal("types", f"is not defined on {x.dtype}", "a float dtype", "LANG-11-01", remedy)


def require_accumulator(dtype: DType, accum: DType) -> None:
    """Require an accumulator of the kind that `dtype` has in the reference arithmetic. Raises `Refusal`."""
    kind = dtype.accumulator.kind
    if accum.kind != kind:
        message, expected = f"{dtype} does not accumulate in {accum}", f"an accumulator of kind {kind}"
        raise Refusal("types", message, expected, "LANG-10-01", "")


# Compound operations: they compute in the accumulator type, and round each result once to its dtype.
#
# Reference arithmetic. Every step of a composition is an operation of Graph IR and rounds in the accumulator type;
# numbers given as attributes are rounded once to it, from the fp64 that the attribute holds.


def widened(value: Value, build: Builder) -> Term:
    """Return a value in the accumulator type of its dtype."""
    term = Term(value, build)
    return term.cast_to(term.dtype.accumulator)


def along_axis(vector: Term, axis: int, rank: int) -> Term:
    """Return a vector whose elements lie along one axis of a tensor of that rank."""
    return vector.shaped(tuple(vector.shape[0] if place == axis % rank else 1 for place in range(rank)))


def require_vector_along(name: str, vector: Tensor, x: Tensor, axis: int, *, wide: bool = False) -> None:
    """Require one element for each position of x along an axis, of x's dtype or, if `wide`, of its accumulator's.

    Raises `Refusal`.
    """
    require_held_as(name, vector, x, wide=wide)
    extent = x.shape[axis]
    if vector.shape != (extent,):
        message = f"{name} is {vector}, and axis {axis} of {x} has extent {show_dim(extent)}"
        raise Refusal("shapes", message, f"{name}.shape == [x.shape[{axis}]]", "LANG-03.2-03")


def require_like(name: str, value: Numeric, x: Numeric, *, wide: bool = False) -> None:
    """Require the shape and dtype of another operand or, if `wide`, its accumulator's dtype. Raises `Refusal`."""
    require_held_as(name, value, x, wide=wide)
    if type(value) is not type(x) or value.shape != x.shape:
        raise Refusal("shapes", f"{name} is {value}, not of the shape of {x}", "operands of one shape", "LANG-03.2-03")


def require_held_as(name: str, value: Numeric, x: Numeric, *, wide: bool = False) -> None:
    """Require the dtype of another operand or, if `wide`, its accumulator's. Raises `Refusal`."""
    dtypes = dict.fromkeys((x.dtype, *([x.dtype.accumulator] if wide else [])))
    if value.dtype not in dtypes:
        message = f"{name} is {value.dtype}, beside {x.dtype}"
        requirement = f"{name}.dtype in {{{', '.join(map(str, dtypes))}}}, since nothing is cast implicitly"
        raise Refusal("types", message, requirement, "LANG-03.1-05", "cast one operand with op.cast")


def require_number(name: str, value: float, *, below: float | None = None, most: float | None = None) -> None:
    """Require a finite number of at least 0, and if given, below `below` and at most `most`. Raises `Refusal`."""
    allowed = isfinite(value) and value >= 0 and (below is None or value < below) and (most is None or value <= most)
    above = f" < {below:g}" if below is not None else f" <= {most:g}" if most is not None else ""
    if not allowed:
        raise Refusal("numerics", f"{name} is {value}", f"0 <= {name}{above}", "LANG-02-04")
