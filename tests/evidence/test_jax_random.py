"""Philox words against XLA's, computed on the CPU by JAX.

XLA's RngBitGenerator with the algorithm PHILOX has a state of three 64-bit numbers: key, and the counter's low and high
half. Those are our seed, block and stream; it draws the words of successive blocks. JAX's own function has two numbers
of state only, the key and the low half, and lets the key be the high half too: our stream equal to the seed.
"""

from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.numerics.random import words

INSTALL = "JAX is missing: pip install 'tessera-conformance[evidence]'"
jax = pytest.importorskip("jax", reason=INSTALL)
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
