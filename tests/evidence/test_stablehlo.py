"""Matrix products against StableHLO's interpreter, of the package jaxlib, bit for bit.

Its dot_general sums in the type of its result: bf16 operands with a float32 result are the canon's fp32 accumulator.
"""

from __future__ import annotations

from collections.abc import Callable

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
