"""Softmax: subtract the maximum, correctly rounded exponentials, the canonical tree, a division, one final rounding."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan

from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.chapters.ir.kit.elements import require_different
from tessera_conformance.oracle.exact import float_format
from tessera_conformance.oracle.reductions import softmax
from tessera_conformance.vectors.building import Question, Topic, counted, tensor

topic = Topic(__doc__)

FLOATS = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]
WIDE = ["tf32", "fp32", "fp64"]
FINITE = ("LANG-15-08", "LANG-15-09")


@topic.vector("{dtype}/small", *FINITE, dtype=FLOATS)
def small(dtype: str) -> Question:
    """Two rows of four small numbers."""
    return questions.softmax(tensor(dtype, [[0, 1, 2, 3], [-1, Fraction(1, 2), 0, -2]]))


@topic.vector("{dtype}/n-{n}", *FINITE, dtype=FLOATS, n=["2", "3", "5", "7", "16"])
def lengths(dtype: str, n: str) -> Question:
    """Row lengths around the powers of two: an odd tail is carried, never padded."""
    return questions.softmax(counted(dtype, (4, int(n)), seed=71))


@topic.vector("{dtype}/tree", "LANG-10-06", "LANG-10-01", *FINITE, dtype=WIDE)
def tree(dtype: str) -> Question:
    """Rows of eleven whose exponentials sum differently along the canonical tree and from left to right."""
    x = counted(dtype, (6, 11), seed=72)
    require_different([softmax(x), softmax(x, tree="fold")], "pairwise tree and left fold")
    return questions.softmax(x)


@topic.vector("{dtype}/one", *FINITE, dtype=FLOATS)
def one_element(dtype: str) -> Question:
    """A row of one element gives exactly 1, whatever the element."""
    return questions.softmax(tensor(dtype, [[0], [-3], [float_format(dtype).largest]]))


@topic.vector("{dtype}/equal", *FINITE, dtype=FLOATS)
def equal_elements(dtype: str) -> Question:
    """Equal elements share evenly, rounded: three times a third, and quarters exactly."""
    return questions.softmax(tensor(dtype, [[5, 5, 5, 5], [-0.0, 0, -0.0, 0]]))


@topic.vector("{dtype}/large", "LANG-10-03", *FINITE, dtype=FLOATS)
def large_magnitudes(dtype: str) -> Question:
    """Elements near the limits of the type: without the maximum taken off first, exponentials overflow or vanish."""
    largest = float_format(dtype).largest
    rows = [[largest, largest, largest / 2], [-largest, -largest, -largest / 2], [largest, -largest, 0], [112, 96, 112]]
    return questions.softmax(tensor(dtype, rows))


@topic.vector("{dtype}/underflow", *FINITE, dtype=FLOATS)
def underflow(dtype: str) -> Question:
    """Exponentials that are subnormal, smallest or zero: probabilities may be 0, never negative or NaN."""
    depths = [0, -8, -16, -20, -80, -96, -112, -128, -160, -192, -224, -448]
    thresholds = {"fp64": [-708, -709, -744, -745, -746], "fp8_e4m3": [], "fp8_e5m2": []}
    return questions.softmax(tensor(dtype, [[*depths, *thresholds.get(dtype, [-87, -88, -102, -103, -104])]]))


@topic.vector("{dtype}/negative-infinity", dtype=[dtype for dtype in FLOATS if dtype != "fp8_e4m3"])
def negative_infinity(dtype: str) -> Question:
    """Masked elements get 0 and the others share; a row with nothing but masks is NaN, and only that row."""
    return questions.softmax(tensor(dtype, [[-inf, 1, 2, -inf], [-inf] * 4, [0, -inf, -inf, -inf]]))


@topic.vector("{dtype}/infinity", dtype=[dtype for dtype in FLOATS if dtype != "fp8_e4m3"])
def positive_infinity(dtype: str) -> Question:
    """A row with +inf is what the arithmetic gives: NaN at the infinity and so everywhere in the row, nowhere else."""
    return questions.softmax(tensor(dtype, [[inf, 1, 2], [1, 2, 3]]))


@topic.vector("{dtype}/nan", dtype=FLOATS)
def nan_row(dtype: str) -> Question:
    """A NaN spoils its own row and no other."""
    return questions.softmax(tensor(dtype, [[1, nan, 2], [1, 2, 3], [nan, nan, nan]]))


@topic.vector("{dtype}/axis-{axis}", *FINITE, dtype=["bf16", "fp32"], axis=["0", "1", "-1", "-2", "-3"])
def axes(dtype: str, axis: str) -> Question:
    """Along any axis of three, counted from the front or the back."""
    return questions.softmax(counted(dtype, (3, 2, 5), seed=73), int(axis))


@topic.vector("{dtype}/vector", *FINITE, dtype=["bf16", "fp32"])
def vector(dtype: str) -> Question:
    """A tensor of rank 1 is a single row."""
    return questions.softmax(counted(dtype, (9,), seed=74))
