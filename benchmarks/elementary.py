"""Rates of the correctly rounded functions, in million elements a second, beside numpy's own of a few ulps."""

from __future__ import annotations

import math

import numpy as np
from measurement import Measurement, Outcome, in_turns

from tessera_reference.numerics.elementary import FUNCTIONS
from tessera_reference.numerics.formats import dtype

ELEMENTS = 1 << 18
LIMITS = {("exp", "fp32"): 10, ("exp", "fp64"): 2}
PEERS = {"erf": np.vectorize(math.erf), "pow": np.power, "rsqrt": lambda x: 1 / np.sqrt(x)}
POSITIVE = {"log", "log2", "log1p", "sqrt", "rsqrt", "pow"}
OPERANDS = {"pow": 2}
ROUNDS = 5


def measure() -> list[Outcome]:
    """exp first, whose rates are promised; then every other function."""
    names = sorted(FUNCTIONS, key=lambda name: (name != "exp", name))
    return [_rate(name, kind) for name in names for kind in ("fp32", "fp64")]


def _rate(name: str, kind: str) -> Measurement:
    values = np.random.Generator(np.random.Philox(3)).standard_normal((2, ELEMENTS)) * 3
    if name in POSITIVE:
        values[0] = np.abs(values[0])
    x = list(values[: OPERANDS.get(name, 1)].astype(dtype(kind).carrier))
    peer = PEERS.get(name) or getattr(np, name)
    ours, theirs = in_turns(lambda: FUNCTIONS[name](*x, dtype(kind)), lambda: peer(*x), ROUNDS)
    rate, limit = ELEMENTS / ours / 1e6, LIMITS.get((name, kind))
    return Measurement(f"{name} {kind}", ours, "numpy", theirs, rate, "Melem/s", limit, at_least=True)
