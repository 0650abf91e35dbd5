"""Rates of the correctly rounded functions, in million elements a second, beside numpy's own of a few ulps.

Sums in bf16 and fp16 stand beside those in fp32."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from accelerated_path import KERNELS_INSTALL, has_kernels, numerics
from measurement import Measurement, NotMeasured, Outcome, in_turns, seconds

from tessera_reference.numerics.arithmetic import add
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.elementary import FUNCTIONS
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.rounding import round_to

ELEMENTS = 1 << 18
LIMITS: dict[str, dict[str, float]] = {
    "fp32": {**dict.fromkeys(FUNCTIONS, 30), "exp": 100, "log": 60, "sin": 40, "tanh": 60},
    "fp64": {"exp": 25, "log": 25, "sin": 12},
    "bf16": dict.fromkeys(FUNCTIONS, 300),
    "fp16": dict.fromkeys(FUNCTIONS, 300),
}
POSITIVE = {"log", "log2", "log1p", "sqrt", "rsqrt", "pow"}
PEERS: dict[str, Callable[..., Any]] = {"pow": np.power, "rsqrt": lambda x: 1 / np.sqrt(x)}
ROUNDS = 11
UNTIL_COMPILED = 8
"""Calls after which a function is compiled: two million elements of fp32, half a million of fp64."""


def measure() -> list[Outcome]:
    """Every function in every type; pow, of two operands, has no tables and no limit for narrow types."""
    rates: list[Outcome] = [_first_call()] if has_kernels() else []
    for name in FUNCTIONS:
        for kind in LIMITS:
            wide = kind in ("fp32", "fp64")
            paths = ("kernels", "plain") if wide and name not in ("sqrt", "reciprocal") else ("",)
            rates += [_rate(name, kind, path) for path in paths if wide or name != "pow"]
    return [*rates, *(_sum(kind) for kind in ("bf16", "fp16"))]


def _first_call() -> Measurement:
    """Measure the call that compiles: of half a million elements, after one that made the tables."""
    x = np.random.Generator(np.random.Philox(5)).standard_normal(1 << 19)
    FUNCTIONS["sin"](x[:8], dtype("fp64"))
    first, again = (seconds(lambda: FUNCTIONS["sin"](x, dtype("fp64"))) for _ in range(2))
    return Measurement("sin fp64, a call that compiles", first, "the second", again, first, "s", 0.1)


def _rate(name: str, kind: str, path: str) -> Outcome:
    row = f"{name} {kind}, {path}" if path else f"{name} {kind}"
    if name == "erf" and importlib.util.find_spec("scipy") is None:
        return NotMeasured(row, "pip install scipy")
    if path == "kernels" and not has_kernels():
        return NotMeasured(row, KERNELS_INSTALL)
    peer = importlib.import_module("scipy.special").erf if name == "erf" else PEERS.get(name) or getattr(np, name)
    values = np.random.Generator(np.random.Philox(3)).standard_normal((2, ELEMENTS)) * 3
    if name in POSITIVE:
        values[0] = np.abs(values[0])
    x = [round_to(value, dtype(kind)) for value in values[: 2 if name == "pow" else 1]]
    with numerics(path == "plain"):
        for _ in range(UNTIL_COMPILED if path == "kernels" else 0):
            FUNCTIONS[name](*x, dtype(kind))
        ours, theirs = in_turns(lambda: FUNCTIONS[name](*x, dtype(kind)), lambda: peer(*x), ROUNDS)
    rate = ELEMENTS / ours / 1e6
    limit = None if (kind, path) == ("fp64", "plain") else LIMITS[kind].get(name)
    return Measurement(row, ours, "scipy" if name == "erf" else "numpy", theirs, rate, "Melem/s", limit, at_least=True)


def _sum(kind: str) -> Measurement:
    values = np.random.Generator(np.random.Philox(4)).standard_normal((2, 1 << 20), np.float32)
    narrow = [Array(dtype(kind), round_to(value, dtype(kind))) for value in values]
    single = [Array(dtype("fp32"), value) for value in values]
    ours, peer = in_turns(lambda: add(*narrow), lambda: add(*single), 15)
    return Measurement(
        f"add {kind}, 1 Mi elements", ours, "add fp32", peer, ours / peer, "x", 5 if kind == "bf16" else None
    )
