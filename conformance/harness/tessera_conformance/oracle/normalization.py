"""Normalization along an axis: every step rounded in the accumulator type, then one rounding to the dtype.

Means follow the canonical tree and are divided by the number of elements; an `eps` is the fp64 that it is given as,
rounded once to the accumulator type. A batch norm has running statistics too, and several results.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.axes import along, channels
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.exact import ZERO, Value
from tessera_conformance.oracle.fields import RealField
from tessera_conformance.oracle.formats import FloatFormat, accumulator_format, tensor_of, values_of
from tessera_conformance.oracle.functions import evaluate
from tessera_conformance.oracle.reductions import pairwise_sum
from tessera_conformance.tensors import Tensor


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, *, axis: int = -1, eps: float = 1e-5) -> Tensor:
    """c * rsqrt(mean(c * c) + eps) * gamma + beta, with c = x - mean(x), from left to right."""
    format_ = accumulator_format(x.dtype)
    field = RealField(format_)
    values = values_of(x)
    results: list[Value] = [ZERO] * x.size
    for line in along(x.shape, axis).places:
        row = [values[place] for place in line]
        found = normalized(centred(row, mean(row, format_), format_), None, eps, format_)
        for place, unit, factor, addend in zip(line, found, values_of(gamma), values_of(beta), strict=True):
            results[place] = field.total([field.multiply(unit, factor), addend])
    return tensor_of(x.dtype, x.shape, results)


def rms_norm(x: Tensor, gamma: Tensor, *, axis: int = -1, eps: float = 1e-6) -> Tensor:
    """x * rsqrt(mean(x * x) + eps) * gamma, from left to right."""
    format_ = accumulator_format(x.dtype)
    values = values_of(x)
    results: list[Value] = [ZERO] * x.size
    for line in along(x.shape, axis).places:
        found = normalized([values[place] for place in line], None, eps, format_)
        for place, unit, factor in zip(line, found, values_of(gamma), strict=True):
            results[place] = RealField(format_).multiply(unit, factor)
    return tensor_of(x.dtype, x.shape, results)


def batch_norm(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    running_mean: Tensor,
    running_variance: Tensor,
    *,
    axis: int = 1,
    momentum: float = 0.1,
    eps: float = 1e-5,
    training: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """Every channel normalized, and the running statistics: r * (1 - momentum) + s * momentum of each.

    A channel is a position along the axis, its elements in row-major order. Without `training` the running statistics
    are used, and stay.
    """
    format_ = accumulator_format(x.dtype)
    field = RealField(format_)
    values = values_of(x)
    results: list[Value] = [ZERO] * x.size
    means, variances = values_of(running_mean), values_of(running_variance)
    moved_means, moved_variances = list(means), list(variances)
    for channel, places in enumerate(channels(x.shape, axis)):
        row = [values[place] for place in places]
        middle = mean(row, format_) if training else means[channel]
        differences = centred(row, middle, format_)
        spread = mean_square(differences, format_) if training else variances[channel]
        found = normalized(differences, spread, eps, format_)
        factor, addend = values_of(gamma)[channel], values_of(beta)[channel]
        for place, unit in zip(places, found, strict=True):
            results[place] = field.total([field.multiply(unit, factor), addend])
        if training:
            moved_means[channel] = moved(means[channel], middle, momentum, format_)
            moved_variances[channel] = moved(variances[channel], spread, momentum, format_)
    return (
        tensor_of(x.dtype, x.shape, results),
        tensor_of(running_mean.dtype, running_mean.shape, moved_means),
        tensor_of(running_variance.dtype, running_variance.shape, moved_variances),
    )


def mean(row: Sequence[Value], format_: FloatFormat) -> Value:
    """The sum along the canonical tree, divided by the count."""
    return RealField(format_).divide(pairwise_sum(list(row), format_), format_.round(Fraction(len(row))))


def mean_square(row: Sequence[Value], format_: FloatFormat) -> Value:
    """The mean of the squares, each rounded."""
    return mean([RealField(format_).multiply(value, value) for value in row], format_)


def centred(row: Sequence[Value], middle: Value, format_: FloatFormat) -> list[Value]:
    """Each value less their mean."""
    return [RealField(format_).total([value, exact.negate(middle)]) for value in row]


def normalized(row: Sequence[Value], spread: Value | None, eps: float, format_: FloatFormat) -> list[Value]:
    """Each value times rsqrt(spread + eps), the spread by default their mean square."""
    field = RealField(format_)
    if not eps >= 0:
        raise BadArgument("eps", eps, "a number of at least 0")
    known = mean_square(row, format_) if spread is None else spread
    root = evaluate("rsqrt", format_, field.total([known, format_.round(Fraction(eps))]))
    return [field.multiply(value, root) for value in row]


def moved(old: Value, new: Value, momentum: float, format_: FloatFormat) -> Value:
    """old * (1 - momentum) + new * momentum, the two factors rounded once each."""
    field, share = RealField(format_), Fraction(momentum)
    kept, taken = field.multiply(old, format_.round(1 - share)), field.multiply(new, format_.round(share))
    return field.total([kept, taken])
