"""A transformer of twelve blocks, forward, in the reference against the same in numpy; d = 256, L = 128, fp32."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import numpy as np
from measurement import Measurement, in_turns

from tessera_reference.graph.execution import execute
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

LAYERS, LENGTH, WIDTH, HEADS = 12, 128, 256, 4
SHAPES = {
    "X": (LENGTH, WIDTH),
    "G": (LAYERS, 2, WIDTH),
    "B": (LAYERS, 2, WIDTH),
    "A": (LAYERS, 4, WIDTH, WIDTH),
    "U": (LAYERS, WIDTH, 4 * WIDTH),
    "D": (LAYERS, 4 * WIDTH, WIDTH),
}
PROGRAM = Path(__file__).parents[1] / "examples" / "transformer.tsr"

Weights = dict[str, np.ndarray]


def measure() -> Measurement:
    """Execution of the compiled program; compiling is not counted."""
    module = compile_source(PROGRAM.read_text(encoding="utf-8")).module
    random = np.random.Generator(np.random.PCG64(4))
    values = {name: (random.random(shape, np.float32) - np.float32(0.5)) / 8 for name, shape in SHAPES.items()}
    inputs = {name: Array(dtype("fp32"), given) for name, given in values.items()}
    ours, theirs = in_turns(lambda: execute(module, "forward", inputs), lambda: forward(**values), 5)
    return Measurement("transformer, 12 blocks fp32", ours, "numpy", theirs, ours, "s", 5)


def forward(X: np.ndarray, G: np.ndarray, B: np.ndarray, A: np.ndarray, U: np.ndarray, D: np.ndarray) -> np.ndarray:  # noqa: N803
    """The same with BLAS, numpy's functions and an erf of two lines."""
    for layer in range(LAYERS):
        X = X + attend(normalize(X, G[layer, 0], B[layer, 0]), A[layer])  # noqa: N806
        hidden = normalize(X, G[layer, 1], B[layer, 1]) @ U[layer]
        X = X + (hidden * 0.5 * (1 + erf(hidden / np.float32(sqrt(2))))) @ D[layer]  # noqa: N806
    return X


def attend(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Attention with all heads at once."""
    q, k, v = (np.moveaxis((x @ w).reshape(LENGTH, HEADS, -1), 1, 0) for w in weights[:3])
    scores = q @ k.swapaxes(1, 2) * np.float32(0.125)
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    out = raised / raised.sum(axis=-1, keepdims=True) @ v
    return np.moveaxis(out, 0, 1).reshape(LENGTH, WIDTH) @ weights[3]


def normalize(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Layer norm over the last axis."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(1e-5)) * gamma + beta


def erf(x: np.ndarray) -> np.ndarray:
    """Abramowitz and Stegun 7.1.26, which is good to 1.5e-7."""
    t = 1 / (1 + np.float32(0.3275911) * np.abs(x))
    series = ((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t - 0.284496736) * t + 0.254829592
    return np.sign(x) * (1 - series * t * np.exp(-x * x))
