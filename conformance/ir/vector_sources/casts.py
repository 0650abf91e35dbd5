"""Casts: one rounding from the exact value between all dtypes; fp8 saturates unless it is told not to."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan

from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.chapters.ir.kit.elements import every_code, integer_edges, joined, nearest
from tessera_conformance.oracle.exact import float_format
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    Question,
    Topic,
    complex_of,
    counted,
    float_edges,
    tensor,
)

topic = Topic(__doc__)

NARROW = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"]
FP8 = ["fp8_e4m3", "fp8_e5m2"]
TURNING = [464, 448, 480, 61440, 57344, 65504, 65520, 65536, 240, 2.0**-7, 2.0**-10, 2.0**-17, 2.0**-25, 2.0**-134]
"""Borders of the narrow types: overflow, the number that still rounds down, half of their smallest numbers."""


def between(source: str, target: str) -> Tensor:
    """Numbers of `source` on, just below and just above the midpoints between numbers of `target`."""
    format_ = float_format(target)
    low = format_.smallest
    midpoints = [1 + format_.epsilon / 2 * odd for odd in (1, 3, 5)]
    midpoints += [
        low / 2,
        low * Fraction(3, 2),
        format_.smallest_normal - low / 2,
        format_.largest * (1 + format_.epsilon / 8),
    ]
    return nearest(source, *midpoints, *(-number for number in midpoints))


@topic.vector("{source}-to-{target}/edges", source=FLOATS, target=[*FLOATS])
def between_floats(source: str, target: str) -> Question:
    """Edge values and numbers beside midpoints of the target: ties go to even, subnormals are kept, fp8 saturates."""
    values = joined(float_edges(source), between(source, target), nearest(source, *TURNING))
    return questions.cast(values, target)


@topic.vector("{source}-to-{target}/nonfinite", source=FLOATS, target=FP8)
def not_saturating(source: str, target: str) -> Question:
    """With overflow "nonfinite", what is too large becomes infinite, or NaN in e4m3; 464 still rounds to 448."""
    values = joined(float_edges(source), between(source, target), nearest(source, *TURNING))
    return questions.cast(values, target, "nonfinite")


@topic.vector("{source}-to-{target}/all", source=NARROW, target=["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "fp32"])
def every_value(source: str, target: str) -> Question:
    """Every code of a narrow type."""
    return questions.cast(every_code(source), target)


@topic.vector("{source}-to-{target}/counted", source=["fp32", "fp64"], target=FLOATS)
def counted_values(source: str, target: str) -> Question:
    """Numbers with full significands; rounding through a type in between would differ for some."""
    return questions.cast(counted(source, (512,), seed=221, exponents=(-12, 7)), target)


@topic.vector("fp64-to-{target}/twice", target=["bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "fp32"])
def double_rounding(target: str) -> Question:
    """Numbers a hair beside a midpoint of the target, which rounding to fp32 first would put on it."""
    e = float_format(target).epsilon
    hair = Fraction(1, 1 << 50)
    numbers = [1 + e / 2 * odd + side * hair for odd in (1, 3) for side in (-1, 1)]
    return questions.cast(tensor("fp64", [*numbers, *(-number for number in numbers)]), target)


@topic.vector("{source}-to-{target}/edges", source=INTEGERS, target=[*INTEGERS, *FLOATS, "bool"])
def from_integers(source: str, target: str) -> Question:
    """Integers wrap into narrower ones, round once into floats, and are true unless zero."""
    return questions.cast(integer_edges(source), target)


@topic.vector("int64-to-{target}/large", target=FLOATS)
def large_integers(target: str) -> Question:
    """Integers of 63 bits, which fp64 does not hold: rounding through it first would differ."""
    halves = [
        (1 << 62) + (1 << shift) * odd + side for shift in (9, 38, 51, 54) for odd in (1, 3) for side in (-1, 0, 1)
    ]
    return questions.cast(tensor("int64", [*halves, *(-number for number in halves)]), target)


@topic.vector("int64-to-{target}/beyond-fp64", target=FLOATS)
def beyond_fp64(target: str) -> Question:
    """Integers of 54 bits, the first that fp64 does not hold, on midpoints of narrower types and beside them."""
    halves = [(1 << 53) + (1 << shift) * odd + side for shift in (0, 29, 45) for odd in (1, 3) for side in (-1, 0, 1)]
    return questions.cast(tensor("int64", [*halves, *(-number for number in halves)]), target)


@topic.vector("{source}-to-{target}/in-range", source=FLOATS, target=INTEGERS)
def to_integers(source: str, target: str) -> Question:
    """Fractions are cut off toward zero; every value is one that the integer type has."""
    numbers = [
        0,
        -0.0,
        1,
        Fraction(1, 2),
        Fraction(-1, 2),
        Fraction(3, 2),
        Fraction(-7, 4),
        Fraction(5, 2),
        -6,
        112,
        -128,
    ]
    return questions.cast(tensor(source, numbers), target)


@topic.vector("{source}-to-bool/edges", source=FLOATS)
def to_bool(source: str) -> Question:
    """Whatever differs from zero is true: subnormals and NaN too, -0 not."""
    return questions.cast(float_edges(source), "bool")


@topic.vector("bool-to-{target}/both", target=[*FLOATS, *INTEGERS])
def from_bool(target: str) -> Question:
    """False is 0 and true is 1."""
    return questions.cast(tensor("bool", [0, 1]), target)


@topic.vector("{source}-to-{target}/edges", source=["fp32", "fp64", "int32"], target=list(COMPLEX))
def to_complex(source: str, target: str) -> Question:
    """A real number becomes the real part, rounded once, beside an imaginary part of +0."""
    return questions.cast(integer_edges(source) if source == "int32" else float_edges(source), target)


@topic.vector("{source}-to-{target}/edges", source=list(COMPLEX), target=list(COMPLEX))
def between_complex(source: str, target: str) -> Question:
    """Each part is rounded for itself, signed zeros and infinities included."""
    parts = tensor(COMPLEX[source], [0, -0.0, 1, -3, inf, -inf, nan, float_format("fp32").largest])
    return questions.cast(complex_of(source, parts, tensor(COMPLEX[source], [-0.0, 1, 0, inf, 2, nan, 1, -5])), target)
