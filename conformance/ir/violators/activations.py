"""Activations with another composition than the reference's (language specification, 10; AMB-LANG-133)."""

from typing import Any

import numpy as np

from tessera_reference.numerics import activations
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.elementary import erf, exp, tanh
from tessera_reference.numerics.rounding import round_to

from .changes import changed
from .misrounding import half_away, unsaturated, without_subnormals

Values = Any

ACTIVATIONS = ("sigmoid", "silu", "gelu")
GELU, SIGMOID = activations._gelu, activations._sigmoid


def composition(name, description, part, steps):
    """Return a violation with another composition of an activation, every step rounded in the accumulator type."""

    def compute(x, kind):
        with np.errstate(all="ignore"):
            return np.asarray(steps(x, kind))

    return changed("LANG-02-04", name, description, (activations, part, compute), only=ACTIVATIONS)


def halved_last(x, kind):
    factor = activations._constants(kind)[0]
    return x * (1 + erf(x * factor, kind)) / 2


def distributed(x, kind):
    _, factor, cube_factor = activations._constants(kind)
    inner = factor * x + (factor * cube_factor) * ((x * x) * x)
    return (kind.carrier.type(0.5) * x) * (1 + tanh(inner, kind))


COMPOSITIONS = [
    composition("tanh_for_exact", "answers gelu with its tanh form", "_gelu", activations._gelu_by_tanh),
    composition("gelu_halved_last", "halves gelu last", "_gelu", halved_last),
    composition("distributed_gelu", "multiplies the tanh form of gelu out", "_gelu_by_tanh", distributed),
]


# Roundings


def replacing(name, description, function, compute):
    """Return a violation that replaces one of the activations by another function of arrays."""
    return changed("LANG-02-04", name, description, (activations, function, compute), only=ACTIVATIONS)


def narrow_sigmoid(x, overflow="saturate"):
    kind, values = x.dtype, x.values
    if not kind.is_narrow:
        values = SIGMOID(values, kind)
    else:
        with np.errstate(all="ignore"):
            power = exp(np.negative(values), kind)
            values = round_to(1 / round_to(1 + power, kind), kind, overflow)
    return Array(kind, values)


def silu_of_rounded(x, overflow="saturate"):
    with np.errstate(all="ignore"):
        return Array(x.dtype, round_to(x.values * activations.sigmoid(x).values, x.dtype, overflow))


def silu_by_quotient(x, overflow="saturate"):
    kind = x.dtype.accumulator
    with np.errstate(all="ignore"):
        wide = x.values.astype(kind.carrier)
        return Array(x.dtype, round_to(np.asarray(wide / (1 + exp(-wide, kind))), x.dtype, overflow))


def rounding(name, description, rule):
    """Return a violation with another final rounding."""
    return changed("LANG-02-04", name, description, ("numerics.activations.round_to", rule), only=ACTIVATIONS)


def flushing(x, kind, overflow="saturate"):
    return without_subnormals(round_to(x, kind, overflow), kind)


ROUNDED = [
    replacing("narrow_sigmoid", "rounds every step of sigmoid to a narrow type", "sigmoid", narrow_sigmoid),
    replacing("silu_of_rounded", "rounds sigmoid before multiplying it for silu", "silu", silu_of_rounded),
    replacing("silu_by_quotient", "divides x for silu", "silu", silu_by_quotient),
    composition("approximate_exp", "takes a fast exponential for sigmoid", "_sigmoid",
        lambda x, kind: 1 / (1 + np.nextafter(exp(-x, kind), kind.carrier.type(0)))),
    rounding("half_away", "rounds ties of activations away from zero", half_away),
    rounding("no_saturation", "lets fp8 activations overflow to infinity or NaN", unsaturated),
]  # fmt: skip


# relu


def rectifier(name, description, compute):
    """Return a violation with another relu."""
    return changed(
        "LANG-02-04",
        name,
        description,
        ("numerics.activations.relu", lambda x: Array(x.dtype, np.asarray(compute(x.values)))),
    )


RECTIFIERS = [
    rectifier("relu_of_negative_zero", "leaves relu(-0) at -0", lambda x: np.where(x < 0, np.zeros_like(x), x))
]
