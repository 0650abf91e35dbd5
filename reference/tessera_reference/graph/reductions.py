"""Products and rows: matmul, reductions, softmax and Fourier transforms (spec sections 2, 5.2, 5.4, 10, 15)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, get_args

from ..ir.operation import (
    Applied,
    Attribute,
    Builder,
    Environment,
    Operand,
    Operation,
    Refusal,
    Unimplemented,
    derived,
    no_gradient,
    operation,
)
from ..ir.types import LAYOUTS, Numeric, Scalar, Tensor, Value
from ..numerics import fourier, reductions
from ..numerics.array import Array
from ..numerics.formats import DType, dtype
from ..numerics.matmul import matmul
from ..numerics.reductions import softmax
from .term import (
    Term,
    differing,
    positions_along,
    require_accumulator,
    require_axis,
    require_float,
    require_kind,
    require_numeric,
    require_one_dtype,
    terms,
)

# `tessera.graph.matmul`: the matrix product (spec sections 5.2, 5.4, 10, 15).


@operation(
    "tessera.graph.matmul",
    spellings=("op.matmul", "@"),
    clauses=("LANG-05.2-02", "LANG-05.4-01", "LANG-10-02", "LANG-15-01", "LANG-15-03", "LANG-15-04", "LANG-15-15"),
)
class MatMul(Operation):
    """Matrix product, (..., M, K) x (..., K, N) -> (..., M, N), of one dtype.

    Accumulates over ascending k in the accumulator type, rounding the product and the sum, then rounds once to the
    operands' dtype or to `out` (reference arithmetic, "matmul"; AMB-LANG-40). The result has the left operand's layout.
    """

    a: Operand[Tensor]
    b: Operand[Tensor]
    accum: Attribute[DType] = derived(lambda self: self.a.dtype.accumulator)
    out: Attribute[DType | None] = None

    layouts = frozenset(LAYOUTS)
    nest = "contract"
    orders = ("fold",)

    def infer(self) -> Tensor:
        """Return the product's type; inner and batch dimensions are equal (AMB-LANG-42), and so are the dtypes."""
        a, b = self.a, self.b
        require_one_dtype(a, b, "a.dtype == b.dtype", "LANG-05.2-02")
        require_numeric(a.dtype)
        if min(a.rank, b.rank) < 2:
            raise Refusal("shapes", f"operands have ranks {a.rank} and {b.rank}", "rank at least 2", "LANG-05.2-02")
        *batch, m, k = a.shape
        *other, k2, n = b.shape
        if k != k2:
            message, requirement = differing(k, k2, "inner dimensions"), "a.shape[-1] == b.shape[-2]"
            raise Refusal("shapes", message, requirement, "LANG-05.4-01", _remedy(a, b))
        if batch != other:
            message = f"batch dimensions differ: {a} and {b}"
            raise Refusal("shapes", message, "a.shape[:-2] == b.shape[:-2]", "LANG-03.2-03")
        out = self.out or a.dtype
        if out.kind == "bool" or (a.dtype.kind == "complex" and out.kind != "complex"):
            message = f"a product of {a.dtype} does not become {out}"
            raise Refusal("types", message, "a result dtype that the product can be rounded to", "LANG-05.2-02")
        require_accumulator(a.dtype, self.accum)
        if a.dtype.kind == "complex" and self.accum != a.dtype.accumulator:
            raise Unimplemented("op.matmul.accum")
        return Tensor((*batch, m, n), out, a.layout)

    def execute(self, a: Array, b: Array, env: Environment) -> Array:
        return matmul(a, b, self.out, accumulator=self.accum)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """dy @ transpose(b); transpose(a) @ dy. Accumulated like the product, and rounded once to the operands' dtype.

        Where the result has another dtype, all three are multiplied in the accumulator's.
        """
        dy, _, a, b = terms(at, build)
        if dy.dtype != a.dtype:
            dy, a, b = (operand.cast_to(self.accum) for operand in (dy, a, b))
        to_a = dy.matmul(_transposed(b), accum=self.accum, out=self.a.dtype)
        to_b = _transposed(a).matmul(dy, accum=self.accum, out=self.b.dtype)
        return to_a.value, to_b.value


def _transposed(x: Term) -> Term:
    """Return every matrix of a batch transposed."""
    rank = len(x.shape)
    return x.transpose(perm=(*range(rank - 2), rank - 1, rank - 2))


def _remedy(a: Tensor, b: Tensor) -> str:
    """Return the remedy where K differs: the transpose that makes it fit, or the position of K."""
    if b.rank == 2 and a.shape[-1] == b.shape[-1]:
        return "did you mean op.matmul({a}, op.transpose({b}))?"
    if a.rank == 2 and a.shape[-2] == b.shape[-2]:
        return "did you mean op.matmul(op.transpose({a}), {b})?"
    return "K is the last dimension of {a} and the last but one of {b}"


# Reductions along an axis (spec sections 2, 10; AMB-LANG-104, AMB-LANG-113, AMB-LANG-134).


_CLAUSES = ("LANG-02-04", "LANG-10-01", "LANG-10-05", "LANG-10-06")


