"""Activations with another composition than the reference's (language specification, 10; AMB-LANG-133)."""

import numpy as np

from tessera_reference.numerics import activations
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.elementary import erf, exp, tanh
from tessera_reference.numerics.rounding import round_to

from .changes import changed
from .misrounding import half_away, unsaturated


def activation(name, description, function, compute):
    """Return a violation with another function of `numerics.activations`."""
    substitution = (f"numerics.activations.{function}", np.errstate(all="ignore")(compute))
    return changed("LANG-02-04", name, description, substitution, only=("sigmoid", "silu", "gelu", "relu"))


def distributed(x, kind):
    _, factor, cube_factor = activations._constants(kind)
    inner = factor * x + (factor * cube_factor) * ((x * x) * x)
    return np.asarray((kind.carrier.type(0.5) * x) * (1 + tanh(inner, kind)))


def narrow_sigmoid(x, overflow="saturate"):
    if not x.dtype.is_narrow:
        return Array(x.dtype, activations._sigmoid(x.values, x.dtype))
    power = exp(np.negative(x.values), x.dtype)
    return Array(x.dtype, round_to(1 / round_to(1 + power, x.dtype), x.dtype, overflow))


def silu_by_quotient(x, overflow="saturate"):
    kind = x.dtype.accumulator
    wide = x.values.astype(kind.carrier)
    return Array(x.dtype, round_to(np.asarray(wide / (1 + exp(-wide, kind))), x.dtype, overflow))


VIOLATIONS = [
    activation("tanh_for_exact", "answers gelu with its tanh form", "_gelu", activations._gelu_by_tanh),
    activation("gelu_halved_last", "halves gelu last", "_gelu",
        lambda x, kind: np.asarray(x * (1 + erf(x * activations._constants(kind)[0], kind)) / 2)),
    activation("distributed_gelu", "multiplies the tanh form of gelu out", "_gelu_by_tanh", distributed),
    activation("narrow_sigmoid", "rounds every step of sigmoid to a narrow type", "sigmoid", narrow_sigmoid),
    activation("silu_of_rounded", "rounds sigmoid before multiplying it for silu", "silu",
        lambda x, overflow="saturate":
            Array(x.dtype, round_to(x.values * activations.sigmoid(x).values, x.dtype, overflow))),
    activation("silu_by_quotient", "divides x for silu", "silu", silu_by_quotient),
    activation("approximate_exp", "takes a fast exponential for sigmoid", "_sigmoid",
        lambda x, kind: np.asarray(1 / (1 + np.nextafter(exp(-x, kind), kind.carrier.type(0))))),
    activation("half_away", "rounds ties of activations away from zero", "round_to", half_away),
    activation("no_saturation", "lets fp8 activations overflow to infinity or NaN", "round_to", unsaturated),
    activation("relu_of_negative_zero", "leaves relu(-0) at -0", "relu",
        lambda x: Array(x.dtype, np.where(x.values < 0, np.zeros_like(x.values), x.values))),
]  # fmt: skip
