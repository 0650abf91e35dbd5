"""Norms along an axis: means over the canonical tree, a correctly rounded root, every step in the accumulator type."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan

from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.chapters.ir.kit.elements import require_different
from tessera_conformance.oracle.exact import float_format
from tessera_conformance.oracle.reductions import mean
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import FLOATS, Question, Topic, counted, tensor

topic = Topic(__doc__)

NORMS = ["layer_norm", "rms_norm"]
WIDE = ["tf32", "fp32", "fp64"]
INFINITE = [dtype for dtype in FLOATS if dtype != "fp8_e4m3"]


def normed(norm: str, x: Tensor, axis: int | None = None, **settings: float) -> Question:
    """A norm with counted factors and addends."""
    extent = x.shape[-1 if axis is None else axis]
    vectors = [counted(x.dtype, (extent,), seed) for seed in (402, 403)]
    along = {} if axis is None else {"axis": axis}
    if norm == "rms_norm":
        return questions.rms_norm(x, vectors[0], **along, **settings)
    return questions.layer_norm(x, *vectors, **along, **settings)


@topic.vector("{dtype}/{norm}/small", dtype=FLOATS, norm=NORMS)
def small(dtype: str, norm: str) -> Question:
    """Two rows of four small numbers."""
    return normed(norm, tensor(dtype, [[0, 1, 2, 3], [-1, Fraction(1, 2), 0, -2]]))


@topic.vector("{dtype}/{norm}/n-{n}", dtype=FLOATS, norm=NORMS, n=["1", "2", "3", "7", "8", "13"])
def lengths(dtype: str, norm: str, n: str) -> Question:
    """Row lengths around the powers of two: an odd tail is carried, and the count is no power of two."""
    return normed(norm, counted(dtype, (5, int(n)), seed=401))


@topic.vector("{dtype}/{norm}/order", dtype=WIDE, norm=NORMS)
def order(dtype: str, norm: str) -> Question:
    """Rows of thirteen numbers whose means differ along the canonical tree and from left to right."""
    x = counted(dtype, (8, 13), seed=404, exponents=(-8, 8))
    require_different([mean(x), mean(x, tree="fold")], "pairwise tree and left fold")
    return normed(norm, x)


@topic.vector("{dtype}/layer_norm/far-from-zero", dtype=FLOATS)
def far_from_zero(dtype: str) -> Question:
    """Numbers just above 16: the mean of the squares less the square of the mean has lost the variance."""
    return normed("layer_norm", counted(dtype, (3, 16), seed=405, exponents=(4, 4)))


@topic.vector("{dtype}/{norm}/eps-{eps}", dtype=FLOATS, norm=NORMS, eps=["0.0", "1e-12", "0.1", "2.5"])
def epsilons(dtype: str, norm: str, eps: str) -> Question:
    """Added under the root, rounded once; without it a row of zeros is zero times infinity."""
    rows = [[0, 0, 0, 0], [Fraction(1, 64), 0, Fraction(-1, 64), 0], [1, -1, 2, -2], [3, 3, 3, 3]]
    return normed(norm, tensor(dtype, rows), eps=float(eps))


@topic.vector("{dtype}/{norm}/axis-{axis}", dtype=["bf16", "fp32"], norm=NORMS, axis=["0", "1", "2", "-1", "-2", "-3"])
def axes(dtype: str, norm: str, axis: str) -> Question:
    """Along any axis of three, counted from the front or the back; the vectors follow it."""
    return normed(norm, counted(dtype, (3, 2, 5), seed=406), int(axis))


@topic.vector("{dtype}/{norm}/vector", dtype=["bf16", "fp32"], norm=NORMS)
def vector(dtype: str, norm: str) -> Question:
    """A tensor of rank 1 is a single row."""
    return normed(norm, counted(dtype, (9,), seed=407))


@topic.vector("{dtype}/{norm}/special", dtype=INFINITE, norm=NORMS)
def special(dtype: str, norm: str) -> Question:
    """A row with NaN or an infinity is what the arithmetic gives, and no other row is touched."""
    return normed(norm, tensor(dtype, [[nan, 1, 2], [inf, 1, 2], [1, -inf, 2], [1, 2, 3], [-0.0, 0, -0.0]]))


@topic.vector("{dtype}/{norm}/limits", dtype=FLOATS, norm=NORMS)
def limits(dtype: str, norm: str) -> Question:
    """The largest and smallest numbers: squares that overflow make the root vanish, those that vanish leave eps."""
    format_ = float_format(dtype)
    large, least = format_.largest, Fraction(2) ** format_.smallest_exponent
    return normed(norm, tensor(dtype, [[large, -large, large], [large, 0, 0], [least, -least, 0], [large, least, 1]]))
