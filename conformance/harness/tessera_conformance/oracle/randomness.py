"""Philox4x32-10, the counter-based generator of the canon, and what is drawn from it.

Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (2011). The key is the seed and the counter
holds a block number, low word first, then the stream; word i of a stream is output i mod 4 of block i // 4. The index
of an element is its row-major one in the whole tensor, of which these functions give the part from `offset` on.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, prod

from tessera_conformance.oracle import exact, functions
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.exact import ZERO, Value
from tessera_conformance.oracle.formats import accumulator_format, float_format, tensor_of, values_of
from tessera_conformance.tensors import Tensor

WORD = (1 << 32) - 1
LONG = (1 << 64) - 1
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
DOUBLE = float_format("fp64")


def philox4x32(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Ten rounds over a counter of four 32-bit words."""
    a, b, c, d = counter
    low, high = key
    for _ in range(ROUNDS):
        first, second = MULTIPLIERS[0] * a, MULTIPLIERS[1] * c
        a, b, c, d = (second >> 32) ^ b ^ low, second & WORD, (first >> 32) ^ d ^ high, first & WORD
        low, high = (low + WEYL[0]) & WORD, (high + WEYL[1]) & WORD
    return a, b, c, d


def word(seed: int, stream: int, index: int) -> int:
    """Word `index` of a stream of the generator of a seed, both of 64 bits."""
    block, place = divmod(index, 4)
    counter = (block & WORD, block >> 32, stream & WORD, stream >> 32)
    return philox4x32(counter, (seed & WORD, seed >> 32))[place]


def philox(*, seed: int, stream: int = 0, shape: tuple[int, ...] | list[int], offset: int = 0) -> Tensor:
    """The words themselves, as the bits of int32."""
    _check(seed, stream, offset)
    words = [word(seed, stream, offset + place) for place in range(prod(shape))]
    return Tensor.from_words("int32", shape, words)


def uniform(
    *, seed: int, stream: int = 0, shape: tuple[int, ...] | list[int], dtype: str = "fp32", offset: int = 0
) -> Tensor:
    """In [0, 1), multiples of 2**-p with p the significand's bits; the upper bits of a word, of two for fp64."""
    _check(seed, stream, offset)
    format_ = float_format(dtype)
    numbers = [_uniform(seed, stream, offset + place, format_.fraction_bits + 1) for place in range(prod(shape))]
    return tensor_of(dtype, tuple(shape), numbers)


def normal(
    *, seed: int, stream: int = 0, shape: tuple[int, ...] | list[int], dtype: str = "fp32", offset: int = 0
) -> Tensor:
    """Box and Muller's sqrt(-2 log u1) cos(2 pi u2), each step correctly rounded in fp64, then once to the dtype."""
    _check(seed, stream, offset)
    float_format(dtype)
    numbers = [_normal(*normal_sources(seed, stream, offset + place)) for place in range(prod(shape))]
    return tensor_of(dtype, tuple(shape), numbers)


def dropout(x: Tensor, *, rate: float, seed: int, stream: int = 0, offset: int = 0) -> Tensor:
    """+0 where a word falls below rate * 2**32, elsewhere x / (1 - rate), rounded in the accumulator and once more."""
    _check(seed, stream, offset)
    format_ = accumulator_format(x.dtype)
    kept = format_.round(1 - exact_rate(rate))
    results: list[Value] = [
        format_.round(exact.divide(value, kept)) if keep else ZERO
        for value, keep in zip(values_of(x), keeps(rate, seed, stream, offset, x.size), strict=True)
    ]
    return tensor_of(x.dtype, x.shape, results)


def keeps(rate: float, seed: int, stream: int, offset: int, count: int) -> list[bool]:
    """Which elements dropout keeps."""
    threshold = ceil(exact_rate(rate) * (1 << 32))
    return [word(seed, stream, offset + place) >= threshold for place in range(count)]


def exact_rate(rate: float) -> Fraction:
    """The number that a rate is.

    Raises:
        BadArgument: it is not in [0, 1).
    """
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise BadArgument("rate", rate, "a number of at least 0 and below 1")
    return Fraction(rate)


def normal_sources(seed: int, stream: int, index: int) -> tuple[Fraction, Fraction]:
    """The two uniform numbers behind an element, the first in (0, 1] and the second in [0, 1)."""
    first, second = word(seed, stream, 2 * index), word(seed, stream, 2 * index + 1)
    return Fraction(first + 1, 1 << 32), Fraction(second, 1 << 32)


def _uniform(seed: int, stream: int, index: int, bits: int) -> Value:
    if bits <= 32:
        return Fraction(word(seed, stream, index) >> (32 - bits), 1 << bits)
    high, low = word(seed, stream, 2 * index) >> 5, word(seed, stream, 2 * index + 1) >> 6
    return Fraction((high << 26) + low, 1 << 53)


def _normal(first: Fraction, second: Fraction) -> Value:
    doubled = DOUBLE.round(exact.multiply(Fraction(-2), functions.evaluate("log", DOUBLE, first)))
    angle = DOUBLE.round(exact.multiply(functions.two_pi(DOUBLE), second))
    return DOUBLE.round(
        exact.multiply(functions.evaluate("sqrt", DOUBLE, doubled), functions.evaluate("cos", DOUBLE, angle))
    )


def _check(seed: int, stream: int, offset: int) -> None:
    for name, given in (("seed", seed), ("stream", stream), ("offset", offset)):
        if type(given) is not int or not 0 <= given <= LONG:
            raise BadArgument(name, given, "an integer of 64 bits that is not negative")
