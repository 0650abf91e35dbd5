"""Elementary functions: correctly rounded in every float type, exhaustively in those of 8 and 16 bits."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan

from tessera_conformance.vectors import programs
from tessera_conformance.vectors.building import Question, Topic, tensor
from tessera_conformance.vectors.counter import counted
from tessera_conformance.vectors.edges import FLOATS, every_code, float_edges, joined, magnitudes, nearest, pairs

topic = Topic(__doc__)

WIDE = ["tf32", "fp32", "fp64"]
TURNS = [Fraction(314159265358979323846, 10**20) * Fraction(n, 4) for n in (1, 2, 3, 4, 6, 8, 14, 100, 1000)]
"""Multiples of a quarter of pi, near which sines, cosines and tangents lose all their leading digits."""

THRESHOLDS: dict[str, list[float | Fraction]] = {
    "exp": [88.72283905, -87.33654475, -103.97207708, 709.782712893384, -708.396418532264, -745.133219101941, 11.0898],
    "exp2": [128, -126, -149, -150, 1024, -1022, -1074, -1075, 15.99, 16, -14, -24, -25, 0.5],
    "expm1": [88.72283905, -17.32868, -36.7368, 709.782712893384, 1e-4, -1e-4, 1e-9],
    "log": [1, 2.718281828459045, 1.0001, 0.9999],
    "log2": [1, 2, 4, 0.25, 1024, 1.0001, 0.9999],
    "log1p": [-1, -0.5, 1e-4, -1e-4, 1e-9, 1.718281828459045],
    "sin": [*TURNS, 1e22, 16367173.0],
    "cos": [*TURNS, 1e22, 16367173.0],
    "tan": [*TURNS, 1e22, 16367173.0],
    "sinh": [89.41598629, 710.475860073944, 1e-4, -1e-4, 22],
    "cosh": [89.41598629, 710.475860073944, 1e-4, 22],
    "tanh": [9.010913, 19.0615, 1e-4, -1e-4, 0.5493061443],
    "erf": [3.9192, 5.9216, 1e-4, -1e-4, 0.476936276],
    "sqrt": [2, 4, 0.25, 9, 1e-40],
    "rsqrt": [1, 2, 4, 0.25, 16, 1e-40],
    "reciprocal": [1, 2, 3, 1e-40, 1.7e38, 65504],
}
"""Where results overflow, become subnormal or vanish, are exact, or lie close to their argument."""


@topic.vector("{dtype}/{function}/edges", dtype=FLOATS, function=programs.ELEMENTARY)
def edges(dtype: str, function: str) -> Question:
    """Signed zeros, subnormals, the neighbours of one and of the limits, infinities, NaN, and what is special to it."""
    return programs.function(function, joined(float_edges(dtype), nearest(dtype, *THRESHOLDS[function])))


@topic.vector("{dtype}/{function}/all", dtype=["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"], function=programs.ELEMENTARY)
def every_value(dtype: str, function: str) -> Question:
    """Every code of the type."""
    return programs.function(function, every_code(dtype))


@topic.vector("{dtype}/{function}/counted", dtype=["fp16", "bf16", *WIDE], function=programs.ELEMENTARY)
def counted_values(dtype: str, function: str) -> Question:
    """Numbers of both signs between 2**-12 and 2**8 with full significands."""
    return programs.function(function, counted(dtype, (512,), seed=201, exponents=(-12, 7)))


@topic.vector(
    "{dtype}/{function}/far", dtype=WIDE, function=["log", "log2", "sin", "cos", "tan", "sqrt", "rsqrt", "reciprocal"]
)
def far_values(dtype: str, function: str) -> Question:
    """Numbers from all over the range: subnormal results, arguments of many turns."""
    reach = 1000 if dtype == "fp64" else 120
    return programs.function(function, counted(dtype, (256,), seed=202, exponents=(-reach, reach)))


@topic.vector("{dtype}/{function}/tiny", dtype=WIDE, function=["expm1", "log1p", "sin", "tan", "sinh", "tanh", "erf"])
def tiny_values(dtype: str, function: str) -> Question:
    """Arguments so small that the result is the argument, or its neighbour, or 2/sqrt(pi) of it."""
    reach = -1020 if dtype == "fp64" else -120
    return programs.function(function, counted(dtype, (128,), seed=203, exponents=(reach, -13)))


@topic.vector("{dtype}/pow/edges", dtype=FLOATS)
def power_edges(dtype: str) -> Question:
    """Every edge value to the power of every other: zeros, infinities, NaN, negative bases, 1 and 0."""
    infinities = [] if dtype == "fp8_e4m3" else [inf, -inf]
    finite = [0, -0.0, 1, -1, 2, -2, Fraction(1, 2), Fraction(-1, 2), 3, -3, Fraction(3, 2)]
    values = tensor(dtype, [*finite, *infinities, nan])
    return programs.power(*pairs(values, values))


@topic.vector("{dtype}/pow/exact", dtype=FLOATS)
def exact_powers(dtype: str) -> Question:
    """Powers that are numbers of the type, or lie exactly halfway between two of them."""
    fine = [] if dtype == "fp8_e5m2" else [9, 13, Fraction(9, 4)]
    bases = [2, 3, 5, 7, 4, *fine, Fraction(3, 2), Fraction(5, 4), Fraction(1, 4), -3, -5]
    exponents = tensor(dtype, [2, 3, -1, Fraction(1, 2), Fraction(-1, 2), Fraction(3, 2)])
    return programs.power(*pairs(tensor(dtype, bases), exponents))


@topic.vector("{dtype}/pow/counted", dtype=FLOATS)
def counted_powers(dtype: str) -> Question:
    """Positive bases and exponents of both signs with full significands."""
    near, far = ((-3, 2), (-2, 2)) if dtype.startswith("fp8") else ((-6, 6), (-4, 4))
    bases = magnitudes(counted(dtype, (256,), seed=204, exponents=near))
    return programs.power(bases, counted(dtype, (256,), seed=205, exponents=far))
