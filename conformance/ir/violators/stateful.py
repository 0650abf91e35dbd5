"""Batch norms and optimizers that count as pure, keep their state, or compute another result (AMB-LANG-173 to -176)."""

from fractions import Fraction
from math import prod

from tessera_conformance.strength import replaced
from tessera_reference.adapter import make
from tessera_reference.graph.composites import AdamW, BatchNorm, Sgd
from tessera_reference.graph.term import Term, widened

from .changes import around, breaks, changed, instead, wrapped
from .random_operations import cleaned, without_twins

NORM, OPTIMIZER = "LANG-04-07", "LANG-04-08"


def counted_as_pure(clause, name, description, *operations):
    """Return a violation with operations without effects."""
    substitutions = [(operation, "effects", frozenset()) for operation in operations]
    return replaced(clause, description, make, *substitutions, name=name)


KEPT = {}


@breaks(OPTIMIZER, "goes on with the average that it gave the last time", "graph.composites.AdamW.steps")
def remembers_averages(usual, self, *operands, env):
    key = (self.name, operands[0].shape, operands[0].dtype)
    results = yield from usual(self, *operands[:2], KEPT.get(key, operands[2]), *operands[3:], env=env)
    if self.only is None:
        KEPT[key] = results[1]
    return results


def batch_normed(clause, name, description, attribute, substitute):
    """Return a violation that replaces one attribute of batch norms."""
    return changed(clause, name, description, (BatchNorm, attribute, substitute), only=["batch_norm"])


def in_another_order(self, x):
    channel = self.axis % self.x.rank
    others = [axis for axis in range(self.x.rank) if axis != channel]
    return x.transpose(perm=(channel, *others[::-1])).reshape(shape=(x.shape[channel], -1))


def unbiased(usual, self, build, *operands):
    results = usual(self, build, *operands)
    count = prod(extent for axis, extent in enumerate(self.x.shape) if axis != self.axis % self.x.rank)
    if not self.training or count < 2:
        return results
    share = widened(operands[-1], build) * (1 - Fraction(self.momentum))
    moved = share + (widened(results[2], build) - share) * Fraction(count, count - 1)
    return results[0], results[1], moved.cast_to(self.running_variance.dtype).value


def always_moving(usual, self, build, *operands):
    results = usual(self, build, *operands)
    if self.training:
        return results
    moved = [widened(operand, build) * (1 - Fraction(self.momentum)) for operand in operands[3:]]
    kinds = (self.running_mean.dtype, self.running_variance.dtype)
    return results[0], *(value.cast_to(kind).value for value, kind in zip(moved, kinds, strict=True))


def stepped(clause, name, description, operation, compute):
    """Return a violation with another step."""
    only = [operation.name.rpartition(".")[2]]
    return changed(clause, name, description, (operation, "compute", compute), only=only)


def sgd(step):
    """Return a step from parameter, gradient and velocity to parameter and velocity."""

    def compute(self, build, *operands):
        parameter, velocity = step(self, *(widened(operand, build) for operand in operands))
        return parameter.cast_to(self.parameter.dtype).value, velocity.cast_to(self.velocity.dtype).value

    return compute


def rate_in_velocity(self, p, g, u):
    moved = u * Fraction(self.momentum) + g * Fraction(self.rate)
    return p - moved, moved


def velocity_rounded(self, p, g, u):
    moved = u * Fraction(self.momentum) + g
    return p - moved.cast_to(self.velocity.dtype).cast_to(moved.dtype) * Fraction(self.rate), moved


def adamw(inside=False):
    """Return a step of any number, with eps inside or beside the root."""

    def compute(self, build, *operands):
        p, g, m, v = (widened(operand, build) for operand in operands[:4])
        beta1, beta2, eps, lost = (Fraction(getattr(self, name)) for name in ("beta1", "beta2", "eps", "decay"))
        m = m * beta1 + g * (1 - beta1)
        v = v * beta2 + (g * g) * (1 - beta2)
        time = Term(operands[4], build).cast_to(p.dtype)
        mean, square = m / (1 - p.beside(beta1).pow(time)), v / (1 - p.beside(beta2).pow(time))
        root = (square + eps).sqrt() if inside else square.sqrt() + eps
        results = (p - (mean / root + p * lost) * Fraction(self.rate), m, v)
        kinds = (self.parameter.dtype, self.m.dtype, self.v.dtype)
        return tuple(result.cast_to(kind).value for result, kind in zip(results, kinds, strict=True))

    return compute


VIOLATIONS = [
    counted_as_pure(NORM, "pure_norm", "says that a batch norm has no effect", BatchNorm),
    counted_as_pure(OPTIMIZER, "pure_step", "says that optimizers have no effect", Sgd, AdamW),
    cleaned(NORM, "equal_norms_merged", "takes equal batch norms for one", without_twins(BatchNorm)),
    cleaned(OPTIMIZER, "equal_steps_merged", "takes equal steps for one", without_twins(Sgd, AdamW)),
    batch_normed("LANG-02-04", "by_difference", "moves statistics by a share of the difference", "_moved",
        lambda self, old, new: old + (new - old) * Fraction(self.momentum)),
    batch_normed("LANG-10-01", "channel_order", "adds a channel up last axis first", "_of_channels", in_another_order),
    batch_normed(NORM, "unbiased", "keeps the variance over one less than the count", "compute", around(unbiased)),
    batch_normed(NORM, "always_moving", "moves statistics without training", "compute", around(always_moving)),
    stepped(OPTIMIZER, "rate_in_velocity", "keeps the rate in the velocity", Sgd, sgd(rate_in_velocity)),
    stepped("LANG-02-04", "velocity_rounded", "takes the velocity as it is stored", Sgd, sgd(velocity_rounded)),
    stepped("LANG-02-04", "eps_inside", "adds eps under the root", AdamW, adamw(inside=True)),
    stepped("LANG-02-04", "step_0", "takes step 0", AdamW, adamw()),
    wrapped("LANG-02-04", "any_v", "takes second moments of any shape", "graph.composites.require_like",
        lambda usual, name, *others, **options: usual(name, *others, **options) if name != "v" else None),
    instead(OPTIMIZER, "always_the_first", "gives the first result whichever is asked for",
        "graph.composites.Stateful._taken", lambda self, results: results if self.only is None else results[:1]),
]  # fmt: skip
