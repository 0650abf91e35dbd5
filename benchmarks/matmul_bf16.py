"""The canonical left fold of 256 x 256 x 256 in bf16 against TOSA's reference model, whose bits it shares."""

from __future__ import annotations

import numpy as np
from accelerated_path import KERNELS_INSTALL, has_kernels, numerics
from measurement import Measurement, NotMeasured, Outcome, in_turns

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.rounding import round_to

SIZE = 256


def measure() -> list[Outcome]:
    """Plain, and with compiled kernels; both are to be faster."""
    return [_against_tosa(path) for path in ("plain", "kernels")]


def _against_tosa(path: str) -> Outcome:
    name = f"matmul {SIZE}^3 bf16, {path}"
    if path == "kernels" and not has_kernels():
        return NotMeasured(name, KERNELS_INSTALL)
    try:
        import tosa_model
    except ImportError:
        return NotMeasured(name, "pip install tosa-tools")
    bf16 = dtype("bf16")
    values = np.random.Generator(np.random.Philox(3)).standard_normal((2, SIZE, SIZE))
    a, b = (Array(bf16, round_to(value, bf16)) for value in values)
    codes = [np.frombuffer(array.to_bits(), np.uint16).reshape(array.shape) for array in (a, b)]
    theirs = tosa_model.matmul("bf16", SIZE, SIZE, SIZE)
    with numerics(path == "plain"):
        ours, peer = in_turns(lambda: matmul(a, b, dtype("fp32")), lambda: theirs(*codes), 15)
    return Measurement(name, ours, "TOSA's model", peer, ours / peer, "x", 1)
