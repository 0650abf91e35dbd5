"""Composites (spec sections 2, 4, 10).

Attention, normalization, random numbers, operations with state, optimizer steps."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import ClassVar, TypeVar

from ..ir.operation import (
    Attribute,
    Builder,
    Composite,
    Environment,
    Operand,
    Operation,
    Refusal,
    no_gradient,
    operation,
)
from ..ir.types import Numeric, Scalar, Tensor, Type, Value, show_dim
from ..numerics import random
from ..numerics.array import Array
from ..numerics.formats import DTYPES, DType
from .constant import Constant
from .control import Assert
from .movement import Iota
from .term import (
    Term,
    along_axis,
    constant,
    require_axis,
    require_extents,
    require_float,
    require_held_as,
    require_like,
    require_number,
    require_vector_along,
    widened,
)

# `tessera.graph.flash_attention`: attention as one operation (spec sections 2, 10).


@operation(
    "tessera.graph.flash_attention",
    spellings=("op.flash_attention",),
    clauses=("LANG-02-04", "LANG-10-02", "LANG-10-03", "LANG-10-05", "LANG-10-06"),
)
class FlashAttention(Composite):
    """softmax((q k') * scale) v, (..., L, D) x (..., S, D) x (..., S, E) -> (..., L, E).

    Everything in the accumulator type, scores and weights too, and one final rounding. Products, softmax and their
    order are those of `matmul` and `softmax`, so tf32 rounds the factors of both products: that a schedule may go over
    the keys in blocks, which `block` suggests, changes no bit. `scale` is 1 / sqrt(D), rounded once, unless given. With
    `causal`, query i takes keys 0 to i: the scores of the others become -inf; queries and keys are then as many.
    """

    q: Operand[Tensor]
    k: Operand[Tensor]
    v: Operand[Tensor]
    scale: Attribute[float | None] = None
    causal: Attribute[bool] = False
    block: Attribute[int | None] = None

    orders = ("fold", "pairwise")

    def infer(self) -> Tensor:
        """Return the queries' shape with the values' width; one dtype, one batch, at least one key."""
        q, k, v = self.q, self.k, self.v
        require_float(q)
        require_held_as("k", k, q)
        require_held_as("v", v, q)
        ranks = {q.rank, k.rank, v.rank}
        if len(ranks) != 1 or min(ranks) < 2:
            message = f"operands have ranks {q.rank}, {k.rank} and {v.rank}"
            raise Refusal("shapes", message, "one rank of at least 2", "LANG-05.2-02")
        self._require_shapes()
        if self.scale is not None and not math.isfinite(self.scale):
            raise Refusal("numerics", f"scale is {self.scale}", "a finite number", "LANG-02-04")
        if self.block is not None and self.block <= 0:
            raise Refusal("schedule", f"block is {self.block}", "block >= 1", "LANG-06.3-01")
        return Tensor((*q.shape[:-1], v.shape[-1]), q.dtype)

    def _require_shapes(self) -> None:
        q, k, v = self.q, self.k, self.v
        for what, a, b, one, other in (
            ("batch dimensions", q, k, q.shape[:-2], k.shape[:-2]),
            ("batch dimensions", q, v, q.shape[:-2], v.shape[:-2]),
            ("widths of queries and keys", q, k, q.shape[-1:], k.shape[-1:]),
            ("numbers of keys and values", k, v, k.shape[-2:-1], v.shape[-2:-1]),
        ):
            if one != other:
                raise Refusal("shapes", f"{what} differ: {a} and {b}", f"equal {what}", "LANG-05.4-01")
        if k.shape[-2] == 0:
            raise Refusal("shapes", "there are no keys", "at least one key", "LANG-05.2-03")
        if self.causal and q.shape[-2] != k.shape[-2]:
            message = f"causal: {show_dim(q.shape[-2])} queries and {show_dim(k.shape[-2])} keys"
            raise Refusal("shapes", message, "as many queries as keys", "LANG-03.2-03")

    def decompose(self, build: Builder, *operands: Value) -> Value:
        q, k, v = (Term(operand, build) for operand in operands)
        rank, wide = self.q.rank, self.q.dtype.accumulator
        scores = q.matmul(k.transpose(perm=(*range(rank - 2), rank - 1, rank - 2)), out=wide)
        scores = scores * self._scale(scores)
        if self.causal:
            scores = self._masked(scores)
        factors = self.q.dtype if self.q.dtype.storage == wide else wide
        weights = scores.softmax(axis=-1).cast_to(factors)
        return weights.matmul(v.cast_to(factors), out=self.q.dtype).value

    def _scale(self, scores: Term) -> Term:
        if self.scale is not None:
            return scores.beside(Fraction(self.scale))
        width = self.q.shape[-1]
        assert isinstance(width, int)
        return constant(scores.build, width, scores.dtype).rsqrt()

    def _masked(self, scores: Term) -> Term:
        """Return the scores with -inf where a key comes after its query, the same for every matrix of the batch."""
        build, square = scores.build, self.q.shape[-2:-1] * 2
        query, key = (Term(build(Iota, shape=square, axis=axis), build) for axis in (0, 1))
        nothing = Term(build(Constant, value=-math.inf, dtype=scores.dtype), build)
        return (key > query).select(nothing, scores)


# `tessera.graph.layer_norm` and `rms_norm`: normalization along one axis (spec sections 2, 10).


_NORMALIZATION = ("LANG-02-04", "LANG-10-01", "LANG-10-05", "LANG-10-06")


@operation("tessera.graph.layer_norm", spellings=("op.layer_norm",), clauses=_NORMALIZATION)
class LayerNorm(Composite):
    """Each row along the axis centred, divided by its standard deviation, times gamma, plus beta.

    In the accumulator type, each step rounded, means as `mean` has them, then one rounding to x's dtype:
    c = x - mean(x); v = mean(c * c); y = ((c * rsqrt(v + eps)) * gamma) + beta.
    """

    x: Operand[Tensor]
    gamma: Operand[Tensor]
    beta: Operand[Tensor]
    axis: Attribute[int] = -1
    eps: Attribute[float] = 1e-5

    orders = ("pairwise",)

    def infer(self) -> Tensor:
        """Return x's type; gamma and beta have an element for each position along the axis."""
        require_float(self.x)
        require_axis(self.axis, self.x.rank)
        require_vector_along("gamma", self.gamma, self.x, self.axis)
        require_vector_along("beta", self.beta, self.x, self.axis)
        require_number("eps", self.eps)
        return self.x

    def decompose(self, build: Builder, *operands: Value) -> Value:
        x, gamma, beta = (widened(operand, build) for operand in operands)
        centred = x - x.mean(axis=self.axis, keepdims=True)
        variance = (centred * centred).mean(axis=self.axis, keepdims=True)
        unit = centred * (variance + Fraction(self.eps)).rsqrt()
        rank = self.x.rank
        scaled = unit * along_axis(gamma, self.axis, rank) + along_axis(beta, self.axis, rank)
        return scaled.cast_to(self.x.dtype).value


@operation("tessera.graph.rms_norm", spellings=("op.rms_norm",), clauses=_NORMALIZATION)
class RmsNorm(Composite):
    """Each row along the axis divided by its root mean square, times gamma.

    In the accumulator type, each step rounded, then one rounding to x's dtype:
    s = mean(x * x); y = (x * rsqrt(s + eps)) * gamma.
    """

    x: Operand[Tensor]
    gamma: Operand[Tensor]
    axis: Attribute[int] = -1
    eps: Attribute[float] = 1e-6

    orders = ("pairwise",)

    def infer(self) -> Tensor:
        """Return x's type; gamma has an element for each position along the axis."""
        require_float(self.x)
        require_axis(self.axis, self.x.rank)
        require_vector_along("gamma", self.gamma, self.x, self.axis)
        require_number("eps", self.eps)
        return self.x

    def decompose(self, build: Builder, *operands: Value) -> Value:
        x, gamma = (widened(operand, build) for operand in operands)
        square = (x * x).mean(axis=self.axis, keepdims=True)
        unit = x * (square + Fraction(self.eps)).rsqrt()
        return (unit * along_axis(gamma, self.axis, self.x.rank)).cast_to(self.x.dtype).value


# Random operations: `uniform`, `normal`, `dropout` (spec section 4; LANG-04-06; AMB-RT-23, AMB-RT-74).
#
# Seed, stream and element index determine every number. An operation without a seed uses that of the run, and one
# without a stream takes the next one of the run: draws are numbered in the order of execution, every turn of a loop
# separately. Both begin at 0, or where the descriptor of a launch says (AMB-RT-175). That number is the effect of a
# random operation. A draw depends on no value, so it has no gradient.


_RANDOM = ("LANG-02-04", "LANG-04-06")
_EFFECTS = frozenset({"random"})


@dataclass(frozen=True)
class Draw(Operation):
    """The base of all draws: a shape, and the source of their numbers."""

    shape: Attribute[tuple[int, ...]]
    seed: Attribute[int | None] = None
    stream: Attribute[int | None] = None
    offset: Attribute[int] = 0
    """The index of the first element, where the tensor is a part of a larger one."""

    effects = _EFFECTS
    adjoint = no_gradient

    def infer(self) -> Numeric:
        """Return the requested shape, as float; a scalar where it has no dimensions."""
        require_extents("shape", self.shape)
        require_source(self.seed, self.stream, self.offset)
        return Tensor(self.shape, self.result_dtype) if self.shape else Scalar(self.result_dtype)

    @property
    def result_dtype(self) -> DType:
        """The dtype of the numbers."""
        raise TypeError(f"{self.name} has no dtype")


@dataclass(frozen=True)
class Distribution(Draw):
    """Float numbers of a distribution."""

    dtype: Attribute[DType] = DTYPES["fp32"]

    draw: ClassVar[Callable[..., Array]]

    def infer(self) -> Numeric:
        """Return the requested shape, of a float dtype."""
        result = super().infer()
        require_float(result)
        return result

    @property
    def result_dtype(self) -> DType:
        return self.dtype

    def execute(self, env: Environment) -> Array:
        return type(self).draw(*source_of(self, env), self.shape, self.dtype, self.offset)


@operation("tessera.graph.uniform", spellings=("op.uniform",), clauses=_RANDOM)
class Uniform(Distribution):
    """Numbers spread evenly over [0, 1): multiples of 2**-p, p the significand bits of the dtype."""

    draw = staticmethod(random.uniform)


@operation("tessera.graph.normal", spellings=("op.normal",), clauses=_RANDOM)
class Normal(Distribution):
    """Numbers of mean 0 and variance 1, by Box and Muller."""

    draw = staticmethod(random.normal)


@operation("tessera.graph.dropout_mask", clauses=_RANDOM)
class DropoutMask(Draw):
    """The elements that a dropout keeps, as bool."""

    rate: Attribute[float] = 0.0

    def infer(self) -> Numeric:
        """Return the requested shape, of bool."""
        require_number("rate", self.rate, below=1)
        return super().infer()

    @property
    def result_dtype(self) -> DType:
        return DTYPES["bool"]

    def execute(self, env: Environment) -> Array:
        return random.dropout_mask(self.rate, *source_of(self, env), self.shape, self.offset)


@operation("tessera.graph.dropout", spellings=("op.dropout",), clauses=_RANDOM)
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
        """Return x's type."""
        require_float(self.x)
        require_number("rate", self.rate, below=1)
        require_source(self.seed, self.stream, self.offset)
        return self.x

    def decompose(self, build: Builder, *operands: Value) -> Value:
        (x,) = operands
        source = {"seed": self.seed, "stream": self.stream, "offset": self.offset}
        keeps = Term(build(DropoutMask, shape=self.x.shape, rate=self.rate, **source), build)
        scaled = (widened(x, build) / (1 - Fraction(self.rate))).cast_to(self.x.dtype)
        return scaled.where(keeps).value


def source_of(draw: Draw, env: Environment) -> tuple[int, int]:
    """Return the seed of the attributes, or that of the run, and the stream."""
    return env.seed if draw.seed is None else draw.seed, stream_of(draw.stream, env)


def stream_of(stream: int | None, env: Environment) -> int:
    """Return the stream of the attributes, or the next of the run."""
    return env.next_stream() if stream is None else stream


def require_source(seed: int | None, stream: int | None, offset: int) -> None:
    """Require numbers that the generator takes. Raises `Refusal`."""
    for name, value, limit in (("seed", seed or 0, 64), ("stream", stream or 0, 64), ("offset", offset, 63)):
        if not 0 <= value < 1 << limit:
            raise Refusal("types", f"{name} is {value}", f"0 <= {name} < 2**{limit}", "LANG-04-06")


# Operations with state: what they share, and `batch_norm` (spec section 4; LANG-04-07, LANG-04-08).
#
# Values are pure, so the state is passed and returned: beside its result an operation returns the state for the next
# call. It counts as effectful nevertheless, as the text requires: a call stays in its place, whether its results are
# used or not.
#
# An expression of the language has one value. So a call with all its results stands alone in a return, and `only`
# names the one result that another expression takes.


T = TypeVar("T")


@dataclass(frozen=True)
class Stateful(Composite):
    """The base of operations with state: several results, of which `only` takes one."""

    only: Attribute[str | None] = field(default=None, kw_only=True)

    effects = frozenset({"state"})
    gives: ClassVar[tuple[str, ...]]
    """The names of the results."""

    def infer(self) -> tuple[Type, ...]:
        """Return the types of all results, or of the requested one."""
        if self.only not in (None, *self.gives):
            message = f"there is no result {self.only!r}"
            raise Refusal("types", message, f"one of {', '.join(self.gives)}", "LANG-02.3-13")
        return self._taken(self.every_result())

    def decompose(self, build: Builder, *operands: Value) -> tuple[Value, ...]:
        """Build the steps, and return the requested results."""
        return self._taken(self.compute(build, *operands))

    @abstractmethod
    def every_result(self) -> tuple[Type, ...]:
        """Return the type of each result. Raises `Refusal` for operands that the operation does not take."""

    @abstractmethod
    def compute(self, build: Builder, *operands: Value) -> tuple[Value, ...]:
        """Build the steps, and return each result."""

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
    statistics are used for m and v, and stay as they are. Results are rounded once: y to x's dtype, a statistic to its
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
    orders = ("pairwise",)

    def every_result(self) -> tuple[Type, ...]:
        """Return the types of x and of the statistics; all but x have an element for each channel."""
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
        x, gamma, beta, old_mean, old_variance = (widened(operand, build) for operand in operands)
        mean = self._of_channels(x).mean(axis=1) if self.training else old_mean
        centred = x - self._along(mean)
        variance = self._of_channels(centred * centred).mean(axis=1) if self.training else old_variance
        unit = centred * self._along((variance + Fraction(self.eps)).rsqrt())
        y = (unit * self._along(gamma) + self._along(beta)).cast_to(self.x.dtype)
        if not self.training:
            return y.value, *operands[3:]
        new_mean = self._moved(old_mean, mean).cast_to(self.running_mean.dtype)
        new_variance = self._moved(old_variance, variance).cast_to(self.running_variance.dtype)
        return y.value, new_mean.value, new_variance.value

    def _along(self, vector: Term) -> Term:
        return along_axis(vector, self.axis, self.x.rank)

    def _of_channels(self, x: Term) -> Term:
        """Return a row for each channel, with its elements in row-major order."""
        channel = self.axis % self.x.rank
        others = [axis for axis in range(self.x.rank) if axis != channel]
        count = prod(extent for axis, extent in enumerate(x.shape) if axis != channel)
        return x.transpose(perm=(channel, *others)).reshape(shape=(x.shape[channel], count))

    def _moved(self, old: Term, new: Term) -> Term:
        share = Fraction(self.momentum)
        return old * (1 - share) + new * share


# Optimizer steps: `sgd` and `adamw` (spec section 4; LANG-04-08).
#
# As in `stateful`, the state is passed and returned, and a step counts as effectful. Every step of the arithmetic is
# rounded in the accumulator type. A result is rounded once to the dtype of the operand that it replaces, which for
# the state is that of the parameter or of its accumulator.


_OPTIMIZERS = ("LANG-02-04", "LANG-04-08")


@operation("tessera.graph.sgd", spellings=("op.sgd",), clauses=_OPTIMIZERS)
class Sgd(Stateful):
    """A step of gradient descent with momentum, which returns parameter and velocity for the next step.

    u = (velocity * momentum) + gradient; the parameter becomes parameter - (u * rate), the velocity u.
    """

    parameter: Operand[Tensor | Scalar]
    gradient: Operand[Tensor | Scalar]
    velocity: Operand[Tensor | Scalar]
    rate: Attribute[float]
    momentum: Attribute[float] = 0.9

    gives = ("parameter", "velocity")

    def every_result(self) -> tuple[Type, ...]:
        """Return the types of parameter and velocity; all three operands have one shape."""
        require_float(self.parameter)
        require_like("gradient", self.gradient, self.parameter)
        require_like("velocity", self.velocity, self.parameter, wide=True)
        require_number("rate", self.rate)
        require_number("momentum", self.momentum)
        return self.parameter, self.velocity

    def compute(self, build: Builder, *operands: Value) -> tuple[Value, ...]:
        parameter, gradient, velocity = (widened(operand, build) for operand in operands)
        moved = velocity * Fraction(self.momentum) + gradient
        stepped = parameter - moved * Fraction(self.rate)
        return stepped.cast_to(self.parameter.dtype).value, moved.cast_to(self.velocity.dtype).value


@operation("tessera.graph.adamw", spellings=("op.adamw",), clauses=_OPTIMIZERS)
class AdamW(Stateful):
    """A step of Adam with decoupled weight decay; (parameter, m, v) as the next step is to have them.

    With g the gradient, p the parameter and t the step, which counts from 1:
    m' = (m * beta1) + (g * (1 - beta1)); v' = (v * beta2) + ((g * g) * (1 - beta2));
    a = m' / (1 - pow(beta1, t)); b = v' / (1 - pow(beta2, t));
    p' = p - (((a / (sqrt(b) + eps)) + (p * decay)) * rate).
    The numbers beta1, beta2, 1 - beta1, 1 - beta2, eps, decay and rate are rounded once each; t is cast.
    """

    parameter: Operand[Tensor | Scalar]
    gradient: Operand[Tensor | Scalar]
    m: Operand[Tensor | Scalar]
    v: Operand[Tensor | Scalar]
    step: Operand[Scalar]
    rate: Attribute[float]
    beta1: Attribute[float] = 0.9
    beta2: Attribute[float] = 0.999
    eps: Attribute[float] = 1e-8
    decay: Attribute[float] = 0.01

    gives = ("parameter", "m", "v")

    def every_result(self) -> tuple[Type, ...]:
        """Return the types of the parameter and its state, which have one shape; the step is an int32."""
        require_float(self.parameter)
        require_like("gradient", self.gradient, self.parameter)
        require_like("m", self.m, self.parameter, wide=True)
        require_like("v", self.v, self.parameter, wide=True)
        if self.step != Scalar(DTYPES["int32"]):
            raise Refusal("types", f"step is {self.step}, not int32", "int32", "LANG-11-01")
        for name in ("rate", "eps", "decay"):
            require_number(name, getattr(self, name))
        for name in ("beta1", "beta2"):
            require_number(name, getattr(self, name), below=1)
        return self.parameter, self.m, self.v

    def compute(self, build: Builder, *operands: Value) -> tuple[Value, ...]:
        """Return the results of the steps above; a step below 1 ends execution."""
        *moments, count = operands
        step = Term(count, build)
        build.all(Assert, step.greater_equal(1).value, message="adamw counts steps from 1")
        parameter, gradient, m, v = (widened(operand, build) for operand in moments)
        m = m * Fraction(self.beta1) + gradient * (1 - Fraction(self.beta1))
        v = v * Fraction(self.beta2) + (gradient * gradient) * (1 - Fraction(self.beta2))
        time = step.cast_to(parameter.dtype)
        mean, square = m / _lacking(self.beta1, time), v / _lacking(self.beta2, time)
        change = mean / (square.sqrt() + Fraction(self.eps)) + parameter * Fraction(self.decay)
        stepped = parameter - change * Fraction(self.rate)
        results, types = (stepped, m, v), (self.parameter, self.m, self.v)
        return tuple(term.cast_to(type_.dtype).value for term, type_ in zip(results, types, strict=True))


def _lacking(beta: float, time: Term) -> Term:
    """Return 1 - pow(beta, t): the total weight that an average of t steps from 0 has gathered."""
    return 1 - constant(time.build, Fraction(beta), time.dtype).pow(time)
