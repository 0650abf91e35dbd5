"""NaN of either sign and of every kind of fraction, where the operations make a difference between NaN and numbers.

A NaN is whatever has an exponent of ones and a fraction other than zero: the least and the largest fraction, with and
without the first bit, and fractions of which a narrower type keeps nothing.
"""

from __future__ import annotations

from math import inf

from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.chapters.ir.kit.elements import joined, pairs
from tessera_conformance.chapters.ir.kit.questions import moved
from tessera_conformance.oracle.exact import float_format
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import FLOATS, Question, Topic, codes, tensor

topic = Topic(__doc__)

SOURCES = ["fp16", "bf16", "tf32", "fp32", "fp64"]
WIDE = ["tf32", "fp32", "fp64"]


def nans(dtype: str) -> Tensor:
    """Six fractions, each with both signs."""
    format_ = float_format(dtype)
    bits, sign = format_.fraction_bits, format_.sign_bit
    infinity, first = sign - (1 << bits), 1 << (bits - 1)
    fractions = [1, first >> 1, first - 1, first, first + 1, 2 * first - 1]
    return codes(dtype, (12,), [top_bit | infinity | fraction for top_bit in (0, sign) for fraction in fractions])


def among_numbers(dtype: str) -> Tensor:
    """Every NaN, and numbers that one may be taken for."""
    largest = float_format(dtype).largest
    return joined(nans(dtype), tensor(dtype, [0, -0.0, 1, -1, largest, -largest, inf, -inf]))


@topic.vector("{source}-to-{target}", source=SOURCES, target=FLOATS)
def between_floats(source: str, target: str) -> Question:
    """NaN stays NaN: no infinity, zero or largest number comes of what is left of a fraction."""
    return questions.cast(among_numbers(source), target)


@topic.vector("{source}-to-bool", source=SOURCES)
def to_bool(source: str) -> Question:
    """Every NaN is true."""
    return questions.cast(among_numbers(source), "bool")


@topic.vector("{dtype}/{operator}", dtype=WIDE, operator=[*questions.COMPARISONS, *questions.ARITHMETIC])
def operators(dtype: str, operator: str) -> Question:
    """A NaN of any code, on either side, equals nothing, not even itself, has no order, and makes results NaN."""
    values = joined(nans(dtype), tensor(dtype, [0, -1, inf, -inf]))
    return questions.binary(operator, *pairs(values, values))


@topic.vector("{dtype}/{extreme}", dtype=WIDE, extreme=["maximum", "minimum"])
def extremes(dtype: str, extreme: str) -> Question:
    """A NaN of any code wins from either side, a negative one too."""
    values = joined(nans(dtype), tensor(dtype, [0, -1, inf, -inf]))
    return moved(extreme, *pairs(values, values))


@topic.vector("{dtype}/{reduction}/rows", dtype=WIDE, reduction=["max", "min", "argmax", "sum", "logsumexp"])
def rows(dtype: str, reduction: str) -> Question:
    """A NaN of any code in the middle of a row."""
    one, two = tensor(dtype, [1, -inf]).words().tolist()
    words = [word for nan in nans(dtype).words().tolist() for word in (one, nan, two)]
    return questions.reduction(reduction, codes(dtype, (12, 3), words), 1)


@topic.vector("{dtype}/softmax/rows", dtype=WIDE)
def softmax(dtype: str) -> Question:
    """A NaN of any code spoils its row."""
    one = tensor(dtype, [1]).words().tolist()
    words = [word for nan in nans(dtype).words().tolist() for word in (*one, nan)]
    return questions.softmax(codes(dtype, (12, 2), words))


@topic.vector("{dtype}/relu", dtype=WIDE)
def relu(dtype: str) -> Question:
    """NaN stays, negative or not."""
    return questions.relu(among_numbers(dtype))
