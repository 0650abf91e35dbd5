"""Norms and attention with another composition, order or rounding (AMB-LANG-170, AMB-LANG-177)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

from tessera_conformance.strength import Violation
from tessera_reference.graph import composites as norms
from tessera_reference.graph.composites import FlashAttention, LayerNorm, RmsNorm
from tessera_reference.graph.term import Term, along_axis, widened
from tessera_reference.ir.operation import Operation

from .changes import changed

Norm: TypeAlias = Callable[[Any, Term, Term, Any], Term]
"""The operation, x, gamma and beta to the result before its rounding; rms_norm has no beta."""


def normed(name: str, clause: str, description: str, operation: type[Operation], norm: Norm) -> Violation:
    """Return a violation with another composition of a norm, in the accumulator type."""

    def decompose(self: Any, build: Any, *operands: Any) -> Any:
        x, gamma, *beta = (widened(operand, build) for operand in operands)
        beside = [along_axis(vector, self.axis, self.x.rank) for vector in (gamma, *beta)]
        return norm(self, x, beside[0], beside[1] if beta else None).cast_to(self.x.dtype).value

    only = [operation.name.rpartition(".")[2]]
    return changed(clause, name, description, (operation, "decompose", decompose), only=only)


def mean(self: Any, x: Term) -> Term:
    """Return the mean along the axis of the norm."""
    return x.mean(axis=self.axis, keepdims=True)


def eps_of(self: Any) -> Fraction:
    """Return the number under the root."""
    return Fraction(self.eps)


def uncentred(self: Any, x: Term, gamma: Term, beta: Term) -> Term:
    middle = mean(self, x)
    variance = mean(self, x * x) - middle * middle
    return (x - middle) * (variance + eps_of(self)).rsqrt() * gamma + beta


def eps_outside(self: Any, x: Term, gamma: Term, beta: Term) -> Term:
    centred = x - mean(self, x)
    root = mean(self, centred * centred).sqrt() + eps_of(self)
    return centred / root * gamma + beta


def divided(self: Any, x: Term, gamma: Term, beta: Term) -> Term:
    centred = x - mean(self, x)
    return centred / (mean(self, centred * centred) + eps_of(self)).sqrt() * gamma + beta


def factors_first(self: Any, x: Term, gamma: Term, beta: Term) -> Term:
    centred = x - mean(self, x)
    return centred * ((mean(self, centred * centred) + eps_of(self)).rsqrt() * gamma) + beta


def without_eps(self: Any, x: Term, gamma: Term, beta: Term) -> Term:
    return x * mean(self, x * x).rsqrt() * gamma


def rms_divided(self: Any, x: Term, gamma: Term, beta: Term) -> Term:
    return x / (mean(self, x * x) + eps_of(self)).sqrt() * gamma


def unit_rounded(self: Any, x: Term, gamma: Term, beta: Term) -> Term:
    unit = x * (mean(self, x * x) + eps_of(self)).rsqrt()
    return unit.cast_to(self.x.dtype).cast_to(unit.dtype) * gamma


def over_the_last_axis(self: Any, x: Term, gamma: Term, beta: Term) -> Term:
    return x * ((x * x).mean(axis=-1, keepdims=True) + eps_of(self)).rsqrt() * gamma


NORMS = [
    normed("uncentred", "LANG-10-01", "subtracts the square of the mean", LayerNorm, uncentred),
    normed("eps_outside", "LANG-02-04", "adds eps to the root", LayerNorm, eps_outside),
    normed("divided", "LANG-10-01", "divides by a rounded root", LayerNorm, divided),
    normed("factors_first", "LANG-10-01", "multiplies gamma and root first", LayerNorm, factors_first),
    normed("without_eps", "LANG-02-04", "adds no eps", RmsNorm, without_eps),
    normed("rms_divided", "LANG-10-01", "divides by a rounded root mean square", RmsNorm, rms_divided),
    normed("unit_rounded", "LANG-10-01", "rounds before it multiplies by gamma", RmsNorm, unit_rounded),
    normed("last_axis", "LANG-02-04", "normalizes along the last axis, whatever is asked", RmsNorm, over_the_last_axis),
]


# Missing checks


def unchecked(name: str, description: str, *rules: str) -> Violation:
    """Return a violation whose norm omits some of its rules."""
    substitutions = [(norms, rule, lambda *arguments, **how: None) for rule in rules]
    return changed("LANG-11-03", name, description, *substitutions)


CHECKS = [
    unchecked("any_vector", "takes vectors of any extent for gamma and beta", "require_vector_along"),
]


# Attention


def attended(name: str, clause: str, description: str, decompose: Callable[..., Any]) -> Violation:
    """Return a violation with another composition of attention."""
    return changed(
        clause, name, description, ("graph.composites.FlashAttention.decompose", decompose), only=["flash_attention"]
    )


def parts(self: Any, build: Any, operands: Any) -> tuple[Term, Term, Term]:
    """Return masked scores, q and v."""
    q, k, v = (Term(operand, build) for operand in operands)
    rank = self.q.rank
    scores = q.matmul(k.transpose(perm=(*range(rank - 2), rank - 1, rank - 2)), out=self.q.dtype.accumulator)
    return scores, q, v


def finished(self: Any, weights: Term, v: Term) -> Any:
    """Return the weighted values."""
    return weights.matmul(v.cast_to(weights.dtype), out=self.q.dtype).value


def scores_rounded(self: Any, build: Any, *operands: Any) -> Any:
    scores, _, v = parts(self, build, operands)
    scores = (scores * self._scale(scores)).cast_to(self.q.dtype).cast_to(scores.dtype)
    masked = self._masked(scores) if self.causal else scores
    return finished(self, masked.softmax(axis=-1), v)


def weights_rounded(self: Any, build: Any, *operands: Any) -> Any:
    scores, _, v = parts(self, build, operands)
    scores = scores * self._scale(scores)
    masked = self._masked(scores) if self.causal else scores
    return finished(self, masked.softmax(axis=-1).cast_to(self.q.dtype).cast_to(scores.dtype), v)


def queries_scaled(self: Any, build: Any, *operands: Any) -> Any:
    q, k, v = operands
    wide = widened(q, build)
    scaled = (wide * self._scale(wide)).cast_to(self.q.dtype)
    scores, _, values = parts(self, build, (scaled.value, k, v))
    masked = self._masked(scores) if self.causal else scores
    return finished(self, masked.softmax(axis=-1), values)


def divided_at_the_end(self: Any, build: Any, *operands: Any) -> Any:
    scores, _, v = parts(self, build, operands)
    scores = scores * self._scale(scores)
    masked = self._masked(scores) if self.causal else scores
    powers = (masked - masked.max(axis=-1, keepdims=True)).exp()
    total = powers.sum(axis=-1, keepdims=True)
    return (powers.matmul(v.cast_to(powers.dtype)) / total).cast_to(self.q.dtype).value


def unmasked_heads(self: Any, scores: Any) -> Any:
    return scores if self.q.rank == 4 and self.scale is not None else MASKED(self, scores)


MASKED = FlashAttention._masked


def naive(self: Any, build: Any, *operands: Any) -> Any:
    scores, _, v = parts(self, build, operands)
    scores = scores * self._scale(scores)
    powers = (self._masked(scores) if self.causal else scores).exp()
    return finished(self, powers / powers.sum(axis=-1, keepdims=True), v)


def scaled(name: str, description: str, scale: Callable[[Any, Term], Term]) -> Violation:
    """Return a violation with another factor of the scores."""
    return changed(
        "LANG-02-04", name, description, ("graph.composites.FlashAttention._scale", scale), only=["flash_attention"]
    )


def masked(name: str, description: str, mask: Callable[[Any, Term], Term]) -> Violation:
    """Return a violation with another mask of the scores."""
    return changed(
        "LANG-02-04", name, description, ("graph.composites.FlashAttention._masked", mask), only=["flash_attention"]
    )


ATTENTION = [
    attended("scores_rounded", "LANG-10-02", "rounds scores to the operands' type", scores_rounded),
    attended("weights_rounded", "LANG-10-01", "rounds weights to the operands' type", weights_rounded),
    attended("queries_scaled", "LANG-10-01", "scales the queries", queries_scaled),
    attended("divided_at_the_end", "LANG-10-01", "divides behind the second product", divided_at_the_end),
    attended("naive", "LANG-10-03", "does not subtract the maximum of the scores", naive),
    masked("unmasked_heads", "forgets the mask of heads with a scale of their own", unmasked_heads),
    changed("LANG-11-03", "any_attention", "does not compare the shapes of queries, keys and values",
        ("graph.composites.FlashAttention._require_shapes", lambda self: None)),
]  # fmt: skip
