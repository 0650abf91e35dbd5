"""Reductions: sums and products over the canonical tree, means, maxima and minima, argmax, log-sum-exp."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan

from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.chapters.ir.kit.elements import integer_edges, require_different
from tessera_conformance.oracle.exact import float_format
from tessera_conformance.oracle.reductions import sum_ as total
from tessera_conformance.vectors.building import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    Question,
    Topic,
    codes,
    complex_of,
    counted,
    tensor,
)

topic = Topic(__doc__)

NARROW = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"]
WIDE = ["tf32", "fp32", "fp64"]
LENGTHS = ["1", "2", "3", "5", "6", "7", "9", "12", "31", "33"]


@topic.vector("{dtype}/{reduction}/n-{n}", dtype=FLOATS, reduction=["sum", "mean"], n=LENGTHS)
def lengths(dtype: str, reduction: str, n: str) -> Question:
    """Lengths around the powers of two: an odd tail is carried unchanged, never padded."""
    return questions.reduction(reduction, counted(dtype, (4, int(n)), seed=231), 1)


@topic.vector("{dtype}/sum/order", "LANG-10-06", dtype=WIDE)
def order(dtype: str) -> Question:
    """Thirteen numbers whose sums differ along the canonical tree, from the left, and with the odd tail first."""
    x = counted(dtype, (8, 13), seed=232, exponents=(-8, 8))
    require_different(
        [total(x, axis=1), total(x, axis=1, tree="fold"), total(x, axis=1, tree={"ring": 12})],
        "pairwise tree, left fold and ring",
    )
    return questions.reduction("sum", x, 1)


@topic.vector("{dtype}/sum/accumulator", dtype=NARROW)
def accumulator(dtype: str) -> Question:
    """Ones, so many that the type itself would stop counting: partial sums are kept in fp32 and rounded once."""
    one = float_format(dtype).encode(Fraction(1))
    count = 300 if dtype != "fp16" else 3000
    return questions.reduction("sum", codes(dtype, (count,), [one] * count), 0)


@topic.vector("{dtype}/sum/small-after-large", dtype=NARROW)
def small_after_large(dtype: str) -> Question:
    """256, 1/16 and -256 leave 1/16, of which no accumulator narrower than fp32 keeps anything."""
    small = Fraction(1, 16)
    return questions.reduction("sum", tensor(dtype, [[256, small, -256, 0], [-256, -small, 0, 256]]), 1)


@topic.vector("{dtype}/sum/beside-a-tie", dtype=["fp8_e5m2", "fp16", "bf16"])
def beside_a_tie(dtype: str) -> Question:
    """Halfway between two numbers, and so little beside it that fp32 loses it: a wider accumulator rounds otherwise."""
    format_ = float_format(dtype)
    large = Fraction(32768)
    half, tiny = large * format_.epsilon / 2, max(format_.smallest, large / (1 << 26))
    rows = [[large, half, tiny, 0], [large, half, 0, tiny], [-large, -half, -tiny, 0]]
    return questions.reduction("sum", tensor(dtype, rows), 1)


@topic.vector("{dtype}/{reduction}/negative-zeros-n-{n}", dtype=FLOATS, reduction=["sum", "mean"], n=["1", "3", "5"])
def negative_zeros(dtype: str, reduction: str, n: str) -> Question:
    """Nothing but -0 stays -0; filling up to a power of two with +0, or starting from it, loses the sign."""
    return questions.reduction(reduction, tensor(dtype, [[-0.0] * int(n)]), 1)


@topic.vector("{dtype}/{reduction}/subnormals", dtype=FLOATS, reduction=["sum", "prod", "mean", "max", "min"])
def subnormals(dtype: str, reduction: str) -> Question:
    """Subnormal operands, partial results and results count: nothing is flushed to zero."""
    format_ = float_format(dtype)
    tiny, normal = format_.smallest, format_.smallest_normal
    rows = [
        [tiny, tiny, tiny],
        [-tiny, -2 * tiny, -tiny],
        [normal, -tiny, -tiny],
        [tiny, 1, 2],
        [normal, Fraction(1, 2), -1],
        [-tiny, -tiny, -2 * tiny],
    ]
    return questions.reduction(reduction, tensor(dtype, rows), 1)


@topic.vector(
    "{dtype}/{reduction}/special", dtype=FLOATS, reduction=["sum", "prod", "mean", "max", "min", "argmax", "logsumexp"]
)
def special(dtype: str, reduction: str) -> Question:
    """Rows with signed zeros, infinities of one and of both signs, NaN, and limits that overflow."""
    top = float_format(dtype).largest
    plain = [
        [-0.0] * 4,
        [0, -0.0, 0, -0.0],
        [-0.0, 0, -0.0, 0],
        [top, top, -top, 1],
        [1, nan, 2, nan],
        [-3, -1, -1, -2],
    ]
    infinite = [] if dtype == "fp8_e4m3" else [[inf, 1, 2, 3], [-inf, 1, 2, 3], [inf, -inf, 1, 0], [-inf] * 4]
    return questions.reduction(reduction, tensor(dtype, [*plain, *infinite]), 1)


@topic.vector("{dtype}/prod/counted", dtype=FLOATS)
def products(dtype: str) -> Question:
    """Products of seven numbers near one, rounded at every node in the accumulator type."""
    return questions.reduction("prod", counted(dtype, (8, 7), seed=233, exponents=(-1, 0)), 1)


@topic.vector("{dtype}/logsumexp/counted", dtype=FLOATS)
def log_sum_exp(dtype: str) -> Question:
    """Eleven numbers a row, and rows far from zero, where the exponentials themselves would overflow or vanish."""
    return questions.reduction("logsumexp", counted(dtype, (8, 11), seed=234, exponents=(-3, 6)), 1)


@topic.vector("{dtype}/logsumexp/far-below", dtype=FLOATS)
def log_sum_exp_below(dtype: str) -> Question:
    """Rows of negative numbers alone, whose exponentials vanish unless the maximum is taken off first."""
    rows = [[-96, -112, -96, -128], [-448, -384, -320, -384], [-224, -192, -192, -256]]
    return questions.reduction("logsumexp", tensor(dtype, rows), 1)


@topic.vector("{dtype}/{reduction}/neighbours", dtype=["int64"], reduction=["max", "min", "argmax"])
def neighbours(dtype: str, reduction: str) -> Question:
    """Rows of integers that are one number in fp64."""
    middle, most = 1 << 53, (1 << 63) - 1
    rows = [
        [middle, middle + 1, middle],
        [-middle, -middle - 1, -middle],
        [most - 1, most - 2, most],
        [-most, -most - 1, -most],
    ]
    return questions.reduction(reduction, tensor(dtype, rows), 1)


@topic.vector("{dtype}/{reduction}/counted", dtype=[*FLOATS, *INTEGERS], reduction=["max", "min", "argmax"])
def extremes(dtype: str, reduction: str) -> Question:
    """Rows of nine; the first of equal elements counts."""
    return questions.reduction(reduction, counted(dtype, (6, 9), seed=235), 1)


@topic.vector("{dtype}/{reduction}/wrapping", dtype=INTEGERS, reduction=["sum", "prod"])
def wrapping(dtype: str, reduction: str) -> Question:
    """Integers near the ends of the range wrap in the accumulator and into the result."""
    return questions.reduction(reduction, integer_edges(dtype, zero=False), 0)


@topic.vector("{dtype}/{reduction}/beyond-the-range", dtype=INTEGERS, reduction=["sum", "prod"])
def beyond_the_range(dtype: str, reduction: str) -> Question:
    """Sums and products that leave the range, by a little and by much, upwards and downwards, and wrap."""
    high = (1 << (8 * tensor(dtype, 0).format.word_bytes - 1)) - 1
    rows = [[high, 1, 1], [high, high, high], [-high - 1, -1, -1], [-high - 1, -high - 1, 3], [high, -high, 5]]
    return questions.reduction(reduction, tensor(dtype, rows), 1)


@topic.vector("{dtype}/{reduction}/counted", dtype=list(COMPLEX), reduction=["sum", "prod", "mean"])
def complex_numbers(dtype: str, reduction: str) -> Question:
    """Complex rows of five: sums by part, products as (ac - bd, ad + bc), every step rounded."""
    real, imaginary = (counted(COMPLEX[dtype], (4, 5), seed) for seed in (236, 237))
    return questions.reduction(reduction, complex_of(dtype, real, imaginary), 1)


@topic.vector(
    "{dtype}/{reduction}/axis-{axis}", dtype=["bf16", "fp32"], reduction=["sum", "max"], axis=["0", "1", "-1", "-3"]
)
def axes(dtype: str, reduction: str, axis: str) -> Question:
    """Along any axis of three."""
    return questions.reduction(reduction, counted(dtype, (3, 2, 5), seed=238), int(axis))


@topic.vector("{dtype}/{reduction}/keepdims", dtype=["bf16", "int32"], reduction=["sum", "max", "argmax"])
def kept(dtype: str, reduction: str) -> Question:
    """The axis is kept with size 1."""
    return questions.reduction(reduction, counted(dtype, (3, 4), seed=239), 0, keepdims=True)


@topic.vector("{dtype}/{reduction}/nothing", dtype=["bf16", "fp32", "int32"], reduction=["sum", "prod"])
def nothing(dtype: str, reduction: str) -> Question:
    """The sum of nothing is +0, its product 1."""
    return questions.reduction(reduction, codes(dtype, (3, 0), []), 1)
