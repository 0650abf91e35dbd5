"""Test data of any size from a name: bits that depend only on a seed and an element's place.

Word i of stream `seed` is output number `seed * 2**32 + i` of SplitMix64 started at zero (Steele, Lea and Flood,
"Fast splittable pseudorandom number generators", 2014), so it is the same in every language, version and order.
"""

from __future__ import annotations

from math import prod

from tessera_conformance.oracle.formats import FORMATS, FloatFormat
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

_MASK = (1 << 64) - 1


def counter_bits(seed: int, count: int) -> list[int]:
    """The first `count` words of 64 bits of stream `seed`."""
    return [_splitmix64((seed << 32) + place) for place in range(count)]


def counted(dtype: str, shape: tuple[int, ...], seed: int, exponents: tuple[int, int] = (-2, 2)) -> Tensor:
    """A tensor of counter bits.

    Integers take the low bits of their word. A float takes its sign from bit 63, its fraction from the low bits, and an
    exponent from the given range, ends included, from bits 32 to 62; fp64, whose fraction is wider, from bits 53 to 62.
    """
    words = counter_bits(seed, prod(shape))
    format_ = FORMATS[dtype]
    if isinstance(format_, FloatFormat):
        return Tensor.from_words(dtype, shape, [_float_code(word, format_, exponents) for word in words])
    bits = 1 if dtype == "bool" else 8 * ELEMENT_FORMATS[dtype].word_bytes
    return Tensor.from_words(dtype, shape, [word & ((1 << bits) - 1) for word in words])


def _float_code(word: int, format_: FloatFormat, exponents: tuple[int, int]) -> int:
    low, high = exponents
    entropy = (word & (_MASK >> 1)) >> max(format_.fraction_bits + 1, 32)
    field = format_.bias + low + entropy % (high - low + 1)
    fraction = word & ((1 << format_.fraction_bits) - 1)
    return (format_.sign_bit if word >> 63 else 0) | field << format_.fraction_bits | fraction


def _splitmix64(number: int) -> int:
    z = ((number + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
