"""Random operations: `uniform`, `normal`, `dropout` (spec section 4; LANG-04-06; AMB-RT-23, AMB-RT-74).

What is drawn follows from seed, stream and element index alone. An operation that is told no seed has that of the run,
and one that is told no stream takes the next one of the run: draws are numbered in the order in which they are
executed, every turn of a loop for itself. Both begin at 0, or where the descriptor of a launch says (AMB-RT-175). That
number is the effect of a random operation. A draw depends on no value, so it has no gradient.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ..ir.module import Value
from ..ir.operation import Applied, Attribute, Builder, Environment, Operand, Operation, operation, require
from ..ir.stepwise import Composite
from ..ir.types import Numeric, Scalar, Tensor
from ..numerics import random
from ..numerics.array import Array
from ..numerics.formats import DTYPES, DType
from .axes import require_extents
from .compositions import require_number, widened
from .dtypes import require_float
from .term import Term

_CLAUSES = ("LANG-02-04", "LANG-04-06")
_EFFECTS = frozenset({"random"})


@dataclass(frozen=True)
class Draw(Operation):
    """What all draws share: a shape, and where their numbers come from."""

    shape: Attribute[tuple[int, ...]]
    seed: Attribute[int | None] = None
    stream: Attribute[int | None] = None
    offset: Attribute[int] = 0
    """The index of the first element, where the tensor is a part of a larger one."""

    effects = _EFFECTS

    def infer(self) -> Numeric:
        """The shape asked for, as float; a scalar where it has no dimensions."""
        require_extents("shape", self.shape)
        require_source(self.seed, self.stream, self.offset)
        return Tensor(self.shape, self.result_dtype) if self.shape else Scalar(self.result_dtype)

    @property
    def result_dtype(self) -> DType:
        """The dtype of the numbers."""
        raise TypeError(f"{self.name} has no dtype")

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """It depends on nothing."""
        return ()


@dataclass(frozen=True)
class Distribution(Draw):
    """Float numbers of a distribution."""

    dtype: Attribute[DType] = DTYPES["fp32"]

    draw: ClassVar[Callable[..., Array]]

    def infer(self) -> Numeric:
        """A float dtype."""
        found = super().infer()
        require_float(found)
        return found

    @property
    def result_dtype(self) -> DType:
        """The dtype asked for."""
        return self.dtype

    def execute(self, env: Environment) -> Array:
        """The numbers by the canon."""
        return type(self).draw(*source_of(self, env), self.shape, self.dtype, self.offset)


@operation("tessera.graph.uniform", spellings=("op.uniform",), clauses=_CLAUSES)
class Uniform(Distribution):
    """Numbers spread evenly over [0, 1): multiples of 2**-p, p the significand bits of the dtype."""

    draw = staticmethod(random.uniform)


@operation("tessera.graph.normal", spellings=("op.normal",), clauses=_CLAUSES)
class Normal(Distribution):
    """Numbers of mean 0 and variance 1, by Box and Muller."""

    draw = staticmethod(random.normal)


@operation("tessera.graph.dropout_mask", clauses=_CLAUSES)
class DropoutMask(Draw):
    """Which elements a dropout keeps, as bool."""

    rate: Attribute[float] = 0.0

    def infer(self) -> Numeric:
        """The shape asked for."""
        require_number("rate", self.rate, below=1)
        return super().infer()

    @property
    def result_dtype(self) -> DType:
        """bool."""
        return DTYPES["bool"]

    def execute(self, env: Environment) -> Array:
        """The mask by the canon."""
        return random.dropout_mask(self.rate, *source_of(self, env), self.shape, self.offset)


@operation("tessera.graph.dropout", spellings=("op.dropout",), clauses=_CLAUSES)
class Dropout(Composite):
    """About `rate` of the elements replaced by +0, the others divided by 1 - rate; the gradient has the same mask.

    1 - rate is rounded to the accumulator type, the quotient in it, and then to x's dtype.
    """

    x: Operand[Tensor]
    rate: Attribute[float]
    seed: Attribute[int | None] = None
    stream: Attribute[int | None] = None
    offset: Attribute[int] = 0

    effects = _EFFECTS

    def infer(self) -> Tensor:
        """x's type."""
        require_float(self.x)
        require_number("rate", self.rate, below=1)
        require_source(self.seed, self.stream, self.offset)
        return self.x

    def decompose(self, build: Builder, *operands: Value) -> Value:
        """A mask, a quotient, a choice."""
        (x,) = operands
        source = {"seed": self.seed, "stream": self.stream, "offset": self.offset}
        keeps = Term(build(DropoutMask, shape=self.x.shape, rate=self.rate, **source), build)
        scaled = (widened(x, build) / (1 - Fraction(self.rate))).cast_to(self.x.dtype)
        return scaled.where(keeps).value


def source_of(draw: Draw, env: Environment) -> tuple[int, int]:
    """The seed that is told, or that of the run, and the stream."""
    return env.seed if draw.seed is None else draw.seed, stream_of(draw.stream, env)


def stream_of(stream: int | None, env: Environment) -> int:
    """The stream that is told, or the next of the run."""
    return env.next_stream() if stream is None else stream


def require_source(seed: int | None, stream: int | None, offset: int) -> None:
    """Numbers that the generator takes. Raises `Refusal`."""
    for name, value, limit in (("seed", seed or 0, 64), ("stream", stream or 0, 64), ("offset", offset, 63)):
        require(
            0 <= value < 1 << limit,
            "types",
            f"{name} is {value}",
            f"0 <= {name} < 2**{limit}",
            "LANG-04-06",
        )
