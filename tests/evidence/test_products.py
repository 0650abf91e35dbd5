"""Matrix products against StableHLO's interpreter and TOSA's reference model, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.matmul import matmul

PROGRAM = """
func.func @main(%a: tensor<{m}x{k}x{type}>, %b: tensor<{k}x{n}x{type}>) -> tensor<{m}x{n}xf32> {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<{m}x{k}x{type}>, tensor<{k}x{n}x{type}>) -> tensor<{m}x{n}xf32>
  return %0 : tensor<{m}x{n}xf32>
}}
"""


@pytest.fixture
def product(load) -> Callable[[Array, Array], np.ndarray]:
    ir = load("jaxlib.mlir.ir", "jaxlib")
    stablehlo = load("jaxlib.mlir.dialects.stablehlo", "jaxlib")
    registry = ir.DialectRegistry()
    load("jaxlib.mlir._mlir_libs._jax_mlir_ext", "jaxlib").register_dialects(registry)

    def attribute(x: Array):
        if x.dtype.name == "fp32":
            return ir.DenseElementsAttr.get(np.ascontiguousarray(x.values))
        codes = np.frombuffer(x.to_bits(), np.uint16).reshape(x.shape)
        return ir.DenseElementsAttr.get(codes, type=ir.BF16Type.get(), shape=list(x.shape))

    def evaluate(a: Array, b: Array) -> np.ndarray:
        (m, k), n = a.shape, b.shape[1]
        with ir.Context() as context, ir.Location.unknown():
            context.append_dialect_registry(registry)
            context.load_all_available_dialects()
            stablehlo.register_dialect(context)
            source = PROGRAM.format(m=m, k=k, n=n, type="f32" if a.dtype.name == "fp32" else "bf16")
            (result,) = stablehlo.eval_module(ir.Module.parse(source), [attribute(a), attribute(b)])
            return np.array(result, np.float32).reshape(m, n)

    return evaluate


def test_products_have_the_same_bits(product, matrices, compare):
    for a, b in matrices:
        compare(product(a, b), matmul(a, b, out=dtype("fp32")).values)


HERE = Path(__file__).parent
ROOT = HERE.parents[1]
pytestmark = pytest.mark.slow
Products = Callable[[Sequence[tuple[Array, Array]]], list[np.ndarray]]


@pytest.fixture
def products(peer_folder: Callable[..., Path], tmp_path: Path) -> Products:
    """The products that TOSA's model gives."""
    folder = peer_folder("tosa", "tosa-tools>=2026.8")

    def compute(pairs: Sequence[tuple[Array, Array]]) -> list[np.ndarray]:
        given = {f"{side}{i}": handed(x) for i, pair in enumerate(pairs) for side, x in zip("ab", pair, strict=True)}
        np.savez(tmp_path / "operands.npz", **given)
        command = [sys.executable, str(HERE / "tosa_products.py"), "operands.npz", "products.npz"]
        search = os.pathsep.join([str(folder), str(ROOT / "benchmarks")])
        environment = {**os.environ, "PYTHONPATH": search}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found = np.load(tmp_path / "products.npz")
        return [found[f"p{i}"] for i in range(len(pairs))]

    return compute


def handed(x: Array) -> np.ndarray:
    return x.values if x.dtype.name == "fp32" else np.frombuffer(x.to_bits(), np.uint16).reshape(x.shape)


def larger(name: str) -> tuple[Array, Array]:
    """Two matrices of 200 x 200 with numbers of both signs around one."""
    rng = np.random.Generator(np.random.Philox(7))
    codes = rng.integers(0x3F00, 0x4100, (2, 200, 200)) | rng.integers(0, 2, (2, 200, 200)) << 15
    fractions = rng.integers(0, 1 << 16, codes.shape) if name == "fp32" else 0
    values = (codes << 16 | fractions).astype(np.uint32).view(np.float32)
    a, b = (Array(dtype(name), value) for value in values)
    return a, b


def test_products_have_the_same_bits_of_tosa(products: Products, operands, compare) -> None:
    pairs = [pair for name in ("fp32", "bf16") for pair in [*operands(name), larger(name)]]
    for actual, (a, b) in zip(products(pairs), pairs, strict=True):
        compare(actual, matmul(a, b, out=dtype("fp32")).values)
