"""The canonical left fold of 512 x 512 x 512 in fp32 against BLAS with one thread, plain and with compiled kernels."""

from __future__ import annotations

import importlib.util

import numpy as np
from accelerated_path import KERNELS_INSTALL, has_kernels, numerics
from measurement import Measurement, NotMeasured, Outcome, in_turns

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.matmul import matmul

SIZE = 512
LIMITS = {"plain": 25, "kernels": 4}


def measure() -> list[Outcome]:
    """Both paths; the compiler's start is not counted."""
    outcomes: list[Outcome] = []
    for path, limit in LIMITS.items():
        name = f"matmul {SIZE}^3 fp32, {path}"
        if importlib.util.find_spec("threadpoolctl") is None:
            outcomes.append(NotMeasured(name, "pip install threadpoolctl"))
        elif path == "kernels" and not has_kernels():
            outcomes.append(NotMeasured(name, KERNELS_INSTALL))
        else:
            outcomes.append(_against_blas(name, path == "plain", limit))
    return outcomes


def _against_blas(name: str, plain: bool, limit: float) -> Measurement:
    from threadpoolctl import threadpool_limits

    values = np.random.Generator(np.random.Philox(3)).standard_normal((2, SIZE, SIZE), np.float32)
    a, b = (Array(dtype("fp32"), value) for value in values)
    with numerics(plain), threadpool_limits(1):
        ours, blas = in_turns(lambda: matmul(a, b), lambda: a.values @ b.values, 15)
    return Measurement(name, ours, "BLAS, one thread", blas, ours / blas, "x", limit)
