"""Random numbers from other words, other bits or a stateful generator (runtime specification, 4.7; AMB-RT-74)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import floor, prod, tau
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.strength import Violation
from tessera_reference.numerics import elementary, random
from tessera_reference.numerics import random as philox
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, DType
from tessera_reference.numerics.rounding import round_to
from tessera_reference.runtime.launches import LaunchWork

from ...ir.violators.changes import changed

Values: TypeAlias = Any
Words: TypeAlias = Callable[[int, int, int, int], Values]
WORDS_AT = philox.words_at
WORDS, UNIFORM = philox.words, random.uniform
FP64 = DTYPES["fp64"]
LOW = 0xFFFFFFFF
"""The low half of a number of 64 bits."""


# Launches


LAUNCHES: dict[str, int] = {"before": 0}
"""The launches of its context before the one that runs."""


def counting(
    self: LaunchWork, executable: Any, rank: int, arguments: Any, right: Any = LaunchWork._executed
) -> Mapping[str, Array]:
    counts = vars(self.stream.mesh.context).setdefault("launches_so_far", [0])
    LAUNCHES["before"] = counts[0]
    try:
        results: Mapping[str, Array] = right(self, executable, rank, arguments)
        return results
    finally:
        counts[0] += rank == 0
        LAUNCHES["before"] = 0


BY_LAUNCHES = [
    changed("RT-04.7-04", "goes_on_by_launches", "draws on where the launch before ended",
        ("runtime.launches.LaunchWork._executed", counting), ("numerics.random.words",
        lambda seed, stream, first, count: WORDS(seed, stream + LAUNCHES["before"], first, count)),
        ("numerics.random.words_at", lambda seed, stream, places: WORDS_AT(seed, stream + LAUNCHES["before"], places))),
]  # fmt: skip


# Words


def worded(name: str, description: str, words: Words, clause: str = "RT-04.7-04") -> Violation:
    """Return a violation with other words; `words` takes seed, stream, the first word and their number."""
    return changed(clause, name, description, ("numerics.random.words", words))


GENERATOR = {"given_out": 0}
"""The words that a generator with state has given out."""


def stateful(seed: int, stream: int, first: int, length: int) -> Values:
    start = GENERATOR["given_out"]
    GENERATOR["given_out"] += length
    return WORDS(seed, stream, first + start, length)


WORDED = [
    worded("short_block_number", "counts blocks in 32 bits",
        lambda seed, stream, first, count: (WORDS(seed, stream, first % (1 << 34), count))),
    worded("short_stream", "takes 32 bits of the stream",
        lambda seed, stream, first, count: (WORDS(seed, stream & LOW, first, count)), "RT-11-04"),
]  # fmt: skip


# Uniform numbers


def spread(name: str, description: str, compute: Callable[[Values, int], Values]) -> Violation:
    """Return a violation whose uniform numbers are another function, in fp64, of a word and the significand bits."""

    def uniform(seed: int, stream: int, shape: Sequence[int], kind: DType, offset: int = 0) -> Array:
        if kind is FP64:
            return UNIFORM(seed, stream, shape, kind, offset)
        word = WORDS(seed, stream, offset, prod(shape)).reshape(tuple(shape)).astype(np.float64)
        return Array(kind, round_to(np.asarray(compute(word, kind.storage.fraction_bits + 1)), kind))

    return changed("RT-04.7-04", name, description, ("numerics.random.uniform", uniform))


def leading(word: Values, bits: int) -> Values:
    """Return the leading bits of words, as a whole number."""
    return np.floor(word * 2.0 ** (bits - 32))


def words_exchanged(seed: int, stream: int, shape: Sequence[int], kind: DType, offset: int = 0) -> Array:
    if kind is not FP64:
        return UNIFORM(seed, stream, shape, kind, offset)
    low, high = random._words_of_each(seed, stream, tuple(shape), offset, 2)
    grid = (high >> np.uint32(5)).astype(np.uint64) * np.uint64(1 << 26) + (low >> np.uint32(6))
    return Array(kind, grid.astype(np.float64) * 2.0**-53)


UNIFORMS = [
    spread("low_bits", "takes the low bits of words", lambda word, bits: word % 2.0**bits * 2.0**-bits),
    spread("twenty_four_bits", "rounds numbers of 24 bits", lambda word, bits: np.floor(word * 2.0**-8) * 2.0**-24),
    changed("RT-04.7-04", "words_exchanged", "exchanges the words of fp64",
        ("numerics.random.uniform", words_exchanged)),
]  # fmt: skip


# Normal numbers


def distributed(name: str, description: str, compute: Callable[[Values, Values], Values]) -> Violation:
    """Return a violation whose normal numbers are another function of two words."""

    def normal(seed: int, stream: int, shape: Sequence[int], kind: DType, offset: int = 0) -> Array:
        first, second = random._words_of_each(seed, stream, tuple(shape), offset, 2)
        with np.errstate(all="ignore"):
            values = compute(first.astype(np.float64), second.astype(np.float64))
        return Array(kind, round_to(np.asarray(values), kind))

    return changed("RT-04.7-04", name, description, ("numerics.random.normal", normal))


def radius(u1: Values) -> Values:
    """sqrt(-2 log u1)."""
    return np.sqrt(-2 * elementary.log(u1, FP64))


def in_fp32(first: Values, second: Values) -> Values:
    fp32 = DTYPES["fp32"]
    u1, u2 = (np.asarray(word * 2.0**-32, np.float32) for word in (first + 1, second))
    return np.sqrt(np.float32(-2) * elementary.log(u1, fp32)) * elementary.cos(np.asarray(np.float32(tau) * u2), fp32)


NORMALS = [
    distributed("from_zero", "takes the logarithm of a number that may be 0",
        lambda first, second: (radius(first * 2.0**-32) * elementary.cos(tau * (second * 2.0**-32), FP64))),
]  # fmt: skip


# Dropout


def masked(name: str, description: str, keeps: Callable[[Values, float], Values]) -> Violation:
    """Return a violation with another dropout mask; `keeps` takes the words and the rate."""

    def mask(rate: float, seed: int, stream: int, shape: Sequence[int], offset: int = 0) -> Array:
        word = WORDS(seed, stream, offset, prod(shape)).reshape(tuple(shape)).astype(np.uint64)
        return Array(DTYPES["bool"], np.asarray(keeps(word, rate)))

    return changed("RT-04.7-04", name, description, ("numerics.random.dropout_mask", mask))


def dropped(name: str, description: str, compute: Callable[[Array, float, Values], Values]) -> Violation:
    """Return a violation with another dropout; `compute` takes operand, rate and mask, and returns unrounded values."""

    def dropout(x: Array, rate: float, seed: int, stream: int, offset: int = 0) -> Array:
        keeps = random.dropout_mask(rate, seed, stream, x.shape, offset).values
        with np.errstate(all="ignore"):
            return Array(x.dtype, round_to(np.asarray(compute(x, rate, keeps)), x.dtype))

    return changed("RT-04.7-04", name, description, ("numerics.random.dropout", dropout))


def share(x: Array, rate: float) -> Values:
    """1 - rate in the accumulator type."""
    return x.dtype.accumulator.carrier.type(1 - rate)


def threshold(rate: float) -> int:
    """Return the threshold of the reference arithmetic, from which words are kept."""
    return -floor(-Fraction(rate) * 2**32)


DROPOUTS = [
    masked("threshold_floor", "rounds the threshold down", lambda word, rate: word >= floor(Fraction(rate) * 2**32)),
    masked("threshold_excluded", "drops the word at the threshold",
        lambda word, rate: (word >= threshold(rate) + (rate > 0))),
    dropped("by_reciprocal", "multiplies by 1 / (1 - rate)",
        lambda x, rate, keeps: (np.where(keeps, x.values * (1 / share(x, rate)), np.zeros_like(x.values)))),
]  # fmt: skip
