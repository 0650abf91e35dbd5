"""Operations with state: what they share, and `batch_norm` (spec section 4; LANG-04-07, LANG-04-08).

Values are pure, so the state is passed and returned: beside its result an operation gives the state as the next call is
to have it. It counts as effectful nevertheless, as the text has it: a call stays where it is, whether its results are
used or not.

An expression of the language has one value. So a call with all its results stands alone in a return, and `only` names
the one result that another expression takes.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar, TypeVar

from ..ir.module import Value
from ..ir.operation import Attribute, Builder, Operand, operation, require
from ..ir.stepwise import Composite
from ..ir.types import Tensor, Type
from .axes import require_axis
from .compositions import along_axis, number, require_number, require_vector_along, widened
from .dtypes import require_float
from .term import Term

T = TypeVar("T")


@dataclass(frozen=True)
class Stateful(Composite):
    """What operations with state share: several results, of which `only` takes one."""

    only: Attribute[str | None] = field(default=None, kw_only=True)

    effects = frozenset({"state"})
    gives: ClassVar[tuple[str, ...]]
    """The names of the results."""

    def infer(self) -> tuple[Type, ...]:
        """All results, or the one that is asked for."""
        require(
            self.only in (None, *self.gives),
            "types",
            f"there is no result {self.only!r}",
            f"one of {', '.join(self.gives)}",
            "LANG-02.3-13",
        )
        return self._taken(self.every_result())

    def decompose(self, build: Builder, *operands: Value) -> tuple[Value, ...]:
        """The steps, and the results that are asked for."""
        return self._taken(self.compute(build, *operands))

    @abstractmethod
    def every_result(self) -> tuple[Type, ...]:
        """The type of each result; refuses what the operation does not take."""

    @abstractmethod
    def compute(self, build: Builder, *operands: Value) -> tuple[Value, ...]:
        """Build the steps; each result."""

    def _taken(self, results: tuple[T, ...]) -> tuple[T, ...]:
        return results if self.only is None else (results[self.gives.index(self.only)],)


@operation(
    "tessera.graph.batch_norm",
    spellings=("op.batch_norm",),
    clauses=("LANG-02-04", "LANG-04-07", "LANG-10-01", "LANG-10-05", "LANG-10-06"),
)
class BatchNorm(Stateful):
    """Each channel, a position along the axis, normalized over all other axes; then the statistics to go on with.

    In the accumulator type, each step rounded: m = mean(x) and v = mean(c * c), c = x - m, of each channel, its
    elements taken in row-major order; y = ((c * rsqrt(v + eps)) * gamma) + beta. A running statistic r becomes
    (r * (1 - momentum)) + (s * momentum), s being m or v and 1 - momentum rounded once. Without `training` the running
    statistics stand for m and v, and stay as they are. Results are rounded once: y to x's dtype, a statistic to its
    own, which is x's or its accumulator's.
    """

    x: Operand[Tensor]
    gamma: Operand[Tensor]
    beta: Operand[Tensor]
    running_mean: Operand[Tensor]
    running_variance: Operand[Tensor]
    axis: Attribute[int] = 1
    momentum: Attribute[float] = 0.1
    eps: Attribute[float] = 1e-5
    training: Attribute[bool] = True

    gives = ("y", "mean", "variance")

    def every_result(self) -> tuple[Type, ...]:
        """The types of x and of the statistics; all but x have an element for each channel."""
        require_float(self.x)
        require_axis(self.axis, self.x.rank)
        require_vector_along("gamma", self.gamma, self.x, self.axis)
        require_vector_along("beta", self.beta, self.x, self.axis)
        require_vector_along("running_mean", self.running_mean, self.x, self.axis, wide=True)
        require_vector_along("running_variance", self.running_variance, self.x, self.axis, wide=True)
        require_number("momentum", self.momentum, most=1)
        require_number("eps", self.eps)
        return self.x, self.running_mean, self.running_variance

    def compute(self, build: Builder, *operands: Value) -> tuple[Value, ...]:
        """The steps above."""
        x, gamma, beta, old_mean, old_variance = (widened(operand, build) for operand in operands)
        mean = self._of_channels(x).mean(axis=1) if self.training else old_mean
        centred = x - self._along(mean)
        variance = self._of_channels(centred * centred).mean(axis=1) if self.training else old_variance
        unit = centred * self._along((variance + number(self.eps)).rsqrt())
        y = (unit * self._along(gamma) + self._along(beta)).cast_to(self.x.dtype)
        if not self.training:
            return y.value, *operands[3:]
        new_mean = self._moved(old_mean, mean).cast_to(self.running_mean.dtype)
        new_variance = self._moved(old_variance, variance).cast_to(self.running_variance.dtype)
        return y.value, new_mean.value, new_variance.value

    def _along(self, vector: Term) -> Term:
        return along_axis(vector, self.axis, self.x.rank)

    def _of_channels(self, x: Term) -> Term:
        """A row for each channel, with its elements in row-major order."""
        channel = self.axis % self.x.rank
        others = [axis for axis in range(self.x.rank) if axis != channel]
        count = prod(extent for axis, extent in enumerate(x.shape) if axis != channel)
        return x.transpose(perm=(channel, *others)).reshape(shape=(x.shape[channel], count))

    def _moved(self, old: Term, new: Term) -> Term:
        share = number(self.momentum)
        return old * (1 - share) + new * share
