"""Test data of any size from a name: bits that depend only on a seed and an element's place.

Word i of stream `seed` is output number `seed * 2**32 + i` of SplitMix64 started at zero (Steele, Lea and Flood,
"Fast splittable pseudorandom number generators", 2014), so it is the same in every language, version and order.
"""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.oracle.formats import FORMATS, FloatFormat
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

Words: TypeAlias = np.ndarray[Any, np.dtype[Any]]
"""Unsigned integers of 64 bits, whose arithmetic is modulo 2**64."""

_MASK = (1 << 64) - 1


def counter_bits(seed: int, count: int) -> list[int]:
    """The first `count` words of 64 bits of stream `seed`."""
    words: list[int] = _splitmix64(seed << 32, count).tolist()
    return words


def counted(dtype: str, shape: tuple[int, ...], seed: int, exponents: tuple[int, int] = (-2, 2)) -> Tensor:
    """A tensor of counter bits.

    Integers take the low bits of their word. A float takes its sign from bit 63, its fraction from the low bits, and an
    exponent from the given range, ends included, from bits 32 to 62; fp64, whose fraction is wider, from bits 53 to 62.
    """
    words = _splitmix64(seed << 32, prod(shape))
    format_ = FORMATS[dtype]
    if isinstance(format_, FloatFormat):
        return Tensor.from_words(dtype, shape, _float_codes(words, format_, exponents).tolist())
    bits = 1 if dtype == "bool" else 8 * ELEMENT_FORMATS[dtype].word_bytes
    return Tensor.from_words(dtype, shape, (words & ((1 << bits) - 1)).tolist())


def _float_codes(words: Words, format_: FloatFormat, exponents: tuple[int, int]) -> Words:
    low, high = exponents
    entropy = (words & (_MASK >> 1)) >> max(format_.fraction_bits + 1, 32)
    fields = format_.bias + low + entropy % (high - low + 1)
    fractions = words & ((1 << format_.fraction_bits) - 1)
    return (words >> 63) * format_.sign_bit | fields << format_.fraction_bits | fractions


def _splitmix64(first: int, count: int) -> Words:
    z: Words = (np.arange(1, count + 1, dtype=np.uint64) + (first & _MASK)) * 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    z ^= z >> 31
    return z
