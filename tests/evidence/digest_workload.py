"""A fixed workload through the whole arithmetic, and the SHA-256 of its bits.

    python tests/evidence/digest_workload.py                    print the digest of each part, and of all
    python tests/evidence/digest_workload.py --freeze REASON    write them to workload.sha256, under the reason

Every machine, numpy and level of SIMD dispatch prints the same. Operands are bytes of SHAKE-256 of a label, so they
depend on nothing else. It needs nothing but the reference and what that needs; `aarch64.sh` runs it under emulation.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tessera_reference.numerics import activations, arithmetic, elementary, fourier, quantization, random, reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, DType
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.reductions import softmax
from tessera_reference.numerics.rounding import cast, round_to
from tessera_reference.numerics.trees import Tree

FLOATS = [dtype for dtype in DTYPES.values() if dtype.kind == "float"]
COMPLEX = [dtype for dtype in DTYPES.values() if dtype.kind == "complex"]
NUMBERS = [dtype for dtype in DTYPES.values() if dtype.kind != "bool"]
TREES = ("fold", "pairwise", "ring(3)")


def codes(dtype: DType, *shape: int, label: str = "") -> Array:
    """Every code alike: all exponents, subnormals, infinities and NaN."""
    size = prod(shape) * dtype.storage_bytes
    data = hashlib.shake_256(f"codes {dtype} {label}".encode()).digest(size)
    if dtype.kind == "bool":
        data = bytes(byte & 1 for byte in data)
    return Array.from_bits(dtype, shape, data)


def ordinary(dtype: DType, *shape: int, label: str = "", binades: int = 5) -> Array:
    """Numbers of both signs around one; integers just as `codes` gives them."""
    if dtype.kind == "int":
        return codes(dtype, *shape, label=label)
    parts = 2 if dtype.kind == "complex" else 1
    component = dtype.component if parts == 2 else dtype
    data = hashlib.shake_256(f"ordinary {dtype} {label}".encode()).digest(prod(shape) * parts * 8)
    words = np.frombuffer(data, "<i8")
    values = round_to(
        np.ldexp((words >> 11).astype(np.float64), (words & 1023) % (2 * binades) - binades - 52), component
    )
    return Array(dtype, np.ascontiguousarray(values).view(dtype.carrier).reshape(shape))


def both(dtype: DType, *shape: int, label: str = "") -> Iterator[Array]:
    yield codes(dtype, *shape, label=label)
    yield ordinary(dtype, *shape, label=label)


def casts() -> Iterator[Array]:
    for source, target in product(DTYPES.values(), DTYPES.values()):
        if source.kind == "complex" and target.kind not in ("complex", "bool"):
            continue
        for x in both(source, 8000) if source.kind != "bool" else [codes(source, 100)]:
            yield cast(x, target)
            if target.bits == 8 and target.kind == "float":
                yield cast(x, target, "nonfinite")


def operators() -> Iterator[Array]:
    for dtype in NUMBERS:
        for a, b in zip(both(dtype, 2000, label="a"), both(dtype, 2000, label="b"), strict=True):
            yield from (operator(a, b) for operator in (arithmetic.add, arithmetic.subtract, arithmetic.multiply))
            if dtype.kind != "complex":
                yield from (operator(a, b) for operator in (arithmetic.maximum, arithmetic.minimum, arithmetic.less))
            if dtype.kind == "float":
                yield arithmetic.divide(a, b)


def functions() -> Iterator[Array]:
    for name, dtype in product(sorted(elementary.FUNCTIONS), FLOATS):
        function: Callable[..., Any] = elementary.FUNCTIONS[name]
        for x, y in zip(both(dtype, 6000), both(dtype, 6000, label="y"), strict=True):
            operands = [x, y] if name == "pow" else [x]
            yield Array(dtype, function(*(operand.values for operand in operands), dtype))


def activation_functions() -> Iterator[Array]:
    for dtype in FLOATS:
        for x in both(dtype, 1500):
            yield from (function(x) for function in (activations.relu, activations.sigmoid, activations.silu))
            yield from (activations.gelu(x, form) for form in ("none", "tanh"))


def sums() -> Iterator[Array]:
    for dtype, text in product(NUMBERS, TREES):
        for x in both(dtype, 7, 143):
            yield from (reductions.sum(x, axis, tree=Tree.parse(text)) for axis in (0, 1))


def other_reductions() -> Iterator[Array]:
    for dtype in NUMBERS:
        for x in both(dtype, 7, 143):
            yield reductions.prod(x, 1)
            if dtype.kind != "int":
                yield reductions.mean(x, 1)
            if dtype.kind != "complex":
                yield from (reduction(x, 0) for reduction in (reductions.max, reductions.min, reductions.argmax))
            if dtype.kind == "float":
                yield reductions.sum(x, 1, order="kahan")
                yield reductions.logsumexp(x, 1)


def softmaxes() -> Iterator[Array]:
    for dtype in FLOATS:
        yield from (softmax(x) for x in both(dtype, 30, 77))


def products() -> Iterator[Array]:
    for dtype in NUMBERS:
        for a, b in zip(both(dtype, 2, 9, 50, label="a"), both(dtype, 2, 50, 11, label="b"), strict=True):
            yield matmul(a, b)
    yield matmul(ordinary(DTYPES["fp32"], 200, 200, label="a"), ordinary(DTYPES["fp32"], 200, 200, label="b"))


def transforms() -> Iterator[Array]:
    for dtype, n in product(COMPLEX, (1, 2, 12, 37, 64)):
        for x in both(dtype, 5, n):
            yield from (transform(x) for transform in (fourier.fft, fourier.ifft))


def random_numbers() -> Iterator[Array]:
    for dtype in FLOATS:
        yield random.uniform(5, 7, (3000,), dtype)
        yield random.normal(5, 7, (3000,), dtype)
        yield random.dropout(ordinary(dtype, 3000), 0.3, 5, 7)


def quantised() -> Iterator[Array]:
    for wire, block in product(("fp8_e4m3", "fp8_e5m2", "bf16"), (1, 32, 100)):
        x, residual = (ordinary(DTYPES["fp32"], 11, 250, label=label, binades=40) for label in ("x", "residual"))
        step = quantization.error_feedback(x, residual, DTYPES[wire], block)
        yield from (*quantization.quantize(arithmetic.add(x, residual), DTYPES[wire], block), step.sent, step.residual)
    largest = quantization.top_k(ordinary(DTYPES["fp32"], 5000), 100)
    yield from (largest.indices, largest.values)


PARTS: dict[str, Callable[[], Iterator[Array]]] = {
    "casts": casts,
    "operators": operators,
    "functions": functions,
    "activations": activation_functions,
    "sums": sums,
    "other reductions": other_reductions,
    "softmax": softmaxes,
    "matmul": products,
    "fft": transforms,
    "random": random_numbers,
    "quantisation": quantised,
}


def digest(arrays: Iterator[Array]) -> str:
    """SHA-256 over dtype, shape and storage bytes of each array in turn."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype} {array.shape};".encode())
        found.update(array.to_bits())
    return found.hexdigest()


def lines() -> Iterator[str]:
    """The digest and name of every part, and of all lines before the last."""
    everything = hashlib.sha256()
    for name, part in PARTS.items():
        line = f"{digest(part())}  {name}"
        everything.update(line.encode())
        yield line
    yield f"{everything.hexdigest()}  all"


def dispatched() -> list[str]:
    """The features of this processor that numpy makes use of beyond those it requires."""
    core = importlib.import_module("numpy._core" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else "numpy.core")
    found = core._multiarray_umath
    return [feature for feature in found.__cpu_dispatch__ if found.__cpu_features__[feature]]


def main(arguments: list[str]) -> None:
    """Print, or freeze."""
    print(f"numpy {np.__version__}, dispatching: {' '.join(dispatched()) or 'nothing'}", file=sys.stderr)
    if arguments[:1] == ["--freeze"]:
        text = [f"# {' '.join(arguments[1:])}", *lines()]
        Path(__file__).with_name("workload.sha256").write_text("\n".join(text) + "\n", encoding="utf-8")
    else:
        for line in lines():
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
