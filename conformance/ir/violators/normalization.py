"""Norms and attention with another composition, order or rounding (AMB-LANG-170, AMB-LANG-177)."""

from fractions import Fraction

from tessera_reference.graph.composites import LayerNorm, RmsNorm
from tessera_reference.graph.term import Term, along_axis, widened

from .changes import around, changed, nothing


def mean(self, x):
    return x.mean(axis=self.axis, keepdims=True)


def normed(clause, name, description, operation, norm):
    """Return a violation with another composition of a norm, in the accumulator type.

    `norm` takes x, centred x (x itself in rms_norm), the mean of its squares, eps, gamma and, in layer_norm, beta.
    """

    def decompose(self, build, *operands):
        x, *vectors = (widened(operand, build) for operand in operands)
        centred = x - mean(self, x) if operation is LayerNorm else x
        beside = [along_axis(vector, self.axis, self.x.rank) for vector in vectors]
        result = norm(self, x, centred, mean(self, centred * centred), Fraction(self.eps), *beside)
        return result.cast_to(self.x.dtype).value

    only = [operation.name.rpartition(".")[2]]
    return changed(clause, name, description, (operation, "decompose", decompose), only=only)


def unit_rounded(self, x, centred, square, eps, gamma):
    unit = x * (square + eps).rsqrt()
    return unit.cast_to(self.x.dtype).cast_to(unit.dtype) * gamma


def attended(clause, name, description, substitute, method="decompose"):
    """Return a violation with another composition of attention."""
    place = f"graph.composites.FlashAttention.{method}"
    return changed(clause, name, description, (place, substitute), only=["flash_attention"])


def parts(self, build, operands):
    """Return scores, before their scale and mask, and v."""
    q, k, v = (Term(operand, build) for operand in operands)
    rank = self.q.rank
    return q.matmul(k.transpose(perm=(*range(rank - 2), rank - 1, rank - 2)), out=self.q.dtype.accumulator), v


def masked(self, scores):
    return self._masked(scores) if self.causal else scores


def finished(self, weights, v):
    return weights.matmul(v.cast_to(weights.dtype), out=self.q.dtype).value


def scores_rounded(self, build, *operands):
    scores, v = parts(self, build, operands)
    scores = (scores * self._scale(scores)).cast_to(self.q.dtype).cast_to(scores.dtype)
    return finished(self, masked(self, scores).softmax(axis=-1), v)


def weights_rounded(self, build, *operands):
    scores, v = parts(self, build, operands)
    weights = masked(self, scores * self._scale(scores)).softmax(axis=-1)
    return finished(self, weights.cast_to(self.q.dtype).cast_to(scores.dtype), v)


def queries_scaled(self, build, q, k, v):
    wide = widened(q, build)
    scores, values = parts(self, build, ((wide * self._scale(wide)).cast_to(self.q.dtype).value, k, v))
    return finished(self, masked(self, scores).softmax(axis=-1), values)


def divided_at_the_end(self, build, *operands):
    scores, v = parts(self, build, operands)
    scores = masked(self, scores * self._scale(scores))
    powers = (scores - scores.max(axis=-1, keepdims=True)).exp()
    total = powers.sum(axis=-1, keepdims=True)
    return (powers.matmul(v.cast_to(powers.dtype)) / total).cast_to(self.q.dtype).value


def naive(self, build, *operands):
    scores, v = parts(self, build, operands)
    powers = masked(self, scores * self._scale(scores)).exp()
    return finished(self, powers / powers.sum(axis=-1, keepdims=True), v)


VIOLATIONS = [
    normed("LANG-10-01", "uncentred", "subtracts the square of the mean", LayerNorm,
        lambda self, x, centred, square, eps, gamma, beta:
        centred * (mean(self, x * x) - mean(self, x) * mean(self, x) + eps).rsqrt() * gamma + beta),
    normed("LANG-02-04", "eps_outside", "adds eps to the root", LayerNorm,
        lambda self, x, centred, square, eps, gamma, beta: centred / (square.sqrt() + eps) * gamma + beta),
    normed("LANG-10-01", "divided", "divides by a rounded root", LayerNorm,
        lambda self, x, centred, square, eps, gamma, beta: centred / (square + eps).sqrt() * gamma + beta),
    normed("LANG-10-01", "factors_first", "multiplies gamma and root first", LayerNorm,
        lambda self, x, centred, square, eps, gamma, beta: centred * ((square + eps).rsqrt() * gamma) + beta),
    normed("LANG-02-04", "without_eps", "adds no eps", RmsNorm,
        lambda self, x, centred, square, eps, gamma: x * square.rsqrt() * gamma),
    normed("LANG-10-01", "rms_divided", "divides by a rounded root mean square", RmsNorm,
        lambda self, x, centred, square, eps, gamma: x / (square + eps).sqrt() * gamma),
    normed("LANG-10-01", "unit_rounded", "rounds before it multiplies by gamma", RmsNorm, unit_rounded),
    normed("LANG-02-04", "last_axis", "normalizes along the last axis, whatever is asked", RmsNorm,
        lambda self, x, centred, square, eps, gamma: x * ((x * x).mean(axis=-1, keepdims=True) + eps).rsqrt() * gamma),
    changed("LANG-11-03", "any_vector", "takes vectors of any extent for gamma and beta",
        ("graph.composites.require_vector_along", nothing)),
    attended("LANG-10-02", "scores_rounded", "rounds scores to the operands' type", scores_rounded),
    attended("LANG-10-01", "weights_rounded", "rounds weights to the operands' type", weights_rounded),
    attended("LANG-10-01", "queries_scaled", "scales the queries", queries_scaled),
    attended("LANG-10-01", "divided_at_the_end", "divides behind the second product", divided_at_the_end),
    attended("LANG-10-03", "naive", "does not subtract the maximum of the scores", naive),
    attended("LANG-02-04", "unmasked_heads", "forgets the mask of heads with a scale of their own",
        around(lambda usual, self, scores:
            scores if self.q.rank == 4 and self.scale is not None else usual(self, scores)), "_masked"),
    changed("LANG-11-03", "any_attention", "does not compare the shapes of queries, keys and values",
        ("graph.composites.FlashAttention._require_shapes", lambda self: None)),
]  # fmt: skip
