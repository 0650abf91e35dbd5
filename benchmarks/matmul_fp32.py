"""The canonical left fold in fp32 and, from its bits, in bf16 against BLAS in fp32, plain and with compiled kernels."""

from __future__ import annotations

import numpy as np
from accelerated_path import KERNELS_INSTALL, has_kernels, numerics
from measurement import Measurement, NotMeasured, Outcome, in_turns, seconds

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.rounding import round_to

LIMITS = {
    ("kernels", "fp32", 64): 8,
    ("kernels", "fp32", 128): 5,
    ("kernels", "fp32", 512): 2,
    ("kernels", "fp32", 1024): 2.5,
    ("kernels", "fp32", 2048): 2.5,
    ("kernels", "bf16", 256): 3,
    ("plain", "fp32", 512): 20,
    ("plain", "bf16", 256): 15,
}
FIRST_CALL = 0.1


def measure() -> list[Outcome]:
    """Every row of the table; before them the first call, which compiles."""
    outcomes: list[Outcome] = []
    if has_kernels():
        outcomes.append(_first_call())
    for (path, name, size), limit in LIMITS.items():
        row = f"matmul {size}^3 {name}, {path}"
        if path == "kernels" and not has_kernels():
            outcomes.append(NotMeasured(row, KERNELS_INSTALL))
        else:
            outcomes.append(_against_blas(row, path == "plain", name, size, limit))
    return outcomes


def _operands(name: str, size: int) -> tuple[Array, Array]:
    values = np.random.Generator(np.random.Philox(3)).standard_normal((2, size, size), np.float32)
    a, b = (Array(dtype(name), round_to(value, dtype(name))) for value in values)
    return a, b


def _first_call() -> Measurement:
    a, b = _operands("fp32", 256)
    first, again = (seconds(lambda: matmul(a, b)) for _ in range(2))
    return Measurement("matmul 256^3 fp32, first call", first, "the second", again, first, "s", FIRST_CALL)


def _against_blas(row: str, plain: bool, name: str, size: int, limit: float) -> Measurement:
    a, b = _operands(name, size)
    calls = max(1, (256 // size) ** 3)

    def ours() -> None:
        for _ in range(calls):
            matmul(a, b, dtype("fp32"))

    def blas() -> None:
        for _ in range(calls):
            np.matmul(a.values, b.values)

    with numerics(plain):
        mine, theirs = in_turns(ours, blas, 15 if size < 1024 else 3)
    return Measurement(row, mine / calls, "BLAS, one thread", theirs / calls, mine / theirs, "x", limit)