@dataclass(frozen=True)
class Reduction(Operation):
    """The base of all reductions: the axis is dropped, or kept with size 1."""

    x: Operand[Tensor]
    axis: Attribute[int]
    keepdims: Attribute[bool] = False
    accum: Attribute[DType] = derived(lambda self: self.x.dtype.accumulator)  # noqa: RUF009, a constant

    defined_on: ClassVar[tuple[str, ...]] = ("float", "int")
    of_nothing: ClassVar[bool] = False
    """True if the reduction has a value along an axis of no elements."""
    compute: ClassVar[Callable[..., Array]]
    nest = "rows"

    def infer(self) -> Numeric:
        """Return the operand's shape without the axis; a scalar where no axis is left."""
        x, axis = self.x, self.axis
        require_kind(x.dtype, *self.defined_on)
        require_axis(axis, x.rank)
        if not self.of_nothing and x.shape[axis] == 0:
            raise Refusal("shapes", f"axis {axis} has no elements", "an axis of at least 1 element", "LANG-11-03")
        require_accumulator(x.dtype, self.accum)
        if self.accum != x.dtype.accumulator:
            raise Unimplemented(f"op.{self.short_name}.accum")
        shape = list(x.shape)
        if self.keepdims:
            shape[axis] = 1
        else:
            del shape[axis]
        return Tensor(tuple(shape), self.result_dtype, x.layout) if shape else Scalar(self.result_dtype)

    @property
    def result_dtype(self) -> DType:
        """The dtype of the result: the operand's."""
        return self.x.dtype

    def execute(self, x: Array, env: Environment) -> Array:
        return type(self).compute(x, self.axis, keepdims=self.keepdims)


@dataclass(frozen=True)
class DifferentiableReduction(Reduction):
    """A reduction whose value has the operand's dtype, and a gradient."""

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return the pullback, for dy and y with the axis kept."""
        dy, y, x = terms(at, build)
        shape = list(x.shape)
        shape[self.axis] = 1
        return (self.pullback(dy.shaped(tuple(shape)), y.shaped(tuple(shape)), x).value,)

    @abstractmethod
    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """Return the gradient of x from that of y, both of which have extent 1 along the axis."""


@operation("tessera.graph.sum", spellings=("op.sum",), clauses=_CLAUSES)
class Sum(DifferentiableReduction):
    """The sum over the canonical tree; +0 for no elements."""

    defined_on = ("float", "int", "complex")
    of_nothing = True
    compute = staticmethod(reductions.sum)
    orders = ("pairwise",)

    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """Return dy for every element."""
        return dy.broadcast(shape=x.shape)


@operation("tessera.graph.prod", spellings=("op.prod",), clauses=_CLAUSES)
class Prod(DifferentiableReduction):
    """The product over the canonical tree; 1 for no elements."""

    defined_on = ("float", "int", "complex")
    of_nothing = True
    compute = staticmethod(reductions.prod)
    orders = ("pairwise",)

    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """Return the gradient along the canonical tree: a node's gradient times its neighbour, also for zeros.

        It is computed in the accumulator type, as is the product itself.
        """
        wide = self.x.dtype.accumulator
        return _through_products(dy.cast_to(wide), x.cast_to(wide), self.axis % len(x.shape)).cast_to(x.dtype)


@operation("tessera.graph.mean", spellings=("op.mean",), clauses=_CLAUSES)
class Mean(DifferentiableReduction):
    """The sum divided by the number of elements, both in the accumulator type; NaN for no elements."""

    defined_on = ("float", "complex")
    of_nothing = True
    compute = staticmethod(reductions.mean)
    orders = ("pairwise",)

    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """dy / n for every element, divided in the accumulator type, which holds n."""
        extent = x.shape[self.axis]
        assert isinstance(extent, int)
        share = dy.cast_to(self.x.dtype.accumulator) / extent
        return share.cast_to(x.dtype).broadcast(shape=x.shape)


@operation("tessera.graph.max", spellings=("op.max",), clauses=_CLAUSES)
class Max(DifferentiableReduction):
    """The largest element; NaN propagates, -0 is below +0."""

    compute = staticmethod(reductions.max)

    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """Return dy for the largest element, of ties the first, and 0 for the others."""
        return _at_first_largest(dy, x, x, self.axis)


@operation("tessera.graph.min", spellings=("op.min",), clauses=_CLAUSES)
class Min(DifferentiableReduction):
    """The smallest element; NaN propagates, -0 is below +0."""

    compute = staticmethod(reductions.min)

    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """Return dy for the smallest element, of ties the first, and 0 for the others."""
        return _at_first_largest(dy, x, -x, self.axis)


@operation("tessera.graph.argmax", spellings=("op.argmax",), clauses=_CLAUSES)
class ArgMax(Reduction):
    """The index of the first largest element as int32; the first NaN wins, and -0 is below +0."""

    compute = staticmethod(reductions.argmax)
    adjoint = no_gradient

    def infer(self) -> Numeric:
        """Return the operand's shape without the axis, of int32, which must hold every index."""
        extent = self.x.shape[self.axis] if -self.x.rank <= self.axis < self.x.rank else 0
        if isinstance(extent, int) and extent > self.result_dtype.int_max + 1:
            message = f"{extent} elements are along axis {self.axis}"
            requirement = f"at most {self.result_dtype.int_max + 1}, whose indices are {self.result_dtype}"
            raise Refusal("types", message, requirement, "AMB-LANG-134")
        return super().infer()

    @property
    def result_dtype(self) -> DType:
        return dtype("int32")


