"""Elementary functions: correctly rounded in every float type, exhaustively in those of 8 and 16 bits."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan

from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.chapters.ir.kit.elements import every_code, joined, magnitudes, nearest, pairs
from tessera_conformance.oracle.exact import float_format
from tessera_conformance.vectors.building import FLOATS, Question, Topic, counted, float_edges, tensor

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
"""Arguments whose results overflow, become subnormal or vanish, are exact, or lie close to their argument."""


HALFWAY: dict[str, str] = {
    "exp": """
        0x1.6645e244a1c53p+8 0x1.b4adbee58aeadp+7 0x1.278765858d9e0p+8 -0x1.298963412debdp+7
        -0x1.48e14a6dc8d73p+8 0x1.cddf7164e5effp+7 0x1.7f0dc8883eefdp+8 -0x1.93cc89f90430fp+6
        -0x1.724ce11a748a5p+9 -0x1.6fbafcf1eee45p+9 -0x1.6fa59e691af9ep+9 -0x1.7094177ff57f8p+9
        -0x1.706769b20f87dp+9 -0x1.6fd39324784ffp+9
    """,
    "exp2": """
        -0x1.7173b98f048cfp+9 0x1.87f1bf1975b55p+9 0x1.c9da0e17edbbep+9 0x1.c9fca416f03a1p+9
        -0x1.eba256140db88p+9 -0x1.4c124f6646932p+9 0x1.2ba4bbb5659bdp+9 0x1.da738f2744a41p+9
        -0x1.d62b7d855b4e4p+4 0x1.bdb43c6208d7cp+4 0x1.2dffef4b82ffep+3 0x1.7e0af0afa2d63p+4
    """,
    "expm1": """
        0x1.c007ab4740b24p-9 0x1.33cb6620e71b0p+3 -0x1.7ae337e0625e7p+2 -0x1.c9af65051c1b6p+1
        -0x1.72e43c9ed02c4p-3 0x1.9c8222aa91784p-6
    """,
    "log": """
        0x1.324da81ab2e30p-197 0x1.5fe20ced92e72p-305 0x1.0c76683d15366p-582 0x1.0aeb85d8ceeb4p+132
        0x1.0514d86f3c6a4p+720 0x1.0f44267cb271dp+95 0x1.fef80e367c38bp-1 0x1.fecb6e9ed9aaep-1
        0x1.fe2ac566d6187p-1 0x1.ff95d24404905p-1 0x1.006264d3fd5c7p+0 0x1.00cb581e4ed60p+0
    """,
    "log2": """
        0x1.de6282c353347p+903 0x1.205fd40acc4b0p-305 0x1.8a27c77cd9c95p+161 0x1.01d7492e47f2cp-470
        0x1.3a6dec75fc4fcp-536 0x1.0e7b3875e93a6p+628 0x1.ff840f4271f32p-1 0x1.0052541969558p+0
        0x1.000ac709670d7p+0 0x1.0072ff356cdfep+0 0x1.fee97a2b298a4p-1 0x1.00958492ff9f3p+0
    """,
    "log1p": """
        0x1.28097db2fbe88p+1 0x1.0ab509de04186p+0 0x1.2e62e95c36636p-2 -0x1.8d1ee7fc8d134p-3
        0x1.3ecd82a440e9bp+1 0x1.20f3e179798aap+1 -0x1.e89b482e5e9bep-20 -0x1.e0804dfbc1bbfp-15
        0x1.960cee124e3e4p-18 -0x1.7f037761b8e6ep-9 -0x1.b630417661165p-16 0x1.22fe61eb298d1p-16
    """,
    "sin": """
        0x1.f27fd7c7953eep-10 0x1.9a8a4479fcca1p-10 -0x1.fdc7ff4c728fep-10 0x1.fc67b1739fefbp-10
        -0x1.9f0a99e0cf121p-10 0x1.98c10a9ec2e3ep-10 -0x1.48f1b85aec191p+1 0x1.cc2bec5fe920bp+10
        0x1.05786bf7ea5a3p+13 0x1.287fe01dc8554p+26 0x1.b57b76d2430e0p+33 0x1.cb362d5c0aa81p+33
    """,
    "cos": """
        0x1.2a6088b87dd9bp+23 0x1.db4991d63bce0p+36 0x1.b40a5e1417b15p+23 -0x1.53ee79c7e5650p+16
        -0x1.ee68742d9c217p+26 -0x1.7d76fafe51c3ep+18
    """,
    "tan": """
        -0x1.890fe3ce22602p+32 0x1.ad7cef07f2e90p+35 0x1.3f04b1a4012f7p+32 -0x1.da71132af40a0p+33
        0x1.08e0f965c263dp+21 -0x1.5563796b25a78p+35
    """,
    "sinh": """
        -0x1.aee509d422389p+4 -0x1.35b9d7722d6b0p+0 0x1.6a843751866bfp+1 0x1.832bb2d931f66p-3
        -0x1.6b7fd3d9f6c83p-1 -0x1.0d87554abc0fdp-6
    """,
    "cosh": """
        0x1.49b8b17ac4fa7p+6 0x1.4cc2c236fc9fdp+0 0x1.987c520badca4p+2 0x1.f6f0c7a9e45eep+2
        0x1.4923c59a598d3p+3 0x1.291162624a0c4p+4
    """,
    "tanh": """
        -0x1.c66b696cbe25dp+0 0x1.75b460b3cca9dp+1 -0x1.aad81e483d108p+2 0x1.a7bdff20814e9p-2
        -0x1.4221e73f40a54p+0 -0x1.a35b39b216349p-4
    """,
    "erf": """
        -0x1.fc8f75e81e086p-9 -0x1.ee8b2cb323232p-9 -0x1.ed759874f476fp-9 -0x1.e834264b0605cp-9
        -0x1.b0fbd077997dap-9 -0x1.ac37fa78d90bfp-9 -0x1.ac2f0b1b5a1b3p-2 -0x1.5b705f77871d4p-2
        0x1.796cea059a386p-3 0x1.73886ef8ec637p-2 0x1.cfa5705aed142p+0 0x1.c90a14887fd13p+1
    """,
}
"""Arguments in fp64 whose results lie within 2**-68 of a midpoint between two numbers, relatively: the nearest ones of
some millions; and for exp such with subnormal results, within 2**-53. What is right to 2**-64 rounds some wrongly."""


@topic.vector("{dtype}/{function}/edges", dtype=FLOATS, function=questions.ELEMENTARY)
def edges(dtype: str, function: str) -> Question:
    """Signed zeros, subnormals, the neighbours of one and of the limits, infinities, NaN, and what is special to it."""
    return questions.function(function, joined(float_edges(dtype), nearest(dtype, *THRESHOLDS[function])))


@topic.vector("{dtype}/{function}/all", dtype=["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"], function=questions.ELEMENTARY)
def every_value(dtype: str, function: str) -> Question:
    """Every code of the type."""
    return questions.function(function, every_code(dtype))


@topic.vector("{dtype}/{function}/counted", dtype=["fp16", "bf16", *WIDE], function=questions.ELEMENTARY)
def counted_values(dtype: str, function: str) -> Question:
    """Numbers of both signs between 2**-12 and 2**8 with full significands."""
    return questions.function(function, counted(dtype, (512,), seed=201, exponents=(-12, 7)))


@topic.vector(
    "{dtype}/{function}/far", dtype=WIDE, function=["log", "log2", "sin", "cos", "tan", "sqrt", "rsqrt", "reciprocal"]
)
def far_values(dtype: str, function: str) -> Question:
    """Numbers from all over the range: subnormal results, arguments of many turns."""
    reach = 1000 if dtype == "fp64" else 120
    return questions.function(function, counted(dtype, (256,), seed=202, exponents=(-reach, reach)))


@topic.vector("{dtype}/{function}/tiny", dtype=WIDE, function=["expm1", "log1p", "sin", "tan", "sinh", "tanh", "erf"])
def tiny_values(dtype: str, function: str) -> Question:
    """Arguments so small that the result is the argument, or its neighbour, or 2/sqrt(pi) of it."""
    reach = -1020 if dtype == "fp64" else -120
    return questions.function(function, counted(dtype, (128,), seed=203, exponents=(reach, -13)))


@topic.vector("fp64/{function}/halfway", function=list(HALFWAY))
def nearly_halfway(function: str) -> Question:
    """Arguments whose results lie next to the midpoint of two numbers, which tell what is correctly rounded."""
    return questions.function(function, tensor("fp64", [float.fromhex(word) for word in HALFWAY[function].split()]))


@topic.vector("{dtype}/pow/edges", dtype=FLOATS)
def power_edges(dtype: str) -> Question:
    """Every edge value to the power of every other: zeros, infinities, NaN, negative bases, 1 and 0."""
    infinities = [] if dtype == "fp8_e4m3" else [inf, -inf]
    finite = [0, -0.0, 1, -1, 2, -2, Fraction(1, 2), Fraction(-1, 2), 3, -3, Fraction(3, 2)]
    values = tensor(dtype, [*finite, *infinities, nan])
    return questions.power(*pairs(values, values))


@topic.vector("{dtype}/pow/exact", dtype=FLOATS)
def exact_powers(dtype: str) -> Question:
    """Powers that are numbers of the type, or lie exactly halfway between two of them."""
    fine = [] if dtype == "fp8_e5m2" else [9, 13, Fraction(9, 4)]
    bases = [2, 3, 5, 7, 4, *fine, Fraction(3, 2), Fraction(5, 4), Fraction(1, 4), -3, -5]
    exponents = tensor(dtype, [2, 3, -1, Fraction(1, 2), Fraction(-1, 2), Fraction(3, 2)])
    return questions.power(*pairs(tensor(dtype, bases), exponents))


@topic.vector("{dtype}/pow/counted", dtype=FLOATS)
def counted_powers(dtype: str) -> Question:
    """Positive bases and exponents of both signs with full significands."""
    near, far = ((-3, 2), (-2, 2)) if dtype.startswith("fp8") else ((-6, 6), (-4, 4))
    bases = magnitudes(counted(dtype, (256,), seed=204, exponents=near))
    return questions.power(bases, counted(dtype, (256,), seed=205, exponents=far))


@topic.vector("{dtype}/pow/halfway", dtype=["fp32", "fp64"])
def halfway_powers(dtype: str) -> Question:
    """Powers of the neighbours of one and minus one, which lie beside a midpoint by about the square of epsilon."""
    half = float_format(dtype).epsilon / 2
    powers = [(1 + 2 * half, n) for n in (0.5, 1.5, 2.5, -0.5, -1.5)] + [(1 - half, n) for n in (0.5, 1.5, -1, -3, -5)]
    powers += [(half - 1, n) for n in (-1, -3, -5)]
    return questions.power(tensor(dtype, [x for x, _ in powers]), tensor(dtype, [y for _, y in powers]))


@topic.vector("{dtype}/pow/large-whole", dtype=["fp32", "fp64"])
def large_whole_powers(dtype: str) -> Question:
    """Negative bases to the largest odd number, its even neighbours and half of them: the last bit decides the sign."""
    last = int(2 / float_format(dtype).epsilon) - 1
    exponents = tensor(dtype, [*(side * n for n in (last, last - 1, last + 1, last // 2 + 2) for side in (1, -1))])
    return questions.power(*pairs(tensor(dtype, [-1, -2, -0.0, -inf]), exponents))
