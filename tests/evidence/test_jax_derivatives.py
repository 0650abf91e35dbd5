"""JAX's derivatives of narrow types lie within the enclosures of the suite, and Philox's words are XLA's."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tessera_conformance.chapters.ir.kit.derivatives import SLOPES, Model, Number, enclosed, function, sigmoid
from tessera_conformance.oracle.exact import finite, values_of
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import tensor
from tessera_reference.numerics.random import words

INSTALL = "JAX is missing: pip install 'tessera-conformance[evidence]'"
jax = pytest.importorskip("jax", reason=INSTALL)
jnp = jax.numpy
POINTS = [0.25, 0.5, 1.5, 2.25, 3, 0.03125, 1, 4]
WEIGHTS = [1, -2, 0.5, 3, -1, 4, -0.75, 2]
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
NAMED_OTHERWISE = {"erf": jax.scipy.special.erf, "rsqrt": jax.lax.rsqrt, "reciprocal": jnp.reciprocal}


def gelu(x: Number) -> Number:
    half = x.beside(Fraction(1, 2))
    return half * x * (function("erf", x * function("sqrt", half)) + x.beside(1))


OTHERS: dict[str, tuple[Callable[[Any], Any], Callable[[Number], Number]]] = {
    "sigmoid": (jax.nn.sigmoid, sigmoid),
    "silu": (jax.nn.silu, lambda x: x * sigmoid(x)),
    "gelu": (lambda x: jax.nn.gelu(x, approximate=False), gelu),
}
FUNCTIONS = {name: NAMED_OTHERWISE.get(name, getattr(jnp, name, None)) for name in SLOPES if name != "pow"}


def compare(theirs: Callable[[Any], Any], model: Model, dtype: str) -> None:
    x, weights = (jnp.asarray(values, DTYPES[dtype]) for values in (POINTS, WEIGHTS))
    slopes = np.asarray(jax.grad(lambda given: jnp.sum(theirs(given) * weights))(x))
    found = Tensor(dtype, slopes.shape, slopes.tobytes())
    limits = enclosed(model, [tensor(dtype, POINTS)], tensor(dtype, WEIGHTS))
    for value, limit in zip(values_of(found), limits, strict=True):
        assert limit is not None and limit.holds(value), (finite(value), limit)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions(name: str, dtype: str) -> None:
    assert FUNCTIONS[name] is not None
    compare(FUNCTIONS[name], lambda xs: [function(name, x) for x in xs], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("theirs", "ours"), OTHERS.values(), ids=OTHERS)
def test_activations(theirs: Callable[[Any], Any], ours: Callable[[Number], Number], dtype: str) -> None:
    compare(theirs, lambda xs: [ours(x) for x in xs], dtype)


stablehlo = pytest.importorskip("jaxlib.mlir.dialects.stablehlo", reason=INSTALL)
ir = pytest.importorskip("jaxlib.mlir.ir", reason=INSTALL)
mlir = pytest.importorskip("jax.interpreters.mlir", reason=INSTALL)
extend = pytest.importorskip("jax.extend.core", reason=INSTALL)
COUNT = 1000
NUMBERS = [0, 1, 2**32 - 1, 2**32, 0x0123456789ABCDEF, 2**64 - 1]
BLOCKS = [0, 1, 2**32 - 3, 2**40 + 5, 2**62 - COUNT]
"""The third carries into the counter's second word."""


@pytest.fixture(scope="module")
def xla_words():
    """(key, counter low, counter high) -> words, by StableHLO's rng_bit_generator; halves cross as 32-bit numbers."""
    primitive = extend.Primitive("philox_words")
    primitive.def_abstract_eval(lambda state: jax.core.ShapedArray((COUNT,), np.uint32))

    def lower(context, state):
        uint32, uint64 = ir.IntegerType.get_unsigned(32), ir.IntegerType.get_unsigned(64)
        wide = stablehlo.BitcastConvertOp(ir.RankedTensorType.get([3], uint64), state).result
        drawn = ir.RankedTensorType.get([COUNT], uint32)
        generator = stablehlo.RngBitGeneratorOp(wide.type, drawn, stablehlo.RngAlgorithmAttr.get("PHILOX"), wide)
        return [generator.results[1]]

    mlir.register_lowering(primitive, lower)
    draw = jax.jit(primitive.bind)

    def xla(key: int, low: int, high: int) -> list[int]:
        state = [[number & 0xFFFFFFFF, number >> 32] for number in (key, low, high)]
        return np.asarray(draw(np.array(state, np.uint32))).tolist()

    return xla


@pytest.mark.parametrize("seed", NUMBERS)
@pytest.mark.parametrize("stream", NUMBERS)
@pytest.mark.parametrize("block", BLOCKS)
def test_words_are_xlas(seed, stream, block, xla_words):
    assert words(seed, stream, 4 * block, COUNT).tolist() == xla_words(seed, block, stream)


@pytest.mark.parametrize("seed", NUMBERS)
@pytest.mark.parametrize("block", BLOCKS)
def test_jaxs_own_bit_generator_has_the_seed_for_a_stream(seed, block):
    state = np.array([seed & 0xFFFFFFFF, seed >> 32, block & 0xFFFFFFFF, block >> 32], np.uint32)
    algorithm = jax.lax.RandomAlgorithm.RNG_PHILOX
    _, drawn = jax.lax.rng_bit_generator(state, (COUNT,), dtype=np.uint32, algorithm=algorithm)
    assert words(seed, seed, 4 * block, COUNT).tolist() == np.asarray(drawn).tolist()
