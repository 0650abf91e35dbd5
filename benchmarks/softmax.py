"""softmax of 1024 x 1024 in fp32, correctly rounded exp and all, against numpy's formulation and others' models."""

from __future__ import annotations

import numpy as np
from measurement import Measurement, NotMeasured, Outcome, in_turns

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.reductions import softmax

SIZE = 1024


def measure() -> list[Outcome]:
    """One row against each peer."""
    values = np.random.Generator(np.random.Philox(3)).standard_normal((SIZE, SIZE), np.float32)
    x = Array(dtype("fp32"), values)

    def peer() -> np.ndarray:
        exponentials = np.exp(values - values.max(axis=-1, keepdims=True))
        return exponentials / exponentials.sum(axis=-1, keepdims=True)

    ours, theirs = in_turns(lambda: softmax(x), peer, 15)
    name = f"softmax {SIZE}x{SIZE} fp32"
    return [
        Measurement(name, ours, "numpy", theirs, ours / theirs, "x", 3),
        _against_onnx(name, x),
        _against_tosa(name, x),
    ]


def _against_onnx(name: str, x: Array) -> Outcome:
    name = f"{name}, evaluator"
    try:
        import onnx_model
    except ImportError:
        return NotMeasured(name, "pip install onnx")
    model = onnx_model.evaluator([("Softmax", ("x",), "y")], {"x": x.shape}, "y")
    ours, theirs = in_turns(lambda: softmax(x), lambda: model(x=x.values), 7)
    return Measurement(name, ours, "ONNX's evaluator", theirs, ours / theirs, "x", None)


def _against_tosa(name: str, x: Array) -> Outcome:
    name = f"{name}, TOSA / ours"
    try:
        import tosa_model
    except ImportError:
        return NotMeasured(name, "pip install tosa-tools")
    model = tosa_model.softmax(*x.shape)
    ours, theirs = in_turns(lambda: softmax(x), lambda: model(x.values), 7)
    return Measurement(name, ours, "TOSA's model", theirs, theirs / ours, "x", 5, at_least=True)
