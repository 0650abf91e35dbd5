"""Random numbers from other words, other bits or a stateful generator (runtime specification, 4.7; AMB-RT-74)."""

from fractions import Fraction
from math import floor, prod, tau

import numpy as np

from tessera_conformance.strength import Around
from tessera_reference.numerics import elementary, random
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import round_to
from tessera_reference.runtime.launches import LaunchWork

from ...ir.violators.changes import changed

WORDS, UNIFORM = random.words, random.uniform
FP64 = DTYPES["fp64"]

LAUNCHES = {"before": 0}
"""The launches of its context before the one that runs."""


def counting(self, executable, rank, arguments, right=LaunchWork._executed):
    counts = vars(self.stream.mesh.context).setdefault("launches_so_far", [0])
    LAUNCHES["before"] = counts[0]
    try:
        return right(self, executable, rank, arguments)
    finally:
        counts[0] += rank == 0
        LAUNCHES["before"] = 0


def later_words(usual):
    return lambda seed, stream, *of: usual(seed, stream + LAUNCHES["before"], *of)


def worded(name, description, words, clause="RT-04.7-04"):
    """Return a violation with other words; `words` takes seed, stream, the first word and their number."""
    return changed(clause, name, description, ("numerics.random.words", words))


def spread(name, description, compute):
    """Return a violation whose uniform numbers are another function, in fp64, of a word and the significand bits."""

    def uniform(seed, stream, shape, kind, offset=0):
        if kind is FP64:
            return UNIFORM(seed, stream, shape, kind, offset)
        word = WORDS(seed, stream, offset, prod(shape)).reshape(tuple(shape)).astype(np.float64)
        return Array(kind, round_to(np.asarray(compute(word, kind.storage.fraction_bits + 1)), kind))

    return changed("RT-04.7-04", name, description, ("numerics.random.uniform", uniform))


def words_exchanged(seed, stream, shape, kind, offset=0):
    if kind is not FP64:
        return UNIFORM(seed, stream, shape, kind, offset)
    low, high = random._words_of_each(seed, stream, tuple(shape), offset, 2)
    grid = (high >> np.uint32(5)).astype(np.uint64) * np.uint64(1 << 26) + (low >> np.uint32(6))
    return Array(kind, grid.astype(np.float64) * 2.0**-53)


def normal_from_zero(seed, stream, shape, kind, offset=0):
    words = random._words_of_each(seed, stream, tuple(shape), offset, 2)
    with np.errstate(all="ignore"):
        u1, u2 = (word.astype(np.float64) * 2.0**-32 for word in words)
        values = np.sqrt(-2 * elementary.log(u1, FP64)) * elementary.cos(tau * u2, FP64)
    return Array(kind, round_to(np.asarray(values), kind))


def masked(name, description, keeps):
    """Return a violation with another dropout mask; `keeps` takes the words and the rate."""

    def mask(rate, seed, stream, shape, offset=0):
        word = WORDS(seed, stream, offset, prod(shape)).reshape(tuple(shape)).astype(np.uint64)
        return Array(DTYPES["bool"], np.asarray(keeps(word, rate)))

    return changed("RT-04.7-04", name, description, ("numerics.random.dropout_mask", mask))


def by_reciprocal(x, rate, seed, stream, offset=0):
    keeps = random.dropout_mask(rate, seed, stream, x.shape, offset).values
    with np.errstate(all="ignore"):
        scaled = x.values * (1 / x.dtype.accumulator.carrier.type(1 - rate))
        return Array(x.dtype, round_to(np.asarray(np.where(keeps, scaled, np.zeros_like(x.values))), x.dtype))


VIOLATORS = [
    changed("RT-04.7-04", "goes_on_by_launches", "draws on where the launch before ended",
        ("runtime.launches.LaunchWork._executed", counting), ("numerics.random.words", Around(later_words)),
        ("numerics.random.words_at", Around(later_words))),
    worded("short_block_number", "counts blocks in 32 bits",
        lambda seed, stream, first, count: WORDS(seed, stream, first % (1 << 34), count)),
    worded("short_stream", "takes 32 bits of the stream",
        lambda seed, stream, first, count: WORDS(seed, stream & 0xFFFFFFFF, first, count), "RT-11-04"),
    spread("low_bits", "takes the low bits of words", lambda word, bits: word % 2.0**bits * 2.0**-bits),
    spread("twenty_four_bits", "rounds numbers of 24 bits", lambda word, bits: np.floor(word * 2.0**-8) * 2.0**-24),
    changed("RT-04.7-04", "words_exchanged", "exchanges the words of fp64",
        ("numerics.random.uniform", words_exchanged)),
    changed("RT-04.7-04", "from_zero", "takes the logarithm of a number that may be 0",
        ("numerics.random.normal", normal_from_zero)),
    masked("threshold_floor", "rounds the threshold down", lambda word, rate: word >= floor(Fraction(rate) * 2**32)),
    masked("threshold_excluded", "drops the word at the threshold",
        lambda word, rate: word >= -floor(-Fraction(rate) * 2**32) + (rate > 0)),
    changed("RT-04.7-04", "by_reciprocal", "multiplies by 1 / (1 - rate)", ("numerics.random.dropout", by_reciprocal)),
]  # fmt: skip
