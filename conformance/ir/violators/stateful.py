"""Batch norms and optimizers that count as pure, keep their state, or compute another result (AMB-LANG-173 to -176)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import make
from tessera_reference.graph.composites import AdamW, BatchNorm, Sgd, Stateful
from tessera_reference.graph.term import Term, require_like, widened
from tessera_reference.ir.operation import Operation

from .changes import changed
from .random_operations import cleaned, without_twins

NORM, OPTIMIZER = "LANG-04-07", "LANG-04-08"


# Effects


def counted_as_pure(name: str, clause: str, description: str, *operations: type[Operation]) -> Violation:
    """Return a violation with operations without effects."""
    substitutions: list[tuple[Any, str, Any]] = [(operation, "effects", frozenset()) for operation in operations]
    return replaced(clause, description, make, *substitutions, name=name)


EFFECTS = [
    counted_as_pure("pure_norm", NORM, "says that a batch norm has no effect", BatchNorm),
    counted_as_pure("pure_step", OPTIMIZER, "says that optimizers have no effect", Sgd, AdamW),
    cleaned("equal_norms_merged", NORM, "takes equal batch norms for one", without_twins(BatchNorm)),
    cleaned("equal_steps_merged", OPTIMIZER, "takes equal steps for one", without_twins(Sgd, AdamW)),
]


def remembering(operation: type[Stateful], state: int) -> Callable[..., Any]:
    """Return an operation whose state is its last result, if that has the shape; else the passed state."""
    steps = operation.steps
    kept: dict[Any, Any] = {}

    def run(self: Any, *operands: Any, env: Any) -> Any:
        given = list(operands)
        last = kept.get((self.name, operands[0].shape, operands[0].dtype))
        if last is not None:
            given[state] = last
        results = yield from steps(self, *given, env=env)
        if self.only is None:
            kept[self.name, operands[0].shape, operands[0].dtype] = results[1]
        return results

    return run


MEMORY = [
    replaced(OPTIMIZER, "goes on with the average that it gave the last time", make,
        ("graph.composites.AdamW.steps", remembering(AdamW, 2)), name="remembers_averages"),
]  # fmt: skip


# Batch norm


def batch_normed(name: str, clause: str, description: str, attribute: str, substitute: Any) -> Violation:
    """Return a violation that replaces one attribute of batch norms."""
    return changed(clause, name, description, (BatchNorm, attribute, substitute), only=["batch_norm"])


def by_difference(self: Any, old: Term, new: Term) -> Term:
    return old + (new - old) * Fraction(self.momentum)


def exchanged(self: Any, old: Term, new: Term) -> Term:
    share = Fraction(self.momentum)
    return old * share + new * (1 - share)


def in_another_order(self: Any, x: Term) -> Term:
    channel = self.axis % self.x.rank
    others = [axis for axis in range(self.x.rank) if axis != channel]
    return x.transpose(perm=(channel, *others[::-1])).reshape(shape=(x.shape[channel], -1))


def computed(change: Callable[[Any, tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]]) -> Callable[..., Any]:
    """Return a computation that changes the results, given the operation and its operands."""
    compute = BatchNorm.compute

    def other(self: Any, build: Any, *operands: Any) -> tuple[Any, ...]:
        return change(self, compute(self, build, *operands), (build, *operands))

    return other


def unbiased(self: Any, results: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[Any, ...]:
    build, variance = given[0], given[-1]
    extents = [extent for axis, extent in enumerate(self.x.shape) if axis != self.axis % self.x.rank]
    count = 1
    for extent in extents:
        count *= extent
    if not self.training or count < 2:
        return results
    taken = widened(results[2], build) - widened(variance, build) * (1 - Fraction(self.momentum))
    moved = widened(variance, build) * (1 - Fraction(self.momentum)) + taken * Fraction(count, count - 1)
    return results[0], results[1], moved.cast_to(self.running_variance.dtype).value


def always_moving(self: Any, results: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[Any, ...]:
    build, *operands = given
    if self.training:
        return results
    moved = [widened(operand, build) * (1 - Fraction(self.momentum)) for operand in operands[3:]]
    kinds = (self.running_mean.dtype, self.running_variance.dtype)
    return results[0], *(value.cast_to(kind).value for value, kind in zip(moved, kinds, strict=True))


NORMS = [
    batch_normed("by_difference", "LANG-02-04", "moves statistics by a share of the difference", "_moved",
        by_difference),
    batch_normed("channel_order", "LANG-10-01", "adds a channel up last axis first", "_of_channels", in_another_order),
    batch_normed("unbiased", NORM, "keeps the variance over one less than the count", "compute", computed(unbiased)),
    batch_normed("always_moving", NORM, "moves statistics without training", "compute", computed(always_moving)),
]  # fmt: skip


# Optimizers


def stepped(
    name: str, clause: str, description: str, operation: type[Stateful], compute: Callable[..., Any]
) -> Violation:
    """Return a violation with another step."""
    only = [operation.name.rpartition(".")[2]]
    return changed(clause, name, description, (operation, "compute", compute), only=only)


def sgd(step: Callable[[Any, Term, Term, Term], tuple[Term, Term]]) -> Callable[..., Any]:
    """Return a step from parameter, gradient and velocity to parameter and velocity."""

    def compute(self: Any, build: Any, *operands: Any) -> tuple[Any, ...]:
        parameter, velocity = step(self, *(widened(operand, build) for operand in operands))
        return parameter.cast_to(self.parameter.dtype).value, velocity.cast_to(self.velocity.dtype).value

    return compute


def rate_in_velocity(self: Any, p: Term, g: Term, u: Term) -> tuple[Term, Term]:
    moved = u * Fraction(self.momentum) + g * Fraction(self.rate)
    return p - moved, moved


def velocity_rounded(self: Any, p: Term, g: Term, u: Term) -> tuple[Term, Term]:
    moved = u * Fraction(self.momentum) + g
    return p - moved.cast_to(self.velocity.dtype).cast_to(moved.dtype) * Fraction(self.rate), moved


def adamw(bias: bool = True, inside: bool = False, decay: str = "beside") -> Callable[..., Any]:
    """Return a step without bias correction, with eps inside the root, or with the decay in the gradient or first."""

    def compute(self: Any, build: Any, *operands: Any) -> tuple[Any, ...]:
        p, g, m, v = (widened(operand, build) for operand in operands[:4])
        beta1, beta2, eps, lost = (Fraction(getattr(self, name)) for name in ("beta1", "beta2", "eps", "decay"))
        g = g + p * lost if decay == "gradient" else g
        m = m * beta1 + g * (1 - beta1)
        v = v * beta2 + (g * g) * (1 - beta2)
        time = Term(operands[4], build).cast_to(p.dtype)
        first, second = ((1 - p.beside(beta).pow(time)) if bias else p.beside(1) for beta in (beta1, beta2))
        mean, square = m / first, v / second
        root = (square + eps).sqrt() if inside else square.sqrt() + eps
        change = mean / root + (p * lost if decay == "beside" else p.beside(0))
        start = p * (1 - Fraction(self.rate) * lost) if decay == "before" else p
        results = (start - change * Fraction(self.rate), m, v)
        kinds = (self.parameter.dtype, self.m.dtype, self.v.dtype)
        return tuple(result.cast_to(kind).value for result, kind in zip(results, kinds, strict=True))

    return compute


STEPS = [
    stepped("rate_in_velocity", OPTIMIZER, "keeps the rate in the velocity", Sgd, sgd(rate_in_velocity)),
    stepped("velocity_rounded", "LANG-02-04", "takes the velocity as it is stored", Sgd, sgd(velocity_rounded)),
    stepped("eps_inside", "LANG-02-04", "adds eps under the root", AdamW, adamw(inside=True)),
    stepped("step_0", "LANG-02-04", "takes step 0", AdamW, adamw()),
]


# Operands


def unlike(name: str, *others: Any, **options: Any) -> None:
    """The comparison with the parameter, not made for the second moment."""
    if name != "v":
        require_like(name, *others, **options)


OPERANDS = [
    replaced("LANG-02-04", "takes second moments of any shape", make, ("graph.composites.require_like", unlike),
        name="any_v"),
]  # fmt: skip


# Results

RESULTS = [
    replaced(OPTIMIZER, "gives the first result whichever is asked for", make,
        ("graph.composites.Stateful._taken", lambda self, results: results if self.only is None else results[:1]),
        name="always_the_first"),
]  # fmt: skip