@operation("tessera.graph.logsumexp", spellings=("op.logsumexp",), clauses=_CLAUSES)
class LogSumExp(DifferentiableReduction):
    """log(sum(exp(x))), the maximum subtracted first."""

    defined_on = ("float",)
    compute = staticmethod(reductions.logsumexp)
    orders = ("pairwise",)

    def pullback(self, dy: Term, y: Term, x: Term) -> Term:
        """dy * exp(x - y)."""
        return dy * (x - y).exp()


def _at_first_largest(dy: Term, x: Term, keys: Term, axis: int) -> Term:
    """Return dy at the first of the largest keys, 0 elsewhere."""
    return dy.where(positions_along(axis, x).equal(keys.argmax(axis=axis, keepdims=True)))


def _through_products(dy: Term, x: Term, axis: int) -> Term:
    """Return the gradient of x from that of its product over the tree of adjacent pairs with a carried odd tail."""
    extent = x.shape[axis]
    assert isinstance(extent, int)
    if extent < 2:
        return dy.broadcast(shape=x.shape)
    pairs = extent // 2
    lefts, rights, tail, nodes, carried = (
        (*[":"] * axis, part) for part in (f"0:{2 * pairs}:2", "1::2", f"{2 * pairs}:", f"0:{pairs}", f"{pairs}:")
    )
    left, right, rest = x.slice(spec=lefts), x.slice(spec=rights), x.slice(spec=tail)
    dz = _through_products(dy, (left * right).concat(rest, axis=axis), axis)
    dx = x.beside(0).broadcast(shape=x.shape)
    dx = dx.update(dz.slice(spec=nodes) * right, spec=lefts).update(dz.slice(spec=nodes) * left, spec=rights)
    return dx.update(dz.slice(spec=carried), spec=tail)


# `tessera.graph.softmax` (spec sections 5.2, 5.4, 10, 15).


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

    nest = "rows"
    orders = ("pairwise",)

    def infer(self) -> Tensor:
        """Return the operand's type: a float tensor with elements along an axis from -rank to rank - 1."""
        x, axis = self.x, self.axis
        require_float(x)
        require_axis(axis, x.rank, "LANG-05.4-02")
        if x.shape[axis] == 0:
            raise Refusal("shapes", f"axis {axis} has no elements", "an axis of at least 1 element", "LANG-05.2-03")
        require_accumulator(x.dtype, self.accum)
        if self.accum != x.dtype.accumulator:
            raise Unimplemented("op.softmax.accum")
        return x

    def execute(self, x: Array, env: Environment) -> Array:
        return softmax(x, self.axis)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """y * (dy - sum(dy * y))."""
        dy, y, _ = terms(at, build)
        return ((y * (dy - (dy * y).sum(axis=self.axis, keepdims=True))).value,)


# `tessera.graph.fft` and its inverse (spec section 5.2; AMB-LANG-46, AMB-LANG-116).


@dataclass(frozen=True)
class FourierTransform(Operation):
    """The base of both transforms: float or complex operands, the last axis, a norm, a complex result."""

    x: Operand[Tensor]
    norm: Attribute[str] = "ortho"

    inverse: ClassVar[bool]
    nest = "rows"
    orders = ("pairwise",)

    def infer(self) -> Tensor:
        """Return the operand's shape as complex; the last axis has at least one element."""
        x = self.x
        if x.dtype.kind not in ("complex", "float"):
            message = f"is not defined on {x.dtype}"
            requirement = "a float or a complex dtype"
            raise Refusal("types", message, requirement, "LANG-05.2-04", "cast the operand with op.cast")
        if x.shape[-1] == 0:
            raise Refusal("shapes", "the last axis has no elements", "at least 1 element", "LANG-05.2-04")
        norms = get_args(fourier.Norm)
        if self.norm not in norms:
            raise Refusal("numerics", f"there is no norm {self.norm!r}", " or ".join(norms), "LANG-05.2-04")
        return x.with_dtype(fourier.result_dtype(x.dtype))

    def execute(self, x: Array, env: Environment) -> Array:
        transform = fourier.ifft if self.inverse else fourier.fft
        return transform(x, self.norm)  # type: ignore[arg-type]  # infer has checked it


@operation("tessera.graph.fft", spellings=("op.fft",), clauses=("LANG-05.2-04",))
class FFT(FourierTransform):
    """The discrete Fourier transform along the last axis."""

    inverse = False


@operation("tessera.graph.ifft", spellings=("op.ifft",), clauses=("LANG-05.2-04",))
class InverseFFT(FourierTransform):
    """The inverse transform along the last axis."""

    inverse = True
