"""Attention in the reference against numpy's own formulation with BLAS and exp; L = 256, D = 64, fp32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from measurement import Measurement, in_turns

from tessera_reference.graph.execution import execute
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

LENGTH, WIDTH = 256, 64
WARM = 70
"""Calls after which a process has compiled its loops."""
PROGRAM = Path(__file__).parents[1] / "examples" / "attention.tsr"


def measure() -> Measurement:
    """Execution of the compiled program; compiling is not counted."""
    module = compile_source(PROGRAM.read_text(encoding="utf-8")).module
    values = np.sin(np.arange(3 * LENGTH * WIDTH, dtype=np.float32)).reshape(3, LENGTH, WIDTH)
    inputs = {name: Array(dtype("fp32"), values[i].copy()) for i, name in enumerate("QKV")}
    query, key, value = (values[i] for i in range(3))

    def peer() -> np.ndarray:
        scores = query @ key.T * np.float32(0.125)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True) @ value

    for _ in range(WARM):
        execute(module, "attention", inputs)
    ours, theirs = in_turns(lambda: execute(module, "attention", inputs), peer, 31)
    return Measurement("attention 256x64 fp32", ours, "numpy", theirs, ours / theirs, "x", 3)
