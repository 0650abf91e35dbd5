"""Steps of optimizers: element by element, every step rounded in the accumulator type; each result rounded once.

A setting such as a learning rate is given in fp64 and rounded once to the accumulator type; so is 1 less a setting.
"""

from __future__ import annotations

from fractions import Fraction

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.exact import Value
from tessera_conformance.oracle.fields import RealField
from tessera_conformance.oracle.formats import FORMATS, FloatFormat, accumulator_format, tensor_of, values_of
from tessera_conformance.oracle.functions import evaluate
from tessera_conformance.oracle.normalization import moved
from tessera_conformance.tensors import Tensor


def sgd(
    parameter: Tensor, gradient: Tensor, velocity: Tensor, *, rate: float, momentum: float = 0.9
) -> tuple[Tensor, Tensor]:
    """velocity = velocity * momentum + gradient; parameter = parameter - velocity * rate."""
    format_ = accumulator_format(parameter.dtype)
    field, stepped, velocities = RealField(format_), [], []
    for p, g, v in zip(values_of(parameter), values_of(gradient), values_of(velocity), strict=True):
        moving = field.total([field.multiply(v, format_.round(Fraction(momentum))), g])
        velocities.append(moving)
        stepped.append(less(p, field.multiply(moving, format_.round(Fraction(rate))), field))
    return _replaced(parameter, stepped), _replaced(velocity, velocities)


def adamw(
    parameter: Tensor,
    gradient: Tensor,
    m: Tensor,
    v: Tensor,
    step: Tensor,
    *,
    rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    decay: float = 0.01,
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of AdamW: the moving averages m and v are each divided by 1 - pow(beta, step) before they are used."""
    format_ = accumulator_format(parameter.dtype)
    field = RealField(format_)
    (count,) = values_of(step)
    if not isinstance(count, Fraction) or count < 1:
        raise BadArgument("step", count, "a number of at least 1")
    parts = [lacking(beta, format_.round(count), format_) for beta in (beta1, beta2)]
    stepped, means, squares = [], [], []
    for p, g, old_mean, old_square in zip(*map(values_of, (parameter, gradient, m, v)), strict=True):
        means.append(moved(g, old_mean, beta1, format_))
        squares.append(moved(field.multiply(g, g), old_square, beta2, format_))
        mean, square = (field.divide(x[-1], part) for x, part in zip((means, squares), parts, strict=True))
        root = field.total([evaluate("sqrt", format_, square), format_.round(Fraction(eps))])
        change = field.total([field.divide(mean, root), field.multiply(p, format_.round(Fraction(decay)))])
        stepped.append(less(p, field.multiply(change, format_.round(Fraction(rate))), field))
    return _replaced(parameter, stepped), _replaced(m, means), _replaced(v, squares)


def lacking(beta: float, count: Value, format_: FloatFormat) -> Value:
    """1 - pow(beta, count)."""
    power = evaluate("pow", format_, format_.round(Fraction(beta)), count)
    return less(Fraction(1), power, RealField(format_))


def less(x: Value, y: Value, field: RealField) -> Value:
    """x - y, rounded."""
    return field.total([x, exact.negate(y)])


def _replaced(old: Tensor, values: list[Value]) -> Tensor:
    """Other values in the place of a tensor's, rounded once to its dtype."""
    assert old.dtype in FORMATS
    return tensor_of(old.dtype, old.shape, values)
