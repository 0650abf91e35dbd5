"""Reductions along an axis (spec sections 2, 10; AMB-LANG-104, AMB-LANG-113, AMB-LANG-134)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ..ir.operation import Attribute, Environment, NotCarriedOut, Operand, Operation, derived, operation, require
from ..ir.types import Scalar, Tensor, Type
from ..numerics import reductions
from ..numerics.array import Array
from ..numerics.formats import DType, dtype

_CLAUSES = ("LANG-02-04", "LANG-10-01", "LANG-10-05", "LANG-10-06")


@dataclass(frozen=True)
class Reduction(Operation):
    """What all reductions share: the axis is dropped, or kept with size 1."""

    x: Operand[Tensor]
    axis: Attribute[int]
    keepdims: Attribute[bool] = False
    accum: Attribute[DType] = derived(lambda self: self.x.dtype.accumulator)  # noqa: RUF009, a constant

    defined_on: ClassVar[tuple[str, ...]] = ("float", "int")
    of_nothing: ClassVar[bool] = False
    """Whether it has a value along an axis of no elements."""
    compute: ClassVar[Callable[..., Array]]

    def infer(self) -> Type:
        """The operand's shape without the axis; a scalar where no axis is left."""
        x, axis = self.x, self.axis
        require(
            x.dtype.kind in self.defined_on,
            "types",
            f"is not defined on {x.dtype}",
            f"a dtype of kind {' or '.join(self.defined_on)}",
            "LANG-11-01",
        )
        require(
            -x.rank <= axis < x.rank,
            "shapes",
            f"axis {axis} is out of range for rank {x.rank}",
            f"{-x.rank} <= axis <= {x.rank - 1}",
            "LANG-03.2-01",
            "the last axis is -1",
        )
        require(
            self.of_nothing or x.shape[axis] != 0,
            "shapes",
            f"axis {axis} has no elements",
            "an axis of at least 1 element",
            "LANG-11-03",
        )
        if self.accum != x.dtype.accumulator:
            raise NotCarriedOut(f"op.{self.short_name}.accum")
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
        """The reduction by the canon."""
        return type(self).compute(x, self.axis, keepdims=self.keepdims)


@operation("tessera.graph.sum", spellings=("op.sum",), clauses=_CLAUSES)
class Sum(Reduction):
    """The sum over the canonical tree; of nothing +0."""

    defined_on = ("float", "int", "complex")
    of_nothing = True
    compute = staticmethod(reductions.sum)


@operation("tessera.graph.prod", spellings=("op.prod",), clauses=_CLAUSES)
class Prod(Reduction):
    """The product over the canonical tree; of nothing 1."""

    defined_on = ("float", "int", "complex")
    of_nothing = True
    compute = staticmethod(reductions.prod)


@operation("tessera.graph.mean", spellings=("op.mean",), clauses=_CLAUSES)
class Mean(Reduction):
    """The sum divided by the number of elements, both in the accumulator type; of nothing NaN."""

    defined_on = ("float", "complex")
    of_nothing = True
    compute = staticmethod(reductions.mean)


@operation("tessera.graph.max", spellings=("op.max",), clauses=_CLAUSES)
class Max(Reduction):
    """The largest element; NaN propagates, -0 lies below +0."""

    compute = staticmethod(reductions.max)


@operation("tessera.graph.min", spellings=("op.min",), clauses=_CLAUSES)
class Min(Reduction):
    """The smallest element; NaN propagates, -0 lies below +0."""

    compute = staticmethod(reductions.min)


@operation("tessera.graph.argmax", spellings=("op.argmax",), clauses=_CLAUSES)
class ArgMax(Reduction):
    """The index of the first largest element as int32; the first NaN wins."""

    compute = staticmethod(reductions.argmax)

    @property
    def result_dtype(self) -> DType:
        """int32."""
        return dtype("int32")


@operation("tessera.graph.logsumexp", spellings=("op.logsumexp",), clauses=_CLAUSES)
class LogSumExp(Reduction):
    """log(sum(exp(x))), the maximum subtracted first."""

    defined_on = ("float",)
    compute = staticmethod(reductions.logsumexp)
